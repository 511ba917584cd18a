"""
A real ledger for cases: servers that go away with it, a clock that is set, a tenant for each case.

What is told goes through the append, the fold and the erasure that everybody's events go through;
what is asked, through the resolver's door.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, TypeAlias

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.erasures import ErasureRequest
from contracts.errors import BadRequest
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.limits import FOLD_EVENTS_MAX
from contracts.relations import RelationContract
from contracts.times import MICROSECOND, KnownAt, ValidAt
from contracts.views import Generation, View, ViewRequest
from echoplane._embedded import DATABASE, DatabaseUrls, ensure_database, use_servers
from echoplane._folders import DataFolder
from echoplane._keys import KEY_BYTES, load_master_key
from echoplane._postgres import ensure_postgres, stop_postgres
from echoplane._processes import ProcessRecord
from echoplane._settings import Settings
from ledger import log
from ledger.erase import erase
from ledger.resolve import pin
from ledger.schema import upgrade
from ledger.write import fold, register_contract
from projection import RuleProjector

FOLDER_PREFIX: Final = "echoplane-conformance-"
_OWNER: Final = "owner.json"
_BEFORE: Final = timedelta(days=1)
"""Contracts are registered this long before anything else is said."""

Step: TypeAlias = Sequence[EventDraft] | ErasureRequest
"""What one commit of the log can hold: events, or one erasure."""


class SetClock:
    """Says what it was told last."""

    def __init__(self) -> None:
        self.now = datetime(1970, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@dataclass(slots=True, kw_only=True)
class CaseLedger:
    """
    One tenant. `commits` are the ledger's numbers of what was told, in order; contracts come before.

    `sources` maps the id of an event in the log to what the case calls it.
    """

    database: log.Database
    clock: SetClock
    tenant: str
    first: int = 0
    commits: list[int] = field(default_factory=list)
    recorded_at: list[KnownAt] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    async def register(self, contracts: Iterable[RelationContract], *, before: datetime) -> None:
        """Register contracts, before anything that is told at `before` or later."""
        self.clock.now = before - _BEFORE
        for contract in contracts:
            await register_contract(
                self.database, self.tenant, contract, stream="contracts", actor_id="operator",
                grant=LOCAL_GRANT,
            )  # fmt: skip
            self.first += 1

    def known_time(self, reading: datetime, *, steps: int) -> datetime:
        """Return the known time of a commit of so many steps, if it is told at this reading."""
        newest = self.recorded_at[-1] if self.recorded_at else None
        return reading if newest is None else max(reading, newest + steps * MICROSECOND)

    async def tell(self, steps: Sequence[Step], *, names: Sequence[Sequence[str]], reading: datetime) -> None:
        """
        Tell all steps as what the case calls one commit: the last of them at the reading.

        The ledger erases in a commit of its own, so what a case does in one may take several here;
        the earlier ones are told in the microseconds before.

        Args:
            steps: In order.
            names: Of each step, what the case calls its events.
            reading: Of the ledger's clock.

        Raises:
            EchoplaneError: It was refused.
        """
        if self.recorded_at:
            reading = max(reading, self.recorded_at[-1] + len(steps) * MICROSECOND)
        told: tuple[int, KnownAt] | None = None
        for number, (step, own) in enumerate(zip(steps, names, strict=True)):
            self.clock.now = reading - (len(steps) - 1 - number) * MICROSECOND
            told = await self._tell(step, own) or told
        if told is not None:
            self.commits.append(told[0])
            self.recorded_at.append(told[1])

    async def _tell(self, step: Step, names: Sequence[str]) -> tuple[int, KnownAt] | None:
        """Tell one step; return the number and time of the commit that it made, None if it made none."""
        if isinstance(step, ErasureRequest):
            report = await erase(self.database, self.tenant, RuleProjector(), step, grant=LOCAL_GRANT)
            if report.commit is None or report.recorded_at is None:
                return None
            return report.commit, report.recorded_at
        receipt = await log.append(self.database, self.tenant, step, grant=LOCAL_GRANT)
        self.sources.update(zip(receipt.event_ids, names, strict=True))
        return None if receipt.repeated else (receipt.commit, receipt.recorded_at)

    def event_id(self, name: str) -> str:
        """
        Return the log's id of an event.

        Raises:
            BadRequest: The case told none of that name.
        """
        for event_id, told in self.sources.items():
            if told == name:
                return event_id
        raise BadRequest(field="event", reason=f"{name} was not told before")

    async def fold(self) -> None:
        """Fold everything that was told."""
        while not (
            await fold(self.database, self.tenant, RuleProjector(), events_max=FOLD_EVENTS_MAX)
        ).is_at_head:
            pass

    async def head(self) -> int:
        """Return the newest commit."""
        async with self.snapshot() as conn:
            return (await log.head(conn)).commit

    async def view(
        self, *, valid_at: datetime | None, known_at: datetime | None = None, told: int | None = None
    ) -> View:
        """Pin a view: as known at an instant, or after so many of the commits told, else the newest."""
        generation = None
        if told is not None:
            async with self.snapshot() as conn:
                epoch = (await log.serving(conn)).epoch
            generation = Generation(epoch=epoch, commit=self.commits[told - 1] if told else self.first)
        request = ViewRequest(
            valid_at=None if valid_at is None else ValidAt(valid_at),
            known_at=None if known_at is None else KnownAt(known_at),
            generation=generation,
            min_commit=None,
        )
        return await pin(self.database, self.tenant, request, wait_ms=0)

    @contextlib.asynccontextmanager
    async def snapshot(self) -> AsyncIterator[AsyncConnection]:
        """Read at one instant."""
        async with self.database.snapshot(self.tenant) as conn:
            yield conn

    async def keys(self, conn: AsyncConnection) -> log.TenantKeys:
        return await log.tenant_keys(self.database, self.tenant, conn)


class Ledgers:
    """Makes an empty tenant for each case."""

    def __init__(self, database: log.Database, clock: SetClock, prefix: str) -> None:
        self._database, self._clock, self._prefix = database, clock, prefix
        self._made = 0

    async def new(self) -> CaseLedger:
        self._made += 1
        tenant = f"{self._prefix}{self._made}"
        await log.create_tenant(self._database, tenant)
        return CaseLedger(database=self._database, clock=self._clock, tenant=tenant)


@contextlib.asynccontextmanager
async def throw_away() -> AsyncIterator[Ledgers]:
    """
    Start a PostgreSQL in a folder of its own, and delete both at the end.

    What runs that were killed left behind goes too.

    Raises:
        Unavailable: It cannot be started.
    """
    for left in _left_behind():
        await _discard(left)
    root = _new_root()
    folder = DataFolder.at(root / "data")
    try:
        # It holds nothing that anybody would miss, so it need not wait for the disk.
        settings = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        address = await ensure_postgres(folder, settings=settings)
        database = await ensure_database(address, DATABASE)
        async with _opened(database, master_key=os.urandom(KEY_BYTES), prefix="case-") as ledgers:
            yield ledgers
    finally:
        await _discard(root)


@contextlib.asynccontextmanager
async def configured(settings: Settings) -> AsyncIterator[Ledgers]:
    """
    Use the plane's own database: its tenants are new ones, and stay until somebody deletes them.

    Raises:
        BadRequest: It is an external one, and nobody said how to connect as `echoplane_backfill`.
        Unavailable: It cannot be started or reached.
    """
    async with use_servers(settings) as servers:
        master_key = load_master_key(settings, DataFolder.at(settings.data_dir))
        prefix = f"conformance-{os.urandom(4).hex()}-"
        async with _opened(servers.database, master_key=master_key, prefix=prefix) as ledgers:
            yield ledgers


@contextlib.asynccontextmanager
async def _opened(urls: DatabaseUrls, *, master_key: bytes, prefix: str) -> AsyncIterator[Ledgers]:
    if urls.backfill is None:
        raise BadRequest(
            field="ECHOPLANE_DATABASE_BACKFILL_URL", reason="is needed: cases state the clock of each append"
        )
    if urls.owner is not None:
        await upgrade(urls.owner)
    clock = SetClock()
    database = log.open_database(
        plane_url=urls.backfill,
        relay_url=urls.relay,
        master_key=master_key,
        clock=clock,
        states_clock=True,
    )
    try:
        yield Ledgers(database, clock, prefix)
    finally:
        await database.close()


def _new_root() -> Path:
    root = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    # Root's server runs under another account, which has to pass through.
    root.chmod(0o711 if os.geteuid() == 0 else 0o700)
    owner = ProcessRecord.of(os.getpid())
    assert owner is not None
    owner.write(root / _OWNER)
    return root


def _left_behind() -> list[Path]:
    """Return the folders of runs that were killed before they could delete them."""
    found: list[Path] = []
    for root in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        # One that is being deleted at this moment is none of ours any more.
        with contextlib.suppress(OSError):
            owner = ProcessRecord.read(root / _OWNER) if root.stat().st_uid == os.geteuid() else None
            if owner is not None and not owner.is_alive():
                found.append(root)
    return found


async def _discard(root: Path) -> None:
    if (root / "data").is_dir():
        folder = DataFolder.at(root / "data")
        await stop_postgres(folder)
        folder.discard()
    shutil.rmtree(root, ignore_errors=True)
