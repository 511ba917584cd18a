"""Revisions as they were published: what was known of a period at any time, and a past that nobody forges."""

from __future__ import annotations

import asyncio
import csv
import random
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contracts.errors import BadRequest, Forbidden, TenantIsLive
from contracts.events import EventDraft, Receipt
from contracts.grants import LOCAL_GRANT, Right
from contracts.times import KnownAt
from echoplane._import_vintages import Period, parse_columns, read_vintages
from ledger import log
from tests.acceptance.vintages import SHARED, day, found_at, imported, resolved_at, rows_of, starts_of

OWN = Path(__file__).parents[1] / "data" / "vintages_own.csv"
COLUMNS = "entity=country,valid=quarter,known=published,value=growth,value=jobs"
TIMES = ("2024-04-30", "2024-05-01", "2024-08-01", "2024-10-31", "2024-11-01", "2025-06-01")
RATES = ("percent_cli", "case_rate_7d_av")
needs_data = pytest.mark.skipif(
    not SHARED.exists(), reason="the public revision data is not beside the checkout"
)
WITHDRAWN = {
    "2004-01-01": ("1980-01-01", "1989-10-01"),
    **dict.fromkeys(
        ["2005-04-01", "2005-07-01"]
        + [f"{year}-{month:02}-01" for year in (2006, 2007) for month in (1, 4, 7, 10)],
        ("1980-01-01", "1980-10-01"),
    ),
}
"""By vintage, the first and last quarter that the Swiss series left out (the data's own notes)."""


@pytest.fixture
async def past(database):
    """A ledger that may be told a past; its own clock stands after all of it."""
    assert database.backfill is not None
    made = log.open_database(
        plane_url=database.backfill, relay_url=database.relay, master_key=bytes(32),
        clock=lambda: datetime(2026, 6, 1, tzinfo=UTC),
    )  # fmt: skip
    yield made
    await made.close()


def turn(text: str) -> EventDraft:
    return EventDraft.model_validate(
        {"stream": "s", "kind": "turn", "actor": {"id": "ann", "class": "user"}, "text": text}
    )


# --- a small table ---------------------------------------------------------------------------


async def test_every_cell_is_what_was_published_last_by_then(past):
    vintages = await imported(past, "own", OWN, COLUMNS, period=Period.QUARTER)
    rows = list(csv.DictReader(OWN.read_text(encoding="utf-8").splitlines()))
    expected = {}
    for known in TIMES:
        for row in sorted(rows, key=lambda row: row["published"]):
            for relation in ("growth", "jobs"):
                cell = (row["country"], relation, row["quarter"], known)
                expected.setdefault(cell, None)
                if row[relation] and row["published"] <= known:
                    expected[cell] = float(row[relation])

    found = await found_at(past, "own", expected)

    assert found == expected
    assert {cell: await resolved_at(past, "own", cell) for cell in expected} == expected
    assert (len(vintages.publications), vintages.repeated_count) == (3, 3)


async def test_an_import_that_was_cut_off_goes_on_where_it_stopped(past):
    vintages = read_vintages(
        OWN, parse_columns(COLUMNS, entity=None, relation=None), period=Period.QUARTER, source="statistics"
    )
    await log.create_tenant(past, "own")
    first, second, _ = vintages.publications
    for one in (first, second):
        await log.backfill(past, "own", one.drafts, at=one.at, grant=LOCAL_GRANT)

    receipts = [
        await log.backfill(past, "own", one.drafts, at=one.at, grant=LOCAL_GRANT)
        for one in vintages.publications
    ]

    assert [receipt.repeated for receipt in receipts] == [True, True, False]
    assert [receipt.recorded_at for receipt in receipts] == [one.at for one in vintages.publications]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ("entity=country,valid=quarter,value=growth", "known"),
        ("entity=country,valid=quarter,known=published", "value"),
        ("entity=country,valid=quarter,known=published,value=gdp", "no column gdp"),
        ("entity=country,valid=country,known=published,value=growth", "line 2, country"),
    ],
)
def test_a_table_that_cannot_be_read_says_where(columns, said):
    with pytest.raises(BadRequest, match=said):
        read_vintages(
            OWN, parse_columns(columns, entity=None, relation=None), period=Period.QUARTER, source="x"
        )


