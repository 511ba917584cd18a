"""Tables of revisions asked through the ledger's door, cell by cell, as of each record time."""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from contracts.grants import LOCAL_GRANT
from contracts.limits import FOLD_EVENTS_MAX
from contracts.relation_wire import ContractRequest
from contracts.resolutions import Missing, Resolved
from contracts.times import KnownAt, ValidAt, parse_term
from contracts.views import ViewRequest
from echoplane._import_vintages import Period, Vintages, parse_columns, read_vintages, start_of
from ledger import log
from ledger.resolve import Window, history, pin, resolve, timeline
from ledger.write import fold, register_contract
from projection import RuleProjector

SHARED = Path(__file__).parents[3] / "shared" / "data" / "vintages"


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        yield from csv.DictReader(lines)


def day(text: str) -> datetime:
    return parse_term(text, field="day").first


async def imported(
    database: log.Database, tenant: str, path: Path, columns: str, *, period: Period, **options: str
) -> Vintages:
    """Bring a table into an empty tenant as the command does, and fold it."""
    chosen = {"entity": None, "relation": None} | options
    vintages = read_vintages(path, parse_columns(columns, **chosen), period=period, source="statistics")
    await log.create_tenant(database, tenant)
    for relation in vintages.relations:
        contract = ContractRequest(relation=relation, value_type="number", validity="span").contract()
        await register_contract(
            log.stating(database, start_of(vintages)), tenant, contract, stream="relations",
            actor_id="statistics", grant=LOCAL_GRANT,
        )  # fmt: skip
    for one in vintages.publications:
        await log.backfill(database, tenant, one.drafts, at=one.at, grant=LOCAL_GRANT)
    while not (await fold(database, tenant, RuleProjector(), events_max=FOLD_EVENTS_MAX)).is_at_head:
        pass
    return vintages


async def found_at(
    database: log.Database, tenant: str, cells: Iterable[tuple[str, str, str, str]]
) -> dict[tuple[str, str, str, str], Any]:
    """
    Return what the ledger has at (entity, relation, valid, known), None for what it does not know.

    One timeline for each key and record time: all its cells are read from that.
    """
    wanted: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for entity, relation, valid, known in cells:
        wanted[known, entity, relation].append(valid)
    found: dict[tuple[str, str, str, str], Any] = {}
    for (known, entity, relation), valids in sorted(wanted.items()):
        view = await pin(
            database, tenant,
            ViewRequest(valid_at=None, known_at=KnownAt(day(known)), generation=None, min_commit=None),
            wait_ms=0,
        )  # fmt: skip
        async with database.snapshot(tenant) as conn:
            keys = await log.tenant_keys(database, tenant, conn)
            line = await timeline(conn, keys, view, entity, relation, valid_from=None, valid_to=None)
        assert not line.truncated
        for valid in valids:
            at = day(valid)
            here = [
                piece
                for piece in line.rectangles
                if piece.state == "value"
                and (piece.valid_from is None or piece.valid_from <= at)
                and (piece.valid_to is None or at < piece.valid_to)
            ]
            assert len(here) <= 1
            found[entity, relation, valid, known] = here[0].claims[0].value if here else None
    return found


async def starts_of(
    database: log.Database, tenant: str, entity: str, relation: str, *, days: Iterable[datetime]
) -> set[tuple[datetime | None, KnownAt]]:
    """Return where rectangles begin, in valid and in known time: what only repeated began none."""
    found: set[tuple[datetime | None, KnownAt]] = set()
    months = sorted({one.replace(day=1) for one in days})
    async with database.snapshot(tenant) as conn:
        keys = await log.tenant_keys(database, tenant, conn)
        cut = (await log.head(conn)).commit
        # A month at a time: the whole has more cells than one read gives.
        for first, after in pairwise([*months, months[-1] + timedelta(days=31)]):
            window = Window(valid_from=first, valid_to=after, known_from=None, known_to=None)
            here = await history(conn, keys, entity, relation, epoch=1, cut=cut, window=window)
            assert not here.truncated
            found |= {(one.valid_from, one.known_from_at) for one in here.rectangles}
    return found


async def resolved_at(database: log.Database, tenant: str, cell: tuple[str, str, str, str]) -> Any:
    """Return the same for one cell, by `resolve`."""
    entity, relation, valid, known = cell
    view = await pin(
        database, tenant,
        ViewRequest(
            valid_at=ValidAt(day(valid)), known_at=KnownAt(day(known)), generation=None, min_commit=None
        ),
        wait_ms=0,
    )  # fmt: skip
    async with database.snapshot(tenant) as conn:
        keys = await log.tenant_keys(database, tenant, conn)
        match (await resolve(conn, keys, view, entity, relation)).resolution:
            case Resolved(value=value):
                return value
            case Missing():
                return None
            case other:
                raise AssertionError(other)
