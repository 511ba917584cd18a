"""The check of a gate's record by whoever has nothing but the repository."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from audit._bundle import PREDICTIONS, ROWS
from audit._bundle_check import check_bundle, same_number
from audit._bundle_files import read_lines
from audit._gate_register import GateRegister
from audit._gates import bundles_of, described, outcome_of
from contracts.artifacts import Row
from contracts.errors import EchoplaneError
from contracts.gates import EntryKind, Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class GateReport:
    """
    What a gate's record says, and what is wrong with it.

    `state` is how far the gate has come; `outcome` None where it has none. `problems` is empty where
    file, register, bundle and outcome agree.
    """

    name: str
    state: EntryKind | None
    outcome: Outcome | None
    problems: tuple[str, ...]


def check_gate(register: GateRegister, name: str, *, out: Path) -> GateReport:
    """
    Check a gate: its file against the register, its bundle whole, its outcome computed again from the rows.

    A fault of the record is in the report; a register whose chain is broken cannot be read at all.
    """
    problems: list[str] = []
    outcome = None
    try:
        gate = register.read_gate(name)
        outcome = register.read_outcome(name)
        if outcome is None:
            if bundles_of(out, gate):
                problems.append("a bundle of its run is there, and the register does not know its outcome")
        else:
            problems += _problems(register, outcome, out)
    except EchoplaneError as error:
        problems.append(str(error))
    return GateReport(name=name, state=register.state(name), outcome=outcome, problems=tuple(problems))


def _problems(register: GateRegister, outcome: Outcome, out: Path) -> list[str]:
    gate = register.read_gate(outcome.gate)
    folder = out / outcome.bundle
    report = check_bundle(folder)
    if report.manifest is None or not report.holds:
        return [f"bundle {outcome.bundle}: {problem}" for problem in report.problems]
    found = []
    sealed = next((one.sealed for one in register.of(gate.name) if one.kind is EntryKind.SEALED), None)
    if report.manifest.sealed != sealed:
        found.append(f"{PREDICTIONS}: not those that the register has sealed")
    if report.manifest.run != described(gate):
        found.append("the bundle is of another run than the gate's")
    rows = read_lines(folder / ROWS, Row)
    if not _agree(outcome_of(gate, rows, report.manifest.recorded, bundle=folder.name), outcome):
        found.append("the rows give another outcome")
    return found


def _agree(one: Outcome, other: Outcome) -> bool:
    """Say whether two outcomes are one, up to how another machine rounds a sum."""
    plain = [outcome.model_copy(update={"conditions": ()}) for outcome in (one, other)]
    return plain[0] == plain[1] and all(
        (first.condition, first.n, first.passed) == (second.condition, second.n, second.passed)
        and all(same_number(getattr(first, part), getattr(second, part)) for part in ("value", "low", "high"))
        for first, second in zip(one.conditions, other.conditions, strict=True)
    )
