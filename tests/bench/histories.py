"""
Long histories, made quickly: the rows that a fold of them writes, by the encoders that it writes them with.

One claim a commit, so that each is a cut. What the cells are is worked out here by a rule for each
shape, and proved for the smallest size, where the ledger's own verification works them out from the
claims. Events are left out: nothing that resolves a key reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from contracts.claims import Claim, Position, Source, TargetRef, Validity, ValidityKind
from contracts.events import Stance
from contracts.times import KnownAt
from ledger._cells import cell_seal
from ledger._claims import claim_id_of, row_of, state_start
from ledger._decide import State
from ledger._entries import extent_of
from ledger._intervals import bound, lower, upper
from ledger._keys import TenantKeys
from ledger._lines import Cell
from ledger._relations import rank_of, replaces_any, unregistered
from ledger._tails import Incoming, Tail
from ledger._timeline import Segment
from ledger._values import normal_form
from ledger._world import Key
from ledger.log import create_tenant, tenant_keys
from ledger.resolve import verify_cells
from tests.bench.grounds import Grounds

START: Final = datetime(2000, 1, 1, tzinfo=UTC)
STEP: Final = timedelta(minutes=1)
YEAR: Final = timedelta(days=365)
_CLAIM: Final = (
    "tenant", "epoch", "claim_id", "position", "ordinal", "commit", "event_id", "entity", "relation",
    "stance", "body", "seal", "starts",
)  # fmt: skip
_BLANK: Final = b"\0" * 32

Rectangle: TypeAlias = tuple[int, datetime, datetime | None, int, int | None]
"""Which claim of its key stands from when to when, known from which claim of its key to which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """
    What the claim of a number, of so many on a key, says; and the rectangles that all of them make.

    `last` is which of so many claims begins last, where all are states; None elsewhere.
    """

    says: Callable[[int, int], dict[str, Any]]
    rectangles: Callable[[int], Iterator[Rectangle]]
    last: Callable[[int], int] | None


def _steadily(size: int) -> Iterator[Rectangle]:
    for one in range(size - 1):
        start, end = START + one * STEP, START + (one + 1) * STEP
        yield one, start, None, one, one + 1
        yield one, start, end, one + 1, None
    yield size - 1, START + (size - 1) * STEP, None, size - 1, None


def _again(size: int) -> Iterator[Rectangle]:
    for one in range(size):
        yield one, START, START + YEAR, one, None if one == size - 1 else one + 1


def _corrected(size: int) -> Iterator[Rectangle]:
    for one in range(size):
        yield one, START, None, one, None if one == size - 1 else one + 1


def _late(size: int) -> Iterator[Rectangle]:
    # Taken out in the opposite order, each finds its neighbours as they were when it came.
    claim_at = [0] * size
    for one in range(size):
        claim_at[_minute(one, size)] = one
    before, after = list(range(-1, size - 1)), list(range(1, size + 1))
    neighbours: list[tuple[int, int]] = [(-1, size)] * size
    for one in reversed(range(size)):
        at = _minute(one, size)
        neighbours[one] = left, right = before[at], after[at]
        if left >= 0:
            after[left] = right
        if right < size:
            before[right] = left
    ends: list[int] = [size] * size
    known = [0] * size

    def rectangle(at: int, until: int | None) -> Rectangle:
        end = None if ends[at] == size else START + ends[at] * STEP
        return claim_at[at], START + at * STEP, end, known[at], until

    for one in range(size):
        at, (left, right) = _minute(one, size), neighbours[one]
        if left >= 0:
            yield rectangle(left, one)
            ends[left], known[left] = at, one
        ends[at], known[at] = right, one
    for at in range(size):
        yield rectangle(at, None)


def _minute(number: int, size: int) -> int:
    """Return the minute of a claim that arrives in no order: each below `size`, a power of ten, once."""
    return number * 618_033_989 % size


