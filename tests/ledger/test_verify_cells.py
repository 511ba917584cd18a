"""Verification of the fold: an intact ledger has no problem, and any changed cell or tail is one."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.ext.asyncio import create_async_engine

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from ledger import _verify_cells, log
from ledger.resolve import verify_cells
from ledger.write import fold
from tests.ledger.folded import Ledger
from tests.ledger.log_drafts import as_owner
from tests.ledger.random_logs import logs
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.test_fold import QUICK, readings


@pytest.fixture
def ledger(database):
    made = Ledger(database)
    yield made
    made.close()


@pytest.fixture
async def owner_engine(database):
    made = create_async_engine(database.owner)
    async with made.begin() as conn:
        # Who owns the schema is not held back by what holds the plane back.
        await conn.execute(sa.text("ALTER TABLE cell DISABLE TRIGGER USER"))
    yield made
    await made.dispose()


def assert_intact(ledger: Ledger, commits, events_max: int) -> None:
    tenant = ledger.tenant()
    ledger.append(tenant, commits)
    ledger.fold(tenant, events_max=events_max)

    report = ledger.run(verify_cells(ledger.db, tenant))

    assert report.problems == ()
    assert report.cuts == report.commits


def test_what_the_fold_made_is_intact(ledger):
    @QUICK
    @given(logs(events_max=9), st.integers(1, 5))
    def holds(commits, events_max):
        assert_intact(ledger, commits, events_max)

    holds()


def test_what_the_fold_made_of_derivations_and_merges_is_intact(ledger):
    @QUICK
    @given(logs(relations=("home", "tags", "visit"), derived=True), st.integers(1, 5))
    def derived(commits, events_max):
        assert_intact(ledger, commits, events_max)

    @QUICK
    @given(logs(relations=("home", "tags"), identity=True), st.integers(1, 5))
    def merged(commits, events_max):
        assert_intact(ledger, commits, events_max)

    derived()
    merged()


def test_what_the_tail_decided_is_intact(ledger):
    @QUICK
    @given(readings(), st.integers(1, 20))
    def holds(commits, events_max):
        assert_intact(ledger, commits, events_max)

    holds()


async def write(db, tenant: str, *, moves: int = 4) -> None:
    """Ann lives in one town after the other; each commit is folded for itself."""
    await log.create_tenant(db, tenant)
    for number in range(moves):
        draft = EventDraft.model_validate(
            {
                "stream": "s", "kind": "claim", "actor": {"id": "Ann", "class": "user"},
                "observed_at": f"2026-01-{number + 1:02}T00:00:00Z",
                "claims": [{"entity": "Ann", "relation": "lives_in", "value": f"town {number}"}],
            }
        )  # fmt: skip
        await log.append(db, tenant, [draft], grant=LOCAL_GRANT)
        await fold(db, tenant, PlainProjector(), events_max=1)


OPEN = "upper_inf(known) AND upper_inf(valid)"
MUTATIONS = [
    (f"UPDATE cell SET state = 'ended' WHERE {OPEN}", "cell"),
    (f"UPDATE cell SET valid = tstzrange(lower(valid), '2027-01-01') WHERE {OPEN}", "cell"),
    (f"DELETE FROM cell WHERE {OPEN}", "cell"),
    # Only the past as it was known at an earlier commit.
    ("UPDATE cell SET state = 'ended' WHERE known = '[2,3)'", "cell"),
    ("UPDATE cell SET known = '[1,3)' WHERE known = '[2,3)'", "cell"),
    ("UPDATE cell SET claims = (SELECT array_agg(claim_id) FROM claim) WHERE known = '[2,3)'", "cell"),
    ("UPDATE cell SET known = '[2,9)' WHERE known = '[2,3)'", "cell.commit"),
    ("UPDATE cell SET seal = '\\x01' WHERE known = '[2,3)'", "cell.seal"),
    ("UPDATE line SET entity = 'Bob'", "cell.seal"),
    ("UPDATE line SET part = 'x'", "cell"),
    ("UPDATE line SET tail = replace(convert_from(tail, 'UTF8'), '[0,', '[1,')::bytea", "line.tail"),
    ("UPDATE claim SET entity = 'Bob' WHERE position = 2", "cell.unchecked"),
]


async def test_every_changed_cell_and_tail_is_found(db, owner_engine):
    missed = {}
    for number, (mutation, check) in enumerate(MUTATIONS):
        tenant = f"mutant-{number}"
        await write(db, tenant)
        assert (await verify_cells(db, tenant)).intact
        await as_owner(owner_engine, mutation, tenant=tenant)

        report = await verify_cells(db, tenant)
        assert report.intact == (not report.problems)
        if check not in {problem.check for problem in report.problems}:
            missed[mutation] = report.problems

    assert missed == {}


async def test_of_a_long_log_the_newest_commit_and_a_sample_are_compared(db, owner_engine, monkeypatch):
    monkeypatch.setattr(_verify_cells, "CUTS_MIN", 3)
    monkeypatch.setattr(_verify_cells, "CUTS_MAX", 3)
    await write(db, "acme", moves=7)

    report = await verify_cells(db, "acme")

    assert (report.cuts, report.commits) == (3, 7)
    await as_owner(owner_engine, f"UPDATE cell SET state = 'ended' WHERE {OPEN}")
    assert not (await verify_cells(db, "acme")).intact
