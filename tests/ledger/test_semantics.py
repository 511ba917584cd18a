"""The pure core against the oracle, at every cut and instant of random logs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given

from contracts.contexts import Mark
from ledger._claims import micros
from ledger._court import court_of
from ledger._decide import ENDED, State
from ledger._marks import Marks
from tests.ledger.examples import examples
from tests.ledger.oracle import Oracle
from tests.ledger.random_logs import CONTRACTS, ENTITIES, claims_in, instant, instants_of, logs

pytestmark = pytest.mark.property
SLOW = examples(12, many=1_000)


def plain(court, entity, relation, at) -> dict:
    """A core's answer in the oracle's words."""
    found = court.decide(entity, relation, micros(at))

    def value(side):
        return "None" if side.normal == ENDED else str(json.loads(side.normal))

    return {
        "reason": None if found.reason is None else found.reason.value,
        "resolved": sorted(
            (value(verdict.sides[0]), sorted(entry.claim.claim_id for entry in verdict.sides[0].carriers))
            for _, verdict in found.lines
            if verdict.state == State.VALUE
        ),
        "conflicts": sorted(
            sorted((value(side), side.latest.claim.claim_id) for side in verdict.sides)
            for _, verdict in found.lines
            if verdict.state == State.CONFLICT
        ),
        "superseded": sorted(
            {entry.claim.claim_id for _, verdict in found.lines for entry in verdict.superseded}
        ),
        "disputes": [claim.claim_id for claim in found.disputes],
    }


def compare(commits, relations) -> None:
    claims = claims_in(commits)
    instants = instants_of(claims)
    for cut in range(1, len(commits) + 1):
        seen = [claim for claim in claims if claim.commit <= cut]
        court = court_of(seen, CONTRACTS)
        oracle = Oracle(seen, CONTRACTS.of, instants)
        assert {claim.claim_id for claim in court.replay.unplaced} == oracle.unplaced, cut
        for relation in relations:
            for entity in [*ENTITIES, "bob"]:
                for at in instants:
                    expected = oracle.decide(entity, relation, at)
                    assert plain(court, entity, relation, at) == expected, (cut, entity, relation, at)


@SLOW
@given(logs(relations=("home",)))
def test_one_valued_keys_agree_with_the_oracle(commits):
    compare(commits, ["home"])


@SLOW
@given(logs(relations=("level",)))
def test_a_conflict_window_agrees_with_the_oracle(commits):
    compare(commits, ["level"])


@SLOW
@given(logs(relations=("tags",)))
def test_many_valued_keys_agree_with_the_oracle(commits):
    compare(commits, ["tags"])


@SLOW
@given(logs(relations=("visit",)))
def test_occurrences_agree_with_the_oracle(commits):
    compare(commits, ["visit"])


@SLOW
@given(logs(relations=("home", "tags", "visit"), derived=True))
def test_derived_claims_agree_with_the_oracle(commits):
    compare(commits, ["home", "tags", "visit"])


@SLOW
@given(logs(relations=("home", "tags"), identity=True))
def test_identity_agrees_with_the_oracle(commits):
    compare(commits, ["home", "tags"])


@SLOW
@given(logs(relations=("home",), identity=True, derived=True))
def test_derived_identity_agrees_with_the_oracle(commits):
    compare(commits, ["home"])


@SLOW
@given(logs(relations=("boss",), identity=True))
def test_values_that_are_entities_agree_with_the_oracle(commits):
    compare(commits, ["boss"])


def test_dispute_about_a_vague_mention_is_open_wherever_an_occurrence_it_tells_of_is():
    visit = {"entity": "box", "relation": "visit", "value": "b"}
    claims = [
        {"actor": {"id": "r2", "class": "sensor"}, "claims": [visit | {"valid": {"since": instant(0)}}]},
        {"actor": {"id": "op", "class": "operator"}, "claims": [visit | {"valid": {"since": instant(4)}}]},
        {
            "actor": {"id": "ann", "class": "user"},
            "claims": [
                {"stance": "dispute", "targets": [{"event": "e1"}]},
                visit | {"valid": {"from": instant(1), "to": instant(5)}},
            ],
        },
    ]
    compare(
        [
            [{"stream": "s", "kind": "claim", "source_event_id": f"e{number}", **event}]
            for number, event in enumerate(claims, start=1)
        ],
        ["visit"],
    )


def say(number, actor, *claims):
    return {
        "stream": "s", "kind": "claim", "source_event_id": f"e{number}",
        "actor": {"id": actor, "class": "operator" if actor == "op" else "user"}, "claims": list(claims),
    }  # fmt: skip


def test_a_key_within_an_event_means_the_merged_one_as_it_does_without_an_event():
    said = {"entity": "ann", "relation": "home", "value": "a"}
    of_bob = {"entity": "bob", "relation": "home"}
    for target in (of_bob, of_bob | {"event": "e1"}):
        commits = [
            [say(1, "ann", said, said | {"relation": "level"})],
            [say(2, "op", {"entity": "ann", "relation": "same_as", "value": "bob"})],
            [say(3, "ann", {"stance": "retract", "targets": [target]})],
        ]

        compare(commits, ["home", "level"])

        assert court_of(claims_in(commits), CONTRACTS).replay.unplaced == []


@pytest.mark.parametrize(
    "acting",
    [
        {"stance": "retract", "targets": [{"event": "e1"}, {"event": "e9"}]},
        {"stance": "dispute", "targets": [{"event": "e1"}, {"event": "e9"}]},
        {"stance": "correct", "value": "b", "targets": [{"event": "e1"}, {"event": "e9"}]},
        {"stance": "settle", "winner": {"event": "e1"}, "targets": [{"event": "e3"}]},
        {"stance": "retract", "targets": [{"event": "e4"}]},
        {"stance": "dispute", "targets": [{"event": "e4"}]},
        {"stance": "retract", "targets": [{"entity": "box", "relation": "level"}]},
    ],
    ids=str,
)
def test_a_target_that_finds_nothing_is_reported_beside_one_that_finds_something(acting):
    home = {"entity": "ann", "relation": "home"}
    commits = [
        [say(1, "ann", home | {"value": "a"})],
        [say(2, "bob", home | {"value": "b"})],
        [say(3, "ann", {"entity": "ann", "relation": "level", "value": "c"})],
        [say(4, "bob", home | {"stance": "retract", "value": "b"})],
        [say(5, "ann", acting)],
    ]

    compare(commits, ["home", "level"])

    unplaced = court_of(claims_in(commits), CONTRACTS).replay.unplaced
    assert [claim.claim_id for claim in unplaced] == ["e5#0"]


def test_a_chain_of_derivations_as_long_as_a_log_is_decided():
    length = 1_200
    worker = {"stream": "s", "kind": "derivation", "actor": {"id": "w", "class": "derived"}}
    first = {"stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"}}
    events = [first | {"claims": [{"entity": "ann", "relation": "home", "value": "a"}]}]
    for number in range(1, length):
        claim = {"entity": "ann", "relation": f"r{number}", "value": "b", "inputs": [{"event": f"e{number}"}]}
        events.append(worker | {"claims": [claim]})
    commits = [[event | {"source_event_id": f"e{number + 1}"}] for number, event in enumerate(events)]
    claims = claims_in(commits)

    found = court_of(claims, CONTRACTS).decide("ann", f"r{length - 1}", micros(claims[-1].recorded_at))

    assert found.reason is None


def test_marks_of_a_long_and_of_a_woven_chain_of_derivations_are_found_in_time():
    worker = {"stream": "s", "kind": "derivation", "actor": {"id": "w", "class": "derived"}}
    first = {"stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"}}
    events = [first | {"claims": [{"entity": "ann", "relation": "home", "value": "a"}]}]
    for number in range(1, 1_500):
        # Each is derived from both before it: as many ways lead back as there are subsets.
        inputs = [{"event": f"e{earlier}"} for earlier in {number, max(1, number - 1)}]
        claim = {"entity": "ann", "relation": f"r{number}", "value": "b", "inputs": inputs}
        events.append(worker | {"claims": [claim]})
    events.append(first | {"kind": "retraction", "claims": [], "targets": [{"event": "e1"}]})
    commits = [[event | {"source_event_id": f"e{number + 1}"}] for number, event in enumerate(events)]
    claims = claims_in(commits)

    marks = Marks(court_of(claims, CONTRACTS), micros(claims[-1].recorded_at))

    assert marks.of(claims[-2]) == (Mark.WITHDRAWN, claims[-1].commit)
