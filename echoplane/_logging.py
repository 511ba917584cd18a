"""
Logs: one JSON object a line, on standard error.

Nothing of a memory is ever logged, so that erasing it needs no search through logs. Messages of
exceptions may quote rows, parameters or texts; what is logged of an exception is its class, its code
and where it came from.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import traceback
from collections.abc import MutableMapping
from types import TracebackType
from typing import Any, Final, TextIO

import structlog
from structlog.typing import Processor

FRAMES_MAX: Final = 12
"""Innermost calls that are named of an exception."""


def configure_logging(level: str) -> None:
    """
    Send our logs, and warnings of the libraries, to standard error. Called once, by a process's entry.

    Args:
        level: Least level of ours that is written: `debug`, `info`, `warning` or `error`.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        describe_exception,
    ]
    lines = Lines(sys.stderr)
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(sort_keys=True)],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=lambda *_names: lines,
        cache_logger_on_first_use=False,
    )
    handler = LinesOfLibraries(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(sort_keys=True),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # It would write every query string.
    logging.getLogger("uvicorn.access").disabled = True


class Lines(structlog.PrintLogger):
    """
    Writes lines for as long as it can, and never fails.

    Standard error may be closed, a pipe without a reader, or a file on a full disk. A line that is
    lost then is a lesser evil than the work of whoever logged it: what raised in a consumer of wake-ups
    would end it, and what raised in a fold would be taken for a poison event.
    """

    def msg(self, message: str) -> None:
        """Write a line, or lose it."""
        with contextlib.suppress(OSError, ValueError):
            super().msg(message)

    log = debug = info = warning = error = critical = exception = msg


class LinesOfLibraries(logging.StreamHandler[TextIO]):
    """The same for what libraries log."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 — as the library names it
        """Lose the record: the usual report of it prints its arguments, which may quote content."""


def describe_exception(
    _logger: object, _method: str, entry: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Replace `exc_info` by what can be said of it without its message."""
    given = entry.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    elif isinstance(given, BaseException):
        given = (type(given), given, given.__traceback__)
    if not isinstance(given, tuple) or given[1] is None:
        return entry
    error: BaseException = given[1]
    trace: TracebackType | None = given[2]
    entry["error_class"] = f"{type(error).__module__}.{type(error).__qualname__}"
    code = getattr(error, "code", None) or getattr(error, "sqlstate", None)
    if code is not None:
        entry["error_code"] = str(code)
    frames = traceback.extract_tb(trace)[-FRAMES_MAX:]
    entry["error_at"] = [
        f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames
    ]
    return entry
