"""A question is a task only if every word of it is understood; what it asks for, of what, as known when."""

from datetime import UTC, datetime

import pytest

from contracts.trails import Question
from discovery._names import tenant_names
from discovery._planner import plan_question
from realize import read_task

NAMES = tenant_names(
    entities=["Norland", "Sudland", "Ann", "vanilla cookies"],
    relations=["output", "parent_of", "home", "last_seen"],
    users=["Ann"],
)


def read(text):
    plan = plan_question(text, NAMES, valid_at=datetime(2026, 1, 1, tzinfo=UTC))
    keys = [(entity, relation) for relation in plan.relations[:1] for entity in plan.entities]
    question = Question(text=text, budget_tokens=2_048, disclose_conflicts=False)
    return read_task(question, plan, keys)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("What was Norland output for Q4 2008?", "value"),
        ("What did we believe on 1 July 2009 that the output of Norland was in Q4 2008?", "value"),
        ("Did the output of Norland in 2008Q4 amount to 7.5, as known on 1 July 2009?", "yes_no"),
        ("Is Ann's home Lyon?", "yes_no"),
        ("When did you last see the vanilla cookies?", "is_when"),
        ("As of 1 July 2009, how much did Norland's output change from Q3 2008 to Q4 2008?", "difference"),
        ("When was the output of Norland in the fourth quarter of 2008 first published?", "first_known"),
        ("When did Norland's output for Q4 2008 last change?", "known_since"),
        ("Since when do we have the latest output of Norland for Q4 2008?", "known_since"),
        ("When was Norland output for Q4 2008 first reported as 7.5?", "known_as"),
        ("How many times has Norland's output for Q4 2008 been revised?", "times_revised"),
        ("What was the largest revision of Norland output for Q4 2008?", "largest_revision"),
        ("How much did revisions change Norland output for Q4 2008?", "total_revision"),
        (
            "How many months lie between the first and the latest figure for Norland's output in Q4 2008?",
            "elapsed",
        ),
        ("Which figures have been published for Norland output in Q4 2008?", "values"),
        ("Count the different values of Norland output for Q4 2008.", "values_count"),
        ("What changed about Norland output for Q4 2008 between 1 May 2009 and 1 July 2010?", "changes"),
        ("Who told us Norland's output for Q4 2008?", "who_said"),
        ("Which was published first, Norland output for Q4 2008 or Sudland output for Q1 2009?", "order"),
        ("Was Norland output for Q4 2008 published before Sudland output for Q1 2009?", "before"),
        ("Since when has Ann's home been Lyon?", "held_since"),
        ("When did Ann's home become Lyon?", "held_since"),
        ("How many weeks has the home of Ann been Lyon now?", "held_for"),
        ("How many weeks has the home of Ann been Lyon in total?", "held_total"),
        ("How long was Ann's home Lyon?", "held_total"),
        ("Until when was Ann's home Lyon?", "held_until"),
        ("When did Ann's home stop being Lyon?", "held_until"),
        ("Was Ann's home ever Lyon?", "held_ever"),
        ("What was Ann's home before Lyon?", "held_beside"),
        ("What was Ann's previous home?", "held_beside"),
        ("What was Ann's home before that?", "held_beside"),
        ("What has Ann's home been so far?", "held_values"),
        ("Who told you that Ann's home is the red mill?", "who_said"),
        ("When did we learn that Ann's home is Lyon?", "first_told"),
        ("How much time is there between the home of Ann and the home of Norland?", "apart"),
    ],
)
def test_what_is_asked_is_read_whole(text, form):
    task = read(text)

    assert task is not None
    assert task.form == form


@pytest.mark.parametrize(
    ("text", "revised"),
    [
        ("When was Norland output for Q4 2008 last revised?", True),
        ("When was Norland output for Q4 2008 most recently corrected?", True),
        ("When did Norland output for Q4 2008 last change?", True),
        ("When was the latest Norland output for Q4 2008 published?", False),
        ("Since when do we have the latest output of Norland for Q4 2008?", False),
        ("How long after it was first published was Norland output for Q4 2008 last revised?", True),
        (
            "How many days lie between the first release of Norland output for Q4 2008 and its last change?",
            True,
        ),
        (
            "How many days lie between the first release of Norland output for Q4 2008 and the last figure?",
            False,
        ),
        ("How long passed between first learning Norland output for Q4 2008 and its last change?", True),
    ],
)
def test_a_last_revision_is_told_from_a_latest_figure(text, revised):
    task = read(text)

    assert task is not None
    assert task.revised is revised


