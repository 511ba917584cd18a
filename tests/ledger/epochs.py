"""Epochs of one tenant, `acme`: what tests say, register and look at."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from contracts.claims import OPERATOR, SELF
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.relations import OTHERS, Cardinality
from contracts.views import ViewRequest
from ledger import log
from ledger._relations import unregistered
from ledger.log import list_epochs
from ledger.resolve import pin, resolve
from ledger.write import begin_epoch, fold, ledger_digest, register_contract
from tests.ledger.folded import FOLDED_TABLES
from tests.ledger.scenario_logs import PlainProjector

NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
MANY = replace(unregistered("home"), cardinality=Cardinality.MANY)
BOB_FIRST = replace(unregistered("home"), authority=(("bob",), (SELF,), (OPERATOR,), (OTHERS,)))


class Newer(PlainProjector):
    version = "plain-2"


class Choking(PlainProjector):
    """Cannot project one value."""

    def project(self, event):
        if any(claim.value == "poison" for claim in event.draft.claims):
            raise ZeroDivisionError("secret content")
        return super().project(event)


def said(actor, value, relation="home"):
    return EventDraft.model_validate({
        "stream": "s", "kind": "claim", "actor": {"id": actor, "class": "user"},
        "claims": [{"entity": "box", "relation": relation, "value": value}],
    })  # fmt: skip


@pytest.fixture(name="say")
def saying(db):
    async def say(actor, value, relation="home", *, folded=True):
        await log.append(db, "acme", [said(actor, value, relation)], grant=LOCAL_GRANT)
        if folded:
            await fold_all(db)

    return say


@pytest.fixture(name="register")
def registering(db):
    async def register(contract, *, new_epoch=False):
        return await register_contract(
            db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT, new_epoch=new_epoch
        )

    return register


async def fold_all(db, projector=None, *, events_max=100):
    while not (await fold(db, "acme", projector or PlainProjector(), events_max=events_max)).is_at_head:
        pass


async def rebuild(db, version="plain-1", **more):
    return await begin_epoch(
        db, "acme", projector_version=version, stream="c", actor_id="op", grant=LOCAL_GRANT, **more
    )


async def states(db):
    return [(epoch.number, epoch.state.value, epoch.commit) for epoch in await list_epochs(db, "acme")]


async def ask(db, relation="home", **request):
    view = await pin(db, "acme", replace(NEWEST, **request), wait_ms=0)
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        return (await resolve(conn, keys, view, "box", relation)).resolution


async def digest(db, epoch):
    async with db.snapshot("acme") as conn:
        return await ledger_digest(conn, epoch)


async def refold(db, owner, epoch, projector=None, *, events_max=3):
    """Fold one epoch from nothing to where it stood, as if no worker had ever run in it."""
    stood = next(one for one in await list_epochs(db, "acme") if one.number == epoch)
    async with owner.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        for table in FOLDED_TABLES:
            where = "line IN (SELECT line FROM line WHERE epoch = :e)" if table == "cell" else "epoch = :e"
            await conn.execute(sa.text(f"DELETE FROM {table} WHERE {where}"), {"e": epoch})
        await conn.execute(sa.text("UPDATE epoch SET state = 'retired' WHERE state <> 'dropped'"))
        await conn.execute(
            sa.text(
                "UPDATE epoch SET state = 'serving', commit = 0, position = 0, projector_version = '' "
                "WHERE epoch = :e"
            ),
            {"e": epoch},
        )
    commit = 0
    while commit < stood.commit:
        # Each commit of these tests is one event: no further than it stood.
        size = min(events_max, stood.commit - commit)
        commit = (await fold(db, "acme", projector or PlainProjector(), events_max=size)).commit
