"""The two tables that map errors to what a caller of a door sees; nothing else maps errors."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

from pydantic import ValidationError

from contracts.errors import (
    AddressTaken,
    AlreadyKnown,
    BadRequest,
    EchoplaneError,
    EpochDropped,
    Fault,
    Forbidden,
    IdempotencyConflict,
    Incorrect,
    LimitExceeded,
    NotFound,
    QuotaExceeded,
    RateExceeded,
    RelationInUse,
    Stale,
    TenantIsLive,
    TenantSuspended,
    TenantTaken,
    TooSlow,
    Unauthenticated,
    Unavailable,
    VersionConflict,
    ViewTaken,
)
from contracts.events import WRONG
from contracts.wire import ErrorAnswer, ErrorBody

EXIT_OK: Final = 0
EXIT_VERDICT_FALSE: Final = 1
"""The command worked and its verdict is no: `mismatch`, a broken chain, not up, a failed check."""

EXIT_CODES: Final[tuple[tuple[type[EchoplaneError], int], ...]] = (
    (Incorrect, 2),
    (Stale, 3),
    (Unavailable, 4),
    (Fault, 5),
)
"""First match wins. 2 is also what the command line answers for a usage error."""

HTTP_STATUSES: Final[tuple[tuple[type[EchoplaneError], int], ...]] = (
    (Unauthenticated, 401),
    (Forbidden, 403),
    (NotFound, 404),
    (IdempotencyConflict, 409),
    (AlreadyKnown, 409),
    (RelationInUse, 409),
    (EpochDropped, 410),
    (ViewTaken, 409),
    (TenantIsLive, 409),
    (TenantTaken, 409),
    (TenantSuspended, 403),
    (QuotaExceeded, 403),
    (RateExceeded, 429),
    (LimitExceeded, 413),
    (BadRequest, 422),
    (Incorrect, 400),
    (VersionConflict, 409),
    (Stale, 409),
    (TooSlow, 408),
    (Unavailable, 503),
    (Fault, 500),
)
"""First match wins: the finer class stands before its category."""

_ACTS: Final[tuple[tuple[type[EchoplaneError], str], ...]] = (
    (AddressTaken, "end the other program, or set ECHOPLANE_HTTP_PORT"),
    (TenantSuspended, "the operators of the plane: `echoplane tenants resume`"),
    (QuotaExceeded, "the operators of the plane: `echoplane tenants quota`"),
    (Incorrect, "change the request"),
    (Stale, "read again, then retry"),
    (Unavailable, "retry later, with the same idempotency keys"),
    (Fault, "the operators of the plane: see `echoplane doctor`"),
)


def exit_code(error: EchoplaneError) -> int:
    """Return the exit code of an error's category."""
    return next(code for category, code in EXIT_CODES if isinstance(error, category))


def http_status(error: EchoplaneError) -> int:
    """Return the HTTP status of an error."""
    return next(status for category, status in HTTP_STATUSES if isinstance(error, category))


def error_answer(error: EchoplaneError) -> ErrorAnswer:
    """Return what a door answers: code, words, data and who acts."""
    act = next(act for category, act in _ACTS if isinstance(error, category))
    # Through JSON, so that an attribute of a type of ours arrives as its words.
    details = json.loads(json.dumps(error.details(), default=str))
    return ErrorAnswer(error=ErrorBody(code=error.code, message=str(error), details=details, act=act))


def refusal(error: ValidationError, *, where: str = "") -> BadRequest:
    """
    Turn a validation report into one typed error that names the first wrong field.

    The value itself is left out: it is content, and errors are logged.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    field = _path(first["loc"])
    reason = str(first["msg"]).removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        reason = "unknown field"
    elif first["type"] == WRONG:
        # Seen from the whole, wrong in a part of it.
        field, reason = (
            ".".join(part for part in (field, first["ctx"]["path"]) if part),
            first["ctx"]["reason"],
        )
    more = error.error_count() - 1
    return BadRequest(
        field=": ".join(part for part in (where, field) if part) or "body",
        reason=reason + (f" (and {more} more)" if more else ""),
    )


def _path(location: Iterable[int | str]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
