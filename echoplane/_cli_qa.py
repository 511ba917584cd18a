"""Commands of a measured run of questions: `audit read`, `audit judge`, `audit packet`, `audit agree`."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from contracts.errors import BadRequest
from contracts.qa import Agreement, Objective, QaSeal, Weights
from echoplane._cli_options import DataDir, Json, print_json, print_line, run, settings_for
from echoplane._failures import EXIT_OK
from echoplane._settings import Settings

if TYPE_CHECKING:
    # An HTTP client, which no other command waits for before it starts.
    from echoplane._language_model import ChatModel

PACKET_QUESTIONS: Final = 30

Run = Annotated[Path, typer.Argument(help="The folder of a run. It holds questions and answers in words.")]
Gold = Annotated[Path, typer.Option("--gold", help="What is right for each question, one JSON line each.")]


def register(audit: typer.Typer) -> None:
    """Add the commands of this module."""
    audit.command("read")(read_run)
    audit.command("judge")(judge_run)
    audit.command("packet")(make_packet)
    audit.command("agree")(agree)
    audit.command("gold")(make_gold)
    audit.command("matrix")(compare_matrices)


def read_run(
    contexts: Annotated[Path, typer.Argument(help="Cells to read, one JSON line each.")],
    *,
    out: Annotated[Path, typer.Option("--out", help="The folder of the run; one that was cut off goes on.")],
    matrix: Annotated[
        Path | None, typer.Option("--matrix", help="The frozen task matrix that the contexts are to be of.")
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Have every context of every arm under every budget read by the reader, and seal what it said."""
    seal = run(_read(settings_for(data_dir), contexts, out, matrix=matrix))
    if json:
        print_json(seal)
    else:
        print_line(f"sealed {seal.responses_sha256}: {seal.cells} cells, read by {seal.reader}")
    return EXIT_OK


async def _read(settings: Settings, contexts: Path, out: Path, *, matrix: Path | None) -> QaSeal:
    from audit import (  # noqa: PLC0415 -- they bring the public readers
        check_contexts,
        read_cells,
        read_contexts,
        read_matrix,
    )
    from echoplane._language_model import configured_reader  # noqa: PLC0415 -- an HTTP client
    from realize import PROMPT_DIGEST, read_rendered  # noqa: PLC0415 -- see above

    cells = read_contexts(contexts)
    if matrix is not None:
        check_contexts(read_matrix(matrix), cells)
    async with _held(configured_reader(settings), "reader") as model:
        return await read_cells(
            out,
            cells,
            lambda question, rendered: read_rendered(model, question, rendered),
            reader=model.name,
            reader_sha256=model.digest,
            prompt_sha256=PROMPT_DIGEST,
        )


