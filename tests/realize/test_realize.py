import pytest

from contracts.answers import AnswerStatus
from contracts.proposals import Operation, TimeExpression
from contracts.relations import Cardinality
from contracts.resolutions import MissingReason
from tests.packing.values import (
    VIEW,
    key,
    member,
    missing,
    named,
    several,
)
from tests.realize.asked import LIVES, ask, conflict

PETS = key(
    several(members=(member(3, "Otis"), member(1, "Miso"), member(2, "Biscuit")), disputed=()),
    relation="has_pet",
)
TRIPS = key(
    several(
        members=tuple(
            member(position, place, identity=f"visit {position}")
            for position, place in ((1, "Naples"), (2, "Plovdiv"), (3, "Naples"))
        ),
        disputed=(),
    ),
    relation="visited",
    cardinality=Cardinality.OCCURRENCE,
)


@pytest.mark.parametrize("operation", [Operation.FACT, Operation.CURRENT_STATE, Operation.PREFERENCE])
def test_a_state_is_answered_with_the_lines_that_carry_it(operation):
    answer = ask("Where does Ann live?", LIVES, operation=operation)

    assert (answer.status, answer.value, answer.cites, answer.reason) == ("answered", "Lyon", ("e3",), None)


@pytest.mark.parametrize("value", [False, 0, "", [], {"m": 1.5}])
def test_a_value_that_looks_empty_is_a_value(value):
    answer = ask("What is Ann's status?", key(member(3, value), relation="status"))

    assert (answer.status, answer.value) == ("answered", value)


@pytest.mark.parametrize(
    ("text", "operation", "value"),
    [
        ("How many pets does Ann have?", Operation.COUNT, 3),
        ("List all of Ann's pets.", Operation.LIST, ["Miso", "Biscuit", "Otis"]),
        ("What pets does Ann have?", Operation.FACT, ["Miso", "Biscuit", "Otis"]),
    ],
)
def test_members_are_counted_and_listed_in_the_order_they_were_told(text, operation, value):
    answer = ask(text, PETS, operation=operation)

    assert (answer.status, answer.value, answer.cites) == ("answered", value, ("e1", "e2", "e3"))


def test_a_count_of_occurrences_counts_identities_not_values():
    answer = ask("How many trips has Ann made?", TRIPS, operation=Operation.COUNT)
    naples = ask("How often has Ann visited Naples?", TRIPS, operation=Operation.COUNT)

    assert answer.status == AnswerStatus.EVIDENCE  # "made" is no word of the relation
    assert (naples.status, naples.value, naples.cites) == ("answered", 2, ("e1", "e3"))


@pytest.mark.parametrize(
    "text",
    [
        "How many black pets does Ann have?",
        "How many dogs does Ann have as pets?",
        "How many pets did Ann have as a child?",
        "How many pets did Ann have in 2021?",
    ],
)
def test_a_count_of_less_than_the_key_holds_is_left_to_the_reader(text):
    answer = ask(text, PETS, operation=Operation.COUNT)

    assert (answer.status, answer.value, answer.reason) == ("evidence", None, "time_or_scope_not_resolved")


@pytest.mark.parametrize(
    ("text", "operation", "value"),
    [
        ("How many places has Ann visited?", Operation.COUNT, 2),
        ("How many visits did Ann make?", Operation.COUNT, None),
        ("How often has Ann travelled?", Operation.COUNT, None),
        ("How many trips has Ann been on?", Operation.COUNT, None),
        ("How many trips are there of Ann?", Operation.COUNT, 3),
        ("Where has Ann been to?", Operation.FACT, ["Naples", "Plovdiv"]),
        ("Which places did Ann visit?", Operation.LIST, ["Naples", "Plovdiv"]),
        ("Which places did Ann visit today?", Operation.LIST, None),
        ("What is the latest place Ann visited?", Operation.FACT, None),
        ("How many places does Ann visit these days?", Operation.COUNT, None),
    ],
)
def test_what_occurred_is_told_once_and_of_all_time(text, operation, value):
    answer = ask(text, TRIPS, operation=operation)

    assert (answer.status, answer.value) == ("evidence" if value is None else "answered", value)


