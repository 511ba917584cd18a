"""
The recorder of a measured run: predictions, then their seal, then gold, then numbers, in this order.

It works in a folder `NAME.work` that an interrupted run finds again. Finished, the folder takes the
address of its manifest for its name and is not written to any more.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from audit._bundle_files import (
    address_of,
    canonical,
    file_digest,
    read_lines,
    salvage,
    write_lines,
    write_whole,
)
from audit._formulas import measure
from audit._scoring import score, score_answer
from contracts.artifacts import (
    BUNDLE_FORM,
    NOT_OBSERVABLE,
    Cost,
    Environment,
    Formula,
    GoldLine,
    Lost,
    Manifest,
    Measure,
    Prediction,
    Row,
    RunDescription,
    RunState,
    Values,
)
from contracts.errors import RunRefused
from contracts.ports import Clock
from contracts.times import format_instant

MANIFEST: Final = "manifest.json"
PREDICTIONS: Final = "predictions.jsonl"
COSTS: Final = "costs.jsonl"
GOLD: Final = "gold.jsonl"
ROWS: Final = "rows.jsonl"
MEASURES: Final = "measures.jsonl"
LOST: Final = "lost.jsonl"
FILES: Final = (PREDICTIONS, COSTS, GOLD, ROWS, MEASURES, LOST)
ADDRESS_DIGITS: Final = 16
"""Of the manifest's digest, in the name of the folder."""
_RUN: Final = "run.json"
STATE: Final = "state.json"