def judge_run(
    folder: Run,
    *,
    gold: Gold,
    stale: Annotated[float, typer.Option("--stale", min=0, help="Weight of stale answers.")],
    conflict: Annotated[float, typer.Option("--conflict", min=0, help="Of conflicts glossed over.")],
    false_abstention: Annotated[float, typer.Option("--false-abstention", min=0, help="Of those.")],
    kilotokens: Annotated[float, typer.Option("--kilotokens", min=0, help="Of a thousand tokens.")],
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Judge a sealed run, each distinct answer once, and compute the objective of every arm and budget."""
    weights = Weights(
        stale=stale, conflict=conflict, false_abstention=false_abstention, kilotokens=kilotokens
    )
    found = run(_judge(settings_for(data_dir), folder, gold, weights))
    for one in found:
        if json:
            print_json(one)
        else:
            _print_objective(one)
    return EXIT_OK


async def _judge(settings: Settings, folder: Path, gold: Path, weights: Weights) -> list[Objective]:
    import audit  # noqa: PLC0415 -- it brings the public readers
    from echoplane._language_model import configured_judge  # noqa: PLC0415 -- an HTTP client

    # Before gold is opened.
    audit.check_seal(folder)
    async with _held(configured_judge(settings), "judge") as model:
        return await audit.judge_run(folder, audit.read_gold(gold), model, weights=weights)


@contextlib.asynccontextmanager
async def _held(model: ChatModel | None, part: str) -> AsyncIterator[ChatModel]:
    if model is None:
        names = f"ECHOPLANE_{part.upper()}_URL and ECHOPLANE_{part.upper()}_MODEL"
        raise BadRequest(field=part, reason=f"there is none: set {names}")
    try:
        yield model
    finally:
        await model.close()


def make_gold(
    folder: Run,
    data_set: Annotated[str, typer.Argument(metavar="SET", help="locomo, beam or longmemeval.")],
    path: Annotated[Path, typer.Argument(help="The published file, or the folder of its files.")],
    *,
    out: Annotated[Path, typer.Option("--out", help="What is right for each question, one JSON line each.")],
) -> int:
    """Write what a public set takes for right, for `audit judge`: only after the run is sealed."""
    import audit  # noqa: PLC0415 -- it brings the public readers
    from echoplane._evaluation import data_set_named  # noqa: PLC0415 -- the same

    audit.check_seal(folder)
    gold = audit.gold_answers(data_set_named(data_set), path)
    audit.write_gold(out, gold)
    print_line(f"{len(gold)} questions in {out}")
    return EXIT_OK


def compare_matrices(
    parent: Annotated[Path, typer.Argument(help="The task matrix as it was frozen.")],
    rebuilt: Annotated[Path, typer.Argument(help="The same, built again.")],
) -> int:
    """Hold a task matrix against its frozen parent, field by field. One difference voids the run: exit 2."""
    import audit  # noqa: PLC0415 -- it brings the public readers

    before = audit.read_matrix(parent)
    audit.check_matrix(before, audit.read_matrix(rebuilt))
    print_line(f"the same: {len(before)} cells")
    return EXIT_OK


def make_packet(
    folder: Run,
    *,
    gold: Gold,
    out: Annotated[Path, typer.Option("--out", help="The packet: one item a line, to be labelled.")],
    budget: Annotated[int, typer.Option("--budget", min=0, help="Of the answers that are in it.")],
    questions: Annotated[
        int, typer.Option("--questions", min=1, help="So many, each with every arm.")
    ] = PACKET_QUESTIONS,
) -> int:
    """Write a blinded packet of a judged run for people to label: no arm, no budget, no verdict in it."""
    import audit  # noqa: PLC0415 -- it brings the public readers

    items = audit.make_packet(folder, audit.read_gold(gold), out, questions=questions, budget=budget)
    print_line(
        f"{len(items)} items of {questions} questions in {out}: set `correct` to true or false in each"
    )
    return EXIT_OK


def agree(
    folder: Run,
    *,
    labels: Annotated[list[Path], typer.Option("--labels", help="A packet that came back. Give it twice.")],
    json: Json = False,
) -> int:
    """Say how those who labelled a packet agree with each other and with the judge."""
    import audit  # noqa: PLC0415 -- it brings the public readers

    named = {path.stem: path for path in labels}
    if len(named) < len(labels):
        raise BadRequest(field="labels", reason="two files are of one name")
    for one in audit.agreements(folder, named):
        if json:
            print_json(one)
        else:
            _print_agreement(one)
    return EXIT_OK


def _print_objective(one: Objective) -> None:
    print_line(f"{one.arm} under {one.budget} tokens: {_said(one.value)}")
    print_line(
        f"  strict accuracy      {one.accuracy:.4f} ({one.correct} of {one.rows}; "
        f"{one.accuracy_low:.4f} to {one.accuracy_high:.4f})"
    )
    print_line(f"  stale answers        {_said(one.stale)}  weighs {one.weights.stale:g}")
    print_line(f"  conflict mishandled  {_said(one.conflict)}  weighs {one.weights.conflict:g}")
    print_line(f"  false abstentions    {one.false_abstentions:.4f}  weighs {one.weights.false_abstention:g}")
    print_line(f"  thousand tokens      {one.kilotokens:.4f}  weighs {one.weights.kilotokens:g}")
    print_line(
        f"  failures             {one.failures} of the reader, {one.judge_failures} of the judge; "
        f"{one.ungrounded} answers not grounded"
    )


def _print_agreement(one: Agreement) -> None:
    print_line(
        f"{one.one} and {one.other}: {_said(one.raw)} raw, kappa {_said(one.kappa)} "
        f"({_said(one.kappa_low)} to {_said(one.kappa_high)}), {one.items} items of {one.questions} questions"
    )


def _said(value: float | None) -> str:
    return "not observable" if value is None else f"{value:.4f}"
