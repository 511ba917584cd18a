"""
The only place that words a claim of superiority, and what it says instead where a condition is missing.

Source: the paper's appendix A, "Evidence Contract"; each condition below is one of its sentences.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Final

from audit._gate_check import check_gate
from audit._gate_register import GateRegister
from contracts.artifacts import EvidenceLevel, Formula, ModelDigest, Unit
from contracts.gates import Bound, Comparison, EntryKind, Found, Gate, Outcome

PEOPLE_MIN: Final = 2
LABELS_MIN: Final = 120
"""The paper's packet: thirty questions of four arms."""
AGREEMENT_MIN: Final = 0.6
"""Kappa from which agreement counts as substantial (Landis and Koch 1977)."""
POWER_MIN: Final = 0.8
SIGNIFICANCE: Final = 0.05
CORRECT: Final = "correct"
"""The column of strict answers; retrieval never stands for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A text that may be printed, and what is missing for superiority: nothing where it is claimed."""

    text: str
    missing: tuple[str, ...]


def superiority(register: GateRegister, name: str, *, out: Path) -> Claim:
    """
    Return the claim that a gate supports.

    Raises:
        RunRefused: There is no such gate, or its file is not the one that was registered.
    """
    gate = register.read_gate(name)
    missing = list(_missing(register, gate, out))
    if missing or gate.comparison is None:
        listed = "".join(f"\n- {one}" for one in missing)
        return Claim(
            text=f"Gate {name} supports no claim of superiority. Missing:{listed}", missing=tuple(missing)
        )
    outcome = register.read_outcome(name)
    assert outcome is not None
    questions = _difference(gate.comparison, outcome, Unit.QUESTIONS)
    histories = _difference(gate.comparison, outcome, Unit.HISTORIES)
    assert questions is not None
    assert histories is not None
    return Claim(
        text=(
            f"{gate.comparison.arm} answers more questions correctly than {gate.comparison.baseline}: "
            f"{_points(questions.value)} points (95 %: {_bounds(questions)} over questions, "
            f"{_bounds(histories)} over histories), n = {questions.n}, of {gate.run.data_set}, "
            f"by gate {name}, {outcome.gate_sha256}, bundle {outcome.bundle}."
        ),
        missing=(),
    )


def questions_needed(*, effect: float, discordant: float, power: float) -> int:
    """
    Return how many pairs McNemar's test needs to see a difference of two shares.

    Args:
        effect: The difference. discordant: The share of pairs in which one arm alone is right.

    Source: Connor 1987, Biometrics 43, equation 3.
    """
    z_alpha, z_beta = (NormalDist().inv_cdf(p) for p in (1 - SIGNIFICANCE / 2, power))
    root = z_alpha * math.sqrt(discordant) + z_beta * math.sqrt(discordant - effect * effect)
    return math.ceil((root / effect) ** 2)


def _missing(register: GateRegister, gate: Gate, out: Path) -> Iterator[str]:
    report = check_gate(register, gate.name, out=out)
    outcome = report.outcome
    if report.problems:
        yield f"a record that holds: {report.problems[0]}"
    if outcome is None:
        yield "an outcome"
    elif not outcome.passed:
        yield "a gate that passed: this one failed"
    if outcome is not None and not outcome.denominators_hold:
        yield "zero denominator drift"
    if gate.run.level is not EvidenceLevel.FRESH_CONFIRMATORY:
        yield f"a fresh source: this gate is at the level {gate.run.level.value}"
    comparison = gate.comparison
    if comparison is None:
        yield "a comparison: which arm, against which baseline, read and judged by what"
        return
    yield from _missing_protocol(gate, comparison)
    yield from _missing_regressions(register, gate, comparison)
    for unit in Unit:
        if outcome is None or _difference(comparison, outcome, unit) is None:
            yield f"a condition that the difference of `{CORRECT}` is above zero over {unit.value}"


def _missing_protocol(gate: Gate, comparison: Comparison) -> Iterator[str]:
    if (
        not {comparison.arm, comparison.baseline} <= set(gate.run.arms)
        or comparison.arm == comparison.baseline
    ):
        yield "a protocol-matched baseline: an arm of the same run"
    if not _is_frozen(gate, comparison.answerer):
        yield "a frozen answerer: a model of the run, with the digest of its prompt"
    if not _is_frozen(gate, comparison.judge):
        yield "a frozen judge: a model of the run, with the digest of its prompt"
    calibration = comparison.calibration
    if (
        calibration is None
        or calibration.people < PEOPLE_MIN
        or calibration.labels < LABELS_MIN
        or calibration.agreement < AGREEMENT_MIN
    ):
        yield (
            f"a human-calibrated judge: {PEOPLE_MIN} people, {LABELS_MIN} labels, "
            f"an agreement of {AGREEMENT_MIN}"
        )
    power = comparison.power
    if power is None or power.power < POWER_MIN or not 0 < power.effect <= power.discordant <= 1:
        yield f"a sufficiently powered baseline: an effect, a discordant share, a power of {POWER_MIN}"
        return
    needed = questions_needed(effect=power.effect, discordant=power.discordant, power=power.power)
    asked = gate.denominators.questions
    if asked < needed:
        yield f"a sufficiently powered baseline: {needed} questions are needed, {asked} are asked"


def _missing_regressions(register: GateRegister, gate: Gate, comparison: Comparison) -> Iterator[str]:
    opened = next((one.number for one in register.of(gate.name) if one.kind is EntryKind.OPENED), None)
    if not comparison.non_regression:
        yield "non-regression gates"
    for name in comparison.non_regression:
        entries = register.of(name)
        outcome = register.read_outcome(name)
        if not entries or (opened is not None and entries[0].number > opened):
            yield f"non-regression gate {name}, registered before answers were opened"
        elif outcome is None or not outcome.passed:
            yield f"non-regression gate {name}, passed"


def _is_frozen(gate: Gate, model: ModelDigest | None) -> bool:
    return model is not None and model.prompt_sha256 is not None and model in gate.run.models


def _difference(comparison: Comparison, outcome: Outcome, unit: Unit) -> Found | None:
    return next((one for one in outcome.conditions if one.passed and _is_about(one, comparison, unit)), None)


def _is_about(one: Found, comparison: Comparison, unit: Unit) -> bool:
    formula: Formula = one.condition.formula
    return (
        (formula.arm, formula.against, formula.column, formula.unit)
        == (comparison.arm, comparison.baseline, CORRECT, unit)
        and formula.kind is None
        and one.condition.held is Bound.LOW
        and one.low is not None
        and one.low > 0
    )


def _bounds(found: Found) -> str:
    return f"{_points(found.low)} to {_points(found.high)}"


def _points(share: float | None) -> str:
    return "—" if share is None else f"{100 * share:.2f}"
