"""
A log in many units is the log in one: random logs, said in whatever units, decide as their plain twins do.

No oracle of units is needed: the twin says the same numbers plainly, on relations without a type.
"""

from __future__ import annotations

import copy
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from contracts.relations import ValueType
from ledger._claims import micros
from ledger._court import court_of
from ledger._relations import Contracts
from tests.ledger.random_logs import CONTRACTS, ENTITIES, claims_in, instants_of, logs
from tests.ledger.test_semantics import SLOW

RELATIONS = ("home", "tags", "visit", "level")
NUMBERS = {"a": 1, "b": 2, "c": 2.5}
SPELT = {
    1: [1, 1.0, "1", "1 km", "1000 m", "0.001 Mm", {"value": 100_000, "unit": "cm"}],
    2: [2, "2 km", "2e3 m", {"value": 2.0}, {"value": 2, "unit": "km"}],
    2.5: [2.5, "2.50 km", "2500 m", "25 hm"],
}
WRONG = ["2 kg", "far", True, ["1 km"], {"lat": 1, "lon": 2}, "1 km/h"]
TYPED = Contracts(
    registered={
        relation: replace(CONTRACTS.of(relation), value_type=ValueType.NUMBER, unit="km")
        for relation in RELATIONS
    }
)


@st.composite
def twins(draw):
    """A log whose values are plain numbers, and the same log said in many ways."""
    plain = draw(logs(relations=RELATIONS, derived=True))
    said = copy.deepcopy(plain)
    for events, twin in zip(plain, said, strict=True):
        for event, other in zip(events, twin, strict=True):
            for claim, spelt in zip(event["claims"], other["claims"], strict=True):
                if "value" in claim:
                    claim["value"] = NUMBERS[claim["value"]]
                    spelt["value"] = draw(st.sampled_from(SPELT[claim["value"]]))
    return plain, said


def decided(court, entity, relation, at):
    """Which claims stand, rival, left and are disputed: everything but how a value is written."""
    found = court.decide(entity, relation, micros(at))
    return (
        found.reason,
        sorted(
            (
                verdict.state.value,
                sorted(sorted(entry.claim.claim_id for entry in side.carriers) for side in verdict.sides),
                sorted(entry.claim.claim_id for entry in verdict.superseded),
            )
            for _, verdict in found.lines
        ),
        [claim.claim_id for claim in found.disputes],
    )


def same(one, other, *, instants):
    for entity in ENTITIES:
        for relation in RELATIONS:
            for at in instants:
                assert decided(one, entity, relation, at) == decided(other, entity, relation, at)


@SLOW
@given(twins())
def test_a_log_in_many_units_decides_as_the_same_log_in_one(pair):
    plain, said = (claims_in(pair[0], CONTRACTS), claims_in(pair[1], TYPED))

    same(court_of(plain, CONTRACTS), court_of(said, TYPED), instants=instants_of(plain))


@SLOW
@given(twins(), st.data())
def test_claims_of_wrong_values_change_no_answer(pair, data):
    log = pair[1]
    with_wrong = copy.deepcopy(log)
    for events in with_wrong:
        for event in events:
            if event["kind"] == "claim" and data.draw(st.booleans()):
                wrong = {
                    "value": data.draw(st.sampled_from(WRONG)),
                    "entity": data.draw(st.sampled_from(ENTITIES)),
                }
                stance = data.draw(st.sampled_from(["assert", "end", "retract", "dispute"]))
                # Last, so that the numbers of the others stay what they are.
                event["claims"].append(
                    wrong | {"relation": data.draw(st.sampled_from(RELATIONS)), "stance": stance}
                )
    claims, more = claims_in(log, TYPED), claims_in(with_wrong, TYPED)
    ignored = court_of(more, TYPED)

    same(court_of(claims, TYPED), ignored, instants=instants_of(more))
    known = {claim.claim_id for claim in claims}
    added = {claim.claim_id for claim in more} - known
    assert added <= {claim.claim_id for claim in ignored.replay.unplaced}
