"""Events that are opened while the fold before them is written."""

from __future__ import annotations

import asyncio

import pytest

from contracts.grants import LOCAL_GRANT
from ledger import _ahead, _read, log
from ledger._ahead import Place
from ledger.write import fold
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.test_fold_rows import reading


@pytest.fixture
def opened(monkeypatch):
    """Note which events are opened for the fold that reads them, and which ahead of theirs."""
    noted = {_read: [], _ahead: []}

    def note(module):
        plain = module.open_event

        def noting(keys, stored):
            noted[module].append(stored.position)
            return plain(keys, stored)

        monkeypatch.setattr(module, "open_event", noting)

    note(_read)
    note(_ahead)
    return noted


async def backlog(db, *, events: int) -> None:
    for number in range(events):
        await log.append(db, "acme", [reading(number, claims=1)], grant=LOCAL_GRANT)


async def test_each_event_of_a_backlog_is_opened_once_and_all_but_the_first_ones_ahead(db, opened):
    await backlog(db, events=4)

    reports = [await fold(db, "acme", PlainProjector(), events_max=1) for _ in range(4)]

    assert [report.claims for report in reports] == [1, 1, 1, 1]
    assert opened == {_read: [1], _ahead: [2, 3, 4]}


async def test_a_fold_takes_of_what_was_opened_what_it_folds_and_reads_the_rest(db, opened):
    await backlog(db, events=5)

    reports = [await fold(db, "acme", PlainProjector(), events_max=events_max) for events_max in (2, 1, 3)]

    assert [(report.events, report.claims) for report in reports] == [(2, 2), (1, 1), (2, 2)]
    assert opened == {_read: [1, 2, 5], _ahead: [3, 4, 4]}


@pytest.mark.parametrize("came", ["an erasure", "another fold", "other keys"])
async def test_what_was_opened_before_something_came_in_between_is_not_folded(db, came):
    await backlog(db, events=2)
    await fold(db, "acme", PlainProjector(), events_max=1)
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
    place = {"keys": keys, "after": 1, "erased": 0}
    other = {"an erasure": {"erased": 2}, "another fold": {"after": 2}, "other keys": {"keys": None}}[came]

    found = db.ahead.take(Place(**place | other))

    assert found == []
    left = db.ahead.take(Place(**place))
    # Of another tenant's it is still what comes next.
    assert [event.position for event in left] == ([2] if came == "other keys" else [])


async def test_nothing_is_kept_of_a_fold_that_fails(db, monkeypatch):
    await backlog(db, events=2)

    async def failing(*_given, **_named):
        raise OSError("out of luck")

    monkeypatch.setattr("ledger.write.forget_passed", failing)

    with pytest.raises(OSError, match="out of luck"):
        await fold(db, "acme", PlainProjector(), events_max=1)

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
    assert db.ahead.take(Place(keys=keys, after=1, erased=0)) == []


async def test_what_was_opened_and_is_not_folded_is_forgotten(db, monkeypatch):
    monkeypatch.setattr(_ahead, "KEPT_SECONDS", 0.01)
    await backlog(db, events=2)
    await fold(db, "acme", PlainProjector(), events_max=1)
    assert db.ahead._opened is not None

    async with asyncio.timeout(10):
        while db.ahead._opened is not None:
            await asyncio.sleep(0.01)


async def test_nothing_of_a_tenant_that_is_deleted_is_kept(db):
    await backlog(db, events=2)
    await fold(db, "acme", PlainProjector(), events_max=1)
    assert db.ahead._opened is not None

    await log.delete_tenant(db, "acme", reason="why", actor_id="op", grant=LOCAL_GRANT)

    assert db.ahead._opened is None
