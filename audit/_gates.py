"""
Running a gate: what was registered, sealed predictions, then gold, then the outcome for good.

Whatever is not as it was registered refuses to run, with the reason. There is no way around it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from audit._bundle import MANIFEST, ROWS, BundleRecorder, bundle_name
from audit._bundle_check import check_bundle
from audit._bundle_files import address_of, code_digest_of, data_digests, read_lines
from audit._formulas import measure
from audit._gate_register import GateRegister, content_digests
from contracts.artifacts import (
    NOT_OBSERVABLE,
    CodeDigest,
    Environment,
    EvidenceLevel,
    GoldLine,
    Manifest,
    Measure,
    ModelDigest,
    Row,
    RunDescription,
    Values,
)
from contracts.errors import RunRefused
from contracts.gates import Bound, Condition, Denominators, Entry, EntryKind, Found, Gate, Outcome
from contracts.ports import Clock


class GateRunner(Protocol):
    """What a gate is run with: it predicts, and reads gold when it is told to and not before."""

    def models(self) -> tuple[ModelDigest, ...]:
        """Return the models that it would run with now."""
        ...

    async def predict(self, gate: Gate, data: Path | None, recorder: BundleRecorder) -> Values:
        """Record a prediction for every cell that has none yet, and return numbers that no row gives."""
        ...

    def gold(self, gate: Gate, data: Path | None) -> Iterable[GoldLine]:
        """Read what is gold."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePlace:
    """Where gates are run: their register, what they leave behind, the source tree, and the time."""

    register: GateRegister
    out: Path
    root: Path
    clock: Clock
    environment: Environment


def register_gate(place: GatePlace, gate: Gate) -> Entry:
    """
    Register a gate whose file lies beside the register: from now on nothing of it can be changed.

    Raises:
        RunRefused: A gate of this name was registered before; or its file is another; or it has a condition
            on numbers that it does not measure.
    """
    if place.register.of(gate.name):
        raise RunRefused(what=f"gate {gate.name}", reason="one of this name was registered before, and stays")
    if gate.run.gate is not None or gate.run.name != gate.name:
        raise RunRefused(
            what=f"gate {gate.name}", reason="its run has its name, and no gate before it is registered"
        )
    for condition in gate.conditions:
        # A formula that lacks a part is found now, and not when its gold is open.
        measure(condition.formula, ())
        if condition.at_least is None and condition.at_most is None:
            raise RunRefused(what=f"gate {gate.name}", reason=f"{condition.formula.name} has no threshold")
    return place.register.append(EntryKind.REGISTERED, gate, clock=place.clock)


async def run_gate(place: GatePlace, name: str, runner: GateRunner, *, data: Path | None) -> Outcome:
    """
    Run a registered gate and write down how it ended; one that was interrupted goes on.

    Raises:
        RunRefused: It has ended, or is stopped by another's end, or something is not as it was
            registered; says what. Nothing was opened then.
    """
    register = place.register
    gate = register.read_gate(name)
    _check_not_ended(register, gate)
    if register.state(name) is EntryKind.OPENED and (left := bundles_of(place.out, gate)):
        # It was cut off between its bundle and its outcome: the rows are there, and say the same again.
        return _end(place, gate, place.out / bundle_name(left[0]))
    contents = _check_may_run(place, gate, runner, data)
    if register.state(name) is EntryKind.REGISTERED:
        register.append(EntryKind.BEGUN, gate, clock=place.clock)
    with BundleRecorder.open(
        place.out, run=described(gate), clock=place.clock, environment=place.environment
    ) as recorder:
        if recorder.sealed is None:
            recorder.note(await runner.predict(gate, data, recorder))
        _seal(place, gate, recorder)
        if register.state(name) is EntryKind.SEALED:
            register.append(EntryKind.OPENED, gate, clock=place.clock, opened=contents)
        recorder.score(runner.gold(gate, data))
        bundle = recorder.finish([one.formula for one in gate.conditions], {})
    return _end(place, gate, bundle)


def outcome_of(gate: Gate, rows: Sequence[Row], recorded: Values, *, bundle: str) -> Outcome:
    """Return how a gate ends on these rows."""
    conditions = tuple(
        _found(condition, measure(condition.formula, rows, recorded)) for condition in gate.conditions
    )
    denominators = Denominators(
        questions=len({row.question for row in rows}),
        with_gold=len({row.question for row in rows if row.values.get("turns_gold") is not None}),
    )
    hold = denominators == gate.denominators and _is_whole(rows)
    return Outcome(
        gate=gate.name,
        gate_sha256=address_of(gate),
        bundle=bundle,
        denominators=denominators,
        denominators_hold=hold,
        conditions=conditions,
        passed=hold and all(one.passed for one in conditions),
    )


def _is_whole(rows: Sequence[Row]) -> bool:
    """Say whether each arm hides something of every question or of none: never of the hard ones alone."""
    hidden: dict[tuple[str, int | None], set[bool]] = {}
    for row in rows:
        hidden.setdefault((row.arm, row.budget), set()).add(row.failure == NOT_OBSERVABLE)
    return all(len(kinds) == 1 for kinds in hidden.values())


def code_now(place: GatePlace, packages: Sequence[str]) -> CodeDigest:
    """Return the digest of the source files as they are."""
    return CodeDigest(packages=tuple(packages), sha256=code_digest_of(place.root, packages))


