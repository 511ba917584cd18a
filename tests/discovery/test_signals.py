"""What each route says, and how all of it becomes one order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.proposals import Operation, RouteState
from discovery import ROUTES
from discovery._parts import parts_of
from discovery._propose import QUANTUM_PPM, weights_for
from discovery._signals import shortness, strongest
from discovery._speakers import dense_question, dense_turn
from discovery._text import terms
from tests.discovery.asking import DRAFTS, EMBEDDER, WORDS, ask, index_of
from tests.discovery.values import claim, found, route, timeless, turn

TALK = (
    turn("Did you go anywhere nice?", actor="Bob"),
    turn("We hiked along the fjord.", actor="Ann"),
    turn("The printer is out of ink.", actor="Bob", stream="office"),
    turn("I will order some.", actor="Ann", stream="office"),
)


def test_a_reply_is_lifted_over_the_question_before_it():
    proposal = ask(index_of(TALK), "nice", dense=False)

    assert found(proposal)[:2] == ["ev0002", "ev0001"]
    assert {"neighbours", "reply"} <= {hit.route for hit in proposal.candidates[0].hits}


def test_only_another_one_replies_and_only_to_a_question():
    self_said = index_of([turn("Did you go anywhere nice?", actor="Bob"), turn("We did.", actor="Bob")])
    no_question = index_of([turn("It was nice.", actor="Bob"), turn("We went.", actor="Ann")])

    assert route(ask(self_said, "nice"), "reply").count == 0
    assert route(ask(no_question, "nice"), "reply").count == 0


@pytest.mark.parametrize(
    ("text", "answers", "other"),
    [
        ("When did we hike?", "We hiked on 3 May 2024.", "We hiked along the fjord then."),
        ("How many hikes did we do?", "We did 4 hikes, we did.", "We did some hikes, we did."),
    ],
)
def test_what_has_the_form_that_is_asked_for_comes_first(text, answers, other):
    index = index_of([turn(other), turn(answers)])

    assert found(ask(index, text, dense=False))[0] == "ev0002"
    assert found(ask(index, text, dense=False, without=["surface"]))[0] == "ev0001"


def test_a_line_that_asks_states_less_than_one_that_says_it():
    index = index_of([turn("The lamp is broken?"), turn("The lamp is broken.")])

    assert found(ask(index, "broken lamp"))[0] == "ev0002"


def test_who_is_asked_about_decides_between_equal_turns():
    index = index_of([turn("I like tea.", actor="Bob"), turn("I like tea.", actor="Ann")])

    assert found(ask(index, "Does Ann like tea?"))[0] == "ev0002"
    assert found(ask(index, "Does Bob like tea?"))[0] == "ev0001"


def test_a_time_in_the_question_lifts_what_was_observed_then():
    index = index_of(
        [
            turn("We met.", observed_at="2024-05-02T08:00:00Z"),
            turn("We met.", observed_at="2025-05-02T08:00:00Z"),
        ]
    )

    assert found(ask(index, "Whom did we meet in 2024? Who met?"))[0] == "ev0001"
    assert found(ask(index, "Whom did we meet in 2025? Who met?"))[0] == "ev0002"


def test_a_time_that_a_turn_tells_of_lifts_it_less_than_being_said_then():
    index = index_of(
        [
            turn("We hiked yesterday.", stream=day, observed_at=f"2024-05-{day}T08:00:00Z")
            for day in ("04", "03", "02")
        ]
    )
    question = "Who hiked on 2 May 2024?"

    assert found(ask(index, question, dense=False)) == ["ev0003", "ev0002", "ev0001"]
    assert found(ask(index, question, dense=False, without=["time"])) == ["ev0001", "ev0002", "ev0003"]


def test_the_name_of_a_speaker_is_cut_from_what_is_embedded_and_others_stay():
    index = index_of(TALK)

    assert dense_question(index, "Where did Ann's sister Eva hike?", 4) == "Where did sister Eva hike?"
    assert dense_question(index, "Ann?", 4) == "Ann?"


def test_a_turn_is_embedded_without_the_names_that_spoke_by_then_where_they_are_written_as_names():
    index = index_of([turn("Hi.", actor="Ann"), turn("Hi.", actor="user"), turn("Hi.", actor="Bob")])

    assert dense_turn(index, "Ann, Bob's user table is Eva's.", 1) == ", Bob's user table is Eva's."
    assert dense_turn(index, "Ann, Bob's user table is Eva's.", 2) == ", user table is Eva's."
    assert dense_turn(index, "Ann?", 2) == "Ann?"


@pytest.mark.parametrize(
    ("text", "nearness", "first"),
    [
        ("Who repaired the violin?", 0.35, "ev0001"),
        ("How many times was the violin repaired?", 0.5, "ev0002"),
    ],
)
def test_words_find_the_one_thing_that_a_question_names_and_meaning_all_of_a_kind(text, nearness, first):
    """The first turn has the words, the second the meaning; the third has neither."""
    rest = " the" * 300
    index = index_of(
        [turn(f"The violin was repaired.{rest}"), turn(f"New strings.{rest}"), turn(f"Rain.{rest}")],
        embed=False,
    )
    meaning = EMBEDDER.embed([text])[0]
    other = EMBEDDER.embed(["zebra"])[0]
    other -= (other @ meaning) * meaning
    other /= np.linalg.norm(other)
    between = nearness * meaning + (1 - nearness**2) ** 0.5 * other
    index.set_vectors(range(3), np.stack([between, meaning, other]))

    assert found(ask(index, text))[0] == first


def test_short_turns_need_their_neighbours_and_long_ones_do_not():
    assert shortness(index_of([turn("a word or two")], embed=False), 1) > 0.9
    assert shortness(index_of([turn("word " * 300)], embed=False), 1) < 0.1


def test_scores_are_whole_multiples_and_ties_go_by_id():
    proposal = ask(index_of([turn("same words here") for _ in range(5)]), "same words")

    assert all(c.score_ppm % QUANTUM_PPM == 0 for c in proposal.candidates)
    assert [(c.score_ppm, c.unit_id) for c in proposal.candidates] == sorted(
        ((c.score_ppm, c.unit_id) for c in proposal.candidates), key=lambda pair: (-pair[0], pair[1])
    )


def test_rows_without_a_vector_stand_at_the_mean_and_are_reported_late():
    index = index_of(TALK, embed=False)
    index.set_vectors([0, 2], EMBEDDER.embed(["fjord", "printer"]))

    report = route(ask(index, "fjord"), "dense")

    assert (report.state, report.count) == (RouteState.LATE, 2)


@given(st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), max_size=12), st.integers(1, 12))
def test_the_strongest_are_the_highest_and_of_equals_the_earlier(scores, limit):
    expected = sorted(
        (row for row, score in enumerate(scores) if score > 0), key=lambda row: (-scores[row], row)
    )

    assert list(strongest(np.array(scores), limit)) == expected[:limit]


@given(DRAFTS, WORDS, st.data())
def test_a_proposal_at_a_cut_does_not_depend_on_what_came_after(drafts, text, data):
    cut = data.draw(st.integers(1, len(drafts)))

    now = ask(index_of(drafts), text, cut)
    then = ask(index_of(drafts[:cut]), text)

    assert timeless(now) == timeless(then)


@pytest.mark.parametrize("route", ROUTES)
def test_a_route_that_is_off_says_so_and_adds_nothing(route):
    index = index_of(
        [turn("Ann lives in Lyon.", actor="Ann"), turn("Yes, in May.", actor="Bob")],
        [claim("Ann", "lives_in", "Lyon", 1)],
    )

    proposal = ask(index, "Where did Ann live in May?", without=(route,))

    states = {report.route: report.state for report in proposal.routes}
    assert set(states) == set(ROUTES) == set(weights_for(0.5, Operation.FACT))
    assert [name for name, state in states.items() if state == RouteState.OFF] == [route]
    assert all(hit.route != route for candidate in proposal.candidates for hit in candidate.hits)


def test_a_fact_two_hops_away_is_found_by_the_entity_between():
    claims = [
        claim("Ann", "reports_to", "Bob", 1),
        claim("Bob", "lives_in", "Lyon", 2),
        claim("Eva", "lives_in", "Lyon", 3),
    ]
    index = index_of([turn("Noted.") for _ in claims], claims)

    bridged = ask(index, "Where does the boss of Ann live?", dense=False)

    hits = {candidate.unit_id: {hit.route for hit in candidate.hits} for candidate in bridged.candidates}
    assert "graph" in hits["ev0002"]
    assert "graph" not in hits.get("ev0003", set())
    # As it was known before anything connected the two.
    before = index_of([turn("Noted.") for _ in claims], claims[1:])
    assert route(ask(before, "Where does the boss of Ann live?", dense=False), "graph").count == 0


def test_a_second_hop_finds_what_is_like_what_was_found_first():
    index = index_of(
        [turn("The violin was repaired in Cremona."), turn("Cremona!"), turn("The oven is hot.")]
    )

    proposal = ask(index, "violin")

    ranks = {
        candidate.unit_id: hit.rank
        for candidate in proposal.candidates
        for hit in candidate.hits
        if hit.route == "second_hop"
    }
    assert ranks["ev0002"] < ranks.get("ev0003", 3)


def test_each_part_of_a_compound_question_finds_its_own_evidence():
    assert parts_of("Where is the red lamp, and who broke the green kettle?") == (
        "Where is the red lamp",
        "who broke the green kettle?",
    )
    assert parts_of("Where is the salt and pepper?") == ()
    assert len(parts_of("red lamp and green kettle and blue table and old chair")) == 3


@given(WORDS)
def test_a_question_of_one_part_is_not_split_and_nothing_gets_lost(text):
    parts = parts_of(text)

    assert len(parts) != 1
    assert not parts or sorted(terms(" ".join(parts))) == sorted(terms(text))
