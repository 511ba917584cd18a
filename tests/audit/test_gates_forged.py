"""
A register whose chain was worked out anew after a change: its digests agree, and it is found all the same.

Nobody who has the repository is kept from rewriting it. What must not be is that a forgery is consistent
by touching one place.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import threading

import pytest

from audit import GateRegister, register_gate
from audit._bundle_files import address_of, canonical
from audit._gate_register import _digest
from audit._gates import outcome_of
from contracts.artifacts import NOT_OBSERVABLE, Row
from contracts.errors import RunRefused
from contracts.gates import FIRST, EntryKind, Outcome
from tests.audit.gates import Gates, checked, run


def forge(gates, change, *, relink=True, renumber=True):
    """Change the entries of the register, and chain them anew as far as is asked for."""
    entries = list(change(gates.place.register.entries))
    previous = FIRST
    for place, entry in enumerate(entries):
        linked = {"previous": previous} if relink else {}
        linked |= {"number": place + 1} if renumber else {}
        changed = entry.model_copy(update=linked)
        previous = _digest(changed)
        entries[place] = changed.model_copy(update={"digest": previous})
    path = gates.root / "gates" / "register.jsonl"
    path.write_bytes(b"".join(canonical(entry) + b"\n" for entry in entries))


def forge_outcome(gates, **changes):
    """Change how a gate ended, in its file and in the register."""
    path = gates.root / "gates" / "small.outcome.json"
    outcome = Outcome.model_validate_json(path.read_bytes()).model_copy(update=changes)
    path.write_bytes(canonical(outcome))
    said = {"outcome": address_of(outcome), "passed": outcome.passed}
    forge(gates, lambda entries: [*entries[:-1], entries[-1].model_copy(update=said)])


async def test_an_outcome_that_is_forged_in_the_register_too_is_not_what_the_rows_give(gates):
    gates.registered(at_least=0.9)
    outcome = await run(gates)
    first, *rest = outcome.conditions
    drifted = outcome.denominators.model_copy(update={"questions": 13})
    for changes in (
        {"passed": True},
        {"denominators": drifted},
        {"conditions": (first.model_copy(update={"value": 0.95}), *rest)},
        {"conditions": (first.model_copy(update={"n": 13}), *rest)},
        {"conditions": (first.model_copy(update={"passed": True}), *rest)},
    ):
        forge_outcome(gates, **{"passed": False, "conditions": outcome.conditions, **changes})

        assert checked(gates) == ("the rows give another outcome",), changes
        forge_outcome(gates, **outcome.model_dump(include={"passed"}), denominators=outcome.denominators)


async def test_a_seal_or_a_gate_that_is_forged_in_the_register_is_not_its_bundles(gates):
    gates.registered(at_least=0.9)
    await run(gates)
    path = gates.root / "gates" / "register.jsonl"
    told = path.read_bytes()

    forge(
        gates, lambda entries: [one.model_copy(update={"sealed": one.sealed and "1" * 64}) for one in entries]
    )
    assert checked(gates) == ("predictions.jsonl: not those that the register has sealed",)

    path.write_bytes(told)
    easier = gates.write(at_least=0.5)
    digest = address_of(easier)
    forge(gates, lambda entries: [one.model_copy(update={"gate_sha256": digest}) for one in entries])
    forge_outcome(gates, gate_sha256=digest)
    assert "the bundle is of another run than the gate's" in checked(gates)


async def test_an_outcome_and_its_line_say_the_same(gates):
    gates.registered(at_least=0.9)
    await run(gates)
    path = gates.root / "gates" / "small.outcome.json"
    told = path.read_bytes()

    path.write_bytes(told.replace(b'"n":12', b'"n":13'))
    assert checked(gates) == ("gate small: its outcome is not the one that was written down",)

    path.write_bytes(told)
    forge(gates, lambda entries: [*entries[:-1], entries[-1].model_copy(update={"passed": True})])
    assert checked(gates) == ("gate small: its outcome is not the one that was written down",)


@pytest.mark.parametrize(
    ("change", "how"),
    [
        (
            lambda entries: [one.model_copy(update={"number": one.number + 1}) for one in entries],
            {"renumber": False},
        ),
        (
            lambda entries: [entries[0].model_copy(update={"at": "2020-01-01T00:00:00Z"}), *entries[1:]],
            {"relink": False},
        ),
        (lambda entries: entries[:2] + entries[3:], {}),
        (lambda entries: [*entries, entries[-1]], {}),
    ],
    ids=["not numbered", "not linked", "a step left out", "ended twice"],
)
async def test_a_line_is_numbered_linked_and_one_that_can_follow(gates, change, how):
    gates.registered()
    await run(gates)
    forge(gates, change, **how)

    with pytest.raises(RunRefused, match="is not what was written there"):
        GateRegister(gates.root / "gates")


async def test_what_is_no_line_of_a_register_is_refused(gates):
    gates.registered()
    path = gates.root / "gates" / "register.jsonl"
    path.write_bytes(path.read_bytes() + b'{"kind": "outcome", "passed": true}\n')

    with pytest.raises(RunRefused, match="the register, line 2: not such a record"):
        await run(gates)


def test_nothing_is_written_out_of_order_and_nobody_writes_beside_another(gates):
    gate = gates.registered()
    register = gates.place.register
    for kind in (EntryKind.SEALED, EntryKind.OPENED, EntryKind.OUTCOME, EntryKind.REGISTERED):
        with pytest.raises(RunRefused, match=f"it is registered already, so it cannot be {kind.value}"):
            register.append(kind, gate, clock=gates.clock)

    with (gates.root / "gates" / "register.jsonl").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        beside = threading.Thread(
            target=register.append, args=(EntryKind.BEGUN, gate), kwargs={"clock": gates.clock}
        )
        beside.start()
        # As long as it is held nothing is written, however long one waits.
        beside.join(0.2)
        assert beside.is_alive()
        fcntl.flock(held, fcntl.LOCK_UN)
        beside.join(60)
    assert gates.place.register.state("small") is EntryKind.BEGUN


def test_what_a_gate_names_as_its_own_is_its_own(gates):
    run = json.loads(gates.write().model_dump_json())["run"]
    for changes in ({"gate": "0" * 64}, {"name": "other"}):
        with pytest.raises(RunRefused, match="its run has its name, and no gate before it is registered"):
            register_gate(gates.place, gates.write(run=run | changes))


async def test_a_bundle_that_was_changed_or_swapped_before_its_outcome_is_refused(
    gates, tmp_path, small_beam
):
    gates.registered(at_least=0.9)
    outcome = await run(gates)
    other = Gates(tmp_path / "better", small_beam)
    other.registered(at_least=0.9)
    other.runner.rank = lambda number, arm: 1
    better = await run(other)
    path = gates.root / "gates" / "register.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))
    rows = gates.place.out / outcome.bundle / "rows.jsonl"
    told = rows.read_bytes()

    rows.write_bytes(told.replace(b'"hit@10":0', b'"hit@10":1'))
    with pytest.raises(RunRefused, match="its bundle is not what the run left behind"):
        await run(gates)

    shutil.rmtree(rows.parent)
    shutil.copytree(other.place.out / better.bundle, gates.place.out / better.bundle)
    with pytest.raises(RunRefused, match="its bundle is not what the run left behind"):
        await run(gates)


async def test_a_bundle_that_cannot_be_read_might_be_of_a_run_and_is_refused(gates):
    gates.registered()
    (gates.place.out / "lost").mkdir(parents=True)
    (gates.place.out / "lost" / "manifest.json").write_text("{}")

    with pytest.raises(RunRefused, match="lost: its manifest cannot be read"):
        await run(gates)


HIT = {"name": "hit@10", "of": "share", "arm": "ours", "column": "hit@10"}
"""Ten of twelve: 0.8333, Wilson's interval 0.552 to 0.953."""


