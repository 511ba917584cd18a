"""Options that several commands share, and how a command prints and ends."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Annotated, Any, Final, TypeVar

import typer
from pydantic import BaseModel

from contracts import limits
from contracts.errors import BadRequest, EchoplaneError
from contracts.times import KnownAt, ValidAt, parse_instant
from contracts.views import ViewRequest, parse_generation
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
Budget = Annotated[
    int,
    typer.Option("--budget", min=1, max=limits.BUDGET_TOKENS_MAX, help="Tokens that the evidence may take."),
]
Disclose = Annotated[
    bool, typer.Option("--disclose-conflicts", help="Name the rival values of a conflict in the answer.")
]

Result = TypeVar("Result")

_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def settings_for(data_dir: Path | None) -> Settings:
    """
    Read the settings, with what the command line decides.

    Raises:
        BadRequest: A variable is wrong or is none of ours.
    """
    return read_settings() if data_dir is None else read_settings(data_dir=data_dir)


def view_request(
    *, valid_at: str | None, known_at: str | None, generation: str | None, min_commit: int | None
) -> ViewRequest:
    """
    Read what a caller asks for.

    Raises:
        BadRequest: An instant without an offset, or no generation.
    """
    return ViewRequest(
        valid_at=None if valid_at is None else ValidAt(parse_instant(valid_at, field="valid_at")),
        known_at=None if known_at is None else KnownAt(parse_instant(known_at, field="known_at")),
        generation=None if generation is None else parse_generation(generation),
        min_commit=min_commit,
    )


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


def report(error: EchoplaneError, *, as_json: bool) -> None:
    """Say on standard error what is wrong, why, and who acts."""
    answer: ErrorAnswer = error_answer(error)
    if as_json:
        line = json.dumps(answer.model_dump(mode="json"), ensure_ascii=False)
    else:
        place = f"line {answer.error.details['line']}: " if "line" in answer.error.details else ""
        line = f"echoplane: {place}{answer.error.message} [{answer.error.code}; {answer.error.act}]"
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def checked_tenant(tenant: str) -> str:
    """
    Return a name that can stand in a path and in a token; checked again where a tenant is made.

    Raises:
        BadRequest: It cannot.
    """
    if _TENANT.fullmatch(tenant) is None:
        raise BadRequest(field="tenant", reason="1 to 63 of A-Z a-z 0-9 . _ - and first a letter or digit")
    return tenant