class BundleRecorder:
    """Writes one run; see the module. Use it as a context, so that its files are closed."""

    def __init__(
        self,
        folder: Path,
        *,
        lock: int,
        run: RunDescription,
        clock: Clock,
        environment: Environment,
        state: RunState,
    ) -> None:
        self._folder, self._run, self._clock, self._environment = folder, run, clock, environment
        self._state = state
        self._lock = lock
        self._predictions = {one.key: one for one in read_lines(folder / PREDICTIONS, Prediction)}
        self._costs = {one.key: one for one in read_lines(folder / COSTS, Cost)}
        self._open: dict[str, IO[bytes]] = {}

    @classmethod
    def open(cls, out: Path, *, run: RunDescription, clock: Clock, environment: Environment) -> Self:
        """
        Begin a run below `out`, or go on with the one of the same name that was interrupted.

        Every whole record that was written is kept; what cannot be read is moved to `lost.jsonl`.

        Raises:
            RunRefused: What was interrupted is another run: other data, code, models or configuration;
                or it is not interrupted, and another process is writing it.
        """
        folder = out / f"{run.name}.work"
        folder.mkdir(parents=True, exist_ok=True)
        lock = _locked(folder)
        try:
            state = cls._begun(folder, run=run, clock=clock)
            return cls(folder, lock=lock, run=run, clock=clock, environment=environment, state=state)
        except BaseException:
            os.close(lock)
            raise

    @staticmethod
    def _begun(folder: Path, *, run: RunDescription, clock: Clock) -> RunState:
        if not (folder / STATE).exists():
            for name in (PREDICTIONS, COSTS, LOST):
                write_whole(folder / name, b"")
            write_whole(folder / _RUN, canonical(run))
            state = RunState(
                started_at=format_instant(clock()),
                resumed_count=0,
                sealed=None,
                sealed_at=None,
                gold_at=None,
                recorded={},
            )
        else:
            if (folder / _RUN).read_bytes() != canonical(run):
                raise RunRefused(
                    what=f"run {run.name}",
                    reason="another one of this name was interrupted and is not finished",
                )
            state = RunState.model_validate_json((folder / STATE).read_bytes())
            state = state.model_copy(update={"resumed_count": state.resumed_count + 1})
            _mend(folder, sealed=state.sealed)
        write_whole(folder / STATE, canonical(state))
        return state

    @property
    def folder(self) -> Path:
        """Where the run is recorded until it is finished."""
        return self._folder

    @property
    def done(self) -> frozenset[tuple[str, str, int | None]]:
        """Cells (question, arm, budget) that are predicted already, failures among them."""
        return frozenset(self._predictions)

    @property
    def contexts(self) -> frozenset[tuple[str, str, int | None]]:
        """Those of them that are a context, and did not fail."""
        return frozenset(
            key for key, one in self._predictions.items() if one.budget is not None and one.failure is None
        )

    @property
    def sealed(self) -> str | None:
        """The digest of the predictions, once they are sealed."""
        return self._state.sealed

    def predict(self, prediction: Prediction, values: Values) -> None:
        """
        Record one prediction and what it took.

        Raises:
            RunRefused: The predictions are sealed; or this cell has one already.
        """
        if self._state.sealed is not None:
            raise RunRefused(what=f"run {self._run.name}", reason="its predictions are sealed")
        if prediction.key in self._predictions:
            raise RunRefused(
                what=f"run {self._run.name}", reason=f"{prediction.question} is predicted already"
            )
        if not len(prediction.ranked) == len(prediction.sessions) == len(prediction.scores):
            raise RunRefused(what=prediction.question, reason="a score and a session go with every turn")
        cell = {name: getattr(prediction, name) for name in ("question", "history", "arm", "budget")}
        cost = Cost(**cell, values=values)
        # The cost first: one without its prediction says nothing and is dropped, the reverse would be missed.
        self._append(COSTS, cost)
        self._append(PREDICTIONS, prediction)
        self._costs[cost.key], self._predictions[prediction.key] = cost, prediction

    def note(self, recorded: Values) -> None:
        """Keep numbers that no row gives, so that they are there if the run is cut off after this."""
        self._remember(recorded={**self._state.recorded, **recorded})

    def seal(self) -> str:
        """Put the predictions in order, and write down the digest that they have before gold is read."""
        if self._state.sealed is None:
            self._close()
            ordered = sorted(self._predictions.values(), key=lambda one: _place(one.key))
            write_lines(self._folder / PREDICTIONS, ordered)
            digest = file_digest(self._folder / PREDICTIONS, name=PREDICTIONS).sha256
            self._remember(sealed=digest, sealed_at=format_instant(self._clock()))
        assert self._state.sealed is not None
        return self._state.sealed

    def score(self, gold: Iterable[GoldLine]) -> list[Row]:
        """
        Score every cell of every question; a cell without a prediction is a failure and scores zero.

        `gold` is read here and not before, so pass what reads it.

        Raises:
            RunRefused: Predictions are not sealed, or not those that were; or one is of no question.
        """
        found = file_digest(self._folder / PREDICTIONS, name=PREDICTIONS).sha256
        if self._state.sealed is None or found != self._state.sealed:
            raise RunRefused(
                what=f"run {self._run.name}", reason="its predictions are not those that were sealed"
            )
        self._remember(gold_at=self._state.gold_at or format_instant(self._clock()))
        lines = sorted(gold, key=lambda one: _place((one.question, "", None)))
        sealed = read_lines(self._folder / PREDICTIONS, Prediction)
        rows = scored_rows(self._run, lines, sealed, self._costs.values())
        write_lines(self._folder / GOLD, lines)
        write_lines(self._folder / ROWS, rows)
        return rows

    def finish(self, formulas: Sequence[Formula], recorded: Values) -> Path:
        """
        Compute the numbers, write the manifest and give the folder its address.

        Raises:
            RunRefused: Nothing was scored.
        """
        if self._state.gold_at is None or self._state.sealed is None or self._state.sealed_at is None:
            raise RunRefused(what=f"run {self._run.name}", reason="nothing was scored")
        self.note(recorded)
        rows, recorded = read_lines(self._folder / ROWS, Row), self._state.recorded
        write_lines(self._folder / MEASURES, [measure(formula, rows, recorded) for formula in formulas])
        costs = sorted(self._costs.values(), key=lambda one: _place(one.key))
        write_lines(self._folder / COSTS, costs)
        manifest = Manifest(
            form=BUNDLE_FORM,
            run=self._run,
            environment=self._environment,
            started_at=self._state.started_at,
            sealed_at=self._state.sealed_at,
            gold_at=self._state.gold_at,
            ended_at=format_instant(self._clock()),
            resumed_count=self._state.resumed_count,
            sealed=self._state.sealed,
            recorded=recorded,
            files=tuple(file_digest(self._folder / name, name=name) for name in FILES),
        )
        write_whole(self._folder / MANIFEST, canonical(manifest))
        for name in (_RUN, STATE):
            (self._folder / name).unlink()
        return self._folder.rename(self._folder.with_name(bundle_name(manifest)))

    def measures(self, formulas: Iterable[Formula]) -> list[Measure]:
        """Return numbers of the rows that were scored, without writing them down."""
        rows = read_lines(self._folder / ROWS, Row)
        return [measure(formula, rows) for formula in formulas]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        os.close(self._lock)

    def _append(self, name: str, record: Prediction | Cost) -> None:
        file = self._open.get(name)
        if file is None:
            file = self._open[name] = (self._folder / name).open("ab")
        file.write(canonical(record) + b"\n")
        file.flush()

    def _close(self) -> None:
        for file in self._open.values():
            file.close()
        self._open.clear()

    def _remember(self, **changes: str | Values) -> None:
        self._state = self._state.model_copy(update=changes)
        write_whole(self._folder / STATE, canonical(self._state))


