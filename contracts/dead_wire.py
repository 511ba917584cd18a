"""Dead letters as doors show them: which event stops what, and what was decided about it."""

from __future__ import annotations

from contracts._wire import Wire
from contracts.names import Name


class DeadLetterAnswer(Wire):
    """
    An event that cannot be folded, and the epoch that waits before it.

    `error` is a code or the name of a kind of error, never its words. `building` says that it is the next
    epoch that waits: the one that serves goes on.
    """

    epoch: int
    building: bool
    position: int
    event_id: str
    kind: str
    commit: int
    error: str
    attempts: int
    first_at: str
    last_at: str


class DeadLettersAnswer(Wire):
    """What stops a tenant: one event an epoch that is folded, so two at most."""

    tenant: str
    dead: list[DeadLetterAnswer]


class RetryAnswer(Wire):
    """Whether the event could be folded this time; `dead` says what still stops it."""

    tenant: str
    position: int
    passed: bool
    dead: DeadLetterAnswer | None


class SkipBody(Wire):
    """Why an event is passed over: kept in the log, for whoever asks later."""

    reason: Name


class SkipAnswer(Wire):
    """
    The decision that an event is passed over, in `epoch` and all later ones, made at `commit`.

    `decided` is false where it had been made before.
    """

    tenant: str
    position: int
    event_id: str
    epoch: int
    commit: int
    decided: bool
