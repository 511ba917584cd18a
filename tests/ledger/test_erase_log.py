"""What the log, its verification and its recalls are after an erasure, and while one is under way."""

from __future__ import annotations

import asyncio

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from contracts.errors import BadRequest, Forbidden, LimitExceeded, NotFound, Unavailable
from contracts.events import ErasedEvent
from contracts.grants import LOCAL_GRANT, Grant, Right
from contracts.resolutions import MissingReason, Resolved
from ledger import _erasing, log
from ledger.resolve import verify_cells
from ledger.write import begin_epoch, fold, verify_claims
from tests.ledger.erasing import PROJECTOR, check, claim, day, opened, said


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        yield made


# --- the log -------------------------------------------------------------------------------------


async def test_the_log_says_where_an_erased_event_stood_and_what_erased_it(ledger):
    receipt = await ledger.say(
        said("e1", claim("ann", "home", "Lyon")), said("e2", claim("ann", "work", "Brightly"))
    )
    await ledger.say(said("e3", claim("ann", "hobby", "chess")))
    report = await ledger.erase("e2")

    read = await log.read_event(ledger.db, "acme", ledger.ids["e2"])
    assert isinstance(read, ErasedEvent)
    assert (read.position, read.commit, read.erased_by) == (2, receipt.commit, report.event_id)
    async with ledger.db.snapshot("acme") as conn:
        keys = await log.tenant_keys(ledger.db, "acme", conn)
        page = await log.read_events(conn, keys, after_position=0, limit=10)
    assert [event.position for event in page] == [1, 2, 3, 4]
    assert [isinstance(event, ErasedEvent) for event in page] == [False, True, False, False]
    record = page[3].draft
    assert (record.kind, page[3].event_id) == ("erasure", report.event_id)
    assert not [word for word in ("Brightly", "ann", "work") if f'"{word}"' in record.text]
    assert ledger.ids["e2"] in record.text


async def test_an_erased_event_that_is_emitted_again_stays_erased(ledger):
    draft = said("e1", claim("ann", "home", "Lyon"))
    first = await ledger.say(draft)
    await ledger.erase("e1")

    again = await ledger.say(draft)

    assert (again.repeated, again.event_ids) == (True, first.event_ids)
    await ledger.fold()
    assert await ledger.reason("ann", "home") == MissingReason.ERASED
    # A source that really says it once more has an id of its own for that.
    await ledger.say(said("e1-again", claim("ann", "home", "Lyon")))
    await ledger.fold()
    assert isinstance(await ledger.ask("ann", "home"), Resolved)


