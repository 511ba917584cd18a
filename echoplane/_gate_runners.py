"""What gates are run with: retrieval or answers over a public set, or invariants of the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from audit import DATA_SETS, BundleRecorder, DataSet, GateRunner, as_word, gold_lines, words_digest
from contracts.answers import AnswerStatus
from contracts.artifacts import GoldLine, ModelDigest, Prediction, Values
from contracts.errors import BadRequest, EchoplaneError
from contracts.gates import Gate
from contracts.trails import Question
from echoplane._evaluating import QUESTION_SECONDS, Told, request_of, tell
from echoplane._evaluation import Say, Wanted, models, predict
from echoplane._ledger_invariants import INVARIANTS, check_invariants
from echoplane._session import with_plane
from echoplane._settings import Settings
from echoplane._state import Role
from echoplane._wiring import Plane
from realize import NOTHING_FOUND

ANSWER_TOKENS: Final = 16_384
"""Of the context that a typed answer stands on: every line that it needs fits."""
SIZE: Final = "size"
"""In a gate's configuration: how many events are drawn."""
_QUESTIONS: Final = tuple(f"h0q{number}" for number in range(len(INVARIANTS)))


def runner_named(name: str, *, settings: Settings | None, say: Say) -> GateRunner:
    """
    Return what runs a gate; without settings it can say what it would run with, and no more.

    Raises:
        BadRequest: There is none of this name.
    """
    if name == "retrieval":
        return _Retrieval(settings, say)
    if name == "ledger-invariants":
        return _LedgerInvariants()
    if name == "typed-answers":
        return _TypedAnswers(settings, say)
    raise BadRequest(field="--runner", reason="is retrieval, typed-answers or ledger-invariants")


class _OverPlane:
    """What is run over a plane of its own, with the model that discovery has there."""

    def __init__(self, settings: Settings | None, say: Say) -> None:
        self._settings, self._say = settings, say

    def models(self) -> tuple[ModelDigest, ...]:
        return models()

    @asynccontextmanager
    async def _plane(self) -> AsyncIterator[Plane]:
        assert self._settings is not None
        async with with_plane(self._settings, Role.WORKER, Role.DISCOVERY) as plane:
            await plane.wait_discovery()
            yield plane


class _Retrieval(_OverPlane):
    """Public histories through the real plane, as `eval` runs them."""

    async def predict(self, gate: Gate, data: Path | None, recorder: BundleRecorder) -> Values:
        data_set, path = _set_of(gate, data)
        wanted = Wanted(
            data_set=data_set,
            path=path,
            out=recorder.folder.parent,
            arms=gate.run.arms,
            budgets=tuple(budget for budget in gate.run.budgets if budget is not None),
            rankings={},
            vectors=None,
            contexts_of_all=False,
            contexts=None,
        )
        async with self._plane() as plane:
            return await predict(plane, wanted, data_set.read(path), recorder, say=self._say)

    def gold(self, gate: Gate, data: Path | None) -> Iterable[GoldLine]:
        return gold_lines(*_set_of(gate, data))


class _TypedAnswers(_OverPlane):
    """
    Public questions answered by the plane from resolved state, without a reader.

    `claimed` says that a value was answered, `withheld` that it was not though the question was understood:
    evidence alone, or nothing found, claims nothing.
    """

    async def predict(self, gate: Gate, data: Path | None, recorder: BundleRecorder) -> Values:
        data_set, path = _set_of(gate, data)
        (arm,) = gate.run.arms
        unfolded = 0
        async with self._plane() as plane:
            for number, history in enumerate(data_set.read(path)):
                told = await tell(plane, history, set_name=data_set.name)
                unfolded += told.unfolded
                for place in range(len(history.questions)):
                    name = f"h{number}q{place}"
                    if (name, arm, None) not in recorder.done:
                        prediction, values = await answered(plane, told, place, name=name, arm=arm)
                        recorder.predict(prediction, values)
                self._say(f"history {number}: {len(history.questions)} questions answered or not")
        return {"projection_failures": unfolded}

    def gold(self, gate: Gate, data: Path | None) -> Iterable[GoldLine]:
        return gold_lines(*_set_of(gate, data), answers=True)


async def answered(plane: Plane, told: Told, place: int, *, name: str, arm: str) -> tuple[Prediction, Values]:
    """Return what the plane answers to a question, and whether it claims to; a failure is in it."""
    question = Question(
        text=told.history.questions[place].text, budget_tokens=ANSWER_TOKENS, disclose_conflicts=False
    )
    failure: str | None = None
    response: str | None = None
    values: Values = {"claimed": 0, "withheld": 0}
    try:
        async with asyncio.timeout(QUESTION_SECONDS):
            request = request_of(told, place)
            answer = (await plane.path.ask(told.tenant, question, request, wait_ms=plane.wait_ms)).answer
    except TimeoutError:
        failure = "timeout"
    except EchoplaneError as error:
        failure = as_word(error.code)
    else:
        if answer.status is AnswerStatus.ANSWERED:
            response = words_digest(answer.value)
        understood = answer.status is not AnswerStatus.EVIDENCE and answer.reason != NOTHING_FOUND
        values = {"claimed": int(response is not None), "withheld": int(response is None and understood)}
    prediction = Prediction(
        question=name, history=name.partition("q")[0], arm=arm, budget=None, ranked=(), sessions=(),
        scores=(), response=response, failure=failure,
    )  # fmt: skip
    return prediction, values


class _LedgerInvariants:
    """A log that is drawn from the gate's seed, against a real ledger that goes away; no model, no data."""

    def models(self) -> tuple[ModelDigest, ...]:
        return ()

    async def predict(self, gate: Gate, data: Path | None, recorder: BundleRecorder) -> Values:
        size = gate.run.configuration.get(SIZE)
        if data is not None or not isinstance(size, int):
            raise BadRequest(field="--data", reason="the log is drawn: of a size, from the gate's seed")
        held = await check_invariants(size, gate.run.seed)
        for question, name in zip(_QUESTIONS, INVARIANTS, strict=True):
            for arm in gate.run.arms:
                prediction = Prediction(
                    question=question, history="h0", arm=arm, budget=None, ranked=(), sessions=(), scores=(),
                    response=None, failure=None,
                )  # fmt: skip
                if prediction.key not in recorder.done:
                    recorder.predict(prediction, {"holds": int(held[name])})
        return {"events": size}

    def gold(self, gate: Gate, data: Path | None) -> Iterable[GoldLine]:  # noqa: ARG002 -- the port's
        return [
            GoldLine(question=question, kind=name, apart=False, turns=(), sessions=())
            for question, name in zip(_QUESTIONS, INVARIANTS, strict=True)
        ]


def _set_of(gate: Gate, data: Path | None) -> tuple[DataSet, Path]:
    data_set = DATA_SETS.get(gate.run.data_set)
    if data_set is None or data is None:
        raise BadRequest(field="--data", reason=f"a public set, not {gate.run.data_set}, is read from a path")
    return data_set, data
