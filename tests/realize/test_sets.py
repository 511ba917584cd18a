"""Which members of a set a question means, and what a count is worth where it names no key."""

import pytest

from contracts.proposals import Operation
from tests.packing.values import key, member, named, several
from tests.realize.asked import ask


def many(*values, entity="Ann", relation="has_pet"):
    members = [member(position, value) for position, value in enumerate(values, start=1)]
    return key(several(members=members), entity=entity, relation=relation)


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("How many C does Ann own?", ("C++", "C#"), None),
        ("How many C++ does Ann own?", ("C",), None),
        ("How many C++ does Ann own?", ("C", "C++"), None),
        ("How many C++ does Ann own?", ("Rust", "C++"), 1),
        ("How many York does Ann own?", ("New York",), None),
        ("How many New York does Ann own?", ("York",), None),
        ("How many york new does Ann own?", ("New York",), None),
        ("How many New York does Ann own?", ("New York", "Lyon"), 1),
        ("How many 'malmo' does Ann own?", ("Malmö", "Lyon"), 1),
        # Words that restrict nothing are the whole of a value here.
        ("How many known places does Ann own?", ("Known Places", "Lyon"), None),
    ],
)
def test_a_member_is_picked_by_its_whole_value_and_not_by_its_words(text, values, expected):
    answer = ask(text, many(*values, relation="owns"), operation=Operation.COUNT)

    assert answer.value == expected
    assert answer.status == ("evidence" if expected is None else "answered")


ALL_PETS = (
    many("Rex", "Pip"),
    key(several(members=[member(3, "Rex"), member(9, "Unseen")]), entity="Bob", relation="has_pet"),
)


@pytest.mark.parametrize(
    "text",
    [
        "How many black pets are there?",
        "How many pets do I have?",
        "How many people have pets?",
        "How many pets were there before?",
        "How many pets does she have?",
    ],
)
def test_of_less_than_all_no_bound_is_said(text):
    answer = ask(text, *ALL_PETS, operation=Operation.COUNT, keys=[], relations=("has_pet",), entities=())

    assert (answer.status, answer.value, answer.reason) == ("evidence", None, "no_named_key")


def test_a_count_over_candidates_alone_is_a_lower_bound_and_says_so():
    offered = [named("Ann", "has_pet", is_named=False), named("Bob", "has_pet", is_named=False)]
    answer = ask(
        "How many pets are there?",
        *ALL_PETS,
        operation=Operation.COUNT,
        keys=offered,
        relations=("has_pet",),
        entities=(),
    )

    # One name is one pet, and what the context does not show is not counted.
    assert (answer.status, answer.value) == ("evidence", {"at_least": 2})
    assert (answer.reason, answer.cites) == ("count_over_candidates", ("e2", "e3"))
