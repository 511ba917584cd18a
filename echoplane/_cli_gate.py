"""Commands about gates: `gate new`, `register`, `run`, `show`, `verify` and `claim`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contracts.audit_wire import ClaimAnswer, GateAnswer
from contracts.gates import Found
from echoplane._cli_audit import said_number
from echoplane._cli_options import DataDir, Json, print_json, print_line, run, settings_for
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE

# What runs a gate is loaded by its command: it brings the readers of public sets, and the whole plane.

Folder = Annotated[
    Path, typer.Option("--artifacts", help="Folder of bundles; the gates lie in its folder `gates`.")
]
Data = Annotated[
    Path | None, typer.Option("--data", help="The public set: a file, or the folder of its files.")
]
Name = Annotated[str, typer.Argument(help="A gate's name.")]
ARTIFACTS = Path("artifacts")
PLANE = Path(".echoplane")
"""Where a gate keeps the histories that it told, so that one that is cut off finds them again."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    gate = typer.Typer(no_args_is_help=True, help="What is to be found out, fixed before it is known.")
    gate.command("new")(new_gate)
    gate.command("register")(register_gate)
    gate.command("run")(run_gate)
    gate.command("show")(show_gate)
    gate.command("verify")(verify_gates)
    gate.command("claim")(claim)
    app.add_typer(gate, name="gate")


def new_gate(
    name: Name,
    *,
    question: Annotated[str, typer.Option("--question", help="What it is to decide, in plain words.")],
    require: Annotated[
        list[str],
        typer.Option("--require", help="A number and its threshold: 'hit@10 >= 0.85'. Once or more."),
    ],
    questions: Annotated[int, typer.Option("--questions", min=0, help="How many questions the set has.")],
    with_gold: Annotated[int, typer.Option("--with-gold", min=0, help="How many of them have gold.")],
    runner: Annotated[
        str, typer.Option("--runner", help="retrieval, typed-answers, or ledger-invariants.")
    ] = "retrieval",
    data_set: Annotated[
        str, typer.Option("--set", help="locomo, beam, longmemeval; none for a runner's own.")
    ] = "none",
    data: Data = None,
    level: Annotated[
        str, typer.Option("--level", help="What it can be evidence of.")
    ] = "visible development",
    arms: Annotated[str, typer.Option("--arms", help="Arms, separated by commas.")] = "echoplane",
    size: Annotated[
        int, typer.Option("--size", min=1, help="How much a runner makes that needs no data.")
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", help="Of whatever is drawn.")] = 1,
    skips: Annotated[
        list[str] | None, typer.Option("--skips", help="A gate that is not run any more if this one fails.")
    ] = None,
    artifacts: Folder = ARTIFACTS,
) -> int:
    """Write a gate's file, with data, code and models by digest as they are now; then register it."""
    from echoplane import _gates  # noqa: PLC0415 -- see above

    path = _gates.write_new(
        artifacts,
        _gates.Wanted(
            name=name, question=question, require=tuple(require), questions=questions, with_gold=with_gold,
            runner=runner, data_set=data_set, data=data, level=level, arms=tuple(arms.split(",")), size=size,
            seed=seed, skips=tuple(skips or ()),
        ),
    )  # fmt: skip
    print_line(str(path))
    return EXIT_OK


def register_gate(name: Name, *, artifacts: Folder = ARTIFACTS, json: Json = False) -> int:
    """Register a gate's file: from now on nothing of it can be changed."""
    from echoplane import _gates  # noqa: PLC0415 -- see above

    entry = _gates.register(artifacts, name)
    if json:
        print_json(entry)
    else:
        print_line(f"{entry.gate} is registered: line {entry.number} of the register, {entry.gate_sha256}")
    return EXIT_OK


def run_gate(
    name: Name,
    *,
    data: Data = None,
    artifacts: Folder = ARTIFACTS,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Run a registered gate: predict, seal, open gold, say how it ended for good. Exit 1 if it failed."""
    from echoplane import _gates  # noqa: PLC0415 -- see above

    settings = settings_for(data_dir or PLANE)
    outcome = run(_gates.run(artifacts, name, settings=settings, data=data, say=say_aside))
    if json:
        print_json(outcome)
    else:
        print_line(f"{name}: {'passed' if outcome.passed else 'failed'}, bundle {outcome.bundle}")
        for one in outcome.conditions:
            _print_condition(one)
    return EXIT_OK if outcome.passed else EXIT_VERDICT_FALSE


def show_gate(
    name: Annotated[str | None, typer.Argument(help="A gate's name; every gate if left out.")] = None,
    *,
    artifacts: Folder = ARTIFACTS,
    json: Json = False,
) -> int:
    """Show gates: what each asks, how far it has come, how it ended."""
    from echoplane import _gates  # noqa: PLC0415 -- see above

    for answer in _gates.show(artifacts, name):
        _say(answer, as_json=json)
    return EXIT_OK


def verify_gates(
    name: Annotated[str | None, typer.Argument(help="A gate's name; every gate if left out.")] = None,
    *,
    artifacts: Folder = ARTIFACTS,
    json: Json = False,
) -> int:
    """Check the register, and each gate's file, bundle and outcome. Exit 1 unless all of it holds."""
    from echoplane import _gates  # noqa: PLC0415 -- see above

    answers = _gates.show(artifacts, name)
    for answer in answers:
        _say(answer, as_json=json)
    return EXIT_VERDICT_FALSE if any(answer.problems for answer in answers) else EXIT_OK


def claim(name: Name, *, artifacts: Folder = ARTIFACTS, json: Json = False) -> int:
    """Word the claim of superiority that a gate supports. Exit 1 if none, saying what is missing."""
    from echoplane import _gates  # noqa: PLC0415 -- see above

    found = _gates.claim(artifacts, name)
    if json:
        print_json(ClaimAnswer(gate=name, text=found.text, missing=found.missing))
    else:
        print_line(found.text)
    return EXIT_VERDICT_FALSE if found.missing else EXIT_OK


def say_aside(line: str) -> None:
    """Say how a run goes on, apart from what it answers."""
    typer.echo(line, err=True)


def _say(answer: GateAnswer, *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    ended = "" if answer.outcome is None else ", passed" if answer.outcome.passed else ", failed"
    print_line(f"{answer.gate}: {answer.state}{ended} ({answer.level}); {answer.digest}")
    for one in () if answer.outcome is None else answer.outcome.conditions:
        _print_condition(one)
    if answer.outcome is not None and not answer.outcome.denominators_hold:
        print_line("  denominators drifted")
    if answer.same_code is False:
        print_line("  the code is another now: the record stands, a run would be refused")
    for problem in answer.problems:
        print_line(f"  wrong: {problem}")


def _print_condition(one: Found) -> None:
    bounds = [
        f"{word} {bound}"
        for word, bound in (("at least", one.condition.at_least), ("at most", one.condition.at_most))
        if bound is not None
    ]
    found = said_number(one.value, one.low, one.high, one.n)
    word = "holds" if one.passed else "fails"
    print_line(f"  {word:<6} {one.condition.formula.name:<24} {' and '.join(bounds):<18} {found}")
