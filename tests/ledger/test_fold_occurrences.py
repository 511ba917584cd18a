"""Occurrences kept as they stand against all of them worked out anew: the same after every commit."""

from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from ledger._court import court_of
from ledger._identity import NO_MERGES
from ledger._kept import World
from ledger._withdrawal import Replay
from tests.ledger.random_logs import CONTRACTS, claims_in, instant
from tests.ledger.test_live import busy_logs, plain_timelines

KEY = ("box", "visit")


@st.composite
def visits(draw):
    """A busy log of visits: days, hours and spans within one another, half of them with an id."""
    commits = draw(busy_logs(relation="visit"))
    for events in commits:
        for event in events:
            [claim] = event["claims"]
            if claim.get("stance", "assert") != "assert":
                continue
            if draw(st.booleans()):
                claim["occurrence_id"] = draw(st.sampled_from("xyz"))
            if draw(st.integers(0, 3)) == 0:
                start = draw(st.integers(0, 4))
                until = start + draw(st.integers(1, 9))
                claim["valid"] = {"from": instant(start), "to": instant(until)}
    return commits


def world_of(claims) -> World:
    return World(
        keys={KEY},
        claims={claim.claim_id: claim for claim in claims},
        replay=Replay(CONTRACTS, NO_MERGES.identity),
        waiting=list(claims),
    )


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=120)
@given(visits(), st.sampled_from([1, 2, 5, 100]))
def test_occurrences_kept_are_the_occurrences_worked_out(commits, batch):
    claims = claims_in(commits)
    kept: dict[str, list] = {}
    world = None
    for cut in range(1, len(commits) + 1):
        seen = [claim for claim in claims if claim.commit <= cut]
        if world is None or cut % batch == 0:
            world = world_of(seen)
        for claim in seen:
            world.take(claim)

        world.catch_up(cut)
        world.put(KEY, world.advance().get(KEY, []), is_open=lambda _: None)
        kept |= dict(world.occurrences[KEY].changed())

        expected = plain_timelines(court_of(seen, CONTRACTS), "visit")
        assert {part: line for part, line in kept.items() if line} == {
            part: line for part, line in expected.items() if line
        }, cut


def test_one_more_visit_looks_at_those_it_overlaps_alone():
    def visit(number: int) -> dict:
        hour = {"from": instant(number), "to": instant(number + 1)}
        claim = {"entity": "box", "relation": "visit", "value": "a", "valid": hour}
        return {
            "stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"},
            "source_event_id": f"e{number}", "claims": [claim],
        }  # fmt: skip

    claims = claims_in([[visit(number)] for number in range(50)])
    world = world_of(claims)

    world.catch_up(50)
    world.put(KEY, world.advance()[KEY], is_open=lambda _: None)

    assert len(world.occurrences[KEY].changed()) == 1
