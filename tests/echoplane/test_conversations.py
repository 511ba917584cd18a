"""Questions as people put them about one another: since when, how long, how old, who said so."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from contracts.erasures import ErasureRequest
from contracts.grants import LOCAL_GRANT
from contracts.trails import Question
from contracts.views import ViewRequest
from ledger.erase import erase
from projection import RuleProjector

AT = ViewRequest(
    valid_at=datetime(2026, 1, 15, 12, tzinfo=UTC), known_at=None, generation=None, min_commit=None
)
ASKED = Question(text="?", budget_tokens=4_096, disclose_conflicts=False)


def claim(entity, relation, value, **more):
    return {"entity": entity, "relation": relation, "value": value, **more}


@pytest.fixture
async def told(plane, remember, turn):
    """Ann and Bob, of whom some beginnings were told and some were not."""

    def said(who, at, *claims):
        return turn("Some news.", who=who, at=f"{at}T09:00:00Z", claims=list(claims))

    await remember(
        "home",
        said("Ann", "2020-01-10", claim("Ann", "lives_in", "Lyon", valid={"since": "2011"})),
        said("Ann", "2024-02-10", claim("Ann", "lives_in", "Ghent", valid={"since": "2023-03-05"})),
        said("Bob", "2024-03-01", claim("Ann", "speaks", "Dutch")),
        said("Bob", "2024-03-02", claim("Bob", "lives_in", "Lyon")),
        said(
            "Bob",
            "2024-03-03",
            claim("Bob", "works_at", "Acme", valid={"since": "2022-05"}),
            claim("Bob", "birthday", "3 June 1992"),
            claim("Bob", "employee_number", "C++"),
        ),
        said("Ann", "2024-03-04", claim("Ann", "birthday", "1990-05-03"), claim("Ann", "age", "33")),
        said("Ann", "2024-03-05", claim("Ann", "married_to", "Bob", valid={"since": "2020-06-01T12:00:00Z"})),
        said("Ann", "2024-03-06", claim("Ann", "speaks", "French", valid={"since": "2000"})),
        said("Cem", "2024-04-01", claim("Cem", "lives_in", "Rome", valid={"since": "2010"})),
        said("Cem", "2024-04-02", claim("Cem", "lives_in", "Oslo", valid={"since": "2015"})),
        said("Cem", "2024-04-03", claim("Cem", "lives_in", "Rome", valid={"since": "2020"})),
        said("Cem", "2024-04-04", claim("Cem", "birthday", "3 March")),
        said("Fay", "2011-01-01", claim("Fay", "lives_in", "Rome", valid={"since": "2010"})),
        said("Fay", "2016-01-01", claim("Fay", "lives_in", "Oslo", valid={"since": "2015"})),
        said("Fay", "2020-01-01", claim("Fay", "lives_in", "Rome")),
        said("Gus", "2020-01-01", claim("Gus", "lives_in", "Rome")),
        said("Gus", "2022-01-01", claim("Gus", "lives_in", "Rome", valid={"since": "2021"})),
        said("Cem", "2025-11-20", claim("Dee", "age", "33"), claim("Eve", "age", "34")),
        said("Cem", "2025-11-21", claim("Kit", "age", "-3")),
        said("Cem", "2026-01-15", claim("Eve", "age", 35)),
    )

    async def told(text, at=AT):
        answer = (await plane.path.ask("home", replace(ASKED, text=text), at, wait_ms=0)).answer
        return answer.value if answer.status == "answered" else None

    return told


ANSWERS = {
    "Since when does Ann live in Ghent?": {
        "earliest": "2023-03-05T00:00:00Z", "latest": "2023-03-06T00:00:00Z",
    },
    "When did Ann move to Ghent?": {"earliest": "2023-03-05T00:00:00Z", "latest": "2023-03-06T00:00:00Z"},
    "How long has Ann been living in Ghent?": {"days": 1_047},
    "How many years has Ann lived in Ghent?": 2,
    "For how long has Bob worked at Acme?": {"at_least": {"days": 1_325}, "at_most": {"days": 1_355}},
    "How many years has Bob worked at Acme?": 3,
    "When did Bob start working at Acme?": {
        "earliest": "2022-05-01T00:00:00Z", "latest": "2022-06-01T00:00:00Z",
    },
    # From a day of 2011 to one in March 2023, counted by their dates.
    "How long did Ann live in Lyon?": {"at_least": {"days": 4_082}, "at_most": {"days": 4_446}},
    "Since when has Ann been married to Bob?": "2020-06-01T12:00:00Z",
    "How long has Ann spoken French?": {"at_least": {"days": 9_146}, "at_most": {"days": 9_511}},
    "Since when has Cem lived in Rome?": {
        "earliest": "2020-01-01T00:00:00Z", "latest": "2021-01-01T00:00:00Z",
    },
    "Who said that Ann lives in Ghent?": ["Ann"],
    "Who says Ann speaks Dutch?": ["Bob"],
    "How old is Ann?": 35,
    "What is Ann's age?": 35,
    "How old was Ann on 2 May 2020?": 29,
    "How old was Ann in 2020?": {"at_least": 29, "at_most": 30},
    "How old is Dee?": {"at_least": 33, "at_most": 34},
    "How old is Eve?": 35,
    "How many days lie between Ann's birthday and Bob's birthday?": 762,
    "How many years are there between Bob's birthday and Ann's birthday?": 2,
}  # fmt: skip
WITHHELD = (
    # Nobody told when it began, or it is not so, or not exactly so.
    "Since when does Bob live in Lyon?",
    "How long has Ann spoken Dutch?",
    # It was so before, and is so again; or was so before the time that is told.
    "Since when has Fay lived in Rome?",
    "Since when has Gus lived in Rome?",
    "How long has Ann lived in Lyon?",
    "When did Ann move to Lyon?",
    "Since when does Ann live in Gent?",
    "Since when does Ann live near Ghent?",
    "How long had Ann lived in Ghent?",
    "How long will Ann live in Ghent?",
    "When did Ann live in Ghent?",
    "Where did Ann move in 2023?",
    "Since when is Bob's employee number C?",
    "Who said that Ann lives in Lyon?",
    "Who said that Ann does not live in Ghent?",
    "Who believes that Ann lives in Ghent?",
    "How old is Ann's house?",
    "How old was Ann when she moved?",
    "How old will Ann be?",
    # A day of birth without its year.
    "How old is Cem?",
    "How old is Kit?",
    "How many days lie between Ann's birthday and Cem's birthday?",
)


async def test_what_was_told_is_answered_and_what_was_not_is_withheld(told):
    assert {question: await told(question) for question in ANSWERS} == ANSWERS
    assert {question: await told(question) for question in WITHHELD} == dict.fromkeys(WITHHELD)


async def test_first_told_is_of_the_record_s_own_clock(plane, remember, turn):
    receipts = await remember(
        "home",
        turn("I live in Ghent.", at="2024-01-01T00:00:00Z"),
        turn("I still live in Ghent.", at="2025-01-01T00:00:00Z"),
    )

    question = replace(ASKED, text="When did you first hear that Ann lives in Ghent?")
    answer = (await plane.path.ask("home", question, AT, wait_ms=0)).answer

    assert answer.status == "answered"
    assert datetime.fromisoformat(answer.value) == datetime.fromisoformat(receipts[0].recorded_at)

    erased = ErasureRequest(subject=None, event_ids=(receipts[0].event_ids[0],))
    await erase(plane.database, "home", RuleProjector(), erased, grant=LOCAL_GRANT)
    after = (await plane.path.ask("home", question, AT, wait_ms=0)).answer

    # Whether what is gone said the same, nobody can tell; so it is not said that it was first heard later.
    assert (after.status, after.value) == ("insufficient_evidence", None)


async def test_nor_is_it_where_what_was_told_first_was_erased_before_anything_else_was_said(
    plane, remember, turn
):
    ghent = claim("Ann", "lives_in", "Ghent", valid={"since": "2024-01-01T00:00:00Z"})
    (first,) = await remember("home", turn("Ghent.", at="2024-01-01T00:00:00Z", claims=[ghent]))
    erased = ErasureRequest(subject=None, event_ids=first.event_ids)
    await erase(plane.database, "home", RuleProjector(), erased, grant=LOCAL_GRANT)
    await remember("home", turn("Still Ghent.", at="2025-01-01T00:00:00Z", claims=[ghent]))

    question = replace(ASKED, text="When did you first hear that Ann lives in Ghent?")
    answer = (await plane.path.ask("home", question, AT, wait_ms=0)).answer

    assert (answer.status, answer.reason) == ("insufficient_evidence", "erased")


async def test_first_told_is_the_first_also_of_what_was_told_otherwise_in_between(plane, remember, turn):
    receipts = await remember(
        "home",
        *(
            turn("News.", at="2025-01-01T00:00:00Z", claims=[
                claim("Ann", "lives_in", home, valid={"since": "2024-01-01T00:00:00Z"})
            ])
            for home in ("Ghent", "Lyon", "Ghent")
        ),
    )  # fmt: skip

    question = replace(ASKED, text="When did you first hear that Ann lives in Ghent?")
    answer = (await plane.path.ask("home", question, AT, wait_ms=0)).answer

    assert answer.status == "answered"
    assert datetime.fromisoformat(answer.value) == datetime.fromisoformat(receipts[0].recorded_at)