def test_what_occurred_is_told_once_in_whatever_units_it_was_said():
    runs = several(
        members=[
            member(1, "5 km", identity="i1", form="5"),
            member(2, "5000 m", identity="i2", form="5"),
            member(3, "7 km", identity="i3", form="7"),
        ]
    )
    told = key(runs, relation="visited", cardinality=Cardinality.OCCURRENCE)

    assert ask("How many places has Ann visited?", told, operation=Operation.COUNT).value == 2
    assert ask("Which places did Ann visit?", told, operation=Operation.LIST).value == ["5 km", "7 km"]


def test_occurrences_within_a_named_time_are_left_to_the_reader():
    year = TimeExpression(wording="this year", start=None, end=None)

    for operation in (Operation.FACT, Operation.LIST, Operation.COUNT):
        assert ask("Where has Ann been to?", TRIPS, operation=operation, times=[year]).status == "evidence"


def test_a_place_never_visited_is_not_counted_as_all_places():
    answer = ask("How often has Ann visited Sofia?", TRIPS, operation=Operation.COUNT)

    assert answer.status == AnswerStatus.EVIDENCE


def test_a_value_that_shares_a_word_with_the_one_asked_for_forbids_the_count():
    members = (member(1, "Naples", identity="1"), member(2, "Naples Florida", identity="2"))
    trips = key(several(members=members, disputed=()), relation="visited")

    assert ask("How often has Ann visited Naples?", trips, operation=Operation.COUNT).status == "evidence"


def test_a_one_valued_key_is_never_counted_or_listed():
    for operation in (Operation.COUNT, Operation.LIST):
        answer = ask("Where does Ann live?", LIVES, operation=operation)

        assert (answer.status, answer.reason) == ("evidence", "not_many_valued")


@pytest.mark.parametrize("reason", MissingReason)
def test_where_nothing_stands_the_answer_is_withheld_with_the_reason_though_lines_were_found(reason):
    answer = ask("Where does Ann live?", missing(reason))

    assert (answer.status, answer.value, answer.cites, answer.reason) == (
        "insufficient_evidence",
        None,
        (),
        reason.value,
    )


def test_an_ended_set_is_not_counted_as_zero():
    answer = ask(
        "How many pets does Ann have?",
        missing(MissingReason.ENDED, relation="has_pet"),
        operation=Operation.COUNT,
    )

    assert (answer.status, answer.value) == ("insufficient_evidence", None)


def test_a_conflict_is_said_and_its_values_are_not():
    answer = ask("Where does Ann live?", key(conflict()))

    assert (answer.status, answer.value, answer.cites, answer.reason) == (
        "conflict",
        None,
        ("e1", "e2"),
        "sources_not_ordered",
    )


def test_rival_values_are_disclosed_where_the_caller_asks():
    answer = ask("Where does Ann live?", key(conflict(ended=True)), disclose_conflicts=True)

    assert (answer.status, answer.value) == (
        "conflict",
        {"rivals": [{"value": "Leuven", "ended": False}, {"value": None, "ended": True}]},
    )


def test_rival_values_that_the_context_does_not_show_stay_hidden():
    for fields in ({"shown": (1,)}, {"budget_tokens": 5}):
        answer = ask("Where does Ann live?", key(conflict()), disclose_conflicts=True, **fields)

        assert (answer.status, answer.value) == ("conflict", None)


