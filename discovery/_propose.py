"""
From a plan and a tenant's index to a proposal: every route speaks, the scores are added up, the best go out.

Weights are set by hand, by the reasoning beside them, and were moved by what whole development sets of
three kinds gained or lost (docs/discovery.md): round numbers, and no question or history was read for
them. What depends on the kind of history (chat lines or long messages) depends on its median turn, not
on its words; what depends on the question, on the operation that the planner read.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from contracts.limits import CANDIDATES_MAX, KEYS_MAX
from contracts.proposals import (
    Candidate,
    KeyProposal,
    Operation,
    Plan,
    Proposal,
    RouteHit,
    RouteReport,
    RouteState,
)
from contracts.views import Generation, View
from discovery import _signals as signals
from discovery._cells import Near
from discovery._embedder import Vectors
from discovery._graph import spread
from discovery._index import TenantIndex
from discovery._lexical import Scores
from discovery._record import ClaimBook, StateMatch
from discovery._selection import Searched, select
from discovery._signals import Signal, strongest
from discovery._text import terms

PROPOSED_MAX: Final = 200
"""Units in one proposal: as many chat lines as the largest usual budget can hold."""
ROUTE_TOP: Final = 50
"""Ranks of one route that are reported."""
TOUCHED_UNITS: Final = 12
"""Best units whose keys are proposed too: what they claim may have been superseded since."""
TOUCHED_KEYS_MAX: Final = 16
KEYS_PROPOSED_MAX: Final = 48
ROUTES_SECONDS: Final = 2.0
"""After so long no further route is begun: a proposal with some of them is better than none."""
QUANTUM_PPM: Final = 100
"""Scores are multiples of this: bits in which two machines' sums differ stay below it."""
OF_A_KIND: Final = frozenset({Operation.COUNT, Operation.LIST, Operation.ORDER, Operation.PREFERENCE})
"""What looks for all of a kind, or for what somebody likes of it: the question names the kind alone."""

assert PROPOSED_MAX <= CANDIDATES_MAX
assert KEYS_PROPOSED_MAX <= KEYS_MAX


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """The dense route's part: the question's vector, and what is near it in a large tenant; or why not."""

    state: RouteState
    vector: Vectors | None
    near: Near | None
    duration_us: int


NO_DENSE: Final = Dense(state=RouteState.OFF, vector=None, near=None, duration_us=0)


def weights_for(shortness: float, operation: Operation) -> dict[str, float]:
    """
    Return each route's weight.

    Args:
        shortness: 1 for a history of chat lines, 0 for one of long messages.
        operation: What the question asks to be done.

    Words and meaning count alike: each finds what the other misses. Where a question looks for all
    of a kind it has the words of few of them, so there meaning counts more; where it looks for one
    thing it names it, and long messages have room to name it too. A summary is neither: it names its
    subject, and wants all of it. A short line takes its sense
    from those around it, so there windows take the place of single turns, and neighbours, streams
    and the question that a line replies to count. A short line that asks states nothing, and one
    that answers "when" or "how many" has a time or a number in it, as any long message has. What
    the ledger has typed is worth nearly as much as a perfect match of words, since an extractor
    read it there, and what is claimed of others than those named is worth less. A part of a question
    and what is like that which was found first count among long messages: short lines drift from one
    thing to the next, and the window of one holds both parts.
    Who speaks and when rank among what was found. Among long messages, which are
    those of an assistant mostly, the person's own are nearer to the fact.
    """
    length = 1 - shortness
    of_a_kind = operation in OF_A_KIND
    of_one = not of_a_kind and operation != Operation.SUMMARY
    return {
        "lexical": 0.3 + (0.6 if of_one else 0.4) * length,
        "window": 0.6 * shortness,
        "dense": 2.0 if of_a_kind else 1.2,
        "state": 0.8,
        "actor": 0.7,
        "time": 1.2,
        "first_hand": 0.2 * length,
        "stated": 0.25 * shortness,
        "surface": 0.3 * shortness,
        "graph": 0.5,
        "parts": 0.35 * length,
        "session": 0.5 * shortness,
        "neighbours": 0.1 * shortness,
        "reply": 0.3 * shortness,
        "second_hop": 0.25 * length,
    }