@pytest.mark.parametrize(
    ("formula", "bounds", "passes"),
    [
        (HIT, {"at_least": 10 / 12}, True),
        (HIT, {"at_most": 10 / 12}, True),
        (HIT, {"at_most": 0.83}, False),
        (HIT, {"at_least": 0.8, "at_most": 0.83}, False),
        (HIT, {"at_least": 0.6, "held": "low"}, False),
        (HIT, {"at_most": 0.6, "held": "low"}, True),
        (HIT, {"at_most": 0.9, "held": "high"}, False),
        (HIT, {"at_least": 0.9, "held": "high"}, True),
        (HIT | {"column": "nothing"}, {"at_least": 0}, False),
        (HIT | {"column": "nothing"}, {"at_most": 1}, False),
    ],
)
async def test_a_number_is_held_against_its_bounds_and_what_is_not_observable_passes_nothing(
    gates, formula, bounds, passes
):
    condition = {"formula": formula, "at_least": None, "at_most": None} | bounds
    gates.registered(conditions=[condition])

    assert (await run(gates)).passed is passes


@pytest.mark.parametrize(("hidden", "holds"), [((), True), (("full", None), False), (("full", 768), True)])
def test_an_arm_hides_all_of_a_budget_or_nothing_of_it(gates, hidden, holds):
    """What does not fit is shown by no question of that arm and budget; never by the hard ones alone."""
    gate = gates.write()
    rows = [
        Row(
            question=f"h0q{number}", history="h0", arm=arm, budget=budget, kind="easy", apart=False,
            failure=NOT_OBSERVABLE if (arm, budget) == hidden and (budget or number < 2) else None,
            values={"turns_gold": 1, "hit@10": 1},
        )
        for number in range(12) for arm in ("ours", "full") for budget in (None, 768)
    ]  # fmt: skip

    assert outcome_of(gate, rows, {}, bundle="b").denominators_hold is holds