@pytest.mark.parametrize(("ended", "at_least"), [(True, 1), (False, 2)])
def test_a_count_with_a_disputed_member_is_a_conflict_and_discloses_a_range(ended, at_least):
    pets = key(
        several(members=(member(3, "Otis"),), disputed=(conflict("Miso", "Misu", ended=ended),)),
        relation="has_pet",
    )

    said, disclosed = (
        ask("How many pets does Ann have?", pets, operation=Operation.COUNT, disclose_conflicts=disclose)
        for disclose in (False, True)
    )

    assert (said.status, said.value, said.reason) == ("conflict", None, "members_disputed")
    assert disclosed.value == {"at_least": at_least, "at_most": 2}


def test_a_list_with_a_disputed_member_is_a_conflict_and_discloses_it_apart():
    pets = key(
        several(members=(member(3, "Otis"),), disputed=(conflict("Miso", "Misu"),)), relation="has_pet"
    )

    answer = ask("List Ann's pets.", pets, operation=Operation.LIST, disclose_conflicts=True)

    assert answer.value == {
        "values": ["Otis"],
        "disputed": [[{"value": "Miso", "ended": False}, {"value": "Misu", "ended": False}]],
    }


def test_required_evidence_that_did_not_fit_means_no_answer():
    answer = ask("Where does Ann live?", LIVES, budget_tokens=20)

    assert (answer.status, answer.reason) == ("insufficient_evidence", "required_evidence_deferred")


def test_a_member_without_a_line_of_its_own_means_no_answer():
    answer = ask("How many pets does Ann have?", PETS, operation=Operation.COUNT, shown=(1, 3))

    assert (answer.status, answer.reason) == ("insufficient_evidence", "not_in_context")


def test_a_key_that_the_question_does_not_name_is_never_answered_from():
    near = [named("Ann", "lives_in", is_named=False)]

    found, nothing = (ask("Where is Ann based?", LIVES, keys=near, shown=shown) for shown in ((1, 2), ()))

    assert (found.status, found.value, found.cites, found.reason) == (
        "evidence",
        None,
        ("e1", "e2"),
        "no_named_key",
    )
    assert (nothing.status, nothing.reason) == ("insufficient_evidence", "nothing_found")


def test_a_named_key_that_nobody_resolved_is_not_answered_around():
    answer = ask("Where does Ann live?", keys=[named()])

    assert (answer.status, answer.reason) == ("insufficient_evidence", "key_not_resolved")


@pytest.mark.parametrize(
    "operation",
    [each for each in Operation if each not in {"fact", "current_state", "preference", "count", "list"}],
)
def test_operations_without_a_rule_give_the_evidence(operation):
    answer = ask("Does Ann live in Lyon?", LIVES, operation=operation)

    assert (answer.status, answer.reason) == ("evidence", "operation_not_typed")


@pytest.mark.parametrize(
    "text",
    [
        "Where did Ann live before Lyon?",
        "What was Ann's first home city?",
        "Where does Ann not live?",
        "Where would Ann live if she left?",
        "Where will Ann live?",
    ],
)
def test_a_question_moved_to_another_time_or_world_is_left_to_the_reader(text):
    assert ask(text, LIVES, operation=Operation.FACT).status == AnswerStatus.EVIDENCE


def test_a_person_called_will_and_a_polite_question_are_answered():
    will = key(member(3, "Lyon"), entity="Will")

    assert ask("Where does Will live?", will).status == AnswerStatus.ANSWERED
    assert ask("Would you tell me where Ann lives?", LIVES).status == AnswerStatus.ANSWERED


def test_a_named_time_is_answered_only_where_it_is_the_time_of_the_view():
    past = TimeExpression(wording="in 2021", start=None, end=VIEW.valid_at)
    now = TimeExpression(wording="this year", start=VIEW.valid_at, end=None)

    assert ask("Where did Ann live in 2021?", LIVES, times=[past]).status == AnswerStatus.EVIDENCE
    assert ask("Where does Ann live this year?", LIVES, times=[now]).status == AnswerStatus.ANSWERED
    assert (
        ask("How many pets does Ann have?", PETS, operation=Operation.COUNT, times=[now]).status == "evidence"
    )


