"""The planner: reads a question by rules, from its own words and the tenant's names alone."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.proposals import Operation
from discovery._names import NameBook, tenant_names
from discovery._planner import plan_question

NOW = datetime(2026, 3, 18, tzinfo=UTC)
LABELLED = Path(__file__).parents[1] / "data" / "questions_plan.jsonl"


def names(*entities, relations=(), users=("Ann",)):
    return tenant_names(entities=entities, relations=relations, users=users)


def test_accuracy_on_the_labelled_questions(capsys):
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines() if line.strip()]
    entities = sorted({entity for row in rows for entity in row["entities"] if entity != "I"})
    known = tenant_names(entities=entities, relations=(), users=("I",))

    plans = [plan_question(row["question"], known) for row in rows]

    right = {
        "operation": [plan.operation == row["operation"] for plan, row in zip(plans, rows, strict=True)],
        "entities": [
            set(plan.entities) == set(row["entities"]) for plan, row in zip(plans, rows, strict=True)
        ],
        "relations": [
            set(row["relations"]) <= set(plan.relations) for plan, row in zip(plans, rows, strict=True)
        ],
    }
    with capsys.disabled():
        shares = ", ".join(f"{name} {sum(marks)}/{len(rows)}" for name, marks in right.items())
        print(f"\nplanner on {len(rows)} labelled questions: {shares}")  # noqa: T201 - the figure is the point
    assert len(rows) == 60
    assert min(sum(marks) for marks in right.values()) >= 0.8 * len(rows)


def operation(question, *known):
    return plan_question(question, names(*known)).operation


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where does Ivo live?", Operation.CURRENT_STATE),
        ("Do you know where Ivo lives?", Operation.CURRENT_STATE),
        ("Do you know if Ivo still lives in Rome?", Operation.YES_NO),
        ("Is the heater on or off?", Operation.FACT),
        ("How many cats does Ivo have?", Operation.COUNT),
        ("What is the phone number of Ivo?", Operation.FACT),
        ("How many days passed between the two visits?", Operation.TEMPORAL_ARITHMETIC),
        ("When did the pump stop?", Operation.TEMPORAL_LOOKUP),
        ("When is Ivo's birthday?", Operation.FACT),
        ("Which happened first, the leak or the alarm?", Operation.ORDER),
        ("Tell me about Ivo.", Operation.SUMMARY),
        ("What would you recommend for dinner?", Operation.PREFERENCE),
        ("What are Ivo's hobbies?", Operation.PREFERENCE),
        ("Which instruments does Ivo play?", Operation.LIST),
        ("Where did Ivo live in 2019?", Operation.TEMPORAL_LOOKUP),
        ("Why did Ivo leave?", Operation.FACT),
        ("", Operation.FACT),
        ("???", Operation.FACT),
    ],
)
def test_operation_follows_the_words(question, expected):
    assert operation(question, "Ivo") == expected


def test_fallback_says_that_it_is_one():
    assert plan_question("Colourless green ideas", names()).confidence_ppm < 500_000


def test_longest_name_wins_and_words_are_whole():
    plan = plan_question(
        "Where is the red mug rack, and Annabel?", names("red mug", "red mug rack", "mug", "Ann")
    )

    assert plan.entities == ("red mug rack",)


def test_names_match_in_any_case_and_in_the_parts_of_an_identifier():
    assert plan_question("where is the RED mug?", names("red_mug")).entities == ("red_mug",)


def test_spelling_decides_between_names_that_differ_in_case_alone():
    assert plan_question("Who is apple's owner?", names("Apple", "apple")).entities == ("apple",)
    assert plan_question("Who is APPLE's owner?", names("Apple", "apple")).entities == ("Apple", "apple")


def test_a_name_that_is_a_common_word_must_be_capitalized_inside_the_sentence():
    assert plan_question("Will it rain?", names("Will", "It")).entities == ()
    assert plan_question("Where does Will live?", names("Will", "It")).entities == ("Will",)


def test_names_in_a_script_without_spaces_are_found():
    assert plan_question("田中さんはどこに住んでいますか", names("田中")).entities == ("田中",)


@pytest.mark.parametrize(("users", "expected"), [(("Ann",), ("Ann",)), ((), ()), (("Ann", "Bob"), ())])
def test_first_person_is_the_only_user_or_nobody(users, expected):
    assert plan_question("Where do I live?", names(users=users)).entities == expected


def test_a_polite_frame_is_not_about_the_user():
    assert plan_question("Can you tell me where Ivo lives?", names("Ivo")).entities == ("Ivo",)


@pytest.mark.parametrize(
    ("question", "relations"),
    [
        ("Where does Ivo work?", ("works_at",)),
        ("What does Ivo do for a living?", ("works_as",)),
        ("Is the lamp working?", ("status",)),
        ("Where is the mug?", ("located_in",)),
        ("What does Ivo look like?", ()),
        ("What is Ivo's favourite ice cream?", ("favorite_ice_cream",)),
        ("Which colour is Ivo's favourite?", ("favorite_colour",)),
        ("What is the battery level of the robot?", ("battery_level",)),
        ("What is the level?", ()),
    ],
)
def test_relations_come_from_cues_and_from_the_tenants_own_names(question, relations):
    assert (
        plan_question(question, names("Ivo", "robot", relations=("battery_level", "is_a"))).relations
        == relations
    )


def test_a_favorite_that_the_tenant_knows_is_found_in_either_spelling():
    known = names("Ivo", relations=("favorite_color", "favorite_tea"))

    assert plan_question("What's Ivo's favourite colour?", known).relations == ("favorite_color",)


def test_names_of_a_later_commit_are_not_known_at_an_earlier_cut():
    book = NameBook()
    book.add_entity("Ivo", commit=3)
    book.add_user("Ann", commit=1)
    book.add_user("Bob", commit=4)

    assert plan_question("Where does Ivo live?", book.at(2)).entities == ()
    assert plan_question("Where does Ivo live?", book.at(3)).entities == ("Ivo",)
    assert plan_question("Where do I live?", book.at(3)).entities == ("Ann",)
    assert plan_question("Where do I live?", book.at(4)).entities == ()


def test_a_name_learned_again_from_an_earlier_commit_is_known_from_there():
    book = NameBook()
    book.add_entity("Ivo", commit=5)
    book.add_entity("Ivo", commit=2)

    assert book.at(2).entities == {("ivo",): ("Ivo",)}


@given(st.text(max_size=200))
def test_any_text_gives_the_same_plan_twice(text):
    known = names("Ivo", "red mug", relations=("battery_level",))

    assert plan_question(text, known, valid_at=NOW) == plan_question(text, known, valid_at=NOW)


@pytest.mark.parametrize(
    "word", ["first ", "so ", "how many ", "may 1 ", "before the ", "or ", "day ", "what is "]
)
def test_a_question_made_to_be_slow_is_not(word):
    text = (word * 4_000)[:4_000]
    started = perf_counter()

    plan_question(text, names("Ivo"), valid_at=NOW)

    assert perf_counter() - started < 2
