"""A ledger that is told claims a day apart, and read at any commit: for tests of reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.views import ViewRequest
from ledger import log
from ledger import resolve as reads
from ledger.write import fold
from tests.ledger.scenario_logs import PlainProjector

DAY = timedelta(days=1)
NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
FIRST = datetime(2026, 1, 1, 12, tzinfo=UTC)


def day(number):
    return datetime(2026, 1, number, tzinfo=UTC)


class Told:
    """A ledger that is told claims, one commit a day, and read at any commit."""

    def __init__(self, db, clock):
        self.db, self.clock = db, clock

    async def __call__(self, *claims, source="ann", kind="claim", fold_it=True):
        self.clock.now += DAY
        form = {
            "stream": "s",
            "kind": kind,
            "actor": {"id": source, "class": "user"},
            "claims": [claim | {"relation": claim.get("relation", "home")} for claim in claims],
        }
        receipt = await log.append(self.db, "acme", [EventDraft.model_validate(form)], grant=LOCAL_GRANT)
        if fold_it:
            while not (await fold(self.db, "acme", PlainProjector(), events_max=50)).is_at_head:
                pass
        return receipt

    async def view(self, commit=None, **fields):
        view = await reads.pin(self.db, "acme", NEWEST, wait_ms=0)
        return replace(view, cut=view.cut if commit is None else commit, **fields)

    async def read(self, function, *args, **kwargs):
        async with self.db.snapshot("acme") as conn:
            return await function(conn, await log.tenant_keys(self.db, "acme", conn), *args, **kwargs)

    async def history(self, entity, relation="home", *, cut=None, **window):
        open_ = {"valid_from": None, "valid_to": None, "known_from": None, "known_to": None}
        view = await self.view(cut)
        return await self.read(
            reads.history, entity, relation, epoch=view.epoch, cut=view.cut,
            window=reads.Window(**(open_ | window)),
        )  # fmt: skip

    async def timeline(self, entity, cut=None, *, relation="home", valid_from=None, valid_to=None):
        view = await self.view(cut)
        return await self.read(
            reads.timeline, view, entity, relation, valid_from=valid_from, valid_to=valid_to
        )

    async def diff(self, before, after, *, entity=None, relation=None, at_instants=False, from_line=0):
        return await self.read(
            reads.diff, before, after, entity=entity, relation=relation, at_instants=at_instants,
            from_line=from_line,
        )  # fmt: skip

    async def join(self, left, right, *, on_value=False, bitemporal=False, cut=None):
        return await self.read(
            reads.join, await self.view(cut), left, right, on_value=on_value, bitemporal=bitemporal,
            valid_from=None, valid_to=None,
        )  # fmt: skip


def span(value, start, end, *, entity="ann", **more):
    bounds = {
        "from": None if start is None else start.isoformat(),
        "to": None if end is None else end.isoformat(),
    }
    return {"entity": entity, "value": value, "valid": bounds, **more}


def since(value, start, *, entity="ann", **more):
    return {"entity": entity, "value": value, "valid": {"since": start.isoformat()}, **more}


def shown(found):
    return [
        (
            one.claims[0].value if one.claims else None,
            one.valid_from,
            one.valid_to,
            one.known_from,
            one.known_to,
        )
        for one in found.rectangles
    ]
