"""
An evaluation from public files to a bundle: tell, ask, seal, and only then open gold and score.

Every history goes to a tenant of its own through the real plane. What was asked already is not asked
again, so that a run that was cut off goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import audit
from audit import (
    BASELINES,
    DATA_SETS,
    BundleRecorder,
    ContextRecorder,
    DataSet,
    History,
    as_word,
    code_digest_of,
    data_digests,
    gold_lines,
)
from contracts.artifacts import (
    NOT_OBSERVABLE,
    CodeDigest,
    EvidenceLevel,
    FileDigest,
    Manifest,
    Measure,
    ModelDigest,
    Prediction,
    Row,
    RunDescription,
    Values,
)
from contracts.errors import BadRequest
from discovery import MODEL_DIGEST
from echoplane._clock import wall_clock
from echoplane._environment import environment
from echoplane._evaluating import Asker, Outcome, Shown, Told, failed, peak_bytes, tell
from echoplane._evaluation_arms import (
    OURS,
    PLAIN,
    Costs,
    Embed,
    Rankings,
    public_rankings,
    read_rankings,
    variant_of,
)
from echoplane._evaluation_contexts import in_words, parts_of
from echoplane._evaluation_formulas import SEED, formulas
from echoplane._folders import DataFolder
from echoplane._settings import Settings
from echoplane._state import Role
from echoplane._wiring import Plane
from packing import ApproximateCounter
from projection import RuleProjector

BUDGETS: Final = (2_048, 768, 7_000)
"""The first is the one that a question is timed with."""
RANKED_MAX: Final = 100
"""Turns of a ranking that are written down: as many as the yardstick writes."""
CODE: Final = ("audit", "contracts", "discovery", "echoplane", "ledger", "packing", "projection", "realize")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """
    What is to be measured. `rankings` are files of other systems' rankings, by the arm's name.

    `contexts` is a folder for the contexts in words, None for none; no number depends on it.
    """

    data_set: DataSet
    path: Path
    out: Path
    arms: tuple[str, ...]
    budgets: tuple[int, ...]
    rankings: Mapping[str, Path]
    vectors: Path | None
    contexts_of_all: bool
    contexts: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Where the bundle is, what was sealed, its rows and numbers, and those that no row gives."""

    bundle: Path
    sealed: str
    rows: Sequence[Row]
    measures: Sequence[Measure]
    recorded: Values


async def evaluate(plane: Plane, wanted: Wanted, *, say: Say) -> Evaluated:
    """
    Run an evaluation, or go on with the one in the same folder that was cut off.

    Raises:
        BadRequest: The files are not of the set's format, or an arm is unknown.
        RunRefused: The folder holds another run that is not finished.
    """
    histories = wanted.data_set.read(wanted.path)
    run = describe(wanted)
    recorder = BundleRecorder.open(wanted.out, run=run, clock=wall_clock, environment=environment())
    with recorder:
        if recorder.sealed is None:
            recorder.note(await predict(plane, wanted, histories, recorder, say=say))
        sealed = recorder.seal()
        say(f"sealed {sealed}; gold is opened now")
        gold = gold_lines(wanted.data_set, wanted.path)
        rows = recorder.score(gold)
        kinds = sorted({(line.kind, line.apart) for line in gold if line.turns})
        bundle = recorder.finish(formulas(run.arms, run.budgets, kinds, ours=OURS), {})
    lines = (bundle / "measures.jsonl").read_bytes().splitlines()
    measures = [Measure.model_validate_json(line) for line in lines]
    manifest = Manifest.model_validate_json((bundle / "manifest.json").read_bytes())
    return Evaluated(bundle=bundle, sealed=sealed, rows=rows, measures=measures, recorded=manifest.recorded)


def describe(wanted: Wanted) -> RunDescription:
    """Return the run: everything that its numbers depend on, by digest."""
    files: list[FileDigest] = []
    for name, path in sorted(wanted.rankings.items()):
        files += [one.model_copy(update={"path": f"rankings/{name}"}) for one in data_digests(path)]
    return RunDescription(
        name=wanted.data_set.name,
        level=EvidenceLevel.VISIBLE_DEVELOPMENT,
        data_set=wanted.data_set.name,
        data=data_digests(wanted.path),
        code=CodeDigest(packages=CODE, sha256=code_digest_of(Path(audit.__file__).parent.parent, CODE)),
        models=models(),
        configuration={
            "counter": ApproximateCounter.name,
            "projector": as_word(RuleProjector().version),
            "contexts-of-all": wanted.contexts_of_all,
            "ranked-max": RANKED_MAX,
            **{f"ranking.{as_word(one.path)}": one.sha256 for one in files},
        },
        arms=wanted.arms,
        budgets=(None, *wanted.budgets),
        seed=SEED,
        gate=None,
    )


