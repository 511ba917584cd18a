"""The command `conformance`: a file of cases against a real ledger."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from contracts.reports import ConformanceAnswer, MismatchAnswer
from echoplane._cli_options import DataDir, Json, print_json, print_line, run, settings_for
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE
from echoplane._settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(conformance)


def conformance(
    file: Annotated[Path, typer.Argument(help="Cases: bitemporal-cases/1, or scenarios.")],
    *,
    here: Annotated[
        bool,
        typer.Option("--here", help="Use the plane's own database. Its new tenants stay there."),
    ] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Run cases against a real ledger that goes away with the command. Exit 1 unless all agree."""
    answer = run(_run(file, settings_for(data_dir) if here else None, as_json=json))
    if json:
        print_json(answer)
    else:
        print_line(
            f"{answer.cases} cases, {answer.queries} queries: {answer.agreed} agreed, "
            f"{answer.mismatched} mismatched, {answer.not_applicable} not applicable"
        )
    return EXIT_VERDICT_FALSE if answer.mismatched else EXIT_OK


async def _run(file: Path, settings: Settings | None, *, as_json: bool) -> ConformanceAnswer:
    # Loaded here: it brings the whole ledger, which no other command waits for before it starts.
    from echoplane._conformance import read_cases, run_cases  # noqa: PLC0415 -- see above
    from echoplane._conformance_ledger import configured, throw_away  # noqa: PLC0415 -- see above

    cases = read_cases(file)
    async with throw_away() if settings is None else configured(settings) as ledgers:
        return await run_cases(cases, ledgers, say=print_json if as_json else _print_mismatch)


def _print_mismatch(mismatch: MismatchAnswer) -> None:
    print_line(f"{mismatch.case}: {mismatch.where}")
    if mismatch.error is not None:
        print_line(f"  error     {mismatch.error}")
        return
    for name, side in (("expected", mismatch.expected), ("found", mismatch.found)):
        print_line(f"  {name:<9} {json_module.dumps(side, sort_keys=True, ensure_ascii=False)}")
