"""A question that turns its key around is not answered with what the key holds."""

from __future__ import annotations

import pytest

from contracts.proposals import Operation
from tests.packing.values import key, member, missing, several
from tests.realize.asked import ask, conflict


def asked(text, relation, resolution=None):
    many = several(members=(member(3, "Lyon"),), disputed=())
    found = resolution or (many if text.startswith("How") else member(3, "Lyon"))
    operation = Operation.COUNT if text.startswith("How") else Operation.FACT
    return ask(text, key(found, entity="Ada", relation=relation), operation=operation)


TURNED = [
    ("Who is Ada the boss of?", "boss"),
    ("Who is Ada boss of?", "boss"),
    ("Of whom is Ada the boss?", "boss"),
    ("For whom is Ada boss?", "boss"),
    ("Ada is the boss of whom?", "boss"),
    ("Do you know who Ada is the boss of?", "boss"),
    ("Who has Ada as boss?", "boss"),
    ("Which people have Ada as their boss?", "boss"),
    ("Who was Ada a teacher of?", "teacher"),
    ("Who is Ada the employer of?", "works_at"),
    ("How often was Ada visited?", "visited"),
    ("How many times was Ada visited?", "visited"),
    ("How often has Ada been visited?", "visited"),
    ("How many people was Ada visited by?", "visited"),
    ("Who was Ada visited by?", "visited"),
    ("Who is Ada liked by?", "likes"),
    ("By whom is Ada managed?", "manages"),
    ("How often did anyone visit Ada?", "visited"),
    ("How often did Bob visit Ada?", "visited"),
    ("How often has Bob visited Ada?", "visited"),
    ("Who is Ada's parent?", "parent_of"),
    ("Who is the parent of Ada?", "parent_of"),
]
STRAIGHT = [
    ("Who is Ada's boss?", "boss"),
    ("Who is the boss of Ada?", "boss"),
    ("Do you know who is the boss of Ada?", "boss"),
    ("Who is Ada's teacher?", "teacher"),
    ("How often has Ada visited?", "visited"),
    ("How many places has Ada visited?", "visited"),
    ("How many places were visited by Ada?", "visited"),
    ("What places did Ada visit?", "visited"),
    ("What is Ada a member of?", "member_of"),
    ("Who is Ada parent of?", "parent_of"),
    ("Who is Ada managed by?", "managed_by"),
    ("Who is Ada married to?", "married_to"),
    ("Where is Ada employed?", "works_at"),
    ("What is Ada called?", "named"),
    ("Where is Ada parked?", "parked_in"),
    ("What is Ada allergic to?", "allergic_to"),
    ("Who does Ada like?", "likes"),
    ("What does Ada own?", "owns"),
    ("What is the battery level of Ada?", "battery_level"),
]


@pytest.mark.parametrize(("text", "relation"), TURNED)
@pytest.mark.parametrize(
    "resolution", [None, conflict(), missing().resolution], ids=["held", "rivals", "none"]
)
def test_the_other_end_of_a_key_is_not_answered_with_this_one(text, relation, resolution):
    answer = asked(text, relation, resolution)

    assert (answer.status, answer.value) == ("evidence", None)
    assert answer.reason == "question_not_understood"


@pytest.mark.parametrize(("text", "relation"), STRAIGHT)
def test_a_question_that_goes_along_its_key_is_understood(text, relation):
    assert asked(text, relation).reason != "question_not_understood"
