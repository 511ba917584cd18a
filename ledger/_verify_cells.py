"""
Verification of what the fold made: cells and tails, held against what the claims say.

The claims are those that `ledger.log.verify` proves. Apart from it, because this decides, and the
log's door must not: `ledger.resolve` hands it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import IntegrityFault
from contracts.relations import Cardinality
from ledger._cells import Cells, LineRow, cell_of, stored_part
from ledger._claims import NO_KEY
from ledger._court import Court
from ledger._database import Database
from ledger._decide import Standing
from ledger._identity import Merges, identity_of
from ledger._intervals import lower, upper
from ledger._keys import TenantKeys
from ledger._live import tail_of
from ledger._problems import Problem, Problems
from ledger._relations import IDENTITY, Contracts
from ledger._tenants import tenant_keys
from ledger._timeline import Segment
from ledger._withdrawal import Replay
from ledger._world import Key, Reader

CUTS_MAX: Final = 64
"""Commits at which the cells of one epoch are compared; of more, the newest and an even choice."""
CUTS_MIN: Final = 8
"""As many are compared however long the log is."""
CLAIMS_READ_MAX: Final = 500_000
"""Claims that are read for it, as long as that leaves `CUTS_MIN` commits."""
_KEYS_PER_PAGE: Final = 200

# Between two of these commits neither the claims nor the cells change: all of them is a whole proof.
_COMMITS: Final = sa.text(
    "SELECT DISTINCT commit FROM claim WHERE tenant = :tenant AND epoch = :epoch "
    "UNION SELECT lower(c.known) FROM cell c JOIN line l USING (tenant, line) "
    "WHERE l.tenant = :tenant AND l.epoch = :epoch "
    "UNION SELECT upper(c.known) FROM cell c JOIN line l USING (tenant, line) "
    "WHERE l.tenant = :tenant AND l.epoch = :epoch AND NOT upper_inf(c.known)"
)
_KEYS: Final = sa.text(
    "SELECT entity, relation FROM claim WHERE tenant = :tenant AND epoch = :epoch "
    "UNION SELECT entity, relation FROM line WHERE tenant = :tenant AND epoch = :epoch ORDER BY 1, 2"
)
_CLAIMS: Final = sa.text("SELECT count(*) FROM claim WHERE tenant = :tenant AND epoch = :epoch")
_EPOCHS: Final = sa.text(
    "SELECT epoch, commit FROM epoch WHERE tenant = :tenant AND state <> 'dropped' ORDER BY epoch"
)
_CELLS: Final = sa.text(
    "SELECT l.entity, l.relation, l.part, c.cell, lower(c.valid) AS valid_from, upper(c.valid) AS valid_to, "
    "lower(c.known) AS known_from, upper(c.known) AS known_to, c.state, c.claims, c.seal "
    "FROM line l JOIN cell c USING (tenant, line) WHERE l.tenant = :tenant AND l.epoch = :epoch"
)
_CELLS_KNOWN: Final = sa.text(
    "SELECT c.line, lower(c.valid) AS valid_from, upper(c.valid) AS valid_to, c.state, c.claims "
    "FROM unnest(CAST(:lines AS bigint[])) AS k(line) CROSS JOIN LATERAL (SELECT * FROM cell c "
    "WHERE c.tenant = :tenant AND c.line = k.line AND c.known @> CAST(:cut AS bigint) OFFSET 0) AS c"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellsReport:
    """
    What holding the cells against the claims found.

    `cells` is how many stand at the newest folded commit, `cuts` at how many commits all were
    compared, and `commits` at how many something changed: fewer cuts is a sample.
    """

    cells: int
    cuts: int
    commits: int
    problems: tuple[Problem, ...]
    problems_count: int

    @property
    def intact(self) -> bool:
        """Whether every cell that was compared follows from the claims."""
        return self.problems_count == 0


async def verify_cells(db: Database, tenant: str) -> CellsReport:
    """
    Work every key of a tenant out again from its claims, and compare with its cells and tails.

    Problems: `cell` (a line's cells do not follow), `cell.seal` (one is not what was written),
    `cell.commit` (one is known from or to a commit that is not folded), `line.tail` (it would decide
    otherwise than the claims), `cell.unchecked` (claims or contracts are not what was written, so
    nothing follows from them). Seals are checked of all cells, known at whatever commit.

    Raises:
        NotFound: No such tenant.
        IntegrityFault: The tenant's own keys were changed: then nothing can be checked.
    """
    problems = Problems()
    cells = cuts = commits = 0
    async with db.snapshot(tenant) as conn:
        # Reads everything there is; each statement may take as long as that takes.
        await conn.execute(sa.text("SET LOCAL statement_timeout = 0"))
        keys = await tenant_keys(db, tenant, conn)
        for row in (await conn.execute(_EPOCHS, {"tenant": tenant})).all():
            check = _Epoch(conn=conn, keys=keys, problems=problems, epoch=row.epoch)
            await check.seals()
            changed = await check.commits_until(row.commit)
            chosen = _sample(changed, await check.cuts_max())
            for cut in chosen[:-1]:
                await check.at(cut, is_last=False)
            cells += await check.at(chosen[-1], is_last=True)
            cuts, commits = cuts + len(chosen), commits + len(changed)
    return CellsReport(
        cells=cells,
        cuts=cuts,
        commits=commits,
        problems=tuple(problems.listed),
        problems_count=problems.count,
    )


def _sample(commits: Sequence[int], most: int) -> list[int]:
    """Return all commits, or an even choice of them with the first and the last."""
    if len(commits) <= most:
        return list(commits)
    return [commits[index * (len(commits) - 1) // (most - 1)] for index in range(most)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Epoch:
    """One epoch's cells, in one snapshot."""

    conn: AsyncConnection
    keys: TenantKeys
    problems: Problems
    epoch: int

    async def seals(self) -> None:
        """Hold every cell against its seal."""
        async for row in await self.conn.stream(_CELLS, self._bound()):
            try:
                cell_of(row, row.cell, (row.entity, row.relation), self.keys, self.epoch)
            except IntegrityFault:
                self.problems.add("cell.seal", f"cell {row.cell} in epoch {self.epoch}")

    async def commits_until(self, cursor: int) -> list[int]:
        """Return the commits at which claims or cells change, and the cursor, in order."""
        found = set(await self.conn.scalars(_COMMITS, self._bound()))
        for commit in sorted(found):
            if commit > cursor:
                self.problems.add("cell.commit", f"commit {commit} in epoch {self.epoch}")
        return sorted({commit for commit in found if commit <= cursor} | {cursor})

    async def cuts_max(self) -> int:
        claims = await self.conn.scalar(_CLAIMS, self._bound()) or 0
        return max(CUTS_MIN, min(CUTS_MAX, CLAIMS_READ_MAX // max(claims, 1)))

    async def at(self, cut: int, *, is_last: bool) -> int:
        """Compare all keys as known at a commit; return how many cells were known."""
        reader = Reader(conn=self.conn, keys=self.keys, epoch=self.epoch, cut=cut)
        try:
            contracts = await reader.contracts()
            merges = identity_of(await reader.identity_claims(), contracts)
        except IntegrityFault:
            self.problems.add("cell.unchecked", f"commit {cut} in epoch {self.epoch}")
            return 0
        bench = _Cut(epoch=self, reader=reader, contracts=contracts, merges=merges, is_last=is_last)
        waiting: list[Key] = [
            (row.entity, row.relation)
            for row in await self.conn.execute(_KEYS, self._bound())
            if row.relation != NO_KEY
        ]
        count = 0
        done: set[Key] = set()
        for start in range(0, len(waiting), _KEYS_PER_PAGE):
            page = [key for key in waiting[start : start + _KEYS_PER_PAGE] if key not in done]
            checked, cells = await bench.check(page)
            done |= checked
            count += cells
        return count

    def _bound(self, **parameters: object) -> dict[str, Any]:
        return {"tenant": self.keys.tenant, "epoch": self.epoch, **parameters}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """One epoch as known at one commit."""

    epoch: _Epoch
    reader: Reader
    contracts: Contracts
    merges: Merges
    is_last: bool

    async def check(self, wanted: Sequence[Key]) -> tuple[set[Key], int]:
        """Compare these keys and those they are connected with; return them, and their cells' number."""
        if not wanted:
            return set(), 0
        try:
            claims, loaded = await self.reader.world(wanted, self.merges)
        except IntegrityFault:
            if len(wanted) == 1:
                self._add("cell.unchecked", "a key")
                return set(wanted), 0
            # One changed claim must not hide what else is wrong.
            return await self._one_by_one(wanted)
        replay = Replay(self.contracts, self.merges.identity)
        replay.extend(claims)
        court = Court(replay)
        lines = await self._lines(loaded)
        stored = await self._stored([line.line_id for own in lines.values() for line in own])
        for key in sorted(loaded):
            if key[1] not in IDENTITY and key[1] != NO_KEY:
                self._compare(court, key, lines.get(key, []), stored)
        return loaded, sum(map(len, stored.values()))

    async def _one_by_one(self, wanted: Sequence[Key]) -> tuple[set[Key], int]:
        done: set[Key] = set()
        count = 0
        for key in wanted:
            if key not in done:
                checked, cells = await self.check([key])
                done |= checked
                count += cells
        return done, count

    def _compare(
        self, court: Court, key: Key, lines: Sequence[LineRow], stored: dict[int, list[Segment]]
    ) -> None:
        keys = self.reader.keys
        expected = {stored_part(part, keys): found for part, found in court.timelines(*key).items()}
        for line in lines:
            if sorted(stored.get(line.line_id, [])) != expected.pop(line.part, []):
                self._add("cell", f"line {line.line_id}")
        for missing in expected.values():
            self._add("cell", f"a line of claim {missing[0].claims[0] if missing[0].claims else 'unnamed'}")
        if self.is_last:
            self._compare_tails(court, key, lines)

    def _compare_tails(self, court: Court, key: Key, lines: Sequence[LineRow]) -> None:
        """A line without a tail is decided from its claims; one that has another tail would not be."""
        lines_of = court.lines(*key)
        parts = {stored_part(part, self.reader.keys): part for part in lines_of}
        for line in lines:
            part = parts.get(line.part, "")
            if line.tail is not None and line.tail != self._tail(key, part, lines_of.get(part, [])):
                self._add("line.tail", f"line {line.line_id}")

    def _tail(self, key: Key, part: str, standings: Sequence[Standing]) -> bytes | None:
        contract = self.contracts.of(key[1])
        is_many = contract.cardinality == Cardinality.MANY
        if contract.cardinality == Cardinality.OCCURRENCE:
            return None
        tail = tail_of(
            standings,
            self._digest,
            value=part if is_many else None,
            window_us=contract.conflict_window // timedelta(microseconds=1),
        )
        return None if tail is None else tail.stored()

    def _digest(self, text: str) -> str:
        return self.reader.keys.digest(text.encode()).hex()

    async def _lines(self, keys: Iterable[Key]) -> dict[Key, list[LineRow]]:
        table = Cells(conn=self.reader.conn, keys=self.reader.keys, epoch=self.reader.epoch)
        found: dict[Key, list[LineRow]] = {}
        for line in await table.lines(keys):
            found.setdefault((line.entity, line.relation), []).append(line)
        return found

    async def _stored(self, lines: Sequence[int]) -> dict[int, list[Segment]]:
        parameters = {"tenant": self.reader.keys.tenant, "lines": sorted(lines), "cut": self.reader.cut}
        found: dict[int, list[Segment]] = {}
        for row in await self.reader.conn.execute(_CELLS_KNOWN, parameters):
            segment = Segment(
                start=lower(row.valid_from),
                end=upper(row.valid_to),
                state=row.state,
                claims=tuple(bytes(claim).hex() for claim in row.claims),
            )
            found.setdefault(row.line, []).append(segment)
        return found

    def _add(self, check: str, place: str) -> None:
        self.epoch.problems.add(check, f"{place} at commit {self.reader.cut} in epoch {self.reader.epoch}")
