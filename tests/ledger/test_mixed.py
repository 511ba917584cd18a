"""A key on which some replace anyone and others only themselves: few claims decide each instant."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.claims import ValidityKind
from ledger import _live
from ledger._court import court_of
from ledger._decide import Standing, State, comparable, judge, value_of
from ledger._entries import Entry
from ledger._intervals import difference
from ledger._live import LiveLine, timeline
from ledger._rivals import Contest, Rivals
from ledger._timeline import Segment, claims_of_cell, verdicts
from tests.ledger.random_logs import CONTRACTS, claims_in, instant
from tests.ledger.test_live import EVERYONE, PEOPLE, SENSORS

BOTH_CLASSES = [("r1", "sensor"), ("r1", "user"), ("ann", "user")]
MIXED = [[PEOPLE[0], SENSORS[0]], [*PEOPLE, *SENSORS], BOTH_CLASSES, EVERYONE]
FREE = [[*SENSORS, ("r3", "sensor")], SENSORS]
"""Who all replace anyone, save within a conflict window."""
START = datetime(2026, 1, 1, tzinfo=UTC)


def said(number: int, actor: tuple[str, str], claim: dict) -> dict:
    return {
        "stream": "s", "kind": "claim", "actor": {"id": actor[0], "class": actor[1]},
        "source_event_id": f"e{number}", "claims": [{"entity": "box", "relation": "home"} | claim],
    }  # fmt: skip


@st.composite
def mixed_lines(draw: st.DrawFn, *, among: list[list[tuple[str, str]]] = MIXED) -> list[Standing]:
    """A line of states, some intervals and ends among them; some of it erased."""
    actors = draw(st.sampled_from(among))
    odd = draw(st.sampled_from([0, 0, 1, 2]))
    events = []
    for number in range(draw(st.integers(2, 24))):
        day = draw(st.integers(0, 9))
        claim: dict = {"value": draw(st.sampled_from("abc")), "valid": {"since": instant(day)}}
        match draw(st.integers(0, 9)):
            case kind if kind < odd:
                claim["valid"] = {"from": instant(day), "to": instant(day + draw(st.integers(1, 3)))}
            case 9 if odd:
                claim = {"stance": "end", "valid": claim["valid"]}
            case 8 if odd:
                claim |= {"stance": "end"}
        events.append([said(number, draw(st.sampled_from(actors)), claim)])
    line = court_of(claims_in(events), CONTRACTS).lines("box", "home").get("", [])
    for standing in line:
        if draw(st.integers(0, 5)) == 0:
            standing.entry.erased_in = len(events) + 1
    return line


def judged(line: list[Standing], window_us: int = 0) -> list[Segment]:
    """What all that cover an instant come to, instant by instant."""
    found: list[Segment] = []
    for from_, to, verdict in verdicts(line, window_us=window_us):
        state, claims = verdict.state, claims_of_cell(verdict)
        if state == State.ABSENT:
            continue
        joins = bool(found) and (found[-1].end, found[-1].state, found[-1].claims) == (from_, state, claims)
        start = found.pop().start if joins else from_
        found.append(Segment(start=start, end=to, state=state.value, claims=claims))
    return found


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=80)
@given(mixed_lines())
def test_the_few_that_decide_an_instant_come_to_what_all_do(line):
    assert timeline(line, window_us=0) == judged(line)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=120)
@given(mixed_lines(among=[*FREE, *MIXED]), st.integers(1, 4))
def test_so_they_do_where_starts_within_a_window_are_not_ordered(line, days):
    window_us = days * 86_400_000_000
    assert timeline(line, window_us=window_us) == judged(line, window_us)


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=60)
@given(mixed_lines(among=[*FREE, *MIXED]), st.integers(0, 4))
def test_one_more_claim_changes_nothing_but_where_it_is_looked_for(line, days):
    window_us = days * 86_400_000_000
    live, known = LiveLine(window_us=window_us, value=None), []
    for count, standing in enumerate(line, start=1):
        live.put(standing, is_open=lambda start, end: ((start, end),))
        for start, end in live.changed():
            known = [*without(known, start, end), *live.segments(start, end)]
        assert joined(known) == timeline(line[:count], window_us=window_us)


def without(segments: list[Segment], start: int, end: int) -> Iterator[Segment]:
    for one in segments:
        for from_, to in difference(((one.start, one.end),), ((start, end),)):
            yield one._replace(start=from_, end=to)


def joined(segments: list[Segment]) -> list[Segment]:
    found: list[Segment] = []
    for one in sorted(segments, key=lambda each: each.start):
        last = found[-1] if found else None
        if last is not None and (last.end, last.state, last.claims) == (one.start, one.state, one.claims):
            found[-1] = last._replace(end=one.end)
        else:
            found.append(one)
    return found


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], max_examples=80)
@given(mixed_lines(), st.integers(0, 2))
def test_what_makes_a_claim_leave_is_what_comparing_it_with_each_other_says(line, days):
    """Ends of values among them, which compete with few."""
    window_us = days * 86_400_000_000
    entries = [standing.entry for standing in line]
    spans = [entry for entry in entries if entry.kind != ValidityKind.SINCE]
    by_place = Contest(spans, value_of, by_place=True, window_us=0)
    by_order = Contest(entries, value_of, by_place=False, window_us=window_us)

    def told(beaters: list[Entry]):
        values = {value_of(other) for other in beaters}
        only = next(iter(values)) if len(values) == 1 else None
        return (only, min(other.claim.commit for other in beaters)) if beaters else None

    for entry in entries:
        later = [one for one in spans if one.place > entry.place and comparable(entry, one, window_us=0)]
        assert by_place.beaters(entry) == told(later)
        after = [one for one in entries if one.order > entry.order]
        assert by_order.beaters(entry) == told(
            [one for one in after if comparable(entry, one, window_us=window_us)]
        )


def test_ends_of_values_are_compared_with_few(monkeypatch):
    lookups = 0
    plain = Rivals.beaters

    def counted(rivals, entry):
        nonlocal lookups
        lookups += 1
        return plain(rivals, entry)

    monkeypatch.setattr(Rivals, "beaters", counted)
    events = []
    for number in range(200):
        since = (START + timedelta(minutes=number)).isoformat()
        claim = {"value": f"v{number % 40}", "valid": {"since": since}}
        events.append([said(number, PEOPLE[number % 2], claim | ({"stance": "end"} if number % 3 else {}))])
    entries = [one.entry for one in court_of(claims_in(events), CONTRACTS).lines("box", "home")[""]]
    judge(entries, window_us=0)

    # All with all would be forty thousand.
    assert lookups <= 3 * len(entries)


@pytest.mark.parametrize("window", [timedelta(0), timedelta(minutes=5), timedelta(days=1)])
@pytest.mark.parametrize("actors", [[*PEOPLE[:2], SENSORS[0]], [*SENSORS, ("r3", "sensor")]])
def test_however_long_the_key_is_as_few_decide_an_instant(monkeypatch, actors, window):
    events = []
    for number in range(600):
        # In no order of time, and with few values: long stretches and short ones.
        since = (START + timedelta(minutes=number * 389 % 600)).isoformat()
        claim = {"value": "abca"[number % 7 % 4], "valid": {"since": since}}
        events.append([said(number, actors[number % 3], claim)])
    line = court_of(claims_in(events), CONTRACTS).lines("box", "home")[""]
    most = 0
    judge = _live.judge

    def counted(present, *, window_us):
        nonlocal most
        most = max(most, len(present))
        return judge(present, window_us=window_us)

    monkeypatch.setattr(_live, "judge", counted)
    segments = timeline(line, window_us=window // timedelta(microseconds=1))
    assert len(segments) > 30
    assert most <= 3 * 5