def test_two_people_of_one_question_get_no_single_answer():
    bob = key(member(2, "Sofia"), entity="Bob")

    answer = ask("Where do Ann and Bob live?", LIVES, bob)

    assert (answer.status, answer.reason) == ("evidence", "several_keys")
    assert ask("Where do Ann and Bob live?", LIVES, missing(entity="Bob")).status == AnswerStatus.EVIDENCE


def test_two_names_of_one_entity_are_one_key():
    again = key(LIVES.resolution, entity="Annie")

    assert ask("Where does Ann, or Annie, live?", LIVES, again).value == "Lyon"


def test_an_entity_that_is_the_value_asked_about_does_not_make_two_keys():
    lyon = missing(entity="Lyon")

    assert ask("Where does Ann live, Lyon?", LIVES, lyon).value == "Lyon"
    assert ask("Where does Ann live, Lyon?", LIVES, entities=("Ann", "Lyon")).value == "Lyon"


def test_a_second_person_on_whom_nothing_is_claimed_is_not_passed_over():
    answer = ask("Where do Ann and Bob live?", LIVES, entities=("Ann", "Bob"))

    assert (answer.status, answer.reason) == ("evidence", "several_keys")


@pytest.mark.parametrize(
    "text",
    [
        "Where does Ann's husband live?",
        "Where does Ann's mother live?",
        "Where does her brother live?",
        "Where does the sister of Ann live?",
        "Where does Ann's sister's boss live?",
    ],
)
@pytest.mark.parametrize("relations", [("lives_in", "married_to"), ("married_to", "lives_in"), ("lives_in",)])
def test_what_is_asked_of_someone_elses_is_not_answered_of_the_one_named(text, relations):
    assert ask(text, LIVES, relations=relations).status == AnswerStatus.EVIDENCE


@pytest.mark.parametrize(
    ("text", "key_asked"),
    [
        ("What is Ann's current home city?", LIVES),
        ("Where does my friend Ann live?", LIVES),
        ("What is the home city of Ann?", LIVES),
        ("Who is Ann's employer?", key(member(3, "Lyon"), relation="employer")),
        ("Where is my blue mug?", key(member(3, "Lyon"), entity="blue mug", relation="located_in")),
        ("What is the battery level of robot-1?",
         key(member(3, "Lyon"), entity="robot-1", relation="battery_level")),
        ("What's the current status of the cellar window right now?",
         key(member(3, "Lyon"), entity="cellar window", relation="status")),
        ("What is Ann’s favourite colour?", key(member(3, "Lyon"), relation="favorite_colour")),
    ],
)  # fmt: skip
def test_plain_questions_are_answered_however_they_are_put(text, key_asked):
    relations = ("works_at", "employer") if key_asked.relation == "employer" else (key_asked.relation,)

    assert ask(text, key_asked, relations=relations).value == "Lyon"


def test_of_several_relations_the_first_of_the_plan_is_meant():
    located = key(member(2, "kitchen"), relation="located_in")

    answer = ask("Where does Ann live?", LIVES, located)
    unknown = ask("Where does Ann live?", missing(), located)

    assert answer.value == "Lyon"
    assert (unknown.status, unknown.value) == ("insufficient_evidence", None)


@pytest.mark.parametrize(
    ("operation", "question", "said"),
    [
        (Operation.COUNT, "How many pets does Ann have?", ("answered", 5_000, None)),
        (Operation.LIST, "List Ann's pets.", ("evidence", None, "not_all_listed")),
        (Operation.COUNT, "How many black pets does Ann have?", ("evidence", None, "not_all_listed")),
    ],
)
def test_of_more_than_is_listed_only_the_number_is_told(operation, question, said):
    pets = key(several(members=(member(3, "Otis"),), members_count=5_000), relation="has_pet")

    answer = ask(question, pets, operation=operation)

    assert (answer.status, answer.value, answer.reason) == said