class _Round:
    """The signals of one question, with their reports."""

    def __init__(self, generation: str, without: Collection[str]) -> None:
        self.signals: dict[str, Signal] = {}
        self.reports: list[RouteReport] = []
        self._generation = generation
        self._without = frozenset(without)
        self._until = clock.perf_counter_ns() + round(ROUTES_SECONDS * 1e9)

    def run(self, route: str, compute: Callable[[], Signal], *, state: RouteState = RouteState.OK) -> None:
        started = clock.perf_counter_ns()
        if route in self._without:
            self.report(route, RouteState.OFF, count=0, duration_us=0)
            return
        if started > self._until:
            # The others took all the time there is: it is not begun.
            self.report(route, RouteState.LATE, count=0, duration_us=0)
            return
        self.keep(route, compute(), started=started, state=state)

    def keep(
        self,
        route: str,
        signal: Signal,
        *,
        started: int,
        state: RouteState = RouteState.OK,
        extra_us: int = 0,
    ) -> None:
        if route in self._without:
            self.report(route, RouteState.OFF, count=0, duration_us=0)
            return
        self.signals[route] = signal
        duration_us = (clock.perf_counter_ns() - started) // 1_000 + extra_us
        self.report(route, state, count=signal.count, duration_us=duration_us)

    def report(self, route: str, state: RouteState, *, count: int, duration_us: int) -> None:
        self.reports.append(
            RouteReport(
                route=route,
                state=state,
                generation=self._generation,
                count=count,
                duration_us=duration_us,
            )
        )


