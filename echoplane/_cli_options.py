"""Options that several commands share, and how a command prints and ends."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel

from contracts import limits, values
from contracts.errors import BadRequest, EchoplaneError, Unavailable
from contracts.wire import ErrorAnswer
from echoplane._failures import error_answer
from echoplane._settings import Settings, read_settings

DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir", help="Data folder. Else ECHOPLANE_DATA_DIR, else the default of your account."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line; errors too.")]
Tenant = Annotated[str, typer.Option("--tenant", help="Whose memory.")]
After = Annotated[str | None, typer.Option("--after", help="Begin after this name: the last one listed.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=limits.LIST_ROWS_MAX, help="List so many at most.")]
ValidAtOption = Annotated[
    str | None, typer.Option("--valid-at", help="When it held in the world: an instant with offset.")
]
KnownAtOption = Annotated[
    str | None, typer.Option("--known-at", help="As known when: an instant with offset.")
]
GenerationOption = Annotated[
    str | None, typer.Option("--generation", help="EPOCH:COMMIT; the newest visible if left out.")
]
MinCommit = Annotated[
    int | None, typer.Option("--min-commit", min=0, help="Wait until this commit is folded.")
]
ValidFrom = Annotated[
    str | None, typer.Option("--valid-from", help="Where in valid time to begin: an instant with offset.")
]
ValidTo = Annotated[str | None, typer.Option("--valid-to", help="Where to end; not part of it.")]
ViewName = Annotated[str | None, typer.Option("--view", help="A pinned view, by name.")]
Budget = Annotated[
    int,
    typer.Option("--budget", min=1, max=limits.BUDGET_TOKENS_MAX, help="Tokens that the evidence may take."),
]
BudgetBytes = Annotated[
    int | None,
    typer.Option(
        "--budget-bytes", min=1, max=limits.BUDGET_BYTES_MAX, help="Bytes that it may take beside; else any."
    ),
]
Disclose = Annotated[
    bool, typer.Option("--disclose-conflicts", help="Name the rival values of a conflict in the answer.")
]

Explain = Annotated[
    bool, typer.Option("--explain", help="Show which routes brought each candidate, with score and rank.")
]

ReadIt = Annotated[
    bool, typer.Option("--reader", help="Have the context read by the language model that is configured.")
]

Result = TypeVar("Result")


def settings_for(data_dir: Path | None) -> Settings:
    """
    Read the settings, with what the command line decides.

    Raises:
        BadRequest: A variable is wrong or is none of ours.
    """
    return read_settings() if data_dir is None else read_settings(data_dir=data_dir)


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's work; the only place that starts an event loop."""
    return asyncio.run(work)


def print_json(answer: BaseModel) -> None:
    """Print an answer as one line."""
    sys.stdout.write(json.dumps(answer.model_dump(mode="json", by_alias=True), ensure_ascii=False) + "\n")
    sys.stdout.flush()


def print_line(text: str = "") -> None:
    """Print one line for a person."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def ask_whether_meant(question: str, *, as_json: bool, refused: str) -> None:
    """
    Ask the person at the terminal.

    Raises:
        BadRequest: The answer is no; or nobody can be asked, as a program reads what is printed or the
            input has ended.
    """
    if as_json:
        raise BadRequest(field="--yes", reason="with --json nobody is asked: say it, if it is meant")
    try:
        is_meant = typer.confirm(question, err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        # The input has ended: nobody is there to answer.
        raise BadRequest(field="--yes", reason=f"{refused}: say it, if it is meant") from None
    if not is_meant:
        raise BadRequest(field="--yes", reason=refused)


def shown(value: Any) -> str:  # noqa: ANN401 - a value is any JSON
    """Return a value as a person would write it."""
    text = values.shown(value)
    return json.dumps(value, ensure_ascii=False) if text is None else text


def report(error: EchoplaneError, *, as_json: bool) -> None:
    """Say on standard error what is wrong, why, and who acts."""
    answer: ErrorAnswer = error_answer(error)
    if as_json:
        line = json.dumps(answer.model_dump(mode="json"), ensure_ascii=False)
    else:
        place = f"line {answer.error.details['line']}: " if "line" in answer.error.details else ""
        words = f"{place}{answer.error.message}{_written(error)}"
        line = f"echoplane: {words} [{answer.error.code}; {answer.error.act}]"
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _written(error: EchoplaneError) -> str:
    """Say what of a file was written before an error, and how to go on."""
    details = error.details()
    if "written" not in details:
        return ""
    upto = f", up to commit {details['commit']}" if details["commit"] else ""
    unknown = ", and of others it is not known" if isinstance(error, Unavailable) else ""
    return (
        f"; {details['written']} events were acknowledged{upto}{unknown}. Emit the same file again to go on: "
        "an event with a source_event_id or an idempotency_key is not written twice"
    )
