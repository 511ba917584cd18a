"""
Emitting a file: every line is validated before the first is written, then each is its own commit.

Lines travel several at a time and are committed in order. A line that names earlier events goes
alone, so that nothing after it is written if it is refused; and so does one with values until it is
known what they are held against, so that no other overtakes it meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from contracts import limits
from contracts.errors import BadRequest, EchoplaneError, LimitExceeded
from contracts.events import COMMAND_KINDS, EventDraft
from contracts.wire import ReceiptAnswer
from echoplane._failures import refusal
from echoplane._requests import members_once

WINDOW_LINES: Final = 256
"""Lines under way at once."""

Append = Callable[[Sequence[EventDraft]], Coroutine[Any, Any, ReceiptAnswer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One event of a file, and where it stands there (from 1)."""

    number: int
    draft: EventDraft


def read_lines(raw: bytes) -> list[Line]:
    """
    Validate a whole file of JSONL; empty lines are passed over.

    Raises:
        BadRequest: There is nothing; the first wrong line, its field and why; two lines that share an
            idempotency key and differ.
        LimitExceeded: A line is longer than an event may be.
    """
    lines = []
    for number, text in enumerate(raw.split(b"\n"), start=1):
        if not text.strip():
            continue
        if len(text) > limits.EVENT_BYTES_MAX:
            raise LimitExceeded(limit=f"line {number} bytes", allowed=limits.EVENT_BYTES_MAX, given=len(text))
        try:
            draft = EventDraft.model_validate_json(text)
        except ValidationError as error:
            raise refusal(error, where=f"line {number}") from None
        members_once(text, field=f"line {number}")
        if draft.kind in COMMAND_KINDS:
            raise BadRequest(
                field=f"line {number}: kind", reason=f"{draft.kind} comes through its own command, not emit"
            )
        lines.append(Line(number=number, draft=draft))
    if not lines:
        # Nothing is opened for nothing: a tenant's name is given once.
        raise BadRequest(field="FILE", reason="holds no events")
    _check_keys(lines)
    return lines


def numbered(drafts: Iterable[EventDraft]) -> list[Line]:
    """Return drafts that come from no file, numbered in order."""
    return [Line(number=number, draft=draft) for number, draft in enumerate(drafts, start=1)]


async def emit(
    lines: Sequence[Line], append: Append, *, keeps_order: Callable[[], Awaitable[bool]]
) -> AsyncIterator[tuple[Line, ReceiptAnswer]]:
    """
    Commit each line, in order, and yield its receipt; lines that were committed beside a refused one too.

    Within one window only a relation that somebody registers at that moment can change the order.

    Args:
        lines: What is said, in order.
        append: Appends one.
        keeps_order: Whether lines with values that are appended at once are committed in order.

    Raises:
        EchoplaneError: One was refused, or is not known to be written, the first of its window; the
            details say which `line`, how many others were `written` (acknowledged), and up to which
            `commit`. Emitting the same file again goes on from there.
    """
    written = commit = 0
    async for window in _windows(lines, keeps_order):
        tasks = [asyncio.create_task(append([line.draft])) for line in window]
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        failed: tuple[Line, BaseException] | None = None
        for line, outcome in zip(window, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                failed = failed or (line, outcome)
                continue
            written, commit = written + 1, max(commit, outcome.commit)
            yield line, outcome
        if failed is not None:
            line, error = failed
            if isinstance(error, EchoplaneError):
                error.located(line=line.number, written=written, commit=commit)
            raise error


def check_atomic(lines: Sequence[Line]) -> None:
    """
    Refuse what does not fit in one commit.

    Raises:
        LimitExceeded: More events than one append takes.
    """
    if len(lines) > limits.APPEND_EVENTS_MAX:
        raise LimitExceeded(limit="events in one commit", allowed=limits.APPEND_EVENTS_MAX, given=len(lines))


async def _windows(
    lines: Sequence[Line], keeps_order: Callable[[], Awaitable[bool]]
) -> AsyncIterator[Sequence[Line]]:
    # The first goes alone: it brings in the tenant's keys, and from then on appends reach the log in
    # the order in which they are called.
    window: list[Line] = []
    for index, line in enumerate(lines):
        if index == 0 or _names_others(line.draft) or (line.draft.claims and not await keeps_order()):
            if window:
                yield window
            yield [line]
            window = []
            continue
        window.append(line)
        if len(window) == WINDOW_LINES:
            yield window
            window = []
    if window:
        yield window


def _names_others(draft: EventDraft) -> bool:
    return bool(
        draft.targets
        or draft.winner
        or draft.causation
        or any(claim.targets or claim.winner or claim.inputs for claim in draft.claims)
    )


def _check_keys(lines: Sequence[Line]) -> None:
    first: dict[tuple[str, ...], Line] = {}
    for line in lines:
        draft = line.draft
        if draft.idempotency_key is not None:
            key: tuple[str, ...] = (draft.idempotency_key,)
        elif draft.source_event_id is not None:
            key = (draft.stream, draft.source_event_id)
        else:
            continue
        before = first.setdefault(key, line)
        if before.draft != draft:
            raise BadRequest(
                field=f"line {line.number}",
                reason=f"shares its idempotency key with line {before.number}, which says something else",
            )
