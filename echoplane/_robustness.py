"""
What must hold whatever discovery finds: the ledger decides, in the midst of a public history.

To each history a few facts of our own are told, about people who speak in it: said again, said late,
corrected, retracted, contradicted, never said. Each is asked for through the query path, in several
wordings, at several views, with an index that lags behind and with none. Not one invariant may fail.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from contracts.answers import AnswerStatus
from contracts.contexts import Mark
from contracts.errors import Unavailable
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.ports import Discovery
from contracts.proposals import Proposal
from contracts.times import KnownAt, ValidAt, format_instant, parse_instant
from contracts.trails import Question
from contracts.views import View, ViewRequest
from echoplane._evaluating import Told
from echoplane._plane import ask_for
from echoplane._query import Asked
from echoplane._rewording import REWORDINGS
from echoplane._state import Role
from echoplane._wiring import Plane

PEOPLE_MAX: Final = 2
"""Speakers of a history that something is told about."""
_BUDGET_TOKENS: Final = 2_048
_DAY: Final = timedelta(days=1)
_UNDATED: Final = datetime(2025, 1, 1, tzinfo=UTC)
"""Stands for the end of a history that tells no time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One invariant of one case: whether it held, in stable words. No text of a history is in it."""

    case: str
    invariant: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Receipt:
    event_id: str
    commit: int
    known_at: KnownAt


class _Down:
    """A discovery that is not there."""

    async def propose(self, *, tenant: str, question: Question, view: View) -> Proposal:
        raise Unavailable(
            part="discovery", reason=f"asked for {tenant} at {view.cut} without one: {question.text}"
        )


class _Stale:
    """A discovery whose index ends at an earlier commit than the view it is asked at."""

    def __init__(self, discovery: Discovery, *, commit: int) -> None:
        self._discovery, self._commit = discovery, commit

    async def propose(self, *, tenant: str, question: Question, view: View) -> Proposal:
        earlier = replace(view, cut=min(view.cut, self._commit))
        return await self._discovery.propose(tenant=tenant, question=question, view=earlier)


async def check_history(plane: Plane, told: Told, *, people_max: int = PEOPLE_MAX) -> list[Checked]:
    """Tell, ask and return every invariant of every case, for the first speakers of a history."""
    people = list(dict.fromkeys(turn.speaker for turn in told.history.turns))[:PEOPLE_MAX]
    about = people[:people_max]
    times = [turn.observed_at for turn in told.history.turns if turn.observed_at is not None]
    now = max((parse_instant(time, field="time") for time in times), default=_UNDATED)
    found = []
    for number, person in enumerate(about):
        other = people[1 - number] if len(people) > 1 else f"{person} junior"
        case = _Cases(plane, told.tenant, person=person, other=other, now=now)
        found += [checked async for checked in case.all()]
    return found


class _Cases:
    """The cases of one person. Every case has a relation of its own, so that none disturbs another."""

    def __init__(self, plane: Plane, tenant: str, *, person: str, other: str, now: datetime) -> None:
        self._plane, self._tenant, self._person, self._other, self._now = plane, tenant, person, other, now

    async def all(self) -> AsyncIterator[Checked]:
        """Yield what every case came to."""
        for case in (
            self._repeated, self._late, self._corrected, self._retracted, self._contradicted, self._unsaid,
        ):  # fmt: skip
            async for checked in case():
                yield checked

    # --- the cases ---------------------------------------------------------------------------

    async def _repeated(self) -> AsyncIterator[Checked]:
        first = await self._tell("locker", "r1", "A17", days=300)
        await self._tell("locker", "r2", "A17", days=200)
        await self._tell("locker", "r3", "A17", days=100)
        yield await self._stands("repeated mentions", "locker", "A17")
        for name, reworded in REWORDINGS.items():
            question = reworded(self._question("locker"))
            yield await self._stands(f"paraphrase {name}", "locker", "A17", question=question, must=False)
        yield await self._stands(
            "stale index", "locker", "A17", discovery=_Stale(self._plane.discovery, commit=first.commit - 1)
        )
        asked = await self._ask("locker", discovery=_Down())
        yield Checked(case="stale index", invariant="degraded is said", held=asked.proposal.degraded)
        yield await self._stands("stale index", "locker", "A17", discovery=_Down())
        # By the words alone: the first two are times at which it stood already.
        for words, allowed in (
            ("last week", {"A17"}),
            ("300 days ago", {"A17"}),
            ("two years ago", set[str]()),
        ):
            question = f"What was {self._person}'s locker code {words}?"
            yield await self._never_wrong("relative dates", "locker", allowed, question)

    async def _late(self) -> AsyncIterator[Checked]:
        before = await self._tell("gate", "l1", "B20", days=100)
        await self._tell("gate", "l2", "B10", days=400, until=200)
        yield await self._stands("late arrival", "gate", "B20")
        yield await self._stands("late arrival", "gate", "B10", valid_days=300)
        yield await self._stands("late arrival", "gate", None, valid_days=300, known_at=before.known_at)

    async def _corrected(self) -> AsyncIterator[Checked]:
        first = await self._tell("garage", "c1", "C30", days=100)
        await self._act("correction", "c2", target="c1", claims=[self._claim("garage", "C31")])
        yield await self._stands("correction", "garage", "C31")
        yield await self._stands("correction", "garage", "C30", known_at=first.known_at)
        stale = _Stale(self._plane.discovery, commit=first.commit)
        yield await self._stands("correction", "garage", "C31", discovery=stale)
        yield await self._is_marked("correction", "garage", first)

    async def _retracted(self) -> AsyncIterator[Checked]:
        first = await self._tell("safe", "t1", "D40", days=100)
        await self._act("retraction", "t2", target="t1", claims=[])
        yield await self._stands("retraction", "safe", None)
        yield await self._stands("retraction", "safe", "D40", known_at=first.known_at)
        stale = _Stale(self._plane.discovery, commit=first.commit)
        yield await self._stands("retraction", "safe", None, discovery=stale)
        yield await self._is_marked("retraction", "safe", first)

    async def _contradicted(self) -> AsyncIterator[Checked]:
        await self._tell("attic", "x1", "E50", days=100)
        await self._tell("attic", "x2", "E51", days=100, who=self._other)
        asked = await self._ask("attic")
        resolved = await self._resolved("attic", valid_at=self._now, known_at=None)
        agrees = asked.answer.status != AnswerStatus.ANSWERED or asked.answer.value == resolved
        yield Checked(
            case="contradicting sources", invariant="no side is taken that the ledger has not", held=agrees
        )
        shown = {line.text for line in asked.pack.lines}
        both = all(any(value in text for text in shown) for value in ("E50", "E51"))
        yield Checked(case="contradicting sources", invariant="both sides are shown", held=both)

    async def _unsaid(self) -> AsyncIterator[Checked]:
        yield await self._stands("missing support", "cellar", None)
        yield await self._stands("missing support", "locker", None, valid_days=2_000)

    # --- invariants --------------------------------------------------------------------------

    async def _stands(
        self,
        case: str,
        noun: str,
        value: str | None,
        *,
        question: str | None = None,
        discovery: Discovery | None = None,
        valid_days: int = 0,
        known_at: KnownAt | None = None,
        must: bool = True,
    ) -> Checked:
        """Say whether a question is answered with the value that stands; None: whether it is not answered."""
        asked = await self._ask(
            noun, question=question, discovery=discovery, valid_days=valid_days, known_at=known_at
        )
        valid_at = self._now - valid_days * _DAY
        resolved = await self._resolved(noun, valid_at=valid_at, known_at=known_at)
        answered = asked.answer.value if asked.answer.status == AnswerStatus.ANSWERED else None
        held = resolved == value and (answered == value or (answered is None and not must))
        return Checked(
            case=case, invariant="what stands is answered" if value else "nothing is made up", held=held
        )

    async def _never_wrong(self, case: str, noun: str, allowed: set[str], question: str) -> Checked:
        asked = await self._ask(noun, question=question)
        answered = asked.answer.value if asked.answer.status == AnswerStatus.ANSWERED else None
        return Checked(
            case=case,
            invariant="no other time's value is answered",
            held=answered is None or answered in allowed,
        )

    async def _is_marked(self, case: str, noun: str, receipt: _Receipt) -> Checked:
        asked = await self._ask(noun)
        marks = {line.mark for line in asked.pack.lines if line.event_id == receipt.event_id}
        return Checked(
            case=case,
            invariant="what no longer stands is marked",
            held=marks <= {Mark.SUPERSEDED, Mark.WITHDRAWN},
        )

    # --- telling and asking ------------------------------------------------------------------

    def _question(self, noun: str) -> str:
        return f"What is {self._person}'s {noun} code?"

    def _claim(self, noun: str, value: str) -> dict[str, Any]:
        return {"entity": self._person, "relation": f"{noun}_code", "value": value}

    def _at(self, days: int) -> str:
        return format_instant(self._now - days * _DAY)

    async def _tell(
        self, noun: str, name: str, value: str, *, days: int, until: int | None = None, who: str | None = None
    ) -> _Receipt:
        valid = (
            {"since": self._at(days)} if until is None else {"from": self._at(days), "to": self._at(until)}
        )
        return await self._append(
            {
                "kind": "claim",
                "actor": {"id": who or self._person, "class": "user"},
                "observed_at": self._at(days),
                "source_event_id": f"{self._person} {name}",
                "text": f"The {noun} code of {self._person} is {value}.",
                "claims": [self._claim(noun, value) | {"valid": valid}],
            }
        )

    async def _act(self, kind: str, name: str, *, target: str, claims: Sequence[dict[str, Any]]) -> _Receipt:
        return await self._append(
            {
                "kind": kind,
                "actor": {"id": self._person, "class": "user"},
                "observed_at": self._at(1),
                "source_event_id": f"{self._person} {name}",
                "text": f"That was not right ({kind}).",
                "targets": [{"source_event_id": f"{self._person} {target}"}],
                "claims": list(claims),
            }
        )

    async def _append(self, form: dict[str, Any]) -> _Receipt:
        draft = EventDraft.model_validate({"stream": "robustness", **form})
        answer = await self._plane.append(self._tenant, [draft], grant=LOCAL_GRANT, expected_version=None)
        await ask_for(self._plane.settings, Role.WORKER)
        await self._plane.wait_folded(self._tenant, answer.commit)
        known_at = KnownAt(parse_instant(answer.recorded_at, field="recorded_at"))
        return _Receipt(event_id=answer.event_ids[0], commit=answer.commit, known_at=known_at)

    async def _ask(
        self,
        noun: str,
        *,
        question: str | None = None,
        discovery: Discovery | None = None,
        valid_days: int = 0,
        known_at: KnownAt | None = None,
    ) -> Asked:
        path = self._plane.path if discovery is None else replace(self._plane.path, discovery=discovery)
        return await path.ask(
            self._tenant,
            Question(
                text=question or self._question(noun), budget_tokens=_BUDGET_TOKENS, disclose_conflicts=False
            ),
            self._view(self._now - valid_days * _DAY, known_at),
            wait_ms=self._plane.wait_ms,
        )

    async def _resolved(self, noun: str, *, valid_at: datetime, known_at: KnownAt | None) -> object:
        found = await self._plane.resolve(
            self._tenant, self._person, f"{noun}_code", self._view(valid_at, known_at)
        )
        return found.value if found.outcome == "resolved" else None

    def _view(self, valid_at: datetime, known_at: KnownAt | None) -> ViewRequest:
        return ViewRequest(valid_at=ValidAt(valid_at), known_at=known_at, generation=None, min_commit=None)


def report(found: Sequence[Checked]) -> list[str]:
    """Return a line for each case and invariant, and one of all."""
    kinds = sorted({(checked.case, checked.invariant) for checked in found})
    lines = []
    for case, invariant in kinds:
        held = [one.held for one in found if (one.case, one.invariant) == (case, invariant)]
        lines.append(f"{case}: {invariant}: {sum(held)} of {len(held)}")
    return [*lines, f"{sum(one.held for one in found)} of {len(found)} held"]