def bundles_of(out: Path, gate: Gate) -> list[Manifest]:
    """Return every finished bundle that a run of this gate left behind."""
    digest = address_of(gate)
    return [one for one in manifests(out) if one.run.gate == digest]


def manifests(out: Path) -> list[Manifest]:
    """Return the manifest of every finished bundle below a folder."""
    found = []
    for path in sorted(out.glob(f"*/{MANIFEST}")):
        try:
            found.append(Manifest.model_validate_json(path.read_bytes()))
        except ValueError as error:
            raise RunRefused(what=path.parent.name, reason="its manifest cannot be read") from error
    return found


def _check_not_ended(register: GateRegister, gate: Gate) -> None:
    ended = next((one for one in register.of(gate.name) if one.kind is EntryKind.OUTCOME), None)
    if ended is not None:
        reason = f"it {'passed' if ended.passed else 'failed'}, and that stays"
        raise RunRefused(what=f"gate {gate.name}", reason=reason)
    if register.state(gate.name) is EntryKind.SKIPPED:
        raise RunRefused(what=f"gate {gate.name}", reason="it is skipped, since a gate before it failed")


def _check_may_run(place: GatePlace, gate: Gate, runner: GateRunner, data: Path | None) -> tuple[str, ...]:
    """Refuse unless everything is as it was registered; return the data's content digests."""
    what = f"gate {gate.name}"
    if bundles_of(place.out, gate):
        raise RunRefused(
            what=what, reason="a bundle of its run is there, and the register does not know its outcome"
        )
    _check_same(what, "the data", gate.run.data, () if data is None else data_digests(data))
    _check_same(what, "the code", gate.run.code, code_now(place, gate.run.code.packages))
    _check_same(what, "a model", gate.run.models, runner.models())
    contents = () if data is None else content_digests(data)
    _check_sealed_sets(place, gate, contents)
    return contents


def _check_same(what: str, part: str, registered: object, found: object) -> None:
    if registered != found:
        raise RunRefused(what=what, reason=f"{part} is not what was registered")


def _check_sealed_sets(place: GatePlace, gate: Gate, contents: Sequence[str]) -> None:
    what = f"gate {gate.name}"
    for name in place.register.names():
        outcome = place.register.read_outcome(name)
        if outcome is not None and not outcome.passed:
            reserved = set(place.register.read_gate(name).stopping.reserved)
            if reserved & set(contents):
                raise RunRefused(what=what, reason=f"its data stays sealed, since gate {name} failed")
    if gate.run.level is not EvidenceLevel.FRESH_CONFIRMATORY:
        return
    earlier = [one for one in place.register.opened(contents) if one.gate != gate.name]
    if earlier:
        raise RunRefused(what=what, reason=f"its gold was opened before, by gate {earlier[0].gate}")
    # Bundles know files as they lay there: one that was not packed then is known by what it holds.
    files = {one.sha256 for one in gate.run.data} | set(contents)
    for manifest in manifests(place.out):
        if files & {one.sha256 for one in manifest.run.data}:
            raise RunRefused(what=what, reason=f"its gold was opened before, by run {manifest.run.name}")


def _seal(place: GatePlace, gate: Gate, recorder: BundleRecorder) -> None:
    digest = recorder.seal()
    told = next((one.sealed for one in place.register.of(gate.name) if one.kind is EntryKind.SEALED), None)
    if told is None:
        place.register.append(EntryKind.SEALED, gate, clock=place.clock, sealed=digest)
    elif told != digest:
        raise RunRefused(what=f"gate {gate.name}", reason="its predictions are not those that were sealed")


def _end(place: GatePlace, gate: Gate, bundle: Path) -> Outcome:
    report = check_bundle(bundle)
    sealed = next((one.sealed for one in place.register.of(gate.name) if one.kind is EntryKind.SEALED), None)
    if not report.holds or report.manifest is None or report.manifest.sealed != sealed:
        raise RunRefused(what=f"gate {gate.name}", reason="its bundle is not what the run left behind")
    outcome = outcome_of(gate, read_lines(bundle / ROWS, Row), report.manifest.recorded, bundle=bundle.name)
    digest = place.register.write_outcome(outcome)
    place.register.append(EntryKind.OUTCOME, gate, clock=place.clock, outcome=digest, passed=outcome.passed)
    if not outcome.passed:
        _stop(place, gate)
    return outcome


def _stop(place: GatePlace, failed: Gate) -> None:
    for name in failed.stopping.skips:
        if place.register.state(name) in {EntryKind.REGISTERED, EntryKind.BEGUN}:
            gate = place.register.read_gate(name)
            place.register.append(EntryKind.SKIPPED, gate, clock=place.clock)


def _found(condition: Condition, one: Measure) -> Found:
    numbers = {Bound.VALUE: one.value, Bound.LOW: one.low, Bound.HIGH: one.high}
    number = numbers[condition.held]
    passed = (
        # What is not observable passes nothing.
        number is not None
        and (condition.at_least is None or number >= condition.at_least)
        and (condition.at_most is None or number <= condition.at_most)
    )
    return Found(condition=condition, value=one.value, low=one.low, high=one.high, n=one.n, passed=passed)


def described(gate: Gate) -> RunDescription:
    """Return the run that a gate registers, as its bundle describes it."""
    return gate.run.model_copy(update={"gate": address_of(gate)})
