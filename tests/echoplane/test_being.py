"""Where a thing was, for how long, and whether ever, asked with no word but "to be" and a preposition."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.trails import Question
from tests.answers.nothing import NoCandidates
from tests.echoplane.test_holders import NOW


def told(number, entity, relation, value, since=None, **more):
    claim = {"entity": entity, "relation": relation, "value": value, **more}
    if since is not None:
        claim["valid"] = {"since": f"2025-01-{since:02d}T00:00:00Z"}
    return {
        "stream": "s", "kind": "claim", "actor": {"id": "Zoe", "class": "user"}, "claims": [claim],
        "source_event_id": f"b{number}", "observed_at": "2025-06-01T00:00:00Z",
    }  # fmt: skip


RECORD = [
    ("cup", "located_in", "drawer", 1),
    ("cup", "located_in", "sink", 11),
    ("cup", "located_in", "the drawer", 20),
    ("cup", "located_in", "shelf", 22),
    ("drawer", "located_in", "kitchen", 1),
    ("Jon", "location", "Oslo", 3),
    ("Jon", "location", "Bergen", 8),
    # Two ways of being somewhere: either may be meant.
    ("spoon", "location", "drawer", 1),
    ("spoon", "location", "sink", 5),
    ("spoon", "stored_in", "sink", 1),
    # No place: where somebody lives he is not always, and a box is of a colour.
    ("Ann", "lives_in", "Oslo", 1),
    ("box", "colour", "red", 1),
    ("cup", "colour", "white", 1),
    ("toolbox", "location", "cellar", 1),
    ("toolbox", "location", "attic", 9),
    ("lamp", "placed_on", "desk", 2),
    ("key", "whereabouts", "hook", 2),
    ("Zed", "position", "engineer", 2),
    ("rug", "located_in", "hall", 2),
    ("rug", "location", "hall", 3),
    ("Kim", "works_as", "cook", 4),
    ("Kim", "works_as", "baker", 8),
]

ANSWERS = {
    "Was Jon ever in Oslo?": True,
    "Has Jon ever been in Oslo?": True,
    "How long was the cup in the drawer?": {"days": 12},
    "How many days was the cup in the drawer in total?": 12,
    "How long was the cup in the sink?": {"days": 9},
    "Until when was the cup inside the sink?": "2025-01-20T00:00:00Z",
    "Since when has Jon been in Bergen?": "2025-01-08T00:00:00Z",
    "Is Jon in Bergen?": True,
    "Where is the toolbox?": "attic",
    "Where's the toolbox now?": "attic",
    "Where is the toolbox located?": "attic",
    "Tell me where the toolbox is.": "attic",
    "Where is the lamp?": "desk",
    "Where is the key?": "hook",
    "Where is the cup?": "shelf",
    "Where was the cup on 14 January 2025?": "sink",
    "Where was the cup located on 14 January 2025?": "sink",
    "Where was the toolbox on 5 January 2025?": "cellar",
    "Where was Jon on 4 January 2025?": "Oslo",
    "Where has Jon been?": ["Oslo", "Bergen"],
    "Where has the cup been?": ["drawer", "sink", "the drawer", "shelf"],
    "Where has the toolbox been?": ["cellar", "attic"],
    "Has Jon been in Oslo?": True,
    "Has Ann lived in Oslo?": True,
    "What is on the desk?": ["lamp"],
    "What is in the hall?": ["rug"],
}

WITHHELD = (
    "Was Jon ever in Paris?",
    "Was Jon never in Oslo?",
    "Was Jon ever near Oslo?",
    "Was Jon ever in Oslo with Ann?",
    "Was Jon ever in Oslo before he was in Bergen?",
    "Was Jon's cup ever in Oslo?",
    # It is there still.
    "How long was the cup on the shelf?",
    "How long was the cup in the shelf?",
    "How long will the cup be in the drawer?",
    "How long was the red cup in the drawer?",
    "Was the spoon ever in the drawer?",
    "How long was the spoon in the drawer?",
    "Was Ann ever in Oslo?",
    "Was the box ever in red?",
    "Why was the cup in the drawer?",
    "What is the cup in the drawer?",
    "Who was with the cup in the drawer?",
    # Several relations say where it is, or one that may say something else.
    "Where is the spoon?",
    "Where is the rug?",
    "Where has the rug been?",
    "Where is Zed?",
    "Where is the box?",
    # It was moved on that day, or there is no one time.
    "Where was the cup in January 2025?",
    "Where was the cup?",
    "Where was the red cup on 14 January 2025?",
    "Where is the cup's owner?",
    "Where has the cup been hidden?",
    # All that has been is asked for, and not what is.
    "What has Kim's job been working as?",
    "What job has Kim had?",
    # Told as in it.
    "What is on the shelf?",
)


@pytest.fixture
async def asked(plane, remember):
    await remember("home", *(told(number, *one) for number, one in enumerate(RECORD)))
    path = replace(plane.path, discovery=NoCandidates())

    async def asked(text):
        question = Question(text=text, budget_tokens=32_000, disclose_conflicts=True)
        found = await path.ask("home", question, NOW, wait_ms=0)
        rebuilt = await path.rebuild(tenant="home", trail=found.trail)
        assert rebuilt.answer == found.answer
        assert found.answer.status != "answered" or found.answer.cites
        return found.answer.value if found.answer.status == "answered" else None

    asked.reason = lambda text: _reason(path, text)
    return asked


async def _reason(path, text):
    question = Question(text=text, budget_tokens=32_000, disclose_conflicts=True)
    answer = (await path.ask("home", question, NOW, wait_ms=0)).answer
    return answer.status, answer.reason


async def test_being_in_a_place_is_the_relation_that_says_where_a_thing_is(asked):
    assert {question: await asked(question) for question in ANSWERS} == ANSWERS
    assert {question: await asked(question) for question in WITHHELD} == dict.fromkeys(WITHHELD)


async def test_why_it_is_not_said_where_a_thing_is_or_what_is_there_is_no_untruth(asked):
    assert await asked.reason("Where is the spoon?") == ("evidence", "several_keys")
    assert await asked.reason("Where is the rug?") == ("evidence", "several_keys")
    # The cup is told to be in it: to the rules, and to many, that may be on it.
    assert await asked.reason("What is on the shelf?") == ("evidence", "preposition_not_told")
    assert await asked.reason("What is at the desk?") == ("evidence", "preposition_not_told")
    # What is on it is not in it.
    assert await asked.reason("What is in the desk?") == ("insufficient_evidence", "never_known")
