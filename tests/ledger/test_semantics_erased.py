"""The pure core against the oracle where some of the log was erased, at every cut and instant."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from contracts.relations import ValueType
from contracts.resolutions import MissingReason
from ledger._claims import micros
from ledger._court import court_of
from ledger._relations import Contracts, unregistered
from tests.ledger.erased_logs import erasing_logs, left_after
from tests.ledger.oracle import Oracle
from tests.ledger.oracle_erased import Erasure, shared_after
from tests.ledger.random_logs import CONTRACTS, ENTITIES, claims_in, instant, instants_of
from tests.ledger.test_semantics import SLOW, plain, say

pytestmark = pytest.mark.property
ASKED = [*ENTITIES, "bob", "home", "tags", "visit", "level", "boss", "same_as", "not_same_as"]


LISTED = replace(unregistered("home"), value_type=ValueType.JSON, schema='{"enum":["a","b"]}')
TYPED = Contracts(registered=CONTRACTS.registered | {"home": LISTED})
"""In which `c` is no value that `home` takes."""


def compare(log, relations, contracts=CONTRACTS) -> None:
    commits, erasures = log
    claims = claims_in(commits, contracts)
    instants = instants_of(claims)
    shared = shared_after(
        lambda some, known: Oracle(some, contracts.of, instants, known), claims, erasures, {}
    )
    left = left_after(claims, erasures, contracts, ASKED)
    for cut in range(1, len(commits) + 1):
        court = court_of([claim for claim in left if claim.commit <= cut], contracts)
        oracle = Oracle([c for c in claims if c.commit <= cut], contracts.of, instants, shared)
        for relation in relations:
            for entity in [*ENTITIES, "bob"]:
                for at in instants:
                    expected = oracle.decide(entity, relation, at)
                    assert plain(court, entity, relation, at) == expected, (cut, entity, relation, at)


@SLOW
@given(erasing_logs(relations=("home",)))
def test_one_valued_keys_agree_with_the_oracle_after_erasures(log):
    compare(log, ["home"])


@SLOW
@given(erasing_logs(relations=("level",)))
def test_a_conflict_window_agrees_with_the_oracle_after_erasures(log):
    compare(log, ["level"])


@SLOW
@given(erasing_logs(relations=("tags",)))
def test_many_valued_keys_agree_with_the_oracle_after_erasures(log):
    compare(log, ["tags"])


@SLOW
@given(erasing_logs(relations=("visit",)))
def test_occurrences_agree_with_the_oracle_after_erasures(log):
    compare(log, ["visit"])


@SLOW
@given(erasing_logs(relations=("home", "tags", "visit"), derived=True))
def test_derived_claims_agree_with_the_oracle_after_erasures(log):
    compare(log, ["home", "tags", "visit"])


@SLOW
@given(erasing_logs(relations=("home", "level"), derived=True))
def test_what_is_of_another_type_agrees_with_the_oracle_after_erasures(log):
    compare(log, ["home", "level"], TYPED)


@SLOW
@given(erasing_logs(relations=("home", "tags"), identity=True))
def test_identity_agrees_with_the_oracle_after_erasures(log):
    compare(log, ["home", "tags"])


@SLOW
@given(erasing_logs(relations=("home",), identity=True, derived=True))
def test_derived_identity_agrees_with_the_oracle_after_erasures(log):
    compare(log, ["home"])


def test_a_correction_said_later_has_the_value_that_what_it_corrects_was_erased_with():
    """So it tells less exactly what another mention tells, if what it corrects did."""

    def said(name, *claims, **fields):
        return {
            "stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"},
            "source_event_id": name, "claims": list(claims), **fields,
        }  # fmt: skip

    visit = {"stance": "assert", "entity": "ann", "relation": "visit", "value": "a"}
    commits = [
        [said("e1", visit, observed_at="2026-01-01T00:00:00Z"), said("e2", visit)],
        [],
        [said("e3", {"stance": "correct", "targets": [{"event": "e1"}]})],
    ]
    compare((commits, [Erasure(commit=2, events=frozenset({"e1", "e2"}))]), ["visit"])


def test_who_is_named_by_a_claim_about_her_is_not_taken_for_an_erased_subject_of_the_same_event():
    """What is left of the subject has no name; but whatever is about the subject went with it."""

    def said(name, actor, **claim):
        return {
            "stream": "s", "kind": "claim", "actor": actor, "source_event_id": name,
            "observed_at": "2026-01-01T00:00:00Z", "claims": [{"relation": "home", **claim}],
        }  # fmt: skip

    first = said("e1", {"id": "ann", "class": "user"}, entity="box", value="a")
    target = {"event": "e1", "entity": "ann", "relation": "home"}
    correction = said(
        "e2", {"id": "op", "class": "operator"}, entity="ann", stance="correct", targets=[target]
    )

    compare(([[first], [correction], []], [Erasure(commit=3, events=frozenset(), subject="box")]), ["home"])


@pytest.mark.parametrize("erased_at", [1, 2, 3])
@pytest.mark.parametrize(
    "said", [("same_as", "not_same_as", "same_as"), ("not_same_as", "same_as", "not_same_as")], ids=str
)
def test_an_erased_value_is_shared_on_what_was_one_key_just_before_at_every_cut(said, erased_at):
    """Whoever was made one with her later, or was only before, tells nothing of what she had."""
    ann, box = ({"entity": entity, "relation": "home", "value": "a"} for entity in ("ann", "box"))
    pairs = [{"entity": "ann", "relation": relation, "value": "box"} for relation in said]
    commits = [
        [say(1, "ann", pairs[0]), say(2, "op", ann), say(3, "ann", box)],
        [say(4, "ann", pairs[1])],
        [say(5, "ann", pairs[2])],
    ]
    commits.insert(erased_at, [])
    log = (commits, [Erasure(commit=erased_at + 1, events=frozenset({"e2"}))])

    compare(log, ["home"])

    claims = claims_in(commits)
    left = left_after(claims, log[1], CONTRACTS, ASKED)
    one = [number for number, relation in enumerate(said) if relation == "same_as"]
    for number in one:
        # Of the four commits one is the erasure's.
        cut = number + 1 + (number >= erased_at)
        court = court_of([claim for claim in left if claim.commit <= cut], CONTRACTS)
        found = court.decide("ann", "home", micros(claims[-1].recorded_at)).reason
        assert found == (None if said[erased_at - 1] == "same_as" else MissingReason.ERASED)


def test_what_undid_a_pair_that_something_was_derived_from_is_kept_with_the_pair():
    """Both are about a subject that was erased: by the one the derived claim stood, by the other it fell."""
    pair = {"entity": "ann", "relation": "same_as", "value": "bob"}
    derived = ANN | {"value": "c", "valid": {"since": instant(1)}, "inputs": [{"event": "e1"}]}
    commits = [
        [say(1, "ann", pair), say(2, "ann", ANN | {"value": "a"})],
        [say(3, "worker", derived) | {"kind": "derivation"}],
        [say(4, "ann", {"entity": "bob", "relation": "not_same_as", "value": "ann"})],
        [],
    ]

    compare((commits, [Erasure(commit=4, subject="bob")]), ["home"])


@pytest.mark.parametrize("stance", ["retract", "correct"])
def test_what_an_erased_claim_about_its_subject_did_to_another_key_stays_done(stance):
    """It named that key, and no event: what its source said there."""
    said = {"entity": "box", "relation": "home", "value": "a"}
    acting = {"entity": "ann", "relation": "home", "value": "b", "stance": stance}
    commits = [
        [say(1, "bob", said)],
        [say(2, "bob", acting | {"targets": [{"entity": "box", "relation": "home"}]})],
        [],
    ]

    compare((commits, [Erasure(commit=3, subject="ann")]), ["home"])


def test_a_claim_that_came_to_a_subject_through_a_correction_goes_with_the_subject():
    """It names an event alone, of which what is left was moved to the subject's key; and so was it."""
    ann, box = ({"entity": entity, "relation": "tags"} for entity in ("ann", "box"))
    target = {"targets": [{"event": "e1"}], "value": "a"}
    commits = [
        [say(1, "bob", ann | {"value": "b"}, box | {"stance": "end"})],
        [],
        [say(2, "bob", ann | {"stance": "correct"} | target)],
        [say(3, "cy", box | {"value": "b"}, {"stance": "correct"} | target)],
        [],
    ]

    compare((commits, [Erasure(commit=2, subject="ann"), Erasure(commit=5, subject="ann")]), ["tags"])


