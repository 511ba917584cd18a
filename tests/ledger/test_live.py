"""Lines kept through a fold against lines worked out anew: the same rectangles after every commit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.claims import ValidityKind
from ledger._beaten import beaten_since
from ledger._court import Court, court_of
from ledger._decide import State, comparable, verdict_at
from ledger._entries import Entry
from ledger._identity import NO_MERGES
from ledger._intervals import FOREVER, NEVER, covers, interval
from ledger._kept import World
from ledger._lines import Line
from ledger._timeline import Segment, claims_of_cell
from ledger._withdrawal import Replay
from tests.ledger.random_logs import CONTRACTS, VALUES, claims_in, instant

USUAL = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=150)

PEOPLE = [("ann", "user"), ("bob", "user"), ("cyd", "user")]
SENSORS = [("r1", "sensor"), ("r2", "sensor")]
EVERYONE = [*PEOPLE, *SENSORS, ("bot", "assistant"), ("op", "operator")]


@st.composite
def busy_logs(draw: st.DrawFn, *, relation: str) -> list[list[dict]]:
    """Many claims on one key: states and intervals in any order of time, ends, and what acts on them."""
    actors = draw(st.sampled_from([PEOPLE[:1], PEOPLE, SENSORS, [PEOPLE[0], SENSORS[0]], EVERYONE]))
    kinds = draw(st.sampled_from([["since"], ["at"], ["since", "since", "at", "span"], ["span"]]))
    acting = draw(st.sampled_from([0, 0, 3, 6]))
    commits: list[list[dict]] = []
    for number in range(1, draw(st.integers(1, 24)) + 1):
        actor, actor_class = draw(st.sampled_from(actors))
        claim: dict = {"entity": "box", "relation": relation}
        acts = number > 1 and draw(st.integers(0, 9)) < acting
        if acts:
            target = {"event": f"e{draw(st.integers(1, number - 1))}"}
            claim |= draw(
                st.sampled_from(
                    [
                        {"stance": "correct", "value": "c", "targets": [target]},
                        {"stance": "correct", "value": "d", "targets": [target], "valid": _since(3)},
                        {"stance": "retract", "targets": [target]},
                        {"stance": "retract", "valid": {"from": instant(2), "to": instant(5)}},
                        {"stance": "settle", "winner": target},
                        {"stance": "dispute", "targets": [target]},
                    ]
                )
            )
        elif draw(st.integers(0, 8)) == 0:
            claim |= draw(st.sampled_from([{"stance": "end"}, {"stance": "end", "value": "a"}]))
            claim |= draw(st.sampled_from([{}, {"valid": _since(draw(st.integers(0, 9)))}]))
        else:
            claim["value"] = draw(st.sampled_from(VALUES))
            claim |= draw(_valid(kinds))
        event = {
            "stream": "s", "kind": "claim", "actor": {"id": actor, "class": actor_class},
            "source_event_id": f"e{number}", "claims": [claim],
        }  # fmt: skip
        if draw(st.integers(0, 5)):
            event["observed_at"] = instant(draw(st.integers(0, 9)))
        if commits and draw(st.integers(0, 3)) == 0:
            commits[-1].append(event)
        else:
            commits.append([event])
    return commits


def _since(day: int) -> dict:
    return {"since": instant(day)}


@st.composite
def _valid(draw: st.DrawFn, kinds: list[str]) -> dict:
    day = draw(st.integers(0, 9))
    match draw(st.sampled_from(kinds)):
        case "since":
            return {} if draw(st.booleans()) else {"valid": _since(day)}
        case "at":
            return {
                "valid": {
                    "at": draw(st.sampled_from([instant(day), f"2026-01-0{day + 1 if day < 9 else 9}"]))
                }
            }
        case _:
            return {"valid": {"from": instant(day), "to": instant(day + draw(st.integers(1, 4)))}}


def new_line(part: str) -> Line:
    return Line(
        entity="box", relation="r", part=part, line_id=None, tail=None, stored_tail=None, cells={},
        whole=True, blank=True,
    )  # fmt: skip


def rectangles(lines: dict[str, Line]) -> dict[str, set[tuple]]:
    return {
        part: {
            (cell.segment, cell.known_from, cell.known_to) for cell in [*line.passed, *line.cells.values()]
        }
        for part, line in lines.items()
        if line.passed or line.cells
    }


def check(commits, relation: str, batch: int) -> None:
    """Compare what is kept, in batches, with timelines of all claims so far, after every commit."""
    claims = claims_in(commits)
    kept: dict[str, Line] = {}
    anew: dict[str, Line] = {}
    world: World | None = None
    for cut in range(1, len(commits) + 1):
        seen = [claim for claim in claims if claim.commit <= cut]
        if world is None or cut % batch == 0:
            world = World(
                keys={("box", relation)},
                claims={claim.claim_id: claim for claim in seen},
                replay=Replay(CONTRACTS, NO_MERGES.identity),
                waiting=list(seen),
            )
        for claim in seen:
            world.take(claim)
        settle(world, kept, relation, cut)
        court = court_of(seen, CONTRACTS)
        expected = plain_timelines(court, relation)
        for part in {*expected, *anew}:
            anew.setdefault(part, new_line(part)).become(expected.get(part, []), cut)
        assert rectangles(kept) == rectangles(anew), cut


def settle(world: World, lines: dict[str, Line], relation: str, cut: int) -> None:
    world.catch_up(cut)
    moved = world.advance()

    def is_open(part: str) -> Callable:
        return lines[part].undecided if part in lines else interval

    world.put(("box", relation), moved.get(("box", relation), []), is_open=is_open)
    live = world.live[("box", relation)]
    for part in live.touched:
        for start, end in live.lines[part].changed():
            segments = live.lines[part].segments(start, end)
            lines.setdefault(part, new_line(part)).splice(start, end, segments, cut)
    live.touched.clear()


def plain_timelines(court: Court, relation: str) -> dict[str, list[Segment]]:
    """What each line has at every instant at which anything begins or ends, asked one by one."""
    found = {}
    window_us = court.window_us(relation)
    for part, line in court.lines("box", relation).items():
        edges = {NEVER, FOREVER}
        for standing in line:
            for pieces in (standing.cover, standing.gone, standing.doubt):
                edges |= {edge for piece in pieces for edge in piece}
        segments: list[Segment] = []
        for start, end in pairwise(sorted(edges)):
            verdict = verdict_at(line, start, window_us=window_us)
            state, names = verdict.state.value, claims_of_cell(verdict)
            last = segments[-1] if segments else None
            if state == State.ABSENT.value:
                continue
            if last is not None and (last.end, last.state, last.claims) == (start, state, names):
                segments[-1] = Segment(start=last.start, end=end, state=state, claims=names)
            else:
                segments.append(Segment(start=start, end=end, state=state, claims=names))
        found[part] = segments
    return found


batches = st.sampled_from([1, 2, 5, 100])


@USUAL
@given(busy_logs(relation="home"), batches)
def test_a_one_valued_key_kept_is_the_key_worked_out(commits, batch):
    check(commits, "home", batch)


@USUAL
@given(busy_logs(relation="level"), batches)
def test_a_key_with_a_conflict_window_kept_is_the_key_worked_out(commits, batch):
    check(commits, "level", batch)


def test_an_end_corrected_before_any_value_ends_only_what_the_correction_names():
    claim = {"entity": "box", "relation": "tags"}
    event = {"stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"}}
    correction = {**claim, "stance": "correct", "value": "c", "targets": [{"event": "e1"}]}
    commits = [
        [{**event, "source_event_id": "e1", "claims": [{**claim, "stance": "end"}]}],
        [{**event, "source_event_id": "e2", "claims": [correction]}],
    ]

    check(commits, "tags", 1)


@USUAL
@given(busy_logs(relation="tags"), batches)
def test_a_many_valued_key_kept_is_the_key_worked_out(commits, batch):
    check(commits, "tags", batch)


@USUAL
@given(
    st.sampled_from(["home", "level"]).flatmap(
        lambda name: st.tuples(st.just(name), busy_logs(relation=name))
    )
)
def test_a_claim_left_when_the_first_that_beats_it_was_made(drawn):
    relation, commits = drawn
    court = court_of(claims_in(commits), CONTRACTS)
    window_us = court.window_us(relation)
    line = court.lines("box", relation).get("", [])
    for at in sorted({edge for standing in line for piece in standing.cover for edge in piece}):
        present = [standing.entry for standing in line if covers(standing.cover, at)]

        found = beaten_since(present, present, window_us=window_us)

        assert found == {id(entry): _first_beaten(entry, present, window_us) for entry in present}


def _first_beaten(entry: Entry, present: list[Entry], window_us: int) -> int | None:
    def beats(other: Entry) -> bool:
        if other.rank != entry.rank:
            return other.rank < entry.rank
        replaces = other.kind != ValidityKind.SINCE and other.place > entry.place
        if replaces and comparable(entry, other, window_us=0):
            return True
        return other.order > entry.order and comparable(entry, other, window_us=window_us)

    commits = [other.claim.commit for other in present if other is not entry and beats(other)]
    return max(min(commits), entry.claim.commit) if commits else None