# --- nobody forges a past --------------------------------------------------------------------

LONG_AGO = KnownAt(datetime(2020, 1, 1, tzinfo=UTC))


async def test_a_live_tenant_takes_no_past_and_a_past_one_stays_live_once_it_is(past):
    await log.create_tenant(past, "acme")
    await log.backfill(past, "acme", [turn("long ago")], at=LONG_AGO, grant=LOCAL_GRANT)
    await log.append(past, "acme", [turn("now")], grant=LOCAL_GRANT)

    later = KnownAt(LONG_AGO + timedelta(days=9_000))
    with pytest.raises((TenantIsLive, BadRequest)):
        await log.backfill(past, "acme", [turn("forged")], at=later, grant=LOCAL_GRANT)
    forged = replace(past, clock=lambda: datetime(2025, 1, 1, tzinfo=UTC), states_clock=True)
    with pytest.raises(TenantIsLive):
        await log.append(forged, "acme", [turn("forged")], grant=LOCAL_GRANT)

    events = [one async for one in _events(past, "acme")]
    assert [(event.draft.text, event.backfilled) for event in events] == [("long ago", True), ("now", False)]
    assert (await log.verify(past, "acme")).problems == ()


async def test_a_past_and_a_present_that_come_together_are_each_written_by_their_own_clock(past):
    await log.create_tenant(past, "acme")

    outcomes = await asyncio.gather(
        log.backfill(past, "acme", [turn("long ago")], at=LONG_AGO, grant=LOCAL_GRANT),
        log.append(past, "acme", [turn("now")], grant=LOCAL_GRANT),
        return_exceptions=True,
    )

    assert isinstance(outcomes[0], Receipt | TenantIsLive)
    assert isinstance(outcomes[1], Receipt)
    said = [(event.draft.text, event.backfilled) async for event in _events(past, "acme")]
    assert set(said) <= {("long ago", True), ("now", False)}
    assert (await log.verify(past, "acme")).problems == ()


async def _events(database, tenant):
    async with database.snapshot(tenant) as conn:
        keys = await log.tenant_keys(database, tenant, conn)
        for one in await log.read_events(conn, keys, after_position=0, limit=10):
            yield one


async def test_a_past_needs_its_right_and_lies_in_the_past_and_in_order(past):
    await log.create_tenant(past, "acme")
    without = replace(LOCAL_GRANT, rights=frozenset(Right) - {Right.BACKFILL})

    with pytest.raises(Forbidden):
        await log.backfill(past, "acme", [turn("a")], at=LONG_AGO, grant=without)
    tomorrow = KnownAt(past.clock() + timedelta(days=1))
    with pytest.raises(BadRequest, match="future"):
        await log.backfill(past, "acme", [turn("a")], at=tomorrow, grant=LOCAL_GRANT)
    await log.backfill(past, "acme", [turn("a")], at=LONG_AGO, grant=LOCAL_GRANT)
    with pytest.raises(BadRequest, match="not after"):
        await log.backfill(past, "acme", [turn("b")], at=LONG_AGO, grant=LOCAL_GRANT)

    async with past.snapshot("acme") as conn:
        assert (await log.head(conn)).commit == 1


# --- the public tables -----------------------------------------------------------------------


def left_out(entity: str, quarter: str, vintage: str) -> bool:
    first, last = WITHDRAWN.get(vintage, ("9", "0"))
    return entity == "CHE" and first <= quarter <= last