def _correction(number: int, _: int) -> dict[str, Any]:
    if not number:
        return {"validity": _since(START)}
    target = TargetRef(
        event_id=None, ordinal=None, entity=None, relation=None, value=None, span=None,
        interval_start=None, interval_end=None, has_interval=False,
    )  # fmt: skip
    return {"validity": _since(START), "stance": Stance.CORRECT, "targets": (target,)}


def _since(start: datetime) -> Validity:
    return Validity(kind=ValidityKind.SINCE, start=start, end=None, earliest=start, timeless=False)


_WHOLE_YEAR: Final = Validity(
    kind=ValidityKind.SPAN, start=START, end=START + YEAR, earliest=START, timeless=False
)

SHAPES: Final[dict[str, Shape]] = {
    # A state that changes every minute, and is told at once.
    "steady": Shape(
        says=lambda one, _: {"validity": _since(START + one * STEP)},
        rectangles=_steadily,
        last=lambda size: size - 1,
    ),
    # States of as many minutes, told in no order.
    "late": Shape(
        says=lambda one, size: {"validity": _since(START + _minute(one, size) * STEP)},
        rectangles=_late,
        last=lambda size: next(one for one in range(size) if _minute(one, size) == size - 1),
    ),
    # One interval, said to have another value each time.
    "again": Shape(says=lambda _one, _size: {"validity": _WHOLE_YEAR}, rectangles=_again, last=None),
    # One state, and corrections of it, each of the one before.
    "corrected": Shape(says=_correction, rectangles=_corrected, last=None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A tenant whose log has so many commits."""

    tenant: str
    keys: TenantKeys
    commits: int


def recorded_at(commit: int) -> datetime:
    """Return when a commit was recorded."""
    return START + commit * STEP


async def history_of(at: Grounds, tenant: str, keys: Sequence[Key], shape: Shape, *, size: int) -> Made:
    """Make a tenant with so many claims on each of some keys, said in turns."""
    await create_tenant(at.plane.database, tenant)
    made = Made(tenant=tenant, keys=await tenant_keys(at.plane.database, tenant), commits=size * len(keys))
    await _write(at, made, keys, shape, size)
    if made.commits <= 1_000:
        report = await verify_cells(at.plane.database, tenant)
        assert report.intact, report.problems
    return made


async def _write(at: Grounds, made: Made, keys: Sequence[Key], shape: Shape, size: int) -> None:
    # Without the triggers that ask for each claim's event: there is none.
    await at.plain.execute("SET session_replication_role = replica")
    commits = range(1, made.commits + 1)
    await _copy(
        at, "commit (tenant, commit, recorded_at, first_position, event_count, previous_hash, hash, tree)",
        ((made.tenant, one, recorded_at(one), one, 1, _BLANK, _BLANK, _BLANK) for one in commits),
    )  # fmt: skip
    claims = (
        _claim(made.keys, key, one * len(keys) + place + 1, shape.says(one, size), step=len(keys))
        for one in range(size)
        for place, key in enumerate(keys)
    )
    rows = (
        row_of(claim, tenant=made.tenant, keys=made.keys) | {"starts": state_start(claim)} for claim in claims
    )
    await _copy(at, f"claim ({', '.join(_CLAIM)})", (tuple(row[name] for name in _CLAIM) for row in rows))
    cursor = await at.plain.execute("SELECT coalesce(max(line), 0) FROM line")
    [last] = await cursor.fetchone() or [0]
    await _copy(
        at, "line (tenant, epoch, line, entity, relation, part, tail)",
        (
            (made.tenant, 1, last + place + 1, *key, "", _tail(made, keys, place, shape, size))
            for place, key in enumerate(keys)
        ),
    )  # fmt: skip
    await _copy(
        at,
        "cell (tenant, line, valid, known, state, claims, seal)",
        _cells(made, keys, shape, size, last + 1),
    )
    await at.plain.execute("SELECT setval(pg_get_serial_sequence('line', 'line'), max(line)) FROM line")
    told = {"n": made.commits, "at": recorded_at(made.commits), "tenant": made.tenant}
    await at.plain.execute(
        "UPDATE head SET commit = %(n)s, position = %(n)s, recorded_at = %(at)s WHERE tenant = %(tenant)s",
        told,
    )
    await at.plain.execute(
        "UPDATE epoch SET commit = %(n)s, position = %(n)s WHERE tenant = %(tenant)s", told
    )
    await at.plain.execute("SET session_replication_role = origin")
    for table in ("commit", "claim", "line", "cell"):
        await at.plain.execute(f"VACUUM ANALYZE {table}")


def _tail(made: Made, keys: Sequence[Key], place: int, shape: Shape, size: int) -> bytes | None:
    """Return what the line of a key says of all its claims, where they are states alone."""
    if shape.last is None:
        return None
    key, step = keys[place], len(keys)
    contract = unregistered(key[1])

    def incoming(one: int) -> Incoming:
        claim = _claim(made.keys, key, one * step + place + 1, shape.says(one, size), step=step)
        return Incoming(
            claim=claim,
            rank=rank_of(contract, actor_id=claim.source.actor_id, source_class=claim.source.actor_class),
            replaces_any=replaces_any(contract, claim.source.actor_class),
            value=made.keys.digest(normal_form(claim.value, contract).encode()).hex(),
            extent=extent_of(claim.validity),
        )

    first = next(one for one in range(size) if shape.says(one, size)["validity"].start == START)
    tail = Tail.of_first(incoming(first))
    return tail.with_placed(incoming(shape.last(size)), is_last=True).stored()


def _cells(
    made: Made, keys: Sequence[Key], shape: Shape, size: int, first_line: int
) -> Iterator[tuple[object, ...]]:
    for place, key in enumerate(keys):

        def commit(one: int, place: int = place) -> int:
            return one * len(keys) + place + 1

        for one, start, end, known_from, known_to in shape.rectangles(size):
            named = _claim_id(made.keys, commit(one))
            segment = Segment(start=lower(start), end=upper(end), state=State.VALUE.value, claims=(named,))
            cell = Cell(
                cell_id=None, segment=segment, known_from=commit(known_from),
                known_to=None if known_to is None else commit(known_to),
            )  # fmt: skip
            yield (
                made.tenant, first_line + place, _range(bound(segment.start), bound(segment.end)),
                _range(cell.known_from, cell.known_to), segment.state, f'{{"\\\\x{named}"}}',
                cell_seal(made.keys, 1, key, "", cell),
            )  # fmt: skip


def _claim(keys: TenantKeys, key: Key, commit: int, says: dict[str, Any], *, step: int) -> Claim:
    told: dict[str, Any] = {
        "claim_id": _claim_id(keys, commit), "epoch": 1, "entity": key[0], "relation": key[1],
        "value": f"value {commit}", "stance": Stance.ASSERT,
        "source": Source(actor_id="ann", actor_class="user"),
        "position": Position(event=commit, ordinal=0), "commit": commit, "event_id": f"event {commit}",
        "recorded_at": KnownAt(recorded_at(commit)), "observed_at": None, "spans": (),
        "occurrence_id": None, "targets": (), "winner": None, "inputs": (),
    }  # fmt: skip
    told |= says
    # Each correction is of the claim before it on its key.
    told["targets"] = tuple(replace(target, event_id=f"event {commit - step}") for target in told["targets"])
    return Claim(**told)


def _claim_id(keys: TenantKeys, commit: int) -> str:
    return claim_id_of(keys, tenant=keys.tenant, event_id=f"event {commit}", ordinal=0, epoch=1)


async def _copy(at: Grounds, table: str, rows: Iterable[tuple[object, ...]]) -> None:
    async with at.plain.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
        for row in rows:
            await copy.write_row(row)


def _range(start: object, end: object) -> str:
    return f"[{'' if start is None else start},{'' if end is None else end})"
