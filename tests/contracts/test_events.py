"""The emit shape: what is taken, and what is refused before anything is written."""

import pytest
from pydantic import ValidationError

from contracts.errors import EchoplaneError
from contracts.events import EventDraft, Stance

BASE = {"stream": "s", "kind": "turn", "actor": {"id": "ann", "class": "user"}, "text": "hello"}
CLAIM = {"entity": "ann", "relation": "lives_in", "value": "Lyon"}


def draft(**changes):
    return EventDraft.model_validate({**BASE, **changes})


def test_names_are_trimmed_and_composed_so_that_two_spellings_are_one_name():
    decomposed = draft(stream=" cafe\u0301 ")

    assert decomposed.stream == "caf\u00e9"


def test_null_for_a_list_is_an_empty_one():
    assert draft(subjects=None, claims=None, targets=None) == draft()
    assert draft(claims=[CLAIM | {"inputs": None}]) == draft(claims=[CLAIM])


def test_a_claim_without_a_stance_takes_the_one_of_its_kind():
    correction = draft(kind="correction", claims=[CLAIM], targets=[{"source_event_id": "m1"}])

    assert correction.stance_of(correction.claims[0]) == Stance.CORRECT


@pytest.mark.parametrize(
    "changes",
    [
        {"unknown": 1},
        {"text": None},
        {"text": "nul \x00"},
        {"text": "lone \ud800"},
        {"stream": "   "},
        {"stream": "x" * 513},
        {"actor": {"id": "ann", "class": "self"}},
        {"observed_at": "2026-01-01T10:00:00"},
        {"observed_at": "2026-01-01"},
        {"kind": "rumour"},
        {"claims": [{**CLAIM, "value": None}]},
        {"claims": [{**CLAIM, "value": float("nan")}]},
        {"claims": [{"relation": "lives_in", "value": "Lyon"}]},
        {"claims": [{**CLAIM, "valid": {"since": "2023", "at": "2023"}}]},
        {"claims": [{**CLAIM, "valid": {"from": "2023"}}]},
        {"claims": [{**CLAIM, "valid": {"at": "2023", "precision": "week"}}]},
        {"claims": [{**CLAIM, "stance": "settle"}]},
        {"claims": [{**CLAIM, "inputs": [{"event": "ev_1"}]}]},
        {"kind": "correction", "claims": [{**CLAIM, "stance": "assert"}]},
        {"kind": "derivation", "claims": [CLAIM]},
        {"targets": [{"event": "a", "source_event_id": "b"}]},
        {"targets": [{"entity": "ann"}]},
        {"targets": [{"event": "a", "span": [4, 4]}]},
        {"actor": {"id": 7, "class": "user"}},
    ],
)
def test_a_draft_that_contradicts_itself_or_names_unknown_fields_is_refused(changes):
    with pytest.raises(ValidationError):
        draft(**changes)


def test_every_error_class_has_a_code_of_its_own():
    def walk(cls):
        return [cls, *(found for child in cls.__subclasses__() for found in walk(child))]

    codes = [cls.code for cls in walk(EchoplaneError)]

    assert len(codes) == len(set(codes))
