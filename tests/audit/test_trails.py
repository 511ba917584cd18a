"""Which answers used what, what today's logic says to them, and what a retraction would change."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import sqlalchemy as sa

from audit import if_retracted, replay_today
from contracts.answers import AnswerStatus
from contracts.erasures import ErasureRequest
from contracts.errors import ErasedMeanwhile, NotFound
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.limits import SUPPOSED_TRAILS_MAX
from contracts.relations import Cardinality, default_contract
from contracts.trails import TrailsWanted
from ledger import log
from ledger.erase import erase
from ledger.resolve import pin
from ledger.write import fold, ledger_digest, register_contract, supposing
from projection import RuleProjector
from tests.audit.test_replay import NEWEST, TENANT, plane, say  # noqa: F401 - a fixture

PROJECTOR = RuleProjector()


async def found(plane, *, after_number=0, limit=100, **wanted):  # noqa: F811
    headers = await log.list_trails(
        plane.database, TENANT, after_number=after_number, limit=limit, wanted=TrailsWanted(**wanted)
    )
    return [header.trail_id for header in headers]


def event_of(asked, words):
    (event_id,) = (line.event_id for line in asked.pack.lines if words in line.text)
    return event_id


async def suppose(plane, event_id, **page):  # noqa: F811
    return await if_retracted(
        lambda database: replace(plane.path, database=database),
        plane.database, TENANT, PROJECTOR, event_id, **{"after_number": 0, "wait_ms": 1_000, **page},
    )  # fmt: skip


async def test_a_recall_is_found_by_what_it_used_and_was_about_and_how_and_when(plane):  # noqa: F811
    home = await plane.ask()
    pets = await plane.ask("How many pets does Ann have?", budget_tokens=60)
    weather = await plane.ask("What was said about the weather?")

    nothing = await plane.ask("What was said about the harbour?", budget_tokens=1)

    (first, _, third, _) = await log.list_trails(plane.database, TENANT, after_number=0, limit=4)
    everything = [one.trail.trail_id for one in (home, pets, weather, nothing)]
    assert await found(plane) == everything
    assert await found(plane, context_hash=pets.pack.context_hash) == [pets.trail.trail_id]
    # The pets' context has no room for it, and yet a key was looked at that it decided.
    assert await found(plane, event_id=event_of(home, "Lyon")) == everything[:3]
    assert await found(plane, entity="Ann") == [home.trail.trail_id, pets.trail.trail_id]
    assert await found(plane, entity="Bob") == []
    assert await found(plane, status=AnswerStatus.EVIDENCE) == [weather.trail.trail_id]
    assert await found(plane, asked_from=first.asked_at, asked_to=third.asked_at) == everything[:2]
    assert await found(plane, entity="Ann", status=AnswerStatus.ANSWERED, after_number=1) == everything[1:2]
    assert await found(plane, limit=2) == everything[:2]


async def test_what_an_erasure_took_is_still_known_to_have_been_used_and_no_longer_about_whom(plane):  # noqa: F811
    home = await plane.ask()
    lyon = event_of(home, "Lyon")

    await erase(
        plane.database, TENANT, PROJECTOR, ErasureRequest(subject="Ann", event_ids=()), grant=LOCAL_GRANT
    )

    (header,) = await log.list_trails(
        plane.database, TENANT, after_number=0, limit=9, wanted=TrailsWanted(event_id=lyon)
    )
    assert (header.trail_id, header.erased, header.status) == (
        home.trail.trail_id,
        True,
        AnswerStatus.ANSWERED,
    )
    assert await found(plane, entity="Ann") == []
    async with plane.owner.begin() as connection:
        await connection.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        assert (await connection.execute(sa.text("SELECT count(*) FROM trail_key"))).scalar_one() == 0
    assert (await log.verify(plane.database, TENANT)).problems_count == 0


@pytest.mark.parametrize(
    ("change", "check"),
    [
        ("UPDATE trail SET status = 'conflict'", "trail.seal"),
        ("UPDATE trail SET event_ids = event_ids[2:]", "trail.seal"),
        ("UPDATE trail SET status = NULL, event_ids = NULL", "trail.seal"),
        ("UPDATE trail_key SET entities = '{}'", "trail.entities"),
    ],
)
async def test_what_a_recall_is_found_by_cannot_be_changed_quietly(plane, change, check):  # noqa: F811
    await plane.ask()
    await plane.change(change)

    assert [one.check for one in (await log.verify(plane.database, TENANT)).problems] == [check]


async def test_what_is_asked_while_others_are_stored_is_stored_together_in_the_next_transaction(plane):  # noqa: F811
    one = await plane.ask()

    async def store(number):
        trail = replace(one.trail, trail_id=f"tr_{number}")
        stored = await log.store_recall(plane.database, TENANT, trail, one.pack)
        assert (await log.read_trail(plane.database, TENANT, trail.trail_id)) == trail
        return stored

    async with plane.owner.begin() as connection:
        await connection.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        # Whatever is stored waits for this row, so that everything is asked before the first is stored.
        await connection.execute(sa.text("SELECT number FROM trail_head FOR UPDATE"))
        storing = asyncio.gather(*map(store, range(40)))
        async with asyncio.timeout(60):
            while plane.database.recalls._held[TENANT] < 40:
                await asyncio.sleep(0.01)
    assert sorted(await storing) == list(range(2, 42))

    async with plane.owner.begin() as connection:
        await connection.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        count = "SELECT count(DISTINCT xmin::text) FROM trail WHERE number > 1"
        # Those that were under way, and all the others.
        assert (await connection.execute(sa.text(count))).scalar_one() <= 2
    assert (await log.verify(plane.database, TENANT)).problems_count == 0


async def test_a_recall_that_cites_what_was_erased_is_refused_alone(plane):  # noqa: F811
    # With room for nothing, an answer cites what decided it alone.
    clean = await plane.ask(budget_tokens=1)
    cites = await plane.ask()
    weather = event_of(cites, "weather")
    await erase(
        plane.database,
        TENANT,
        PROJECTOR,
        ErasureRequest(subject=None, event_ids=(weather,)),
        grant=LOCAL_GRANT,
    )

    def store(asked, number):
        trail = replace(asked.trail, trail_id=f"tr_{number}")
        return log.store_recall(plane.database, TENANT, trail, asked.pack)

    stored = await asyncio.gather(
        *(store(cites if number == 3 else clean, number) for number in range(6)), return_exceptions=True
    )

    assert [type(one) for one in stored] == [int, int, int, ErasedMeanwhile, int, int]
    assert (await log.verify(plane.database, TENANT)).problems_count == 0


async def test_todays_logic_over_what_was_known_then_says_what_differs(plane):  # noqa: F811
    home = await plane.ask()
    same = await replay_today(plane.path, plane.database, TENANT, home.pack.context_hash)
    assert (same.is_same, same.differences, same.then) == (True, (), 'answered "Lyon"')

    await say(plane.database, "Oslo!", [{"entity": "Ann", "relation": "lives_in", "value": "Oslo"}])
    await register_contract(
        plane.database, TENANT, default_contract("lives_in", cardinality=Cardinality.MANY),
        stream="contracts", actor_id="operator", grant=LOCAL_GRANT, new_epoch=True,
    )  # fmt: skip
    while not (await fold(plane.database, TENANT, PROJECTOR, events_max=100)).is_at_head:
        continue
    report = await replay_today(plane.path, plane.database, TENANT, home.pack.context_hash)

    assert (report.epoch_then, report.epoch_now) == (1, 2)
    assert report.then == 'answered "Lyon"'
    assert not report.is_same
    assert report.differences[0].startswith('answer: answered "Lyon" -> ')
    assert 'Ann lives_in: "Lyon" -> {"Boston", "Lyon"}' in report.differences
    assert "Oslo" not in str(report)
    assert (await plane.replay(home)).verdict == "identical"


async def test_a_supposed_retraction_says_what_a_real_one_brings_and_writes_nothing(plane):  # noqa: F811
    home, pets = await plane.ask(), await plane.ask("How many pets does Ann have?")
    lyon = event_of(home, "Lyon")
    before = await state(plane)

    supposed = await suppose(plane, lyon)

    assert await state(plane) == before
    assert supposed.keys == ('Ann lives_in: "Lyon" -> "Boston"',)
    changes = {one.trail_id: (one.changes, one.before, one.after) for one in supposed.answers}
    assert changes[home.trail.trail_id] == (True, 'answered "Lyon"', 'answered "Boston"')
    assert changes[pets.trail.trail_id] == (False, "answered 2", "answered 2")
    retraction = {
        "stream": "corrections", "kind": "retraction", "actor": {"id": "op", "class": "operator"},
        "claims": [{"stance": "retract", "targets": [{"event": lyon}]}],
    }  # fmt: skip
    await log.append(plane.database, TENANT, [EventDraft.model_validate(retraction)], grant=LOCAL_GRANT)
    await fold(plane.database, TENANT, PROJECTOR, events_max=100)
    assert (await plane.ask()).answer.value == "Boston"


async def test_what_others_append_meanwhile_is_not_laid_to_the_retraction(plane, monkeypatch):  # noqa: F811
    home = await plane.ask()

    @asynccontextmanager
    async def at_the_last_moment(*given):
        await say(plane.database, "Oslo!", [{"entity": "Ann", "relation": "lives_in", "value": "Oslo"}])
        async with supposing(*given) as supposed:
            yield supposed

    monkeypatch.setattr("audit._retracted.supposing", at_the_last_moment)
    supposed = await suppose(plane, event_of(home, "weather"))

    (answer,) = supposed.answers
    assert (answer.changes, answer.before, answer.after) == (False, 'answered "Oslo"', 'answered "Oslo"')


async def test_what_is_supposed_is_read_in_its_transaction_however_it_is_read(plane):  # noqa: F811
    oslo = {
        "stream": "chat-1", "kind": "turn", "actor": {"id": "Ann", "class": "user"}, "text": "Oslo!",
        "claims": [{"entity": "Ann", "relation": "lives_in", "value": "Oslo"}],
    }  # fmt: skip

    async with supposing(plane.database, TENANT, [EventDraft.model_validate(oslo)]) as (supposed, commit):
        await fold(supposed, TENANT, PROJECTOR, events_max=100)
        cuts = [(await pin(one, TENANT, NEWEST, wait_ms=0)).cut for one in (supposed, plane.database)]
        with pytest.raises(AssertionError, match="of one tenant"):
            supposed.across_tenants()

    assert cuts == [commit, commit - 1]


async def state(plane):  # noqa: F811
    async with plane.database.snapshot(TENANT) as conn:
        stood = await log.head(conn), await ledger_digest(conn, 1)
    return *stood, await log.list_trails(plane.database, TENANT, after_number=0, limit=100)


async def test_answers_that_used_an_event_come_in_pages(plane, monkeypatch):  # noqa: F811
    asked = [await plane.ask(budget_tokens=budget) for budget in (2_048, 2_047, 2_046)]
    monkeypatch.setattr("audit._retracted.SUPPOSED_TRAILS_MAX", 2)
    lyon = event_of(asked[0], "Lyon")

    first = await suppose(plane, lyon)
    second = await suppose(plane, lyon, after_number=first.next_number)

    assert SUPPOSED_TRAILS_MAX > 2
    assert [one.trail_id for one in (*first.answers, *second.answers)] == [
        one.trail.trail_id for one in asked
    ]
    assert second.next_number is None


async def test_what_is_not_there_cannot_be_supposed_away(plane):  # noqa: F811
    with pytest.raises(NotFound):
        await suppose(plane, "ev_00000000000000000000000000")
