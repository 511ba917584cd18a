"""
A public history through the real plane: told to a tenant of its own, and asked as anybody asks.

Turns go through the log, the worker and the discovery service; questions through the query path. A
tenant's name is made from the digest of what it is told, so that a run that was cut off finds it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as FilePath
from typing import Final

from pydantic import ValidationError

from audit import History, HistoryTurn
from contracts.contexts import ContextPack
from contracts.errors import EchoplaneError, Unavailable
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.limits import TEXT_CHARACTERS_MAX
from contracts.proposals import Proposal, RouteState
from contracts.times import ValidAt, parse_instant
from contracts.trails import Question
from contracts.views import View, ViewRequest
from contracts.wire import ReceiptAnswer
from discovery import Client
from echoplane._emit import emit, numbered
from echoplane._failures import refusal
from echoplane._folders import DataFolder
from echoplane._plane import ask_for
from echoplane._query import Path
from echoplane._sockets import discovery_sockets
from echoplane._state import Role, living_state
from echoplane._wiring import Plane
from ledger.resolve import pin

INDEX_STALL_SECONDS: Final = 300.0
"""A run gives up on an index when for so long none of its routes has come any further."""
APPEND_TRIES: Final = 10
"""Times that a turn is told, a second apart, before a plane that is busy ends the run."""
QUESTION_SECONDS: Final = 60.0
"""For one question under all its budgets; then it counts as failed."""
_POLL_SECONDS: Final = 0.2
_WARMING: Final = "What is known?"
"""Asked until every route answers in time; of no set, and not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """
    A history that the plane knows. `places` maps an event to the place of its turn.

    `unfolded` counts events that the projection could not read; `told_ms` and `indexed_ms` are what
    appending with folding took, and what finding everything took after that.
    """

    tenant: str
    history: History
    places: Mapping[str, int]
    commit: int
    unfolded: int
    told_ms: float
    indexed_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What one context shows: turns whole, turns of which it shows a part alone, and its lines."""

    budget_tokens: int
    turns: tuple[int, ...]
    excerpts: tuple[int, ...]
    lines: tuple[str, ...]
    tokens: int
    bytes_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """
    What came of one question: turns, best first, with their scores, and a context for each budget.

    Times are in microseconds. `late` names the routes that did not make it in time: without them the
    ranking is another one. `failure` is the code of what went wrong; then there is nothing else.
    """

    ranked: tuple[int, ...]
    scores_ppm: tuple[int, ...]
    contexts: tuple[Shown, ...]
    degraded: bool
    late: tuple[str, ...]
    query_us: int | None
    propose_us: int | None
    dense_us: int | None
    failure: str | None


def failed(code: str) -> Outcome:
    """Return the outcome of a question that failed."""
    return Outcome(
        ranked=(), scores_ppm=(), contexts=(), degraded=False, late=(),
        query_us=None, propose_us=None, dense_us=None, failure=code,
    )  # fmt: skip


# --- telling -------------------------------------------------------------------------------------


async def tell(plane: Plane, history: History, *, set_name: str) -> Told:
    """
    Tell a history and wait until all of it is folded and found; what was told before is not told twice.

    Raises:
        Unavailable: The worker or the index stands still.
        BadRequest: A turn is none that the plane takes.
    """
    started = time.perf_counter()
    tenant = f"eval-{set_name}-{history.digest[:16]}"
    await plane.make_tenant(tenant)
    drafts = [(place, draft) for place, turn in enumerate(history.turns) for draft in _drafts(turn, place)]

    async def append(given: Sequence[EventDraft]) -> ReceiptAnswer:
        for _ in range(APPEND_TRIES):
            # A machine that does much else: nothing is told twice, as each turn has its key.
            with contextlib.suppress(Unavailable):
                return await plane.append(tenant, given, grant=LOCAL_GRANT, expected_version=None)
            await asyncio.sleep(1)
        return await plane.append(tenant, given, grant=LOCAL_GRANT, expected_version=None)

    places: dict[str, int] = {}
    commit = 0
    lines = numbered(draft for _, draft in drafts)
    async for line, receipt in emit(lines, append, keeps_order=partial(plane.keeps_order, tenant)):
        places[receipt.event_ids[0]] = drafts[line.number - 1][0]
        commit = max(commit, receipt.commit)
    await ask_for(plane.settings, Role.WORKER)
    standing = await plane.wait_folded(tenant, commit)
    folded = time.perf_counter()
    told = Told(
        tenant=tenant,
        history=history,
        places=places,
        commit=standing.cursor,
        unfolded=standing.dead_letters,
        told_ms=(folded - started) * 1000,
        indexed_ms=0.0,
    )
    await _wait_found(plane, told)
    return replace(told, indexed_ms=(time.perf_counter() - folded) * 1000)


def _drafts(turn: HistoryTurn, place: int) -> Iterator[EventDraft]:
    """Yield the events of a turn: one, or several where its text is longer than that of an event may be."""
    for part, first in enumerate(range(0, len(turn.text), TEXT_CHARACTERS_MAX)):
        text = turn.text[first : first + TEXT_CHARACTERS_MAX]
        if not text.strip():
            continue
        form = {
            "stream": f"session-{turn.session:04}",
            "kind": "turn",
            "actor": {"id": turn.speaker, "class": turn.speaker_class},
            "source_event_id": f"turn-{place:06}" + (f".{part}" if part else ""),
            "text": text,
        }
        if turn.observed_at is not None:
            form["observed_at"] = turn.observed_at
        try:
            yield EventDraft.model_validate(form)
        except ValidationError as error:
            # Its own words would quote the turn.
            raise refusal(error, where=f"turn {place}") from None


async def _wait_found(plane: Plane, told: Told) -> None:
    """Wait until no route is late any more: everything is in the index, and has its vector."""
    clock = asyncio.get_running_loop().time
    moved, seen = clock(), -1
    question = Question(text=_WARMING, budget_tokens=1, disclose_conflicts=False)
    request = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=told.commit)
    view = await pin(plane.database, told.tenant, request, wait_ms=plane.wait_ms)
    missing = 0
    while clock() - moved < INDEX_STALL_SECONDS:
        with contextlib.suppress(Unavailable):
            # A question costs what embeds a few texts: it is put only where nothing is known to be missing.
            if missing == 0:
                proposal = await plane.discovery.propose(tenant=told.tenant, question=question, view=view)
                if not any(report.state == RouteState.LATE for report in proposal.routes):
                    return
            missing = (await plane.discovery.health()).units_without_vector
        if missing != seen:
            moved, seen = clock(), missing
        await asyncio.sleep(_POLL_SECONDS)
    raise Unavailable(part="discovery", reason="the index of a history stands still")


# --- asking --------------------------------------------------------------------------------------


class _Watched:
    """A discovery that remembers when its last proposal was made and how long that took."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.took_us = 0

    async def propose(self, *, tenant: str, question: Question, view: View) -> Proposal:
        started = time.perf_counter_ns()
        try:
            return await self._client.propose(tenant=tenant, question=question, view=view)
        finally:
            self.took_us = (time.perf_counter_ns() - started) // 1_000