def models() -> tuple[ModelDigest, ...]:
    """Return the models that a run embeds with."""
    name, _, digest = MODEL_DIGEST.partition(":")
    return (ModelDigest(name=as_word(name), sha256=digest, prompt_sha256=None),)


async def predict(
    plane: Plane,
    wanted: Wanted,
    histories: Sequence[History],
    recorder: BundleRecorder,
    *,
    say: Say,
) -> Values:
    """Record a prediction for every cell that has none yet; return numbers that no row gives."""
    rankings = {name: read_rankings(path) for name, path in wanted.rankings.items()}
    embed = embedder(plane.settings, wanted.vectors) if {"dense", "rrf"} & set(wanted.arms) else None
    total = _Totals()
    words = None if wanted.contexts is None else ContextRecorder.open(wanted.contexts)
    for number, history in enumerate(histories):
        told = await tell(plane, history, set_name=wanted.data_set.name)
        total.add(told)
        say(
            f"history {number}: {len(told.places)} turns told in {told.told_ms / 1000:.1f} s, "
            f"found after {told.indexed_ms / 1000:.1f} s more, {told.unfolded} not projected"
        )
        one = _History(plane, wanted, number, told, recorder, words=words)
        one.record_public(public_rankings(history, wanted.arms, embed=embed))
        one.record_rankings(rankings)
        await one.ask_all()
    if words is not None:
        count = words.finish(recorder.contexts)
        say(f"{count} contexts in {wanted.contexts}, to be read")
    total.peak_bytes = peak_bytes(DataFolder.at(plane.settings.data_dir), Role.DISCOVERY)
    return total.values()


def embedder(settings: Settings, vectors: Path | None) -> Embed:
    """Return what embeds for the dense baseline: the plane's own model, with a cache where one is named."""
    # It brings the model's runtime, which only these arms need.
    from discovery import load_minilm  # noqa: PLC0415 -- see above
    from echoplane._evaluation_arms import VectorCache  # noqa: PLC0415 -- beside it

    model = load_minilm(DataFolder.at(settings.data_dir).root / "models", model_dir=settings.model_dir)
    folder = vectors or DataFolder.at(settings.data_dir).root / "vectors"
    return VectorCache(folder, model_digest=model.model_digest, embed=model.embed)


@dataclass(slots=True, kw_only=True)
class _Totals:
    """What telling took, of all histories."""

    turns: int = 0
    unfolded: int = 0
    told_ms: float = 0.0
    indexed_ms: float = 0.0
    peak_bytes: int | None = field(default=None)

    def add(self, told: Told) -> None:
        self.turns += len(told.places)
        self.unfolded += told.unfolded
        self.told_ms += told.told_ms
        self.indexed_ms += told.indexed_ms

    def values(self) -> Values:
        return {
            "turns": self.turns,
            "projection_failures": self.unfolded,
            "told_ms": round(self.told_ms, 1),
            "indexed_ms": round(self.indexed_ms, 1),
            "discovery_peak_bytes": self.peak_bytes,
        }