async def test_erasing_twice_is_no_error_and_nothing_known_is_nothing_appended(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")))
    first = await ledger.erase("e1")

    again = await ledger.erase("e1")
    nobody = await ledger.erase(subject="nobody")

    assert (again.event_id, again.commit, again.erased) == (None, None, ())
    assert again.already_erased == (ledger.ids["e1"],)
    assert (nobody.event_id, nobody.erased, nobody.already_erased) == (None, (), ())
    async with ledger.db.snapshot("acme") as conn:
        assert (await log.head(conn)).commit == first.commit


async def test_an_event_that_is_not_there_is_not_found_and_nothing_is_changed(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")))

    with pytest.raises(NotFound):
        await ledger.erase("e1", "ev_0000000000000000000000000a")

    await ledger.fold()
    assert (await ledger.ask("ann", "home")).value == "Lyon"


async def test_commands_cannot_be_erased(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")))
    await ledger.register("pets")
    report = await ledger.erase("e1")
    async with ledger.db.snapshot("acme") as conn:
        keys = await log.tenant_keys(ledger.db, "acme", conn)
        page = await log.read_events(conn, keys, after_position=0, limit=10)
    commands = [event.event_id for event in page if not isinstance(event, ErasedEvent)]

    assert report.event_id in commands
    for event_id in commands:
        with pytest.raises(BadRequest):
            await ledger.erase(event_id)


async def test_whoever_may_not_erase_does_not(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")))
    grant = Grant(
        tenant="acme", rights=frozenset(set(Right) - {Right.ERASE}), actors=frozenset({"*"}),
        classes=frozenset({"*"}),
    )  # fmt: skip

    with pytest.raises(Forbidden):
        await ledger.erase("e1", grant=grant)
    with pytest.raises(NotFound):
        await ledger.erase("e1", grant=Grant(tenant="other", rights=frozenset(Right), actors=frozenset(),
                                             classes=frozenset()))  # fmt: skip


async def test_a_contract_that_came_too_late_comes_too_late_in_a_rebuild_too(ledger):
    await ledger.say(said("e1", claim("ann", "pets", "Miso"), claim("ann", "home", "Lyon")))
    # Registered before the fold has seen the claim; the fold sees that it came too late.
    await ledger.register("pets")
    await ledger.fold()
    await ledger.say(said("e2", claim("ann", "pets", "Otis")))
    await ledger.erase("e1")

    assert isinstance(await ledger.ask("ann", "pets"), Resolved)
    await check(ledger)
    assert isinstance(await ledger.ask("ann", "pets"), Resolved)


# --- verification --------------------------------------------------------------------------------


FORGED = {
    "a key that was lost": ("DELETE FROM event_key WHERE event_id = :other", {"event.key"}),
    "a row of an event that nothing erased": (
        "INSERT INTO erased SELECT tenant, :other, erasure_id, commit FROM erased",
        {"erased.row"},
    ),
    "a row that names another erasure": ("UPDATE erased SET erasure_id = :other", {"erased.row"}),
    "a row that is gone": (
        "DELETE FROM tombstone; DELETE FROM erased",
        {"erased.row", "tombstone.missing"},
    ),
    "a key that came back": (
        "INSERT INTO event_key SELECT x.tenant, x.event_id, wrapped_key FROM erased x, event_key LIMIT 1",
        {"erased.key", "event.payload"},
    ),
    "a tombstone that is gone": ("DELETE FROM tombstone", {"tombstone.missing"}),
    "a tombstone that says something else": ("UPDATE tombstone SET commit = 99", {"tombstone.seal"}),
    "a tombstone on another key": ("UPDATE tombstone SET entity = relation", {"tombstone.seal"}),
    "a tombstone that nothing left": (
        "UPDATE tombstone SET ordinal = 7",
        {"tombstone.seal", "tombstone.missing"},
    ),
}


@pytest.mark.parametrize(("statement", "found"), FORGED.values(), ids=FORGED)
async def test_whatever_is_forged_about_an_erasure_is_found(ledger, statement, found):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")), said("e2", claim("ann", "home", "Graz")))
    await ledger.erase("e2")
    await ledger.intact()

    await ledger.change(*statement.split("; "), other=ledger.ids["e1"])

    report = await log.verify(ledger.db, "acme")
    assert {problem.check for problem in report.problems} >= found


async def test_claims_of_an_erased_event_that_are_still_there_are_found(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")), said("e2", claim("ann", "home", "Graz")))
    await ledger.erase("e2")
    await ledger.change("UPDATE claim SET position = 2, event_id = (SELECT event_id FROM erased)")

    found = await verify_claims(ledger.db, "acme", PROJECTOR)
    assert {problem.check for problem in found.problems} == {"claim.missing", "claim.unfounded"}


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT echoplane_erase('acme', ARRAY[:event], ARRAY[:newest], '{}', '{}', '{}', '{}')",
        "SELECT echoplane_unfold('acme', 1, ARRAY[1::bigint], '{}', '{}', '{}', '{}')",
        "DELETE FROM event_key",
        "DELETE FROM claim",
        "DELETE FROM cell",
        "DELETE FROM tombstone",
        "DELETE FROM erased",
        "UPDATE tombstone SET commit = 1",
        "INSERT INTO erased VALUES ('acme', :event, :event, 1)",
    ],
)
async def test_nothing_is_deleted_but_by_an_erasure_that_is_being_appended(ledger, statement):
    await ledger.say(said("e1", claim("ann", "home", "Lyon")))
    await ledger.say(said("e2", claim("ann", "work", "Brightly")))
    await ledger.fold()

    async def as_the_plane():
        async with ledger.db.plane.begin() as conn:
            await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
            named = {"event": ledger.ids["e1"], "newest": ledger.ids["e2"]}
            bound = {name: value for name, value in named.items() if f":{name}" in statement}
            await conn.execute(sa.text(statement), bound)

    with pytest.raises(DBAPIError):
        await as_the_plane()

    assert isinstance(await ledger.ask("ann", "home"), Resolved)


# --- meanwhile -----------------------------------------------------------------------------------


async def test_whoever_asks_appends_or_folds_meanwhile_sees_it_before_or_after(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    for number in range(2, 15):
        await ledger.say(said(f"e{number}", claim("ann", "home", f"Graz {number}"), observed_at=day(2)))
    await ledger.fold()
    seen, over = [], asyncio.Event()

    async def asking():
        while not over.is_set():
            answer = await ledger.ask("ann", "home")
            seen.append(answer.value if isinstance(answer, Resolved) else answer.reason)

    async def seen_so_many(count):
        async with asyncio.timeout(120):
            while len(seen) < count:
                await asyncio.sleep(0.01)

    async def saying():
        number = 100
        while not over.is_set():
            number += 1
            await ledger.say(said(f"e{number}", claim("box", f"r{number}", "x"), actor="bob"))

    async def folding():
        while not over.is_set():
            await ledger.fold(events_max=5)

    async def erasing():
        try:
            await seen_so_many(1)
            report = await ledger.erase(*[f"e{number}" for number in range(2, 15)])
            # The one that is under way may have begun before.
            after = len(seen) + 1
            await seen_so_many(after + 2)
        finally:
            over.set()
        return report, after

    (report, after), *_ = await asyncio.gather(erasing(), asking(), saying(), folding())

    assert set(seen) == {"Graz 14", MissingReason.ERASED}
    assert set(seen[after:]) == {MissingReason.ERASED}
    assert len(report.erased) == 13
    await ledger.fold()
    await ledger.intact()
    await check(ledger)


async def test_what_was_accepted_and_not_folded_yet_is_known_to_an_erasure(ledger):
    await ledger.say(said("e1", claim("box", "owner", "ann"), claim("ann", "home", "Lyon")))

    report = await ledger.erase(subject="ann")

    assert report.erased == (ledger.ids["e1"],)
    assert await ledger.reason("box", "owner") == MissingReason.ERASED


async def test_a_record_that_one_event_does_not_hold_is_several_of_one_commit(ledger, monkeypatch):
    monkeypatch.setattr("ledger._erasures._PART_CHARACTERS_MAX", 4_000)
    drafts = [said(f"e{number}", claim(f"box {number}", "place", "x")) for number in range(12)]
    await ledger.say(*drafts)

    report = await ledger.erase(*[f"e{number}" for number in range(12)])

    async with ledger.db.snapshot("acme") as conn:
        keys = await log.tenant_keys(ledger.db, "acme", conn)
        page = await log.read_events(conn, keys, after_position=12, limit=100)
    assert len(page) > 1
    assert {event.commit for event in page} == {report.commit}
    assert page[0].event_id == report.event_id
    assert report.tombstones_count == 12
    await ledger.intact()
    await check(ledger)


async def test_more_than_one_erasure_takes_is_refused_and_nothing_is_changed(ledger, monkeypatch):
    await ledger.say(*[said(f"e{number}", claim("ann", "home", "Lyon")) for number in range(4)])
    monkeypatch.setattr("ledger._erasing_scan.ERASED_EVENTS_MAX", 3)

    with pytest.raises(LimitExceeded):
        await ledger.erase(subject="ann")

    assert isinstance(await ledger.ask("ann", "home"), Resolved)


async def test_an_epoch_that_is_being_built_and_one_that_is_retired_forget_too(ledger):
    await ledger.say(said("e1", claim("ann", "home", "Lyon"), observed_at=day(1)))
    await ledger.say(said("e2", claim("ann", "home", "Graz"), observed_at=day(2)))
    await ledger.say(said("e3", claim("bob", "home", "Graz"), actor="bob"))
    await ledger.fold()
    await begin(ledger)
    await ledger.fold()
    await begin(ledger)
    # The third is folded up to the middle of the log.
    await fold(ledger.db, "acme", PROJECTOR, events_max=2)
    assert [(one.state, one.commit) for one in await log.list_epochs(ledger.db, "acme")] == [
        ("retired", 4), ("serving", 5), ("building", 2),
    ]  # fmt: skip

    await ledger.erase("e2", "e3")

    assert "Graz" not in await ledger.words()
    assert (await verify_cells(ledger.db, "acme")).problems == ()
    assert await ledger.reason("ann", "home") == MissingReason.ERASED
    await ledger.fold()
    epochs = await log.list_epochs(ledger.db, "acme")
    assert [one.state for one in epochs] == ["retired", "retired", "serving"]
    assert await ledger.reason("ann", "home") == MissingReason.ERASED
    assert (await ledger.ask("ann", "home", at="2026-01-15T00:00:00Z")).value == "Lyon"
    await ledger.intact()


CUT_OFF = "UPDATE epoch SET state = 'dropped' WHERE epoch = 1"
"""Where a drop that is cut off leaves an epoch: nobody reads it any more, and its rows are there."""


async def test_an_epoch_whose_dropping_was_cut_off_keeps_nothing_of_what_is_erased(ledger):
    await ledger.say(said("e1", claim("Annabella", "home", "Lyon")), said("e2", claim("bob", "home", "Graz")))
    await ledger.fold()
    await begin(ledger)
    await ledger.fold()
    await ledger.change(CUT_OFF)

    await ledger.erase(subject="Annabella")

    words = await ledger.words()
    assert "Graz" in words
    assert not [word for word in ("Annabella", "Lyon") if word in words]
    await ledger.intact()


async def test_an_erasure_that_an_epoch_is_dropped_beneath_changes_nothing_and_is_done_again(
    ledger, monkeypatch
):
    await ledger.say(said("e1", claim("Annabella", "home", "Lyon")), said("e2", claim("bob", "home", "Graz")))
    await ledger.fold()
    await begin(ledger)
    await ledger.fold()
    real = _erasing.finish_drops

    async def begun_right_after(*arguments):
        await real(*arguments)
        await ledger.change(CUT_OFF)

    monkeypatch.setattr(_erasing, "finish_drops", begun_right_after)
    with pytest.raises(Unavailable):
        await ledger.erase(subject="Annabella")
    assert (await ledger.ask("Annabella", "home")).value == "Lyon"

    monkeypatch.undo()
    await ledger.erase(subject="Annabella")

    assert "Annabella" not in await ledger.words()
    await ledger.intact()


async def begin(ledger):
    await begin_epoch(
        ledger.db, "acme", projector_version="plain-1", stream="c", actor_id="op", grant=LOCAL_GRANT
    )
