"""The command `eval`: a public data set through the real plane, scored after it is sealed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.errors import BadRequest
from contracts.limits import BUDGET_TOKENS_MAX, BUDGETS_MAX
from echoplane._cli_options import print_line, run, settings_for
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE
from echoplane._session import with_plane
from echoplane._settings import Settings
from echoplane._state import Role

if TYPE_CHECKING:
    from echoplane._evaluation import Evaluated, Wanted


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("eval")(evaluate)


_Names = list[str] | None
_Arms = Annotated[
    str, typer.Option("--arms", help="Of echoplane, plain, bm25, dense, rrf, recent, full; or every.")
]
_Without = Annotated[
    _Names, typer.Option("--without", help="A route to leave out, in an arm of its own; or every.")
]
_Reword = Annotated[
    _Names, typer.Option("--reword", help="A rule to reword questions by, in an arm of its own; or every.")
]
_Budgets = Annotated[
    list[int] | None, typer.Option("--budget", min=1, max=BUDGET_TOKENS_MAX, help="Tokens of a context.")
]
_Rankings = Annotated[_Names, typer.Option("--ranking", help="ARM=FILE: what another system ranked.")]
_Yardstick = Annotated[
    Path | None, typer.Option("--yardstick-ranking", help="The same, for the arm yardstick.")
]
_RetrievalOnly = Annotated[
    bool, typer.Option("--retrieval-only", help="Ask discovery alone, and pack no contexts.")
]
_ContextsOfAll = Annotated[
    bool, typer.Option("--contexts-of-all", help="Pack contexts for arms that lack a route, too.")
]
_Contexts = Annotated[
    Path | None,
    typer.Option("--contexts", help="Folder for the contexts in words, for `audit read`. It stays here."),
]
_Robustness = Annotated[
    bool,
    typer.Option("--robustness", help="Instead: hold the ledger's invariants in the midst of each history."),
]
_Vectors = Annotated[
    Path | None, typer.Option("--vectors", help="Folder that keeps the vectors of the dense arms.")
]
_DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="Where the histories are kept; else OUT/plane, and found again."),
]


def evaluate(
    data_set: Annotated[str, typer.Argument(metavar="SET", help="locomo, beam or longmemeval.")],
    path: Annotated[Path, typer.Argument(help="The published file, or the folder of its files.")],
    *,
    out: Annotated[Path, typer.Option("--out", help="Folder that the bundle is written to.")],
    arms: _Arms = "echoplane,plain",
    without: _Without = None,
    reword: _Reword = None,
    budget: _Budgets = None,
    ranking: _Rankings = None,
    yardstick_ranking: _Yardstick = None,
    retrieval_only: _RetrievalOnly = False,
    contexts_of_all: _ContextsOfAll = False,
    contexts: _Contexts = None,
    robustness: _Robustness = False,
    vectors: _Vectors = None,
    data_dir: _DataDir = None,
) -> int:
    """Measure retrieval and contexts on a public set. Exit 1 if an event could not be projected."""
    # It brings the whole plane, which no other command waits for before it starts.
    from echoplane import _evaluation, _evaluation_arms  # noqa: PLC0415 -- see above

    files = _files([*(ranking or []), *([f"yardstick={yardstick_ranking}"] if yardstick_ranking else [])])
    wanted = _evaluation.Wanted(
        data_set=_evaluation.data_set_named(data_set),
        path=path,
        out=out,
        arms=(*_evaluation_arms.arms_named(arms, without=without or (), reword=reword or ()), *files),
        budgets=() if retrieval_only else _budgets(budget) or _evaluation.BUDGETS,
        rankings=files,
        vectors=vectors,
        contexts_of_all=contexts_of_all,
        contexts=contexts,
    )
    _check(wanted)
    settings = settings_for(data_dir or out / "plane")
    if robustness:
        return EXIT_OK if run(_hold(settings, wanted)) else EXIT_VERDICT_FALSE
    evaluated = run(_run(settings, wanted))
    _print(evaluated, wanted)
    return EXIT_VERDICT_FALSE if evaluated.recorded.get("projection_failures") else EXIT_OK


async def _run(settings: Settings, wanted: Wanted) -> Evaluated:
    async with with_plane(settings, Role.WORKER, Role.DISCOVERY) as plane:
        from echoplane._evaluation import evaluate  # noqa: PLC0415 -- loaded while the plane starts

        await plane.wait_discovery()
        return await evaluate(plane, wanted, say=print_line)


async def _hold(settings: Settings, wanted: Wanted) -> bool:
    async with with_plane(settings, Role.WORKER, Role.DISCOVERY) as plane:
        from echoplane._evaluating import tell  # noqa: PLC0415 -- loaded while the plane starts
        from echoplane._robustness import check_history, report  # noqa: PLC0415 -- beside it

        await plane.wait_discovery()
        found = []
        for history in wanted.data_set.read(wanted.path):
            found += await check_history(plane, await tell(plane, history, set_name="robustness"))
        for line in report(found):
            print_line(line)
        return all(checked.held for checked in found)


def _check(wanted: Wanted) -> None:
    """Refuse what cannot be run before a folder is made or a server started for it."""
    if wanted.out.exists() and not wanted.out.is_dir():
        raise BadRequest(field="--out", reason=f"{wanted.out} is a file, and not a folder")
    wanted.data_set.read(wanted.path)


def _files(named: Sequence[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for one in named:
        name, equals, path = one.partition("=")
        if not (name and equals and path) or name in found:
            raise BadRequest(field="--ranking", reason="is ARM=FILE, each arm once")
        found[name] = Path(path)
    return found


def _budgets(given: Sequence[int] | None) -> tuple[int, ...]:
    budgets = tuple(dict.fromkeys(given or ()))
    if len(budgets) > BUDGETS_MAX:
        raise BadRequest(field="--budget", reason=f"at most {BUDGETS_MAX}")
    return budgets


def _print(evaluated: Evaluated, wanted: Wanted) -> None:
    """Print a line an arm, and three of summary at the end."""
    from echoplane import _evaluation_report as report  # noqa: PLC0415 -- as above

    for line in report.table(evaluated.measures, wanted.budgets):
        print_line(line)
    for line in report.summary(evaluated, wanted):
        print_line(line)