@needs_data
@pytest.mark.slow
@pytest.mark.timeout(1_800)
async def test_every_published_cell_of_gdp_is_given_back(past):
    columns = "entity=id,valid=valid_quarter,known=record_date,value=value"
    path = SHARED / "gdp_change_events.csv.gz"
    await imported(past, "gdp", path, columns, period=Period.QUARTER, relation="gdp")
    expected = {
        (row["id"], "gdp", row["time"], row["pub_date"]): float(row["value"])
        for row in rows_of(SHARED / "gdp_vintages.csv.gz")
    }

    found = await found_at(past, "gdp", expected)

    wrong = {cell for cell in expected if found[cell] != expected[cell]}
    print(f"GDP: {len(expected)} published cells, {len(wrong)} differ")
    assert (len(expected), wrong) == (47_980, set())
    await _withdrawn_stand(past, "gdp", "gdp", expected)


async def _withdrawn_stand(database, tenant, relation, expected):
    """What a vintage left out stands as it was known before it: by the data's own rule."""
    quarters = sorted({valid for entity, _, valid, _ in expected if entity == "CHE"})
    gone = [
        ("CHE", relation, quarter, vintage)
        for vintage in WITHDRAWN
        for quarter in quarters
        if left_out("CHE", quarter, vintage)
    ]
    known = sorted({one for _, _, _, one in expected})
    found = await found_at(database, tenant, gone)
    for cell in gone:
        before = max(vintage for vintage in known if vintage < cell[3] and (*cell[:3], vintage) in expected)
        print(f"  withdrawn {cell[0]} {cell[2]} in vintage {cell[3]}: still {found[cell]}")
        assert found[cell] == expected[*cell[:3], before]


@needs_data
@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_every_published_cell_of_the_swiss_series_is_given_back(past):
    path = SHARED / "ch_macro_vintages.csv.gz"
    columns = "entity=series,valid=time,known=pub_date,value=value"
    vintages = await imported(past, "ch", path, columns, period=Period.QUARTER, relation="value")
    expected = {
        (row["series"], "value", row["time"], row["pub_date"]): float(row["value"]) for row in rows_of(path)
    }

    found = await found_at(past, "ch", expected)

    wrong = {cell for cell in expected if found[cell] != expected[cell]}
    print(f"Swiss: {len(expected)} cells, {vintages.repeated_count} repeat, {len(wrong)} differ")
    assert (len(expected), wrong) == (87_184, set())


@needs_data
@pytest.mark.slow
@pytest.mark.timeout(3_600)
async def test_the_covid_archive_is_given_back_and_its_repetitions_are_seen(past):
    path = SHARED / "covid_archive.csv.gz"
    columns = "entity=geo_value,valid=time_value,known=version,value=percent_cli,value=case_rate_7d_av"
    rows = list(rows_of(path))
    seed = 3
    last: dict[tuple[str, str], dict[str, str]] = {}
    repeats = 0
    history: dict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in rows:
        key = (row["geo_value"], row["time_value"])
        before = last.get(key)
        repeats += before is not None and all(before[name] == row[name] for name in RATES)
        last[key] = row
        history[key].append(row)
    versions = sorted({row["version"] for row in rows})
    random_ = random.Random(seed)
    keys = list(history)
    sample = {}
    while len(sample) < 20_000:
        key, known = random_.choice(keys), random_.choice(versions)
        for relation in RATES:
            said = [row[relation] for row in history[key] if row["version"] <= known and row[relation]]
            sample[key[0], relation, key[1], known] = float(said[-1]) if said else None

    await imported(past, "covid", path, columns, period=Period.DAY)
    found = await found_at(past, "covid", sample)

    wrong = {cell for cell in sample if found[cell] != sample[cell]}
    days = {day(one) for _, one in history}
    started = {
        (entity, relation): await starts_of(past, "covid", entity, relation, days=days)
        for entity in {entity for entity, _ in history}
        for relation in RATES
    }
    # What the ledger took for a repetition: the row began no state, on either relation.
    seen = sum(
        all(
            (day(row["time_value"]), KnownAt(day(row["version"]))) not in started[row["geo_value"], relation]
            for relation in RATES
        )
        for row in rows
    )
    print(
        f"COVID: seed {seed}, {len(rows)} rows, {repeats} repeat, {seen} seen to, "
        f"{len(sample)} cells, {len(wrong)} differ"
    )
    assert (len(rows), repeats, seen, wrong) == (129_638, 4_780, 4_780, set())
