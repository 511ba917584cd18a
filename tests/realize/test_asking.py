"""What a question must ask for to be answered with the value of its key, and what it must not."""

import pytest

from contracts.answers import AnswerStatus
from contracts.proposals import Operation, TimeExpression
from tests.packing.values import key, member, missing, named, several
from tests.realize.asked import LIVES, ask, conflict

JOB = key(member(3, "Lyon"), relation="works_at")
LIKES = key(several(members=(member(3, "Lyon"),), disputed=()), relation="likes")
DRIVES = key(member(3, "Lyon"), relation="drives")
BOSS = key(member(3, "Lyon"), relation="boss")


@pytest.mark.parametrize(
    ("text", "key_asked"),
    [
        ("Where did Ann live as a child?", LIVES),
        ("Where did Ann live back then?", LIVES),
        ("Where does Ann live back then?", LIVES),
        ("Where had Ann lived?", LIVES),
        ("Where has Ann lived?", LIVES),
        ("Where did Ann live?", LIVES),
        ("Where was Ann's home city?", LIVES),
        ("Where does Ann want to live?", LIVES),
        ("Where should Ann live?", LIVES),
        ("Where could Ann live?", LIVES),
        ("Where can Ann live?", LIVES),
        ("Where might Ann live?", LIVES),
        ("Where did Ann live ten years ago?", LIVES),
        ("Who lives with Ann?", LIVES),
        ("With whom does Ann live?", LIVES),
        ("Why does Ann live in Lyon?", LIVES),
        ("How does Ann live?", LIVES),
        ("Where does Ann's cat live?", LIVES),
        ("Which street does Ann live in?", LIVES),
        ("Where does Ann live on weekends?", LIVES),
        ("Where does Ann live with Bob?", LIVES),
        ("Where in France does Ann live?", LIVES),
        ("Where could Ann work?", JOB),
        ("What does Ann do at work?", JOB),
        ("Why does Ann work at Lyon?", JOB),
        ("Who works for Ann?", JOB),
        ("Who is working for Ann?", JOB),
        ("Where is Ann's car?", DRIVES),
        ("Where is Ann's boss?", BOSS),
        ("Who likes Ann?", LIKES),
        ("How many people like Ann?", LIKES),
        ("What did Ann like?", LIKES),
    ],
)
@pytest.mark.parametrize("resolution", [None, conflict(), missing().resolution])
def test_what_the_key_does_not_hold_is_not_answered_with_what_it_does(text, key_asked, resolution):
    if resolution is not None:
        key_asked = key(resolution, relation=key_asked.relation, cardinality=key_asked.contract.cardinality)
    operation = Operation.COUNT if "How many" in text else Operation.FACT

    answer = ask(text, key_asked, operation=operation)

    assert (answer.status, answer.value) == ("evidence", None)


@pytest.mark.parametrize(
    ("text", "entity", "relation"),
    [
        ("Where does Mara live?", "Mara", "lives_in"),
        ("Where do I live?", "Ann", "lives_in"),
        ("Where's Ann living now?", "Ann", "lives_in"),
        ("Tell me where Ann currently lives, please.", "Ann", "lives_in"),
        ("Do you remember where I live?", "Ann", "lives_in"),
        ("Could you remind me where Ann lives?", "Ann", "lives_in"),
        ("Which city does Ann live in?", "Ann", "lives_in"),
        ("Where does José live?", "José", "lives_in"),
        ("Where does Jose live these days?", "José", "lives_in"),
        ("What is Ann's job?", "Ann", "works_as"),
        ("What does Ann do for a living?", "Ann", "works_as"),
        ("What does Ann work as?", "Ann", "works_as"),
        ("Where does Ann work?", "Ann", "works_at"),
        ("Who does Ann work for?", "Ann", "works_at"),
        ("Which company does Ann work for?", "Ann", "works_at"),
        ("Who's Ann's employer?", "Ann", "works_at"),
        ("Who is the employer of Ann?", "Ann", "works_at"),
        ("Where is Ann working right now?", "Ann", "works_at"),
        ("Where does Ann study?", "Ann", "studies_at"),
        ("What university does Ann study at?", "Ann", "studies_at"),
        ("What is my favourite color?", "Ann", "favorite_color"),
        ("What is my favorite colour?", "Ann", "favorite_color"),
        ("Which color do I like best?", "Ann", "favorite_color"),
        ("What kind of tea is my favourite?", "Ann", "favorite_tea"),
        ("Where is the blue mug now?", "blue mug", "located_in"),
        ("Where's my blue mug?", "blue mug", "located_in"),
        ("Who is Ann married to?", "Ann", "married_to"),
        ("Who is Ann's husband?", "Ann", "married_to"),
        ("Who is married to Ann?", "Ann", "married_to"),
        ("What is the name of Ann's wife?", "Ann", "married_to"),
        ("Who is Ann dating?", "Ann", "dating"),
        ("When is Ann's birthday?", "Ann", "birthday"),
        ("When was Ann born?", "Ann", "birthday"),
        ("Where was Ann born?", "Ann", "born_in"),
        ("What's my phone number?", "Ann", "phone"),
        ("What is Ann's email address?", "Ann", "email"),
        ("What car does Ann drive?", "Ann", "drives"),
        ("What is the current battery level of robot-1?", "robot-1", "battery_level"),
        ("What is the status of the cellar window?", "cellar window", "status"),
        ("Who is Ann's boss?", "Ann", "boss"),
        ("Where is the van parked?", "van", "parked_in"),
    ],
)
def test_plain_questions_of_every_relation_are_answered(text, entity, relation):
    answer = ask(text, key(member(3, "Lyon"), entity=entity, relation=relation), operation=Operation.FACT)

    assert (answer.status, answer.value) == ("answered", "Lyon")


def test_a_past_tense_is_answered_where_the_view_is_the_time_that_it_names():
    then = TimeExpression(wording="in 2024", start=None, end=None)

    assert ask("Where did Ann live in 2024?", LIVES, times=[then]).status == AnswerStatus.ANSWERED
    assert ask("Where did Ann live with Bob in 2024?", LIVES, times=[then]).status == AnswerStatus.EVIDENCE


def test_a_score_chooses_no_relation():
    located = key(member(2, "kitchen"), relation="located_in")
    keys = [named("Ann", "lives_in", score_ppm=1), named("Ann", "located_in", score_ppm=999_999)]

    for offered in (keys, keys[::-1]):
        answer = ask("Where does Ann live?", LIVES, located, keys=offered, relations=())
        outside = ask("Where does Ann live?", LIVES, located, keys=offered, relations=("lives_in",))

        assert (answer.status, answer.reason) == ("evidence", "several_keys")
        assert (outside.status, outside.reason) == ("evidence", "several_keys")
