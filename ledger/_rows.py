"""The rows that a fold makes: claims while it reads them, then what they reach, lines and cells."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from ledger._arrays import Binaries, binaries, binaries_text, digests, instants, numbers, texts, truths
from ledger._cells import cell_seals
from ledger._claims import ACTING, NO_KEY, bodies_of, sealed_messages, state_start, unsure_between
from ledger._intervals import FOREVER
from ledger._keys import TenantKeys
from ledger._lines import Cell, Line
from ledger._tails import Tail
from ledger._world import Key

_CLAIMS: Final = sa.text(
    "INSERT INTO claim (tenant, epoch, claim_id, position, ordinal, commit, event_id, entity, relation, "
    "stance, body, seal, starts, unsure_from, unsure_to) SELECT :tenant, :epoch, * "
    "FROM unnest(CAST(:claim_ids AS bytea[]), "
    "CAST(:positions AS bigint[]), CAST(:ordinals AS integer[]), CAST(:commits AS bigint[]), "
    "CAST(:event_ids AS text[]), CAST(:entities AS text[]), CAST(:relations AS text[]), "
    "CAST(:stances AS text[]), CAST(:bodies AS bytea[]), CAST(:seals AS bytea[]), CAST(:starts AS bigint[]), "
    "CAST(:unsure_from AS bigint[]), CAST(:unsure_to AS bigint[]))"
)
_REACH: Final = sa.text(
    "INSERT INTO reach (tenant, epoch, entity, relation, claim_id, position, acts, unsure) "
    "SELECT :tenant, :epoch, * FROM unnest("
    "CAST(:entities AS text[]), CAST(:relations AS text[]), CAST(:claim_ids AS bytea[]), "
    "CAST(:positions AS bigint[]), CAST(:acts AS boolean[]), CAST(:unsure AS boolean[]))"
)
_LINES: Final = sa.text(
    "INSERT INTO line (tenant, epoch, entity, relation, part, tail) "
    "SELECT :tenant, :epoch, entity, relation, part, tail FROM unnest(CAST(:entities AS text[]), "
    "CAST(:relations AS text[]), CAST(:parts AS text[]), CAST(:tails AS bytea[])) "
    "AS n(entity, relation, part, tail) RETURNING line, entity, relation, part"
)
_TAILS: Final = sa.text(
    "UPDATE line l SET tail = n.tail FROM unnest(CAST(:lines AS bigint[]), CAST(:tails AS bytea[])) "
    "AS n(line, tail) WHERE l.tenant = :tenant AND l.line = n.line"
)
_CLOSE: Final = sa.text(
    "UPDATE cell c SET known = int8range(lower(c.known), n.known_to), seal = n.seal "
    "FROM unnest(CAST(:cells AS bigint[]), CAST(:known_to AS bigint[]), CAST(:seals AS bytea[])) "
    "AS n(cell, known_to, seal) "
    "WHERE c.tenant = :tenant AND c.cell = n.cell"
)
_CELLS: Final = sa.text(
    "INSERT INTO cell (tenant, line, valid, known, state, claims, seal) "
    "SELECT :tenant, line, tstzrange(valid_from, valid_to), int8range(known_from, known_to), state, "
    "CAST(claims AS bytea[]), seal FROM unnest(CAST(:lines AS bigint[]), CAST(:valid_from AS timestamptz[]), "
    "CAST(:valid_to AS timestamptz[]), CAST(:known_from AS bigint[]), CAST(:known_to AS bigint[]), "
    "CAST(:states AS text[]), CAST(:claims AS text[]), CAST(:seals AS bytea[])) "
    "AS n(line, valid_from, valid_to, known_from, known_to, state, claims, seal)"
)


_SURE: Final = (None, None)
CLAIMS_SENT: Final = 256
"""Claims in one statement: few enough that a socket takes them at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Writes rows of one tenant and epoch, in the caller's transaction."""

    conn: AsyncConnection
    keys: TenantKeys
    epoch: int

    def claims(self, *, after: asyncio.Task[Any] | None) -> ClaimStream:
        """Return what writes claims, sealed, while more of them are made: `after` another statement."""
        return ClaimStream(self, after)

    def claim_values(self, claims: Sequence[Claim]) -> dict[str, str | int | bytes]:
        """Return the parameters of a statement that writes claims."""
        names = [(claim.entity, claim.relation, claim.stance) for claim in claims]
        claim_ids = [bytes.fromhex(claim.claim_id) for claim in claims]
        positions, ordinals = zip(*[claim.position for claim in claims], strict=True)
        commits = [claim.commit for claim in claims]
        event_ids = [claim.event_id for claim in claims]
        entities, relations, stances = zip(*names, strict=True)
        bodies = bodies_of(claims)
        columns = (claim_ids, positions, ordinals, commits, event_ids, bodies)
        unsure = [unsure_between(claim) or _SURE for claim in claims]
        messages = sealed_messages(names, columns, tenant=self.keys.tenant, epoch=self.epoch)
        return {
            "epoch": self.epoch,
            "claim_ids": digests(claim_ids),
            "positions": numbers(positions),
            "ordinals": numbers(ordinals),
            "commits": numbers(commits),
            "event_ids": texts(event_ids),
            "entities": texts(entities),
            "relations": texts(relations),
            "stances": texts(stances),
            "bodies": binaries(bodies),
            "seals": digests(self.keys.digests(messages)),
            "starts": numbers(map(state_start, claims)),
            "unsure_from": numbers(start for start, _ in unsure),
            "unsure_to": numbers(end for _, end in unsure),
        }

    async def write_claims(self, values: Mapping[str, str | int | bytes]) -> None:
        """Write claims by what `claim_values` returned."""
        await self._execute(_CLAIMS, **values)

    async def reach(self, reached: Mapping[str, set[Key]], claims: Sequence[Claim]) -> None:
        """Write which keys these claims bear on beside their own, by claim id."""
        pairs = [(key, claim) for claim in claims for key in sorted(reached.get(claim.claim_id, ()))]
        if pairs:
            await self._execute(
                _REACH,
                epoch=self.epoch,
                entities=texts(key[0] for key, _ in pairs),
                relations=texts(key[1] for key, _ in pairs),
                claim_ids=binaries(bytes.fromhex(claim.claim_id) for _, claim in pairs),
                positions=numbers(claim.position.event for _, claim in pairs),
                acts=truths(claim.stance in ACTING for _, claim in pairs),
                unsure=truths(
                    claim.relation == NO_KEY and unsure_between(claim) is not None for _, claim in pairs
                ),
            )

    async def lines(self, lines: Sequence[Line]) -> None:
        """Write what became of the lines: new ones, tails, closed cells, and new cells."""
        # Numbered as they came to be, however many commits one fold takes.
        new = sorted((line for line in lines if line.line_id is None), key=_began)
        moved = [line for line in lines if line.line_id is not None and line.tail != line.stored_tail]
        if new:
            by_name = {(line.entity, line.relation, line.part): line for line in new}
            rows = await self._execute(
                _LINES,
                epoch=self.epoch,
                entities=texts(line.entity for line in new),
                relations=texts(line.relation for line in new),
                parts=texts(line.part for line in new),
                tails=binaries(_stored(line.tail) for line in new),
            )
            for row in rows:
                by_name[row.entity, row.relation, row.part].line_id = row.line
        if moved:
            await self._execute(
                _TAILS,
                lines=numbers(line.line_id for line in moved),
                tails=binaries(_stored(line.tail) for line in moved),
            )
        closed = [(cell_id, line, cell) for line in lines for cell_id, cell in line.closed.items()]
        if closed:
            await self._execute(
                _CLOSE,
                cells=numbers(cell_id for cell_id, _, _ in closed),
                known_to=numbers(cell.known_to for _, _, cell in closed),
                seals=self._seals((line, cell) for _, line, cell in closed),
            )
        await self._cells(
            [
                (line, cell)
                for line in lines
                for cell in [*line.passed, *line.cells.values()]
                if cell.cell_id is None
            ]
        )

    async def _cells(self, cells: Sequence[tuple[Line, Cell]]) -> None:
        if cells:
            await self._execute(
                _CELLS,
                lines=numbers(line.line_id for line, _ in cells),
                valid_from=instants(cell.segment.start for _, cell in cells),
                valid_to=instants(cell.segment.end for _, cell in cells),
                known_from=numbers(cell.known_from for _, cell in cells),
                known_to=numbers(cell.known_to for _, cell in cells),
                states=texts(cell.segment.state for _, cell in cells),
                # An array of arrays could not be told apart again: each is a literal within one.
                claims=texts(binaries_text(map(bytes.fromhex, cell.segment.claims)) for _, cell in cells),
                seals=self._seals(cells),
            )

    def _seals(self, cells: Iterable[tuple[Line, Cell]]) -> Binaries:
        return digests(cell_seals(self.keys, self.epoch, cells))

    async def _execute(self, statement: sa.TextClause, **values: str | int | bytes) -> sa.CursorResult[Any]:
        return await self.conn.execute(statement, {"tenant": self.keys.tenant, **values})


