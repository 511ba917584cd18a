"""Rules of the English reader, and that no text can hurt it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.events import Stance
from contracts.limits import TEXT_CHARACTERS_MAX
from contracts.times import parse_term
from projection._english import EnglishReader
from projection._language import Speaker

SPEAKER = Speaker(actor_id="me", observed=parse_term("2024-06-10T10:00:00+02:00", field="observed_at"))
READER = EnglishReader()


def read(text):
    return [(one.entity, one.relation, one.value, str(one.stance)) for one in READER.read(text, SPEAKER)]


def dates(text):
    return [
        (one.valid.since, one.valid.at, one.valid.start, one.valid.end) for one in READER.read(text, SPEAKER)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Do I live in Graz?",
        "If I lived in Graz, I would work at Acme.",
        "I might live in Graz.",
        "I want to live in Graz and work at Acme.",
        "I hope I get the job and I move to Graz.",
        "Ben said I live in Graz.",
        "He wrote: I live in Graz.",
        "“I live in Graz. I work at Acme.”",
        "I live in Graz. Just kidding.",
        "I live in Graz lol",
        "Move to Graz and work at Acme!",
        "In my novel I live in Graz. I work at Acme.",
        "I don't live in Graz.",
        "I have never lived in Graz.",
        "I almost moved to Graz.",
        "He lives in Graz.",
        "My sister lives in Graz.",
        "I lived in Graz.",
        "I live in Graz in my mind.",
        "I live in Graz on weekends.",
        "I live in Graz when I'm not travelling.",
        "I live in fear.",
        "I work at night.",
        "I love it.",
        "My husband is Italian.",
        "My job is a nightmare.",
        "The shop is open on Sundays.",
        "Everybody loves Graz.",
        "> I live in Graz.",
    ],
)
def test_what_asserts_nothing_for_certain_says_nothing(text):
    assert read(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I no longer live in Graz.",
        "I don't live in Graz any more.",
        "I don't live in Graz anymore.",
        "I used to live in Graz.",
        "I stopped living in Graz.",
        "I moved out of Graz.",
    ],
)
def test_what_is_over_ends_the_value_that_is_named(text):
    assert read(text) == [("me", "lives_in", "Graz", "end")]


def test_a_plan_leaves_what_is_said_beside_it():
    assert read("I want to move to Rome, but I live in Graz.") == [("me", "lives_in", "Graz", "assert")]
    assert read("I live in Graz and would love to see Rome.") == [("me", "lives_in", "Graz", "assert")]


def test_a_subject_is_carried_over_to_a_verb_without_one():
    assert read("Ana lives in Graz and works at Acme.") == [
        ("Ana", "lives_in", "Graz", "assert"),
        ("Ana", "works_at", "Acme", "assert"),
    ]


def test_a_switch_ends_what_was_and_starts_what_is():
    found = READER.read("I switched from the violin to the cello.", SPEAKER)

    assert [(one.value, one.stance) for one in found] == [("violin", Stance.END), ("cello", Stance.ASSERT)]


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("I moved to Graz in 2023.", ("2023", None, None, None)),
        ("I moved to Graz on 5 April 2024.", ("2024-04-05", None, None, None)),
        ("On April 5th, 2024 I moved to Graz.", ("2024-04-05", None, None, None)),
        ("I moved to Graz in May.", ("2024-05", None, None, None)),
        ("I moved to Graz in July.", ("2023-07", None, None, None)),
        ("I moved to Graz last year.", ("2023", None, None, None)),
        ("I moved to Graz two years ago.", ("2022", None, None, None)),
        ("I moved to Graz three days ago.", ("2024-06-07", None, None, None)),
        ("I've lived in Graz for three years.", ("2021", None, None, None)),
        ("I have lived in Graz since March.", ("2024-03", None, None, None)),
        ("I lived in Graz from 2015 to 2018.", (None, None, "2015", "2018")),
        ("I lived in Graz until May 2018.", (None, None, None, "2018-05")),
        ("I visited Graz on Monday.", (None, "2024-06-03", None, None)),
    ],
)
def test_dates_are_calendar_terms_no_finer_than_what_was_said(text, date):
    assert dates(text) == [date]


def test_a_week_becomes_the_month_that_holds_it_or_the_year():
    assert dates("I moved to Graz this week.") == [("2024-06", None, None, None)]
    assert dates("I moved to Graz two weeks ago.") == [("2024", None, None, None)]


def test_a_date_that_does_not_exist_states_nothing():
    (found,) = READER.read("I moved to Graz on 31 February 2024.", SPEAKER)

    assert found.valid is None


@given(st.text(max_size=400))
def test_any_text_is_read_without_an_error_and_spans_lie_inside_it(text):
    for found in READER.read(text, SPEAKER):
        assert 0 <= found.span.start < found.span.end <= len(text)


WORDS = st.sampled_from([
    *("I", "my", "we", "Ana", "Graz", "Acme", "live", "lives", "in", "at", "work", "don't", "not", "no"),
    *("and", "but", ",", ";", ":", ".", "?", "!", '"', "’", "'", "since", "2019", "May", "on", "5"),
    *("a", "mug", "table", "is", "was", "have", "has", "been", "used", "to", "moved", "from", "dog", "named"),
    *("tea", "like", "if", "would", "said", "now", "\n", "my sister", "years", "for", "three", "as", "nurse"),
    *("the", "longer", "married", "and I", "got", "stopped", "playing", "piano", "favorite", "name", "'s"),
])  # fmt: skip


@given(st.lists(WORDS, max_size=40))
def test_any_order_of_our_words_is_read_the_same_twice_and_spans_hold_the_values(words):
    text = " ".join(words)

    found = READER.read(text, SPEAKER)

    assert found == READER.read(text, SPEAKER)
    for one in found:
        said = text[one.span.start : one.span.end]
        assert (
            one.value is None or one.value in {said, " ".join(said.split())} or one.relation == "married_to"
        )


HOSTILE = (
    *("a", " ", ".", '"', "“", "`", "```", "and ", "\n", "> ", ">\n", "' ", "Ana ", "my ", "in may ", "1 "),
    *("-a", "a.", "a@b.", "e\u0301", "\U0001f602", "haha ", "ha", "\uff11 ", "|", "in the ", "\u202eabc "),
    "«",
    *("not ", ", not ", "'s ", "of the ", "from 2015 to ", "I have been ", "My sister's ", "I like tea, "),
    *("I live in Lyon. ", "I live in Lyon and ", "I moved from Oslo to Bergen in May 2024. "),
    "\u0130 I live in Lyon. ",
)  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_the_longest_hostile_text_takes_less_than_a_second(piece):
    text = (piece * (TEXT_CHARACTERS_MAX // len(piece) + 1))[:TEXT_CHARACTERS_MAX]
    # The time of this process alone: the machine may be busy with others.
    started = time.process_time()

    READER.read(text, SPEAKER)

    assert time.process_time() - started < 1.0