class Asker:
    """
    Asks questions through the query path: with routes of discovery switched off, or in other words.

    Without a budget it asks discovery alone, and there is no context.
    """

    def __init__(
        self,
        plane: Plane,
        *,
        budgets: Sequence[int],
        without: Collection[str] = (),
        reword: Callable[[str], str] = str,
    ) -> None:
        self._plane = plane
        self._reword = reword
        self._budgets = tuple(budgets)
        folder = DataFolder.at(plane.settings.data_dir)
        sockets = discovery_sockets(folder, count=plane.settings.discoveries)
        self._discovery = _Watched(Client(sockets, without=without))
        self._path: Path = replace(plane.path, discovery=self._discovery)

    async def ask(self, told: Told, number: int) -> Outcome:
        """Return what comes of a question of a history; what goes wrong with it is in the outcome."""
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                return await self._ask(told, number)
        except TimeoutError:
            return failed("timeout")
        except EchoplaneError as error:
            return failed(error.code)

    async def _ask(self, told: Told, number: int) -> Outcome:
        asked = told.history.questions[number]
        if not asked.text.strip():
            return failed("empty")
        if not self._budgets:
            return self._outcome(await self._propose(told, number), told, query_us=None, contexts=())
        question = Question(
            text=self._reword(asked.text), budget_tokens=self._budgets[0], disclose_conflicts=False
        )
        started = time.perf_counter_ns()
        view = request_of(told, number)
        made = await self._path.ask(told.tenant, question, view, wait_ms=self._plane.wait_ms)
        query_us = (time.perf_counter_ns() - started) // 1_000
        rest = await self._path.packs(tenant=told.tenant, trail=made.trail, budgets_tokens=self._budgets[1:])
        packs = (made.pack, *rest)
        # Where the record alone gave the value, nothing was searched for: what is found is measured anyway.
        proposal = made.proposal if made.proposal.routes else await self._propose(told, number)
        return self._outcome(
            proposal, told, query_us=query_us, contexts=tuple(shown(pack, told) for pack in packs)
        )

    async def _propose(self, told: Told, number: int) -> Proposal:
        """Ask discovery alone."""
        text = self._reword(told.history.questions[number].text)
        question = Question(text=text, budget_tokens=1, disclose_conflicts=False)
        request = request_of(told, number)
        view = await pin(self._plane.database, told.tenant, request, wait_ms=self._plane.wait_ms)
        return await self._discovery.propose(tenant=told.tenant, question=question, view=view)

    def _outcome(
        self, proposal: Proposal, told: Told, *, query_us: int | None, contexts: tuple[Shown, ...]
    ) -> Outcome:
        ranked = ranking(proposal, told.places)
        dense = [report.duration_us for report in proposal.routes if report.route == "dense"]
        return Outcome(
            ranked=tuple(turn for turn, _ in ranked),
            scores_ppm=tuple(score for _, score in ranked),
            contexts=contexts,
            degraded=proposal.degraded,
            late=tuple(report.route for report in proposal.routes if report.state == RouteState.LATE),
            query_us=query_us,
            propose_us=self._discovery.took_us,
            dense_us=dense[0] if dense else None,
            failure=None,
        )


