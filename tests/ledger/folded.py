"""A real ledger under one event loop, for properties: append random logs, fold, read cells back."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from contracts.claims import Claim
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import log
from ledger._cells import stored_part
from ledger._claims import micros
from ledger._intervals import lower, upper
from ledger.write import fold, ledger_digest, register_contract
from tests.ledger.conftest import MASTER_KEY, SettableClock
from tests.ledger.random_logs import CONTRACTS
from tests.ledger.scenario_logs import PlainProjector

FOLDED_TABLES = ("cell", "line", "reach", "claim", "relation", "tombstone_reach", "veiled_name")


class Ledger:
    """One database, a tenant for each example."""

    def __init__(self, urls) -> None:
        self.runner = asyncio.Runner()
        self.clock = SettableClock()
        self.db = log.open_database(
            plane_url=urls.backfill,
            relay_url=urls.relay,
            master_key=MASTER_KEY,
            clock=self.clock,
            states_clock=True,
        )
        self.owner = create_async_engine(urls.owner)
        self.tenants = 0

    def close(self) -> None:
        self.runner.run(self.db.close())
        self.runner.run(self.owner.dispose())
        self.runner.close()

    def tenant(self) -> str:
        self.tenants += 1
        name = f"t{self.tenants}"
        self.runner.run(self._tenant(name))
        return name

    async def _tenant(self, name: str) -> None:
        await log.create_tenant(self.db, name)
        for contract in CONTRACTS.registered.values():
            await register_contract(
                self.db, name, contract, stream="contracts", actor_id="op", grant=LOCAL_GRANT
            )

    def append(self, tenant: str, commits: list[list[dict[str, Any]]]) -> None:
        self.runner.run(self._append(tenant, commits))

    async def _append(self, tenant: str, commits: list[list[dict[str, Any]]]) -> None:
        for events in commits:
            drafts = [EventDraft.model_validate(by_source(event)) for event in events]
            await log.append(self.db, tenant, drafts, grant=LOCAL_GRANT)

    def fold(self, tenant: str, *, events_max: int) -> None:
        self.runner.run(self._fold(tenant, events_max))

    async def _fold(self, tenant: str, events_max: int) -> None:
        while not (await fold(self.db, tenant, PlainProjector(), events_max=events_max)).is_at_head:
            pass

    def digest(self, tenant: str) -> str:
        return self.runner.run(self._digest(tenant))

    async def _digest(self, tenant: str) -> str:
        async with self.db.snapshot(tenant) as conn:
            return await ledger_digest(conn, 1)

    def unfold(self, tenant: str) -> None:
        """Take everything folded away again, as if no worker had ever run."""
        self.runner.run(self._unfold(tenant))

    async def _unfold(self, tenant: str) -> None:
        async with self.owner.begin() as conn:
            await conn.execute(sa.text("SELECT set_config('echoplane.tenant', :t, true)"), {"t": tenant})
            for table in FOLDED_TABLES:
                await conn.execute(sa.text(f"DELETE FROM {table} WHERE tenant = :t"), {"t": tenant})
            await conn.execute(
                sa.text("UPDATE epoch SET commit = 0, position = 0 WHERE tenant = :t"), {"t": tenant}
            )

    def claims(self, tenant: str, *, epoch: int = 1) -> list[Claim]:
        return self.runner.run(self._claims(tenant, epoch))

    async def _claims(self, tenant: str, epoch: int) -> list[Claim]:
        async with self.db.snapshot(tenant) as conn:
            keys = await log.tenant_keys(self.db, tenant, conn)
            return await log.read_claims(conn, keys, epoch=epoch, after_position=0, limit=100_000)

    def cells(self, tenant: str) -> Cells:
        return Cells(self.runner.run(self._cells(tenant)), self.runner.run(log.tenant_keys(self.db, tenant)))

    async def _cells(self, tenant: str) -> list[Any]:
        query = (
            "SELECT l.entity, l.relation, l.part, lower(c.valid), upper(c.valid), lower(c.known), "
            "upper(c.known), c.state, c.claims FROM line l JOIN cell c ON c.line = l.line"
        )
        async with self.db.snapshot(tenant) as conn:
            return list(await conn.execute(sa.text(query)))

    def run(self, coroutine):
        return self.runner.run(coroutine)


class Cells:
    """All rectangles of one tenant, looked up without the database."""

    def __init__(self, rows: list[Any], keys) -> None:
        self._of_key: dict[tuple[str, str], list[tuple]] = defaultdict(list)
        self._keys = keys
        for entity, relation, part, start, end, known, until, state, claims in rows:
            names = tuple(bytes(claim).hex() for claim in claims)
            rectangle = (part, lower(start), upper(end), known, until, state, names)
            self._of_key[entity, relation].append(rectangle)

    def at(self, entity: str, relation: str, instant, cut: int) -> dict[str, tuple]:
        at = micros(instant)
        found: dict[str, tuple] = {}
        for part, start, end, known, until, state, claims in self._of_key[entity, relation]:
            if start <= at < end and known <= cut and (until is None or cut < until):
                assert part not in found, "two rectangles of one line overlap"
                found[part] = (state, claims)
        return found

    def by_key(self) -> dict[tuple[str, str], list[tuple]]:
        return self._of_key

    def part(self, part: str) -> str:
        return stored_part(part, self._keys)


def by_source(event: dict[str, Any]) -> dict[str, Any]:
    """Name targets by the source's ids: only those are known before the append."""

    def named(reference: dict[str, Any]) -> dict[str, Any]:
        return {("source_event_id" if name == "event" else name): value for name, value in reference.items()}

    claims = []
    for claim in event["claims"]:
        changed = dict(claim)
        for name in ("targets", "inputs"):
            if name in claim:
                changed[name] = [named(reference) for reference in claim[name]]
        if "winner" in claim:
            changed["winner"] = named(claim["winner"])
        claims.append(changed)
    return {**event, "claims": claims}
