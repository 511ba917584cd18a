"""Typed relations over the tests' ledger: register, append, see refused, fold, ask."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from contracts.claims import ProjectedClaim, Span
from contracts.errors import WrongValue
from contracts.events import ClaimDraft, EventDraft, Stance
from contracts.grants import LOCAL_GRANT
from contracts.relations import ValueType
from contracts.views import ViewRequest
from ledger import log
from ledger._relations import unregistered
from ledger.resolve import pin, resolve
from ledger.write import fold, register_contract
from tests.ledger.scenario_logs import PlainProjector

NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


async def typed(db, relation, kind, *, unit=None, schema=None, new_epoch=False, **fields):
    contract = replace(unregistered(relation), value_type=ValueType(kind), unit=unit, schema=schema, **fields)
    return await register_contract(
        db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT, new_epoch=new_epoch
    )


def event(*claims, source="r1", kind="claim", source_class="sensor", **fields):
    actor = {"id": source, "class": source_class}
    form = {"stream": "s", "kind": kind, "actor": actor, "claims": list(claims)}
    return EventDraft.model_validate(form | fields)


def claim(value=None, relation="range", **fields):
    given = {} if value is None else {"value": value}
    return {"entity": "box", "relation": relation, **given, **fields}


async def append(db, *events):
    return await log.append(db, "acme", events, grant=LOCAL_GRANT)


async def refused(db, *events):
    """Append what must be refused, and see that nothing was written."""
    before = await head(db)
    with pytest.raises(WrongValue) as caught:
        await append(db, *events)
    assert await head(db) == before
    return caught.value


async def head(db):
    async with db.snapshot("acme") as conn:
        return await log.head(conn)


async def fold_all(db, projector=None, *, events_max=100):
    unplaced = 0
    while True:
        report = await fold(db, "acme", projector or PlainProjector(), events_max=events_max)
        unplaced += report.unplaced + (report.built.unplaced if report.built else 0)
        if report.is_at_head:
            return replace(report, unplaced=unplaced)


async def ask(db, relation="range", *, request=NEWEST):
    view = await pin(db, "acme", request, wait_ms=0)
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        return await resolve(conn, keys, view, "box", relation)


async def open_cells(db):
    async with db.snapshot("acme") as conn:
        return await conn.scalar(sa.text("SELECT count(*) FROM cell WHERE upper_inf(known)"))


class Reads(PlainProjector):
    """Reads one value for the range out of any text."""

    def __init__(self, value) -> None:
        self.value = value

    def project(self, event):
        if event.draft.text is None:
            return super().project(event)
        draft = ClaimDraft.model_validate(claim(self.value))
        spans = (Span(start=0, end=3),)
        return [ProjectedClaim(ordinal=0, draft=draft, stance=Stance.ASSERT, spans=spans)]
