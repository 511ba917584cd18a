"""Pure parts: units, typed state, signals, fusion, the degraded proposal and what goes over the wire."""

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given

from contracts.errors import BadRequest, NotFound, Unavailable
from contracts.events import ErasedEvent, Kind
from contracts.times import KnownAt
from discovery import _propose, decode_proposal, encode_proposal, typed_state_proposal
from discovery._index import TenantIndex
from discovery._units import unit_of
from discovery._wire import decode_request, encode_error, encode_propose, raise_error
from tests.discovery.asking import DRAFTS, WORDS, ask, index_of
from tests.discovery.values import (
    NOW,
    claim,
    event,
    found,
    question,
    timeless,
    turn,
    view,
)

# --- units ------------------------------------------------------------------------------------------


def test_structured_claims_without_text_are_rendered_as_words():
    draft = turn(
        kind="observation", claims=[{"entity": "red_mug", "relation": "located_in", "value": "kitchen"}]
    )

    assert unit_of(event(draft, 1)).dense_text == "red_mug located in kitchen"


def test_a_turn_is_found_by_speaker_subject_and_claim_even_where_its_text_names_none():
    draft = turn(
        "She moved.",
        actor="Bob",
        subjects=["Eva"],
        claims=[{"entity": "Eva", "relation": "lives_in", "value": "Lyon"}],
    )

    assert {"bob", "eva", "lyon", "move"} <= set(unit_of(event(draft, 1)).terms)


@pytest.mark.parametrize(
    "draft",
    [
        turn("Contract", kind="relation"),
        turn("   "),
        turn("Skipped", kind="decision", class_="operator"),
    ],
)
def test_what_says_nothing_about_the_world_makes_no_unit(draft):
    assert unit_of(event(draft, 1)) is None


def test_an_erased_event_is_passed_over():
    index = TenantIndex(dimensions=384)
    index.add(
        ErasedEvent(
            event_id="ev1",
            position=1,
            commit=1,
            recorded_at=KnownAt(NOW),
            observed=None,
            kind=Kind.TURN,
            backfilled=False,
            erased_by="ev2",
        )
    )

    assert (len(index), index.position, index.last_commit) == (0, 1, 1)


# --- typed state ------------------------------------------------------------------------------------

CLAIMS = (
    claim("Ann", "lives_in", "Oslo", 1),
    claim("Ann", "works_at", "Brightly", 2),
    claim("Bob", "lives_in", "Lyon", 3),
    claim("Ann", "lives_in", "Lyon", 4),
)


def keys_of(proposal):
    return {(key.entity, key.relation): key.named for key in proposal.keys}


def degraded(text, claims=CLAIMS, cut=9):
    return typed_state_proposal(question(text), view=view(cut), claims=claims)


def test_only_keys_that_the_question_names_in_full_are_named():
    assert keys_of(degraded("Where does Ann live?")) == {
        ("Ann", "lives_in"): True,
        ("Ann", "works_at"): False,
    }
    assert keys_of(degraded("What about Ann?")) == {("Ann", "lives_in"): False, ("Ann", "works_at"): False}
    assert keys_of(degraded("Where does everybody live?")) == {}


def test_every_claim_of_a_named_key_is_proposed_the_older_too():
    assert found(degraded("Where does Ann live?"))[:2] == ["ev0001", "ev0004"]


def test_a_value_finds_who_has_it():
    assert found(degraded("Who lives in Lyon?")) == ["ev0003", "ev0004"]


def test_a_key_that_nobody_claimed_anything_on_is_not_named():
    assert keys_of(degraded("What is Ann's phone number?")) == {
        ("Ann", "lives_in"): False,
        ("Ann", "works_at"): False,
    }


def test_a_key_claimed_under_another_name_of_the_entity_is_named_under_the_one_asked_for():
    claims = (claim("Robert", "lives_in", "Oslo", 1), claim("Robert", "same_as", "Bob", 2))

    assert keys_of(degraded("Where does Bob live?", claims))["Bob", "lives_in"]
    assert not degraded("Where does Bob live?", claims, cut=1).keys


