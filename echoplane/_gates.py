"""The use cases of gates: to write one down, to register it, to run it with what it names, to show it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import audit
from audit import (
    Claim,
    GatePlace,
    GateRegister,
    check_gate,
    code_digest_of,
    code_now,
    data_digests,
    read_gate_file,
    register_gate,
    run_gate,
    superiority,
)
from contracts.artifacts import CodeDigest, EvidenceLevel, Formula, FormulaKind, RunDescription
from contracts.audit_wire import GateAnswer
from contracts.errors import BadRequest, EchoplaneError
from contracts.gates import GATE_FORM, Condition, Denominators, Entry, Gate, Outcome, StoppingRule
from echoplane._clock import wall_clock
from echoplane._environment import environment
from echoplane._evaluation import CODE, Say
from echoplane._gate_runners import SIZE, runner_named
from echoplane._settings import Settings

_THRESHOLD: Final = re.compile(
    r"\s*(?P<name>[a-z0-9@._-]+)\s*(?P<sign>>=|<=)\s*(?P<number>-?[0-9]+(?:\.[0-9]+)?)\s*"
)
_OF_ALL: Final = frozenset({"claimed", "strict-accuracy"})
"""Numbers over every question, those set apart among them."""
_FORMULAS: Final[dict[str, tuple[FormulaKind, str | None, str | None]]] = {
    "questions": (FormulaKind.COUNT, "turns_gold", None),
    "hit@5": (FormulaKind.SHARE, "hit@5", None),
    "hit@10": (FormulaKind.SHARE, "hit@10", None),
    "turn-recall@5": (FormulaKind.RATIO, "turns_found@5", "turns_gold"),
    "turn-recall@10": (FormulaKind.RATIO, "turns_found@10", "turns_gold"),
    "session-recall@5": (FormulaKind.RATIO, "sessions_found@5", "sessions_gold"),
    "session-recall@10": (FormulaKind.RATIO, "sessions_found@10", "sessions_gold"),
    "mrr": (FormulaKind.MEAN, "reciprocal_rank", None),
    "ndcg@10": (FormulaKind.MEAN, "ndcg@10", None),
    "failed": (FormulaKind.SUM, "failed", None),
    "claimed": (FormulaKind.SHARE, "claimed", None),
    "strict-accuracy": (FormulaKind.SHARE, "correct", None),
    "false-abstentions": (FormulaKind.SHARE, "withheld", None),
    "holds": (FormulaKind.SHARE, "holds", None),
    "projection-failures": (FormulaKind.RECORDED, "projection_failures", None),
}
"""Numbers that a threshold can be set to on the command line; a gate's file can have any formula."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a new gate is to say; see the options of `gate new`."""

    name: str
    question: str
    require: tuple[str, ...]
    questions: int
    with_gold: int
    runner: str
    data_set: str
    data: Path | None
    level: str
    arms: tuple[str, ...]
    size: int | None
    seed: int
    skips: tuple[str, ...]


def write_new(artifacts: Path, wanted: Wanted) -> Path:
    """
    Write a gate's file with everything by digest as it is now.

    Raises:
        BadRequest: A threshold cannot be read, the level is none, or the file is there already.
    """
    path = artifacts / "gates" / f"{wanted.name}.json"
    if path.exists():
        raise BadRequest(field="NAME", reason=f"{path} is there already")
    try:
        level = EvidenceLevel(wanted.level)
    except ValueError:
        levels = ", ".join(one.value for one in EvidenceLevel)
        raise BadRequest(field="--level", reason=f"is one of {levels}") from None
    runner = runner_named(wanted.runner, settings=None, say=_quietly)
    gate = Gate(
        form=GATE_FORM,
        name=wanted.name,
        question=wanted.question,
        runner=wanted.runner,
        run=RunDescription(
            name=wanted.name,
            level=level,
            data_set=wanted.data_set,
            data=() if wanted.data is None else data_digests(wanted.data),
            code=CodeDigest(packages=CODE, sha256=code_digest_of(_root(), CODE)),
            models=runner.models(),
            configuration={} if wanted.size is None else {SIZE: wanted.size},
            arms=wanted.arms,
            budgets=(None,),
            seed=wanted.seed,
            gate=None,
        ),
        denominators=Denominators(questions=wanted.questions, with_gold=wanted.with_gold),
        conditions=tuple(_condition(one, arm=wanted.arms[0], seed=wanted.seed) for one in wanted.require),
        stopping=StoppingRule(skips=wanted.skips, reserved=()),
        comparison=None,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(gate.model_dump(mode="json"), indent=2) + "\n", encoding="utf-8")
    return path


def register(artifacts: Path, name: str) -> Entry:
    """Register the gate of a file; see `audit.register_gate`."""
    place = _place(artifacts)
    gate = read_gate_file(artifacts / "gates" / f"{name}.json")
    if gate.name != name:
        raise BadRequest(field="name", reason=f"the file of {name} is of a gate that is called otherwise")
    return register_gate(place, gate)


async def run(artifacts: Path, name: str, *, settings: Settings, data: Path | None, say: Say) -> Outcome:
    """Run a registered gate with the runner that it names; see `audit.run_gate`."""
    place = _place(artifacts)
    runner = runner_named(place.register.read_gate(name).runner, settings=settings, say=say)
    return await run_gate(place, name, runner, data=data)


def show(artifacts: Path, name: str | None) -> list[GateAnswer]:
    """Return one gate, or every gate that was registered, with what is wrong with its record."""
    place = _place(artifacts)
    names: Sequence[str] = place.register.names() if name is None else [name]
    return [_answer(place, one) for one in names]


def claim(artifacts: Path, name: str) -> Claim:
    """Return the claim that a gate supports; see `audit.superiority`."""
    return superiority(_place(artifacts).register, name, out=artifacts)


def _answer(place: GatePlace, name: str) -> GateAnswer:
    report = check_gate(place.register, name, out=place.out)
    try:
        gate = place.register.read_gate(name)
    except EchoplaneError:
        gate = None
    entries = place.register.of(name)
    return GateAnswer(
        gate=name,
        state=None if report.state is None else report.state.value,
        level=None if gate is None else gate.run.level.value,
        digest=entries[0].gate_sha256 if entries else None,
        outcome=report.outcome,
        same_code=None if gate is None else code_now(place, gate.run.code.packages) == gate.run.code,
        problems=report.problems,
    )


def _place(artifacts: Path) -> GatePlace:
    return GatePlace(
        register=GateRegister(artifacts / "gates"),
        out=artifacts,
        root=_root(),
        clock=wall_clock,
        environment=environment(),
    )


def _quietly(_line: str) -> None:
    """Say nothing: nothing is run."""


def _root() -> Path:
    return Path(audit.__file__).parent.parent


def _condition(text: str, *, arm: str, seed: int) -> Condition:
    found = _THRESHOLD.fullmatch(text)
    if found is None or found["name"] not in _FORMULAS:
        raise BadRequest(
            field="--require", reason=f"is NAME >= NUMBER, the name one of {', '.join(_FORMULAS)}"
        )
    of, column, over = _FORMULAS[found["name"]]
    number = float(found["number"])
    return Condition(
        formula=Formula(
            name=found["name"],
            of=of,
            arm=arm,
            column=column,
            over=over,
            seed=seed,
            apart=None if found["name"] in _OF_ALL else False,
        ),
        at_least=number if found["sign"] == ">=" else None,
        at_most=number if found["sign"] == "<=" else None,
    )
