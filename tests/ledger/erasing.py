"""A real ledger of one tenant that tests of erasure say things to, erase from, ask, and fold anew."""

from __future__ import annotations

import dataclasses
import re
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from contracts.erasures import ErasureRequest
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.resolutions import Missing
from contracts.times import ValidAt, parse_instant
from contracts.views import ViewRequest
from ledger import _digest as digests
from ledger import log
from ledger._relations import unregistered
from ledger.erase import erase
from ledger.resolve import pin, resolve, verify_cells
from ledger.write import fold, ledger_digest, register_contract, verify_claims
from tests.ledger.folded import FOLDED_TABLES
from tests.ledger.random_logs import CONTRACTS
from tests.ledger.scenario_logs import PlainProjector

PROJECTOR = PlainProjector()


def said(name, *claims, actor="ann", actor_class="user", **fields):
    return EventDraft.model_validate({
        "stream": "s", "kind": "claim", "actor": {"id": actor, "class": actor_class},
        "source_event_id": name, "claims": list(claims), **fields,
    })  # fmt: skip


def claim(entity, relation, value, **fields):
    return {"entity": entity, "relation": relation, "value": value, **fields}


def day(number):
    """The first of a month of 2026."""
    return f"2026-{number:02d}-01T00:00:00Z"


def since(number):
    return {"valid": {"since": day(number)}}


class Ledger:
    """One tenant: append, fold, erase, ask; and fold the same log anew."""

    def __init__(self, db, urls):
        self.db = db
        self.owner = create_async_engine(urls.owner)
        self.ids = {}
        self.epoch = 1

    async def say(self, *drafts):
        receipt = await log.append(self.db, "acme", list(drafts), grant=LOCAL_GRANT)
        for draft, event_id in zip(drafts, receipt.event_ids, strict=True):
            self.ids[draft.source_event_id] = event_id
        return receipt

    async def fold(self, events_max=100):
        while not (await fold(self.db, "acme", PROJECTOR, events_max=events_max)).is_at_head:
            pass

    async def erase(self, *names, subject=None, grant=LOCAL_GRANT):
        ids = tuple(self.ids.get(name, name) for name in names)
        request = ErasureRequest(subject=subject, event_ids=ids)
        return await erase(self.db, "acme", PROJECTOR, request, grant=grant)

    async def ask(self, entity, relation, *, cut=None, at="2026-06-01T00:00:00Z"):
        request = ViewRequest(
            valid_at=ValidAt(parse_instant(at, field="at")), known_at=None, generation=None, min_commit=None
        )
        view = await pin(self.db, "acme", request, wait_ms=0)
        view = view if cut is None else dataclasses.replace(view, cut=cut)
        async with self.db.snapshot("acme") as conn:
            keys = await log.tenant_keys(self.db, "acme", conn)
            return (await resolve(conn, keys, view, entity, relation)).resolution

    async def reason(self, entity, relation, **at):
        """Why a key has nothing."""
        answer = await self.ask(entity, relation, **at)
        assert isinstance(answer, Missing), answer
        return answer.reason

    async def register(self, relation, *, like="tags"):
        """Register a relation, of many values or like another."""
        contract = dataclasses.replace(CONTRACTS.of(like), relation=relation)
        await register_contract(self.db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)

    async def register_anew(self, relation, value_type):
        """Give a relation a type in a new epoch, in which it had it from the first event on."""
        contract = dataclasses.replace(unregistered(relation), value_type=value_type)
        await register_contract(
            self.db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT, new_epoch=True
        )
        self.epoch += 1
        await self.fold()

    async def digest(self):
        async with self.db.snapshot("acme") as conn:
            return await ledger_digest(conn, self.epoch)

    async def rows(self):
        """What the digest covers, to be read where it differs."""
        found = {}
        async with self.db.snapshot("acme") as conn:
            for part in (digests._CLAIMS, digests._REACH, digests._TOMBSTONES, digests._TOMBSTONE_REACH,
                         digests._CELLS):  # fmt: skip
                found[part] = [tuple(row) for row in await conn.execute(sa.text(part), {"epoch": self.epoch})]
        return found

    async def anew(self, events_max=100):
        """Fold the same log from its beginning, and return the digest of that."""
        async with self.owner.begin() as conn:
            await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
            for table in FOLDED_TABLES:
                await conn.execute(sa.text(f"DELETE FROM {table} WHERE tenant = 'acme'"))
            await conn.execute(sa.text("UPDATE epoch SET commit = 0, position = 0 WHERE tenant = 'acme'"))
        await self.fold(events_max)
        return await self.digest()

    async def lines(self):
        """Every line's entity, relation and part, as stored."""
        async with self.db.snapshot("acme") as conn:
            rows = await conn.execute(sa.text("SELECT entity, relation, part FROM line"))
            return [tuple(row) for row in rows]

    async def words(self):
        """Everything that any row holds of the tenant, in clear."""
        found = []
        async with self.owner.begin() as conn:
            await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
            tables = (
                "claim", "reach", "line", "cell", "dead_letter", "relation", "tombstone", "tombstone_reach",
                "veiled_name", "erased",
            )  # fmt: skip
            for table in tables:
                rows = await conn.scalars(sa.text(f"SELECT to_jsonb(t)::text FROM {table} AS t"))
                found += [re.sub(r"\\\\x([0-9a-f]*)", _as_text, row) for row in rows]
        return "\n".join(found)

    async def change(self, *statements, **values):
        """Do what no role of the plane may do."""
        async with self.owner.begin() as conn:
            await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
            for statement in statements:
                text = sa.text(statement)
                bound = {name: value for name, value in values.items() if f":{name}" in statement}
                assert (await conn.execute(text, bound)).rowcount, "it met no row: it proves nothing"

    async def intact(self):
        report = await log.verify(self.db, "acme")
        assert report.problems == ()
        assert (await verify_claims(self.db, "acme", PROJECTOR)).problems == ()
        assert (await verify_cells(self.db, "acme")).problems == ()
        return report


def _as_text(match):
    return bytes.fromhex(match.group(1)).decode("utf8", "replace")


@asynccontextmanager
async def opened(db, database, clock):
    """A ledger of its own, in May 2026."""
    clock.now = datetime(2026, 5, 1, tzinfo=UTC)
    made = Ledger(db, database)
    try:
        yield made
    finally:
        await made.owner.dispose()


async def check(ledger):
    """What was erased piece by piece is what folding the log anew comes to, in any batches."""
    now, rows = await ledger.digest(), await ledger.rows()
    for events_max in (100, 1):
        anew = await ledger.anew(events_max)
        assert await ledger.rows() == rows
        assert anew == now