def _began(line: Line) -> tuple[int, str, str, str]:
    """Return the commit in which a new line came to be, for which it has a cell, and its name."""
    first = min((cell.known_from for cell in (*line.passed, *line.cells.values())), default=FOREVER)
    return first, line.entity, line.relation, line.part


def _stored(tail: Tail | None) -> bytes | None:
    return None if tail is None else tail.stored()


class ClaimStream:
    """
    Claims on their way into their table: the server stores some while the fold makes the next.

    The connection is busy from its beginning on, until `arrived` or its end.
    """

    def __init__(self, rows: Rows, after: asyncio.Task[Any] | None) -> None:
        self._rows = rows
        self._waiting: list[Claim] = []
        self._sent: asyncio.Task[Any] | None = after

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            await self.arrived()
        elif self._sent is not None:
            # A transaction can only be given up when its last statement has ended, however it did.
            await asyncio.gather(self._sent, return_exceptions=True)

    async def take(self, claims: Sequence[Claim]) -> None:
        """Write claims, sooner or later."""
        self._waiting += claims
        while len(self._waiting) >= CLAIMS_SENT:
            chunk, self._waiting = self._waiting[:CLAIMS_SENT], self._waiting[CLAIMS_SENT:]
            await self._send(chunk)

    async def arrived(self) -> None:
        """Wait until everything that was taken is written."""
        if self._waiting:
            chunk, self._waiting = self._waiting, []
            await self._send(chunk)
        if self._sent is not None:
            await self._sent

    async def _send(self, claims: Sequence[Claim]) -> None:
        values = self._rows.claim_values(claims)
        if self._sent is not None:
            await self._sent
        self._sent = asyncio.create_task(self._rows.write_claims(values))
        # Let it leave, before the fold takes the thread again.
        await asyncio.sleep(0)
