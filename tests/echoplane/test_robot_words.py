"""A robot's world made up by chance, asked in everyday words: where it is, what it holds, what is in what."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from contracts.trails import Question
from contracts.views import ViewRequest
from tests.answers.nothing import NoCandidates

NOW = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
START = datetime(2025, 5, 1, 9, tzinfo=UTC)
ROOMS = ("kitchen", "hall", "cellar")
BOXES = ("red box", "drawer", "tray")
THINGS = ("cup", "spoon", "sponge", "juice", "brush")


@pytest.fixture
def asked(plane):
    path = replace(plane.path, discovery=NoCandidates())

    async def asked(text, tenant="home"):
        question = Question(text=text, budget_tokens=16_384, disclose_conflicts=False)
        answer = (await path.ask(tenant, question, NOW, wait_ms=0)).answer
        assert answer.status != "answered" or answer.cites
        return answer.value if answer.status == "answered" else answer.reason

    return asked


def seen(number, entity, relation, value, *, actor="Robbie"):
    moment = (START + timedelta(minutes=number)).isoformat()
    return {
        "stream": "run", "kind": "observation", "actor": {"id": actor, "class": "sensor"},
        "observed_at": moment, "source_event_id": f"{actor}-{number}",
        "claims": [{"entity": entity, "relation": relation, "value": value}],
    }  # fmt: skip


def world(seed):
    """Make up what was seen, and where everything is in the end."""
    chance = random.Random(seed)  # noqa: S311 -- a world made up
    steps, where, path = [], {}, []
    for number in range(40):
        thing = chance.choice(THINGS)
        where[thing] = chance.choice(BOXES)
        steps.append(seen(2 * number, thing, "located_in", where[thing]))
        room = chance.choice([name for name in ROOMS if not path or name != path[-1]])
        path.append(room)
        steps.append(seen(2 * number + 1, "Robbie", "located_in", room))
    steps += [seen(100, "Robbie", "holding", "towel"), seen(101, "Robbie", "battery_level", 71)]
    return steps, where, path


async def test_what_a_robot_is_asked_about_itself_and_its_things_is_true(asked, remember):
    steps, where, path = world(5)
    await remember("home", *steps)

    for text in ("Where are you?", "Where are you now?", "Where is Robbie?"):
        assert await asked(text) == path[-1]
    for text in ("Where were you before?", "Where were you previously?", "Where was Robbie before that?"):
        assert await asked(text) == path[-2]
    for text in ("What are you holding?", "What are you holding now?", "What is Robbie holding?"):
        assert await asked(text) == "towel"
    assert await asked("What is your battery level?") == 71
    last = {
        thing: [s["claims"][0]["value"] for s in steps if s["claims"][0]["entity"] == thing]
        for thing in where
    }
    for thing, boxes in last.items():
        others = [box for box in boxes if box != boxes[-1]]
        if others:
            assert await asked(f"Where was the {thing} before?") == others[-1]
    for box in BOXES:
        inside = sorted(thing for thing, place in where.items() if place == box)
        for text in (
            f"What is in the {box}?",
            f"Which things are in the {box}?",
            f"What does the {box} contain?",
        ):
            found = await asked(text)
            assert sorted(found) == inside if inside else found == "never_known"


async def test_you_is_nobody_where_two_speak_of_themselves_and_no_other_thing_where_one_is_named(
    asked, remember
):
    await remember(
        "home",
        seen(1, "Robbie", "located_in", "kitchen"),
        seen(2, "cup", "located_in", "drawer"),
        seen(3, "Robbie", "sees", "Ann"),
    )
    assert await asked("Where are you?") == "kitchen"
    assert await asked("Do you know where the cup is?") == "drawer"
    for text in ("Who sees you?", "Where do you think the keys are?", "Where is your charger?"):
        assert await asked(text) not in ({"Ann"}, "Ann", ["Ann"], "kitchen")

    await remember("home", seen(4, "Wanda", "located_in", "cellar", actor="Wanda"))

    assert await asked("Where are you?") not in ("kitchen", "cellar")