def test_claims_after_the_cut_or_of_another_epoch_are_not_looked_at():
    claims = (*CLAIMS, claim("Ann", "lives_in", "Rome", 5), claim("Ann", "lives_in", "Bonn", 6, epoch=2))

    assert "ev0005" not in found(degraded("Where does Ann live?", claims, cut=4))
    assert "ev0006" not in found(degraded("Where does Ann live?", claims))


def test_an_index_with_later_claims_proposes_at_an_older_cut_what_it_would_have_then():
    claims = (
        claim("Robert", "lives_in", "Oslo", 1),
        claim("Bob", "works_at", "Brightly", 2),
        claim("Robert", "same_as", "Bob", 3),
        claim("Bob", "lives_in", "Lyon", 4),
    )
    drafts = [turn("A word.") for _ in claims]
    text = "Where does Bob live? Who lives in Lyon? Who works at Brightly?"

    for cut in range(1, 5):
        now = ask(index_of(drafts, claims), text, cut)
        then = ask(index_of(drafts[:cut], claims[:cut]), text, cut)
        assert timeless(now) == timeless(then)
    assert keys_of(ask(index_of(drafts, claims), text, 3))["Bob", "lives_in"]
    assert ("Bob", "lives_in") not in keys_of(ask(index_of(drafts, claims), text, 2))


def test_what_comes_from_typed_state_alone_says_that_it_is_degraded():
    proposal = degraded("Where do I live?")

    assert proposal.degraded
    assert [report.route for report in proposal.routes] == ["state"]
    assert keys_of(proposal)["Ann", "lives_in"]


# --- wire -------------------------------------------------------------------------------------------


@given(DRAFTS, WORDS)
def test_a_proposal_survives_the_wire(drafts, text):
    proposal = ask(index_of(drafts, CLAIMS), text)

    assert decode_proposal(encode_proposal(proposal)) == proposal


def test_a_route_that_would_begin_after_its_deadline_is_late_and_the_rest_is_proposed(monkeypatch):
    monkeypatch.setattr(_propose, "ROUTES_SECONDS", 0.0)
    index = index_of([turn("Ann lives in Lyon."), turn("A zeppelin landed.")])

    proposal = ask(index, "zeppelin")

    states = {report.route: report.state for report in proposal.routes}
    assert (states["lexical"], states["state"], states["session"]) == ("ok", "late", "late")
    assert found(proposal)[0] == "ev0002"


def test_a_request_survives_the_wire():
    data = encode_propose(tenant="acme", questions=[question("Où?")], view=view(3))

    assert decode_request(data).contents() == ([question("Où?")], view(3))


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"more": 1}, "more"),
        ({"tenant": ""}, "tenant"),
        ({"without": ["no_such"]}, "without"),
        (
            {
                "view": {
                    "valid_at": "2026-01-01T00:00:00",
                    "known_at": "2026-01-01T00:00:00Z",
                    "cut": 1,
                    "epoch": 1,
                }
            },
            "valid_at",
        ),
        (
            {
                "view": {
                    "valid_at": "2026-01-01T00:00:00Z",
                    "known_at": "2026-01-01T00:00:00Z",
                    "cut": "1",
                    "epoch": 1,
                }
            },
            "cut",
        ),
    ],
)
def test_a_request_that_is_not_exactly_one_is_refused_and_says_where(change, field):
    sent = json.loads(encode_propose(tenant="acme", questions=[question("?")], view=view(3))) | change

    with pytest.raises(BadRequest, match=field):
        decode_request(json.dumps(sent).encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"plan": 1}'])
def test_an_answer_that_cannot_be_read_is_unavailability(data):
    with pytest.raises(Unavailable):
        decode_proposal(data)


def test_errors_cross_the_wire_by_who_must_act():
    for sent, raised in (
        (NotFound(what="tenant"), NotFound),
        (BadRequest(field="view", reason="no"), BadRequest),
        (Unavailable(part="database", reason="down"), Unavailable),
    ):
        with pytest.raises(raised):
            raise_error(encode_error(sent))
    raise_error(encode_proposal(dataclasses.replace(degraded("?"))))
