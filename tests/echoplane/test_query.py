"""The query path: discovery proposes and never decides, and a hash names its configuration."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from contracts.proposals import Candidate, KeyProposal, Operation, Proposal, RouteHit
from contracts.trails import Question
from contracts.views import ViewRequest
from discovery import propose_degraded
from echoplane._configuration import configuration_hash
from echoplane._folders import DataFolder
from echoplane._sockets import discovery_socket

NOW = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
LATER = replace(NOW, valid_at=datetime(2030, 1, 1, tzinfo=UTC))
WHERE = Question(text="Where does Ann live?", budget_tokens=2_048, disclose_conflicts=False)


class Poisoned:
    """A discovery that was taken over: it proposes what it is told to."""

    def __init__(self, database, change):
        self._database, self._change = database, change

    async def propose(self, *, tenant, question, view) -> Proposal:
        honest = await propose_degraded(self._database, tenant=tenant, question=question, view=view)
        return self._change(replace(honest, degraded=False))


def unit(event_id):
    hit = RouteHit(route="lexical", rank=1, score_ppm=999_999)
    return Candidate(unit_id=event_id, event_ids=(event_id,), score_ppm=999_999, hits=(hit,))


@pytest.fixture
def poisoned(plane):
    return lambda change: replace(plane.path, discovery=Poisoned(plane.database, change))


class Counting:
    """A discovery that counts how often it is asked."""

    def __init__(self, discovery):
        self._discovery, self.count = discovery, 0

    async def propose(self, **asked) -> Proposal:
        self.count += 1
        return await self._discovery.propose(**asked)


async def test_nothing_is_searched_for_where_the_record_alone_gives_the_value(poisoned, remember, turn):
    await remember("home", turn("I live in Lyon."))
    path = poisoned(lambda honest: honest)
    path = replace(path, discovery=Counting(path.discovery))

    async def searched(text):
        before = path.discovery.count
        asked = await path.ask("home", replace(WHERE, text=text), NOW, wait_ms=0)
        rebuilt = await path.rebuild(tenant="home", trail=asked.trail)
        assert rebuilt.pack.context_hash == asked.pack.context_hash
        return asked.answer.value, path.discovery.count - before

    assert await searched("Does Ann live in Lyon?") == (True, 0)
    assert await searched("Who said that Ann lives in Lyon?") == (["Ann"], 0)
    assert await searched("Does Ann live in Ghent?") == (None, 1)
    assert await searched("Where does Ann live?") == ("Lyon", 1)


async def test_a_candidate_of_another_tenant_shows_nothing(poisoned, remember, turn):
    await remember("home", turn("I live in Lyon."))
    [foreign] = await remember("away", turn("My secret is Zanzibar."))
    path = poisoned(
        lambda honest: replace(honest, candidates=(unit(foreign.event_ids[0]), *honest.candidates))
    )

    asked = await path.ask("home", WHERE, NOW, wait_ms=0)

    assert asked.answer.value == "Lyon"
    assert "Zanzibar" not in "".join(line.text for line in asked.pack.lines)
    assert foreign.event_ids[0] not in {line.event_id for line in asked.pack.lines}


async def test_a_candidate_from_after_the_cut_shows_nothing(poisoned, remember, turn):
    receipts = await remember("home", turn("I live in Lyon."), turn("I moved to Ghent."))
    path = poisoned(lambda honest: replace(honest, candidates=(unit(receipts[1].event_ids[0]),)))
    first = replace(NOW, known_at=datetime.fromisoformat(receipts[0].recorded_at))

    asked = await path.ask("home", WHERE, first, wait_ms=0)

    assert asked.answer.value == "Lyon"
    assert "Ghent" not in "".join(line.text for line in asked.pack.lines)


async def test_scores_and_order_change_no_answer(poisoned, remember, turn):
    receipts = await remember("home", turn("I live in Lyon."), turn("I moved to Ghent."))
    units = tuple(unit(receipt.event_ids[0]) for receipt in receipts)

    answers = {
        (await poisoned(change).ask("home", WHERE, NOW, wait_ms=0)).answer.value
        for change in (
            lambda honest: replace(honest, candidates=units),
            lambda honest: replace(honest, candidates=units[::-1]),
            lambda honest: replace(honest, candidates=()),
        )
    }

    assert answers == {"Ghent"}


async def test_a_flood_of_keys_is_bounded_and_the_named_one_is_kept(poisoned, remember, turn):
    await remember("home", turn("I live in Lyon."))
    flood = tuple(
        KeyProposal(entity=f"x{number}", relation="lives_in", score_ppm=999_999, named=False)
        for number in range(1_000)
    )
    path = poisoned(lambda honest: replace(honest, keys=(*flood, *honest.keys)))

    asked = await path.ask("home", WHERE, NOW, wait_ms=0)

    assert asked.answer.value == "Lyon"
    assert len(asked.resolutions) <= 64


AVOWED = KeyProposal(entity="Bob", relation="lives_in", score_ppm=1_000_000, named=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda honest: replace(honest, keys=(AVOWED,)),
        lambda honest: replace(honest, keys=(AVOWED,), plan=replace(honest.plan, entities=("Bob",))),
        lambda honest: replace(honest, keys=(AVOWED, *(replace(key, named=False) for key in honest.keys))),
        lambda honest: replace(honest, keys=(replace(AVOWED, entity="Ann", relation="works_at"),)),
        lambda honest: replace(honest, keys=(), candidates=(), plan=replace(honest.plan, entities=())),
        lambda honest: replace(honest, plan=replace(honest.plan, relations=("works_at", "married_to"))),
    ],
)
async def test_no_proposal_can_choose_the_key_that_is_answered(poisoned, remember, turn, change):
    await remember("home", turn("I live in Lyon. I work at Acme."), turn("I live in Sofia.", who="Bob"))

    answer = (await poisoned(change).ask("home", WHERE, NOW, wait_ms=0)).answer

    assert (answer.status, answer.value) == ("answered", "Lyon")


async def test_no_proposal_can_hide_half_of_a_question_or_what_it_asks_to_be_done(poisoned, remember, turn):
    await remember("home", turn("I live in Lyon."), turn("I live in Sofia.", who="Bob"))
    both = replace(WHERE, text="Where do Ann and Bob live?")
    whether = replace(WHERE, text="Does Ann live in Sofia?")

    def one(honest):
        state = replace(honest.plan, operation=Operation.CURRENT_STATE, surface="value", entities=("Ann",))
        return replace(honest, plan=state, keys=(replace(AVOWED, entity="Ann"),))

    answers = [(await poisoned(one).ask("home", text, NOW, wait_ms=0)).answer for text in (both, whether)]

    assert [answer.status for answer in answers] == ["evidence", "evidence"]


async def test_a_name_that_no_database_can_hold_costs_nothing(poisoned, remember, turn):
    await remember("home", turn("I live in Lyon."))
    path = poisoned(lambda honest: replace(honest, plan=replace(honest.plan, entities=("\0", "\udfff"))))

    answer = (await path.ask("home", WHERE, NOW, wait_ms=0)).answer

    assert (answer.status, answer.value) == ("answered", "Lyon")


async def test_nobody_but_the_only_user_is_meant_by_the_first_person(poisoned, remember, turn):
    path = poisoned(
        lambda honest: replace(honest, keys=(AVOWED,), plan=replace(honest.plan, entities=("Ann", "Bob")))
    )
    mine = replace(WHERE, text="Where do I live?")

    await remember("home", turn("I live in Lyon."))
    alone = (await path.ask("home", mine, NOW, wait_ms=0)).answer
    await remember("home", turn("I live in Sofia.", who="Bob"))
    both = (await path.ask("home", mine, NOW, wait_ms=0)).answer

    assert (alone.status, alone.value) == ("answered", "Lyon")
    assert both.value is None


async def test_a_key_under_another_name_of_the_entity_is_named(plane, remember, turn):
    same = {"entity": "Annie", "relation": "same_as", "value": "Ann"}
    operator = {"actor": {"id": "Olga", "class": "operator"}}
    await remember("home", turn("I live in Lyon."), turn("They are one.", claims=[same]) | operator)

    answer = (
        await plane.path.ask("home", replace(WHERE, text="Where does Annie live?"), NOW, wait_ms=0)
    ).answer

    assert (answer.status, answer.value) == ("answered", "Lyon")


@pytest.mark.parametrize(
    ("text", "valid_at"),
    [
        ("Where does Ann live?", "2023-06-01"),
        ("Where did Ann live on 1 June 2023?", None),
        ("Where did Ann live in 2023?", None),
    ],
)
async def test_what_may_have_changed_by_then_is_not_said_for_certain(plane, remember, turn, text, valid_at):
    """She moved "in 2023", nobody told when: by June that may have been, or not."""
    lyon, paris = (
        {"entity": "Ann", "relation": "lives_in", "value": value, "valid": {"since": since}}
        for value, since in (("Lyon", "2020-01-01T00:00:00Z"), ("Paris", "2023"))
    )
    await remember("home", turn("It was Lyon.", claims=[lyon]), turn("Then Paris.", claims=[paris]))

    async def told(at, text=text):
        request = replace(
            NOW, valid_at=None if at is None else datetime.fromisoformat(f"{at}T00:00:00+00:00")
        )
        return await plane.path.ask("home", replace(WHERE, text=text), request, wait_ms=0)

    asked = await told(valid_at)

    assert (asked.answer.status, asked.answer.reason) == ("insufficient_evidence", "undetermined")
    shown = [line.text for line in asked.pack.lines]
    assert [place for place in ("Lyon", "Paris") if any(place in line for line in shown)] == ["Lyon", "Paris"]
    assert asked.answer.cites
    assert (await told("2022-06-01", WHERE.text)).answer.value == "Lyon"
    assert (await told("2024-01-01", WHERE.text)).answer.value == "Paris"


async def test_occurrences_are_counted_over_all_time_and_not_at_one_instant(plane, remember, turn):
    def visit(place, day):
        at = {"at": f"{day}T12:00:00Z", "precision": "minute"}
        claim = {"entity": "Ann", "relation": "visited", "value": place, "valid": at}
        return turn(f"I went to {place}.", claims=[claim])

    await remember(
        "home",
        visit("Naples", "2024-03-01"),
        visit("Plovdiv", "2024-05-01"),
        visit("Naples", "2024-07-01"),
        visit("Ghent", "2029-07-01"),
        visit("Rome", "2031-07-01"),
    )

    async def told(text, valid_at="2030-01-01T00:00:00+00:00"):
        at = replace(NOW, valid_at=datetime.fromisoformat(valid_at))
        answer = (await plane.path.ask("home", replace(WHERE, text=text), at, wait_ms=0)).answer
        return answer.status.value, answer.value

    assert await told("How many places has Ann visited?") == ("answered", 3)
    assert await told("How often has Ann visited Naples?") == ("answered", 2)
    assert await told("Which places did Ann visit?") == ("answered", ["Naples", "Plovdiv", "Ghent"])
    assert await told("How many places has Ann visited?", "2024-05-01T12:00:30+00:00") == ("answered", 2)
    assert (await told("How many places did Ann visit in 2024?"))[0] == "evidence"
    assert (await told("How many places is Ann visiting now?"))[0] != "answered"


async def test_where_a_reading_was_withdrawn_its_line_and_what_withdrew_it_are_cited(plane, remember, turn):
    status = {"entity": "cellar window", "relation": "status", "value": "open"}
    sensor = {"actor": {"id": "robot-1", "class": "sensor"}, "kind": "observation"}
    operator = {"actor": {"id": "Ilse", "class": "operator"}, "kind": "retraction"}
    reading = {"source_event_id": "r-1", "claims": [status]} | sensor
    fallen = {"claims": [status | {"stance": "retract"}], "targets": [{"source_event_id": "r-1"}]} | operator
    other = {"claims": [status | {"entity": "front door"}]} | sensor
    await remember(
        "home",
        turn("The front door is open.") | other,
        turn("The cellar window is open.") | reading,
        turn("The contact fell off.") | fallen,
    )
    which = replace(WHERE, text="What is the status of the cellar window?")

    asked = await plane.path.ask("home", which, NOW, wait_ms=0)

    cited = [line.text for line in asked.pack.lines if line.line_id in asked.answer.cites]
    assert (asked.answer.status, asked.answer.reason) == ("insufficient_evidence", "withdrawn")
    assert cited == [
        "The cellar window is open.",
        "The contact fell off. [recorded: retract cellar window status = open]",
    ]


BROKEN = {
    "a NUL in an id": lambda honest: replace(honest, candidates=(unit("ev_\0"),)),
    "a lone surrogate": lambda honest: replace(honest, candidates=(unit("\ud800"),)),
    "an empty id": lambda honest: replace(honest, candidates=(unit(""),)),
    "too many candidates": lambda honest: replace(
        honest, candidates=tuple(unit(f"ev_{number}") for number in range(257))
    ),
    "too many events": lambda honest: replace(
        honest, candidates=(replace(unit("ev_1"), event_ids=tuple(f"ev_{n}" for n in range(65))),)
    ),
    "a score below 0": lambda honest: replace(honest, candidates=(replace(unit("ev_1"), score_ppm=-1),)),
    "a score past a float": lambda honest: replace(
        honest, candidates=(replace(unit("ev_1"), score_ppm=10**400),)
    ),
    "a NUL in a key": lambda honest: replace(honest, keys=(replace(AVOWED, entity="A\0"),)),
    "a key too long": lambda honest: replace(honest, keys=(replace(AVOWED, relation="x" * 10_000),)),
    "a route's number": lambda honest: replace(
        honest, routes=(replace(honest.routes[0], duration_us=-(10**400)),)
    ),
    "a route's name": lambda honest: replace(honest, routes=(replace(honest.routes[0], route="\0"),)),
}


@pytest.mark.parametrize("name", BROKEN)
async def test_a_proposal_out_of_bounds_is_no_proposal(poisoned, remember, turn, name):
    await remember("home", turn("I live in Lyon."))

    asked = await poisoned(BROKEN[name]).ask("home", WHERE, NOW, wait_ms=0)

    assert (asked.answer.status, asked.answer.value) == ("answered", "Lyon")
    assert asked.proposal.degraded


@pytest.mark.parametrize(
    "said",
    [
        b'{"error":"incorrect.not_found","details":{"what":"tenant"}}',
        b'{"error":"incorrect.bad_request","details":{"field":"question","reason":"no"}}',
        b'{"error":"incorrect.limit_exceeded","details":{}}',
        b'{"error":7}',
        b"[]",
        b"\xff",
        b"",
    ],
)
async def test_whatever_the_socket_says_the_question_is_answered(plane, remember, turn, said):
    await remember("home", turn("I live in Lyon."))
    socket = discovery_socket(DataFolder.at(plane.settings.data_dir))
    socket.parent.mkdir(parents=True, exist_ok=True)
    socket.parent.chmod(0o700)

    async def say(reader, writer):
        await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        writer.write(len(said).to_bytes(4, "big") + said)
        await writer.drain()
        writer.close()

    async with await asyncio.start_unix_server(say, socket):
        asked = await plane.path.ask("home", WHERE, NOW, wait_ms=0)

    assert (asked.answer.status, asked.answer.value) == ("answered", "Lyon")
    assert asked.proposal.degraded


@pytest.mark.usefixtures("discovery")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("What is Ann's job?", "nurse"),
        ("What is my favourite color?", "green"),
        ("Where is the blue mug now?", "windowsill"),
        ("Who is Ann married to?", "Otto"),
        ("Where do I live?", "Lyon"),
        ("Where did I live as a child?", None),
        ("Who lives with Ann?", None),
    ],
)
async def test_plain_questions_are_answered_and_others_are_left_to_the_reader(
    plane, remember, turn, text, value
):
    claims = [
        {"entity": "Ann", "relation": "works_as", "value": "nurse"},
        {"entity": "Ann", "relation": "favorite_color", "value": "green"},
        {"entity": "blue mug", "relation": "located_in", "value": "windowsill"},
        {"entity": "Ann", "relation": "married_to", "value": "Otto"},
        {"entity": "Ann", "relation": "lives_in", "value": "Lyon"},
    ]
    await remember("home", turn("All about me.", claims=claims))

    asked = await plane.path.ask("home", replace(WHERE, text=text), NOW, wait_ms=0)

    assert not asked.proposal.degraded
    assert (asked.answer.status, asked.answer.value) == ("evidence" if value is None else "answered", value)


async def test_asking_advances_no_commit(plane, remember, turn):
    await remember("home", turn("I live in Lyon."))

    first, second = [await plane.ask("home", WHERE, LATER) for _ in range(2)]

    assert [one.head for one in await plane.standing()] == [1]
    assert first.context.content_hash == second.context.content_hash
    assert first.trail != second.trail


def test_whatever_changes_an_answer_changes_the_configuration_hash():
    base = {"projector": "p", "model_digest": "m", "counter": "c"}

    hashes = {configuration_hash(**base | {name: "other"}) for name in base}

    assert len(hashes | {configuration_hash(**base)}) == len(base) + 1
    assert configuration_hash(**base) == configuration_hash(**base)