BOX, ANN = ({"entity": entity, "relation": "home"} for entity in ("box", "ann"))


@pytest.mark.parametrize(
    ("own", "target"),
    [
        (ANN, {"event": "e1", "entity": "bob", "relation": "home"}),
        (ANN, {"event": "e1", "entity": "bob", "relation": "home", "value": "a"}),
        (ANN, {"event": "e1", "entity": "box", "relation": "home", "value": "b"}),
        ({}, {"event": "e1", "entity": "ann", "relation": "home"}),
        (ANN, BOX),
        (ANN, BOX | {"value": "a"}),
    ],
    ids=str,
)
def test_who_was_meant_of_an_erased_subject_is_meant_still_and_nobody_else_is(own, target):
    """What is left of her has no name and no value; what meant her by either, or did not, is kept."""
    first = say(1, "bob", BOX | {"value": "a"}, ANN | {"value": "c"})
    acting = say(2, "bob", own | {"stance": "correct", "value": "b", "targets": [target]})

    compare(([[first], [acting], []], [Erasure(commit=3, subject="box")]), ["home"])


@pytest.mark.parametrize(
    ("named", "later"), [("not_same_as", False), ("same_as", False), ("same_as", True)], ids=str
)
def test_which_of_the_two_was_said_of_an_erased_pair_is_known_to_whoever_meant_it_then(named, later):
    """Nothing that is left tells it; and nobody who says one of them later can mean it by that."""
    target = {"event": "e4", "entity": "ann", "relation": named}
    commits = [
        [say(1, "ann", ANN | {"value": "a"}), say(2, "bob", ANN | {"entity": "bob", "value": "b"})],
        [say(3, "bob", {"entity": "ann", "relation": "same_as", "value": "bob"})],
        [say(4, "ann", {"entity": "ann", "relation": "not_same_as", "value": "bob"})],
        [say(5, "op", {"stance": "correct", "targets": [target]})],
    ]
    commits.insert(3 if later else 4, [])

    compare((commits, [Erasure(commit=4 if later else 5, events=frozenset({"e4"}))]), ["home"])