def compose(
    index: TenantIndex,
    plan: Plan,
    question: str,
    *,
    view: View,
    late: bool,
    dense: Dense,
    without: Collection[str] = (),
) -> Proposal:
    """
    Return the proposal for a question. Same index up to the cut, same proposal, but for durations.

    Unless a route is late: then what it would have said is missing, and its report says so.

    Args:
        index: The tenant's.
        plan: How the question was read.
        question: The question as it was put.
        view: Nothing after its cut is proposed.
        late: Whether the index has not reached the cut.
        dense: What the embedder gave.
        without: Routes that stay off.
    """
    found = gather(index, plan, question, view=view, late=late, dense=dense, without=without)
    candidates = _candidates(found.searched, found.signals, found.scores)
    return Proposal(
        plan=plan,
        candidates=candidates,
        keys=_keys(found.book, found.match, candidates, cut=view.cut),
        routes=found.reports,
        degraded=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What the routes say of each unit that was looked at, and the score that it makes together."""

    searched: Searched
    book: ClaimBook
    match: StateMatch
    signals: Mapping[str, Signal]
    reports: tuple[RouteReport, ...]
    shortness: float
    scores: Scores


def gather(
    index: TenantIndex,
    plan: Plan,
    question: str,
    *,
    view: View,
    late: bool,
    dense: Dense,
    without: Collection[str] = (),
) -> Gathered:
    """Let every route speak; arguments as for `compose`."""
    count = index.count_at(view.cut)
    reached = Generation(epoch=view.epoch, commit=min(view.cut, index.complete_commit))
    book = index.claims.get(view.epoch) or ClaimBook()
    match = book.match(plan, question, cut=view.cut)
    hops = {} if "graph" in without else spread(book, plan, cut=view.cut)
    searched: Searched = index
    if index.codes is not None:
        searched = select(index, terms(question), hops | match.events, dense.near, count=count)
        count = len(searched)
    done = _Round(str(reached), without)
    shortness = signals.shortness(searched, count)
    _speak(done, searched, plan, question, shortness, count=count, late=late, dense=dense)
    state = RouteState.LATE if late else RouteState.OK
    done.run("state", lambda: signals.state(searched, match.events, count), state=state)
    done.run("graph", lambda: signals.state(searched, hops, count), state=state)
    scores = _fuse(searched, done, weights_for(shortness, plan.operation), count)
    return Gathered(
        searched=searched,
        book=book,
        match=match,
        signals=done.signals,
        reports=tuple(done.reports),
        shortness=shortness,
        scores=scores,
    )


def _speak(
    done: _Round,
    index: Searched,
    plan: Plan,
    question: str,
    shortness: float,
    *,
    count: int,
    late: bool,
    dense: Dense,
) -> None:
    state = RouteState.LATE if late else RouteState.OK
    started = clock.perf_counter_ns()
    turns, windows = signals.lexical(index, question, count)
    # Both come out of one pass over the postings; each reports the time of the pass.
    done.keep("lexical", turns, started=started, state=state)
    done.keep("window", windows, started=started, state=state)
    _dense(done, index, dense, count=count, late=late)
    done.run("parts", lambda: signals.parts(index, question, shortness, count), state=state)
    done.run("actor", lambda: signals.actor(index, plan, count), state=state)
    done.run("time", lambda: signals.time(index, plan.times, count), state=state)
    done.run("first_hand", lambda: signals.first_hand(index, count), state=state)
    done.run("stated", lambda: signals.stated(index, count), state=state)
    done.run("surface", lambda: signals.surface(index, plan, count), state=state)


def _dense(done: _Round, index: Searched, dense: Dense, *, count: int, late: bool) -> None:
    started = clock.perf_counter_ns()
    if dense.state != RouteState.OK:
        done.report("dense", dense.state, count=0, duration_us=dense.duration_us)
        return
    assert dense.vector is not None
    signal = signals.dense(index, dense.vector, count)
    state = RouteState.LATE if late or not index.has_all_vectors(count) else RouteState.OK
    done.keep("dense", signal, started=started, state=state, extra_us=dense.duration_us)


def _fuse(index: Searched, done: _Round, weights: Mapping[str, float], count: int) -> Scores:
    def total(*, ranked_only: bool = False) -> Scores:
        added = np.zeros(count)
        for route, signal in done.signals.items():
            if signal.count and (signal.ranks or not ranked_only):
                added += weights[route] * signal.scores
        return added

    base = total(ranked_only=True)
    meaning = done.signals["dense"].scores if "dense" in done.signals else None
    done.run("session", lambda: signals.session(index, base, meaning, count))
    done.run("neighbours", lambda: signals.neighbours(index, base, count))
    done.run("reply", lambda: signals.reply(index, base, count))
    first = total()
    done.run("second_hop", lambda: signals.second_hop(index, first, count))
    found = np.zeros(count, dtype=np.bool_)
    for signal in done.signals.values():
        if signal.ranks:
            found |= signal.scores > 0
    # Who speaks, in which stream and when is said of every unit: it makes no candidate by itself.
    everything = sum(weights[route] for route in done.signals)
    return np.where(found, total() / everything, 0.0)


def _candidates(index: Searched, found: Mapping[str, Signal], fused: Scores) -> tuple[Candidate, ...]:
    rows = strongest(fused, PROPOSED_MAX)
    hits: dict[int, list[RouteHit]] = {row: [] for row in rows.tolist()}
    for route, signal in found.items():
        if not signal.ranks or not signal.count:
            continue
        best = strongest(signal.scores, ROUTE_TOP)
        scores = _ppm(signal.scores[best])
        for rank, (row, score_ppm) in enumerate(zip(best.tolist(), scores, strict=True), 1):
            if row in hits:
                hits[row].append(RouteHit(route=route, rank=rank, score_ppm=score_ppm))
    candidates = [
        Candidate(
            unit_id=index.unit_ids[row],
            event_ids=(index.unit_ids[row],),
            score_ppm=score_ppm,
            hits=tuple(hits[row]),
        )
        for row, score_ppm in zip(rows.tolist(), _ppm(fused[rows]), strict=True)
    ]
    return tuple(sorted(candidates, key=lambda candidate: (-candidate.score_ppm, candidate.unit_id)))


def _keys(
    book: ClaimBook, match: StateMatch, candidates: tuple[Candidate, ...], *, cut: int
) -> tuple[KeyProposal, ...]:
    known = {(key.entity, key.relation): key for key in match.keys[: KEYS_PROPOSED_MAX - TOUCHED_KEYS_MAX]}
    touched: dict[tuple[str, str], KeyProposal] = {}
    for candidate in candidates[:TOUCHED_UNITS]:
        for entity, relation in book.keys_of_event(candidate.unit_id, cut=cut):
            if (entity, relation) not in known and len(touched) < TOUCHED_KEYS_MAX:
                # Half of what its unit scored: the question did not ask for it by name.
                half = candidate.score_ppm // (2 * QUANTUM_PPM) * QUANTUM_PPM
                proposal = KeyProposal(entity=entity, relation=relation, score_ppm=half, named=False)
                touched.setdefault((entity, relation), proposal)
    keys = [*known.values(), *touched.values()]
    return tuple(sorted(keys, key=lambda key: (not key.named, -key.score_ppm, key.entity, key.relation)))


def _ppm(scores: Scores) -> list[int]:
    quanta: list[int] = np.rint(scores * (1_000_000 / QUANTUM_PPM)).astype(np.int64).tolist()
    return [quantum * QUANTUM_PPM for quantum in quanta]