def test_times_are_told_apart_when_it_held_and_when_it_was_known():
    task = read("As known on 1 July 2009, what was Norland output for Q4 2008?")

    assert task is not None
    (subject,) = task.subjects
    assert subject.period is not None
    assert task.known is not None
    assert (subject.entity, subject.relation, subject.period.start) == (
        "Norland", "output", datetime(2008, 10, 1, tzinfo=UTC),
    )  # fmt: skip
    assert (task.known.start, task.known.end) == (
        datetime(2009, 7, 1, tzinfo=UTC), datetime(2009, 7, 2, tzinfo=UTC),
    )  # fmt: skip


def test_the_second_of_two_times_is_what_the_first_is_subtracted_from():
    task = read("By how much did Norland output change from Q3 2008 to Q4 2008?")

    assert task is not None
    assert [subject.period.wording for subject in task.subjects] == ["Q4 2008", "Q3 2008"]


@pytest.mark.parametrize(
    "text",
    [
        "What was Norland output for Q4 2008 in real terms?",
        "What was roughly Norland output for Q4 2008?",
        "What would Norland output for Q4 2008 have been without the storm?",
        "How often was Norland's neighbour's output for Q4 2008 revised?",
        "How often was the output of Norland's ports for Q4 2008 revised?",
        "How often was the output of Norland for Q4 2008 not revised?",
        "How often was the output of Norland for Q4 2008 revised upwards?",
        "How often was the output of Norland for Q4 2008 revised before the election?",
        "How often was the output of Norland for Q4 2008 revised since 2010?",
        "How often will the output of Norland for Q4 2008 be revised?",
        "Was Norland output for Q4 2008 about 7.5?",
        "Was Norland output for Q4 2008 more than 7.5?",
        "Who told you that I know the output of Norland for Q4 2008?",
        # Signs say more than the words beside them.
        "Was Norland output for Q4 2008 \N{MINUS SIGN}7.5?",
        "Was Norland output for Q4 2008 - 7.5?",
        "Was Norland output for Q4 2008 .5?",
        "Was Norland output for Q4 2008 >7.5?",
        "Was Norland output for Q4 2008 7.5 %?",
        "Was Norland output for Q4 2008 (7.5)?",
        "When was Norland output for Q4 2008 first reported as $7.5?",
        "Is Ann's home A-?",
        "Is Ann's home C++?",
        # Less by a number less than nothing: from which to which?
        "By how much did Norland output decrease from Q3 2008 to Q4 2008?",
        "How much lower is Norland output for Q4 2008 now than when first reported?",
        "By how much did Norland output change between Q4 2008 and Q3 2008?",
        # A lone time is when it held, or when it was known: it cannot be told.
        "What did we believe on 1 July 2009 about the output of Norland?",
        "As of 1 July 2009, what was the output of Norland?",
        # Of a state that changed, an older value is no revision.
        "How often was the home of Ann revised?",
        "What was the largest revision of Ann's home?",
        "Where was Ann's parent in 2008?",
        # One to come, or one that is not so; stretches of a part of the time.
        "How long did Ann's home in 2008 stay Lyon?",
        "Until when was Ann's home in 2008 Lyon?",
        "Since when had Ann's home been Lyon?",
        "How long will Ann's home be Lyon?",
        "Who said that Ann's home is not Lyon, but Ghent or so it seems?",
        "Since when has Ann's home been Lyon or Ghent, Bruges, Leuven or Rome?",
        # Turned around: whose value she is.
        "Who is the source of Ann's parent?",
    ],
)
def test_a_word_that_no_way_of_asking_has_leaves_the_question_to_the_reader(text):
    assert read(text) is None


@pytest.mark.parametrize("name", ["C++", "robot-1", "AT&T", "#general"])
def test_signs_of_a_name_are_its_own(name):
    names = tenant_names(entities=[name], relations=["output"], users=[])
    text = f"What was the output of {name} for Q4 2008 – as known on 1 July 2009?"
    plan = plan_question(text, names, valid_at=None)

    task = read_task(
        Question(text=text, budget_tokens=2_048, disclose_conflicts=False), plan, [(name, "output")]
    )

    assert task is not None
    assert task.form == "value"


def test_a_name_stands_as_it_is_spelt_where_a_word_is_spelt_alike():
    names = tenant_names(entities=["US"], relations=["output"], users=[])
    text = "Who told us the US output for Q4 2008?"
    plan = plan_question(text, names, valid_at=None)

    task = read_task(
        Question(text=text, budget_tokens=2_048, disclose_conflicts=False), plan, [("US", "output")]
    )

    assert task is not None
    assert task.form == "who_said"