NAMING = [
    BOX | {"stance": "retract", "value": "c"},
    {"stance": "retract", "targets": [BOX | {"value": "c"}]},
    {"stance": "retract", "targets": [BOX | {"value": "c", "event": "e2"}]},
]


@pytest.mark.parametrize("naming", NAMING, ids=str)
@pytest.mark.parametrize("actor", ["bob", "cy"])
def test_an_erased_value_that_is_only_named_is_shared_by_nobody_and_meant_as_before(naming, actor):
    """Whoever took it back did; and who says it later shares nothing with it, for no claim has it."""
    sensor = {**say(4, "s1", BOX | {"value": "c", "valid": {"since": instant(3)}}), "observed_at": instant(3)}
    sensor["actor"]["class"] = "sensor"
    commits = [
        [say(1, "bob", BOX | {"value": "a", "valid": {"since": instant(1)}})],
        [say(2, "bob", BOX | {"value": "c", "valid": {"since": instant(4)}})],
        [say(3, actor, naming)],
        [],
        [sensor],
    ]

    compare((commits, [Erasure(commit=4, events=frozenset({"e2"}))]), ["home"])


def moving(*order):
    """A log, in this order, of what bob says of the box, op takes to ann and on to bob, and cy says too."""
    bob = BOX | {"entity": "bob"}
    said = {
        "says": ("bob", BOX | {"value": "a"}),
        "moves": ("op", ANN | {"stance": "correct", "targets": [{"event": "e says"}]}),
        "moves on": ("op", bob | {"stance": "correct", "targets": [{"event": "e moves"}]}),
        "too": ("cy", ANN | {"value": "a"}),
        "too of bob": ("cy", bob | {"value": "a"}),
    }
    commits, erasures = [], []
    for number, step in enumerate(order, start=1):
        commits.append([say(f" {step}", *said[step])] if step in said else [])
        if step not in said:
            gone = step.removeprefix("erase ").split(" and ")
            erasures.append(Erasure(commit=number, events=frozenset(f"e {name}" for name in gone)))
    return commits, erasures


@pytest.mark.parametrize(
    ("order", "entity", "value"),
    [
        # What op took to ann stays before what cy says of her. Erased, cy shares it if he said so before.
        (("says", "moves", "erase moves", "too"), "ann", None),
        (("says", "moves", "erase says", "too"), "ann", None),
        (("says", "moves", "too", "erase moves"), "ann", "a"),
        (("says", "moves", "too", "erase says"), "ann", "a"),
        (("says", "erase says", "moves", "too"), "ann", None),
        (("says", "too", "erase says", "moves"), "ann", None),
        (("says", "moves", "too", "erase too and moves", "erase says"), "ann", None),
        # What op took to ann is left: what is erased is known by it, until what it comes from goes too.
        (("says", "moves", "too", "erase too"), "ann", "a"),
        (("says", "moves", "too", "erase too", "erase says"), "ann", None),
        # And so it is where it was taken further.
        (("says", "moves", "moves on", "erase moves on", "too of bob"), "bob", None),
        (("says", "moves", "moves on", "too of bob", "erase says"), "bob", "a"),
        (("says", "moves", "moves on", "too of bob", "erase too of bob", "erase moves"), "bob", None),
    ],
    ids=str,
)
def test_a_value_that_was_taken_to_another_key_is_shared_there_alone(order, entity, value):
    """What has it on the key that it was taken from has it there; on this key nobody does by that."""
    log = moving(*order)
    compare(log, ["home"])

    claims = claims_in(log[0])
    found = plain(
        court_of(left_after(claims, log[1], CONTRACTS, ASKED), CONTRACTS),
        entity,
        "home",
        instants_of(claims)[-1],
    )
    assert [resolved for resolved, _ in found["resolved"]] == ([] if value is None else [value])
    assert found["reason"] == ("erased" if value is None else None)