def ranking(proposal: Proposal, places: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return turns with their scores, best first: each by its best candidate, ties by place."""
    best: dict[int, int] = {}
    for candidate in proposal.candidates:
        for event_id in candidate.event_ids:
            place = places.get(event_id)
            if place is not None:
                best[place] = max(best.get(place, 0), candidate.score_ppm)
    return sorted(best.items(), key=lambda scored: (-scored[1], scored[0]))


def shown(pack: ContextPack, told: Told) -> Shown:
    """Return which turns a context shows, and how."""
    whole: set[int] = set()
    parts: set[int] = set()
    for line in pack.lines:
        place = told.places.get(line.event_id)
        if place is None:
            continue
        (whole if line.text == told.history.turns[place].text else parts).add(place)
    return Shown(
        budget_tokens=pack.budget_tokens,
        turns=tuple(sorted(whole)),
        excerpts=tuple(sorted(parts - whole)),
        lines=tuple(line.rendered for line in pack.lines),
        tokens=pack.tokens,
        bytes_count=sum(len(line.rendered.encode()) + 1 for line in pack.lines),
    )


def peak_bytes(folder: DataFolder, role: Role) -> int | None:
    """Return the most memory that a role's process has had so far; None where the system does not tell."""
    state = living_state(folder)
    found = [one.process for one in state.roles if one.role == role] if state is not None else []
    try:
        [process] = [one for one in found if one is not None]
        status = FilePath(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024
    except (OSError, ValueError, IndexError):
        return None


def request_of(told: Told, number: int) -> ViewRequest:
    """Ask at the question's own time, else at the end of what was told: never at the time of the run."""
    said = told.history.questions[number].asked_at
    times = [said] if said is not None else [turn.observed_at for turn in told.history.turns]
    instants = [parse_instant(wording, field="time") for wording in times if wording is not None]
    return ViewRequest(
        valid_at=ValidAt(max(instants)) if instants else None,
        known_at=None,
        generation=None,
        min_commit=told.commit,
    )
