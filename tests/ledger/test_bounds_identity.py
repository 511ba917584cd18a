"""Who is one with whom costs as much as there are pairs, not as pairs by merged entities."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from contracts.claims import Claim, Position, Source, Validity, ValidityKind
from contracts.events import Stance
from contracts.identity import SAME_AS
from contracts.relations import default_contract
from contracts.resolutions import ResolvedSet
from contracts.times import KnownAt, ValidAt
from contracts.views import View
from ledger import _identity, _identity_answers
from ledger._identity import identity_of
from ledger._identity_answers import identity_answer
from ledger._relations import Contracts

MANY = 40
START = datetime(2026, 1, 1, tzinfo=UTC)


def said(number, one, other, relation="same_as", source_class="user"):
    return Claim(
        claim_id=f"{number:064x}",
        epoch=1,
        entity=one,
        relation=relation,
        value=other,
        stance=Stance.ASSERT,
        validity=Validity(kind=ValidityKind.SINCE, start=START, end=None, earliest=START, timeless=False),
        source=Source(actor_id="ann", actor_class=source_class),
        position=Position(event=number, ordinal=0),
        commit=number,
        event_id=f"e{number}",
        recorded_at=KnownAt(START),
        observed_at=START,
        spans=(),
        occurrence_id=None,
        targets=(),
        winner=None,
        inputs=(),
    )


class Counted(list):
    """A list that counts how often it is gone through."""

    passes = 0

    def __iter__(self):
        Counted.passes += 1
        return super().__iter__()


@pytest.fixture
def passes(monkeypatch):
    plain = _identity._pairs

    def counted(replay):
        found = plain(replay)
        return replace(found, same=Counted(found.same), apart=Counted(found.apart))

    monkeypatch.setattr(_identity, "_pairs", counted)
    monkeypatch.setattr(Counted, "passes", 0)


@pytest.mark.usefixtures("passes")
def test_pairs_are_gone_through_as_often_however_many_entities_they_make():
    claims = [said(number, f"a{number}", f"b{number}") for number in range(1, MANY)]

    merges = identity_of(claims, Contracts(registered={}))

    assert len(merges.members) == MANY - 1
    assert Counted.passes < 10


def test_doubts_about_a_large_entity_are_held_once_and_shown_once():
    joined = [said(number, f"a{number}", "a0", source_class="operator") for number in range(1, MANY)]
    doubts = [
        said(MANY + number, f"a{number}", f"a{number + 1}", "not_same_as") for number in range(1, MANY - 1)
    ]

    merges = identity_of([*joined, *doubts], Contracts(registered={}))

    assert len({id(own) for own in merges.doubted.values()}) == 1
    assert len(merges.questions("a3")) == MANY - 2


def test_a_doubt_about_two_entities_is_of_neither():
    claims = [said(1, "a", "b"), said(2, "c", "d"), said(3, "a", "c", "not_same_as")]

    merges = identity_of(claims, Contracts(registered={}))

    assert merges.members == {"a": ("a", "b"), "c": ("c", "d")}
    assert merges.questions("a") == ()


def test_names_of_a_large_entity_are_listed_up_to_the_bound_and_all_counted(monkeypatch):
    monkeypatch.setattr(_identity_answers, "LISTED_VALUES_MAX", 5)
    merges = identity_of(
        [said(number, f"a{number}", "a0") for number in range(1, 8)], Contracts(registered={})
    )
    view = View(valid_at=ValidAt(START), known_at=KnownAt(START), cut=7, epoch=1)

    answer = identity_answer(
        merges, view, entity="a0", veil="a0", relation=SAME_AS, contract=default_contract(SAME_AS)
    )

    assert isinstance(answer.resolution, ResolvedSet)
    assert (len(answer.resolution.members), answer.resolution.members_count) == (5, 7)
    assert answer.truncated