class _History:
    """All cells of one history's questions."""

    def __init__(
        self,
        plane: Plane,
        wanted: Wanted,
        number: int,
        told: Told,
        recorder: BundleRecorder,
        *,
        words: ContextRecorder | None,
    ) -> None:
        self._wanted, self._number, self._told, self._recorder = wanted, number, told, recorder
        self._words = words
        self._sessions = [turn.session for turn in told.history.turns]
        self._costs = Costs.of(told.history, plane.path.counter)
        variants = {arm: variant_of(arm) for arm in wanted.arms}
        self._askers = {
            arm: Asker(plane, budgets=self._budgets_of(arm), without=variant.without, reword=variant.reword)
            for arm, variant in variants.items()
            if variant is not None
        }

    def _budgets_of(self, arm: str) -> tuple[int, ...]:
        return self._wanted.budgets if arm == OURS or self._wanted.contexts_of_all else ()

    async def ask_all(self) -> None:
        """Ask each question of each arm of the plane, in turn, so that what they take is comparable."""
        for question in range(len(self._told.history.questions)):
            for arm, asker in self._askers.items():
                arms = {arm, PLAIN} & set(self._wanted.arms) if arm == OURS else {arm}
                if all(self._is_done(question, each) for each in arms):
                    continue
                outcome = await asker.ask(self._told, question)
                self._record(question, arm, outcome)
                if PLAIN in arms:
                    self._record(question, PLAIN, self._plainly(outcome.ranked, failure=outcome.failure))

    def record_public(self, found: Mapping[str, Sequence[tuple[int, ...]] | None]) -> None:
        """Record the public methods that were asked for."""
        for arm in self._wanted.arms:
            if arm in BASELINES:
                ranked = found[arm]
                for question in range(len(self._told.history.questions)):
                    if ranked is not None:
                        self._record(question, arm, self._plainly(ranked[question]))
                    else:
                        self._record(question, arm, self._whole_history(), ranked=False)

    def record_rankings(self, rankings: Mapping[str, Rankings]) -> None:
        """Record what other systems ranked; a question that a file has not is a failure."""
        turns = len(self._told.history.turns)
        for arm, found in rankings.items():
            for question in range(len(self._told.history.questions)):
                ranked = found.get((self._number, question))
                if ranked is None:
                    self._record(question, arm, failed("not-in-file"))
                    continue
                if ranked and not 0 <= min(ranked) <= max(ranked) < turns:
                    where = f"ranking {arm}: history {self._number}, question {question}"
                    raise BadRequest(field=where, reason=f"names a turn that is none of {turns}")
                self._record(question, arm, self._plainly(ranked))

    def _plainly(self, ranked: tuple[int, ...], *, failure: str | None = None) -> Outcome:
        contexts = tuple(self._costs.packed(ranked, budget_tokens=budget) for budget in self._wanted.budgets)
        return Outcome(
            ranked=ranked, scores_ppm=_falling(ranked), contexts=() if failure else contexts, degraded=False,
            late=(), query_us=None, propose_us=None, dense_us=None, failure=failure,
        )  # fmt: skip

    def _whole_history(self) -> Outcome:
        everything = tuple(self._costs.of_turn)
        contexts = tuple(
            self._costs.packed(everything, budget_tokens=budget)
            for budget in self._wanted.budgets
            if self._costs.fits(budget_tokens=budget)
        )
        return Outcome(
            ranked=(), scores_ppm=(), contexts=contexts, degraded=False,
            late=(), query_us=None, propose_us=None, dense_us=None, failure=None,
        )  # fmt: skip

    def _is_done(self, question: int, arm: str) -> bool:
        name = f"h{self._number}q{question}"
        return all((name, arm, budget) in self._recorder.done for budget in (None, *self._wanted.budgets))

    def _record(self, question: int, arm: str, outcome: Outcome, *, ranked: bool = True) -> None:
        """Record the ranking and each context; what an arm does not show is said not to be observable."""
        name = f"h{self._number}q{question}"
        shown = {context.budget_tokens: context for context in outcome.contexts}
        for budget in (None, *self._wanted.budgets):
            if (name, arm, budget) in self._recorder.done:
                continue
            if budget is None:
                failure = outcome.failure or (None if ranked else NOT_OBSERVABLE)
                turns, scores = outcome.ranked[:RANKED_MAX], outcome.scores_ppm[:RANKED_MAX]
                values = _times(outcome)
            elif budget in shown:
                failure, values = None, _sizes(shown[budget])
                turns, scores = parts_of(shown[budget])
                if self._words is not None:
                    self._words.add(
                        *in_words(
                            shown[budget], history=self._number, question=question, arm=arm, outcome=outcome,
                            text=self._told.history.questions[question].text,
                        )
                    )  # fmt: skip
            else:
                failure, values, turns, scores = outcome.failure or NOT_OBSERVABLE, {}, (), ()
            prediction = Prediction(
                question=name,
                history=f"h{self._number}",
                arm=arm,
                budget=budget,
                ranked=tuple(f"h{self._number}t{turn}" for turn in turns),
                sessions=tuple(f"h{self._number}s{self._sessions[turn]}" for turn in turns),
                scores=scores,
                response=None,
                failure=None if failure is None else as_word(failure),
            )
            self._recorder.predict(prediction, values)


def _falling(ranked: Sequence[int]) -> tuple[int, ...]:
    """Return a score for each place of a ranking that has none: its own."""
    return tuple(range(len(ranked), 0, -1))


def _sizes(context: Shown) -> Values:
    return {"tokens": context.tokens, "context_bytes": context.bytes_count}


def _times(outcome: Outcome) -> Values:
    values: Values = {"degraded": int(outcome.degraded), "late": len(outcome.late)}
    values.update({f"late.{route}": 1 for route in outcome.late})
    if outcome.propose_us is not None:
        values["propose_ms"] = outcome.propose_us / 1000
    if outcome.query_us is not None:
        values["query_ms"] = outcome.query_us / 1000
        values["query_ms_without_dense"] = (outcome.query_us - (outcome.dense_us or 0)) / 1000
    return values


def data_set_named(name: str) -> DataSet:
    """
    Return a public set.

    Raises:
        BadRequest: There is no such set.
    """
    if name not in DATA_SETS:
        raise BadRequest(field="SET", reason=f"there are {', '.join(sorted(DATA_SETS))}")
    return DATA_SETS[name]