def _locked(folder: Path) -> int:
    """Return a lock on a run's folder, kept until it is closed or the process ends."""
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # One that was finished while this waited at the door has another name by now.
        mine = folder.exists() and os.path.samestat(os.fstat(lock), folder.stat())
    except BlockingIOError:
        mine = False
    if not mine:
        os.close(lock)
        raise RunRefused(what=f"run {folder.stem}", reason="another process is writing it now")
    return lock


def bundle_name(manifest: Manifest) -> str:
    """Return the name of a bundle's folder: what was run, and the beginning of the manifest's digest."""
    return f"{manifest.run.name}-{address_of(manifest)[:ADDRESS_DIGITS]}"


def scored_rows(
    run: RunDescription,
    gold: Sequence[GoldLine],
    predictions: Iterable[Prediction],
    costs: Iterable[Cost],
) -> list[Row]:
    """
    Return a row for every cell: question, arm, budget. Missing predictions are failures.

    Raises:
        RunRefused: A prediction is of a cell that the run has not.
    """
    predicted = {one.key: one for one in predictions}
    taken = {one.key: one.values for one in costs}
    rows = []
    for line in gold:
        for arm in run.arms:
            for budget in run.budgets:
                found = predicted.pop((line.question, arm, budget), None)
                rows.append(
                    Row(
                        question=line.question,
                        history=line.question.partition("q")[0],
                        arm=arm,
                        budget=budget,
                        kind=line.kind,
                        apart=line.apart,
                        failure="missing" if found is None else found.failure,
                        values={
                            **taken.get((line.question, arm, budget), {}),
                            **score(found, line, budget=budget),
                            **score_answer(found, line),
                            "failed": int(found is None or found.failure not in {None, NOT_OBSERVABLE}),
                        },
                    )
                )
    if predicted:
        question, arm, _ = min(predicted, key=_place)
        raise RunRefused(what=question, reason=f"a prediction of {arm} is of no question that was asked")
    return rows


def _mend(folder: Path, *, sealed: str | None) -> None:
    """Keep whole records, move what cannot be read to `lost.jsonl`, and drop costs of no prediction."""
    if sealed is not None:
        return
    lost = read_lines(folder / LOST, Lost)
    predictions, cut = salvage(folder / PREDICTIONS, Prediction)
    costs, cut_costs = salvage(folder / COSTS, Cost)
    kept = {one.key: one for one in predictions}
    if len(kept) != len(predictions):
        raise RunRefused(what=folder.name, reason="a cell is predicted twice")
    write_lines(folder / LOST, [*lost, *cut, *cut_costs])
    write_lines(folder / PREDICTIONS, predictions)
    write_lines(folder / COSTS, [one for one in costs if one.key in kept])


def _place(key: tuple[str, str, int | None]) -> tuple[int, int, str, int]:
    """Return where a cell stands: by the numbers of its history and question, arm and budget."""
    question, arm, budget = key
    history, _, number = question[1:].partition("q")
    return int(history), int(number or 0), arm, -1 if budget is None else budget
