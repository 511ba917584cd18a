"""Claims placed by a line's tail alone against lines worked out anew: the same rectangles, the same tails."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from contracts.claims import Claim, ValidityKind
from contracts.relations import Cardinality
from ledger._claims import state_start
from ledger._court import Court, court_of
from ledger._decide import value_of
from ledger._entries import extent_of
from ledger._identity import NO_MERGES
from ledger._kept import World
from ledger._lines import Line, NotReadError
from ledger._live import tail_of
from ledger._placing import Said, own_source, place
from ledger._tails import Incoming, only_says
from ledger._withdrawal import Replay
from tests.ledger.random_logs import CONTRACTS, VALUES, claims_in, instant
from tests.ledger.test_live import EVERYONE, PEOPLE, SENSORS, busy_logs, new_line, plain_timelines, rectangles

USUAL = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60)


def digest(text: str) -> str:
    return f"digest of {text}"


@st.composite
def late_logs(draw: st.DrawFn, *, relation: str) -> list[list[dict]]:
    """Plain claims in any order of time: runs of few values, ends, and now and then an interval."""
    op = [("op", "operator")]
    actors = draw(
        st.sampled_from([PEOPLE[:1], SENSORS, SENSORS, [PEOPLE[0], *SENSORS], [*SENSORS, *op], EVERYONE])
    )
    intervals = draw(st.sampled_from([0, 0, 1, 3]))
    commits: list[list[dict]] = []
    for number in range(1, draw(st.integers(1, 16)) + 1):
        actor, actor_class = draw(st.sampled_from(actors))
        day = draw(st.integers(0, 9))
        claim: dict = {"entity": "box", "relation": relation, "value": draw(st.sampled_from(VALUES[:2]))}
        if draw(st.integers(0, 7)) == 0:
            claim["stance"] = "end"
            if relation != "tags":
                del claim["value"]
        if draw(st.integers(0, 9)) < intervals:
            claim["valid"] = {"from": instant(day), "to": instant(day + draw(st.integers(1, 3)))}
        elif draw(st.integers(0, 5)) == 0:
            claim["valid"] = {"since": draw(st.sampled_from(["2026-01-03", "2026-01", "2025"]))}
        else:
            claim["valid"] = {"since": instant(day)}
        form = {
            "stream": "s", "kind": "claim", "actor": {"id": actor, "class": actor_class},
            "source_event_id": f"e{number}", "claims": [claim],
        }  # fmt: skip
        if commits and draw(st.integers(0, 4)) == 0:
            commits[-1].append(form)
        else:
            commits.append([form])
    return commits


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """Everything that was said, as if all of it had been read; `hidden` is what was not."""

    court: Court
    part: str
    is_many: bool
    is_hidden: bool

    def said(self, claim_id: str) -> Said:
        entry = self.court.replay.entry_of(claim_id)
        assert entry is not None
        claim = entry.claim
        return Said(
            claim_id=claim_id,
            start=extent_of(claim.validity)[0],
            end=extent_of(claim.validity)[1],
            is_state=claim.validity.kind == ValidityKind.SINCE,
            value=digest(value_of(entry)),
            source=own_source(claim),
        )

    def state_after(self, start: int, *, by: Claim) -> Said | None:
        if self.is_hidden:
            raise NotReadError
        found = [
            (begin, entry.place, entry.claim.claim_id)
            for entry in self.court.replay.entries_of("box", by.relation)
            if entry.claim.position < by.position
            and (begin := state_start(entry.claim)) is not None
            and begin > start
            and (not self.is_many or entry.normal in {None, self.part})
        ]
        return self.said(min(found)[2]) if found else None


class Placing:
    """One key's lines through a log, each commit placed where that can be, else worked out from all."""

    def __init__(self, relation: str) -> None:
        self.relation = relation
        self.is_many = CONTRACTS.of(relation).cardinality == Cardinality.MANY
        self.kept: dict[str, Line] = {}
        self.has_all_ends = False

    def apply(self, seen: list[Claim], cut: int, *, is_hidden: bool) -> str:
        court = court_of(seen, CONTRACTS)
        claims = [claim for claim in seen if claim.commit == cut]
        self.has_all_ends = self.has_all_ends or any(
            claim.stance != "assert" and (claim.value is None or claim.stance == "correct")
            for claim in claims
        )
        says = all(only_says(claim, may_end_value=self.is_many) for claim in claims)
        if says and all(self._place(court, claim, cut, is_hidden=is_hidden) for claim in claims):
            return "placed"
        world = World(
            keys={("box", self.relation)}, claims={claim.claim_id: claim for claim in seen},
            replay=Replay(CONTRACTS, NO_MERGES.identity), waiting=list(seen),
        )  # fmt: skip
        root = ("box", self.relation)
        world.catch_up(cut)
        moved = world.advance().get(root, [])
        world.put(root, moved, is_open=lambda part: self.kept.setdefault(part, new_line(part)).undecided)
        live = world.live[root]
        for part in sorted(live.touched):
            for start, end in live.lines[part].changed():
                segments = live.lines[part].segments(start, end)
                self.kept.setdefault(part, new_line(part)).splice(start, end, segments, cut)
            self.kept.setdefault(part, new_line(part)).tail = live.lines[part].tail(digest)
        return "worked out"

    def _place(self, court: Court, claim: Claim, cut: int, *, is_hidden: bool) -> bool:
        entry = court.replay.entry_of(claim.claim_id)
        assert entry is not None
        if self.is_many and claim.value is None:
            return False
        part = entry.normal if self.is_many else ""
        if part not in self.kept and self.is_many and self.has_all_ends:
            return False
        line = self.kept.setdefault(part, new_line(part))
        incoming = Incoming(
            claim=claim, rank=entry.rank, value=digest(value_of(entry)),
            replaces_any=entry.replaces_any and not CONTRACTS.of(self.relation).conflict_window,
            extent=extent_of(claim.validity),
        )  # fmt: skip
        around = Whole(court=court, part=part, is_many=self.is_many, is_hidden=is_hidden)
        return place(line, incoming, cut, around)


def check(commits, relation: str, hidden: list[bool]) -> None:
    claims = claims_in(commits)
    placing = Placing(relation)
    anew: dict[str, Line] = {}
    window_us = court_of([], CONTRACTS).window_us(relation)
    for cut in range(1, len(commits) + 1):
        seen = [claim for claim in claims if claim.commit <= cut]
        event(placing.apply(seen, cut, is_hidden=hidden[cut % len(hidden)]))
        court = court_of(seen, CONTRACTS)
        expected = plain_timelines(court, relation)
        for part in {*expected, *anew}:
            anew.setdefault(part, new_line(part)).become(expected.get(part, []), cut)
        assert rectangles(placing.kept) == rectangles(anew), cut
        for part, standings in court.lines("box", relation).items():
            tail = tail_of(standings, digest, value=part if placing.is_many else None, window_us=window_us)
            assert placing.kept[part].tail == tail, (cut, part)


@pytest.mark.parametrize("relation", ["home", "tags", "level"])
def test_what_is_placed_by_a_tail_is_what_all_claims_say(relation):
    @USUAL
    @given(late_logs(relation=relation), st.lists(st.booleans(), min_size=1, max_size=3))
    def holds(commits, hidden):
        check(commits, relation, hidden)

    holds()


@pytest.mark.parametrize("relation", ["home", "tags"])
def test_so_it_is_among_claims_that_act_on_others(relation):
    @USUAL
    @given(busy_logs(relation=relation))
    def holds(commits):
        check(commits, relation, [False])

    holds()
