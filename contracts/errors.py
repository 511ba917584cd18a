"""
The error tree, sorted by who must act.

    EchoplaneError
    ├── Incorrect      the caller changes the request
    │   ├── BadRequest         a field, parameter or line is wrong; says which and why
    │   │   └── WrongValue         a value is none of its relation's type; says what is expected
    │   ├── NotFound           no such tenant, event, context or trail for this caller
    │   ├── Unauthenticated    no valid token
    │   ├── Forbidden          the token does not grant this
    │   ├── IdempotencyConflict  the same key was used for other content
    │   ├── AlreadyKnown       some events of an append stand in the log already; says which
    │   ├── RelationInUse      claims stand on a relation: another contract needs another epoch
    │   ├── EpochDropped       what the epoch had made of the log was deleted on purpose
    │   ├── ViewTaken          the name of a pinned view stands for another view
    │   ├── TenantIsLive       a tenant with a past of its own takes none from elsewhere
    │   ├── TenantTaken        the name is a tenant's, or was one's that was deleted
    │   ├── TenantSuspended    an operator stopped appends to the tenant, and has to resume them
    │   ├── QuotaExceeded      the tenant's log is as large as an operator allows it to be
    │   ├── AddressTaken       another program listens where the API is to; says which
    │   ├── RunRefused         a measured run or a gate would no longer be evidence; says why
    │   └── LimitExceeded      a documented bound was passed
    ├── Stale          the caller reads again, then retries
    │   ├── VersionConflict    another writer appended first
    │   ├── NotYet             the generation or commit asked for is not folded yet
    │   └── ErasedMeanwhile    an event was erased while an answer was made of it
    ├── Unavailable    the caller retries as is, later
    │   ├── TooSlow            a request did not come whole in its time; says which part and how long
    │   └── Busy               more is waiting than the plane holds; says when to come again
    │       └── RateExceeded       the tenant appends faster than an operator allows
    └── Fault          the operators of the plane act
        ├── Poisoned           an event stops its tenant's epoch
        ├── OtherProjector     an epoch was begun by another version of the projector
        ├── OtherSchema        a database was made by other migrations than this build's
        ├── IntegrityFault     stored bytes do not match their digests
        └── ModelMismatch      an index was built by another embedding model

Each class has a stable `code`. Doors map the four categories to HTTP status, exit code and MCP
error in one table each; nothing else may map errors.
"""

from __future__ import annotations

import math
from typing import ClassVar, Final, Self

_PORT_LAST: Final = 65_535


class EchoplaneError(Exception):
    """Base of every error the plane raises on purpose. `code` is stable; data are attributes."""

    code: ClassVar[str] = "echoplane.error"

    def details(self) -> dict[str, object]:
        """Return the attributes a caller may see, for JSON. Never holds content of a memory."""
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}

    def located(self, **place: int) -> Self:
        """Add to the details where it happened, and return the error itself."""
        for name, number in place.items():
            setattr(self, name, number)
        return self


class Incorrect(EchoplaneError):
    """The request is wrong: change it. Nothing was written."""

    code = "incorrect"


class BadRequest(Incorrect):
    """A field, a parameter or a line of input is wrong."""

    code = "incorrect.bad_request"

    def __init__(self, *, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field, self.reason = field, reason


class WrongValue(BadRequest):
    """A value is not of the type that its relation's contract names. Nothing was written."""

    code = "incorrect.wrong_value"

    def __init__(self, *, field: str, expected: str, reason: str) -> None:
        super().__init__(field=field, reason=f"{expected} is expected: {reason}")
        self.expected = expected


class NotFound(Incorrect):
    """There is no such thing, or it is not this caller's to see; the two are not told apart."""

    code = "incorrect.not_found"

    def __init__(self, *, what: str) -> None:
        super().__init__(f"no such {what}")
        self.what = what


class Unauthenticated(Incorrect):
    """No valid bearer token came with the request."""

    code = "incorrect.unauthenticated"

    def __init__(self) -> None:
        super().__init__("a valid bearer token is required")


class Forbidden(Incorrect):
    """The token is valid and does not grant this."""

    code = "incorrect.forbidden"

    def __init__(self, *, needs: str) -> None:
        super().__init__(f"this token does not grant {needs}")
        self.needs = needs


class IdempotencyConflict(Incorrect):
    """The idempotency key was used before, for other content. Nothing was written."""

    code = "incorrect.idempotency_conflict"

    def __init__(self, *, idempotency_key: str) -> None:
        super().__init__(
            "this idempotency key, or the source event id that stands for one, was used for other content"
        )
        self.idempotency_key = idempotency_key


class AlreadyKnown(Incorrect):
    """
    Events of an append stand in the log already, not all by one append. Nothing was written.

    `known` and `unknown` are indexes into the events given: append the unknown ones alone.
    """

    code = "incorrect.already_known"

    def __init__(self, *, known: tuple[int, ...], unknown: tuple[int, ...]) -> None:
        super().__init__(f"{len(known)} events are known already, {len(unknown)} are not")
        self.known, self.unknown = known, unknown


class RelationInUse(Incorrect):
    """
    Claims were made on the relation: to decide them otherwise is another epoch. Nothing was written.

    `claims` stand on it; all `events` of the log would be folded again, into `epoch`.
    """

    code = "incorrect.relation_in_use"

    def __init__(self, *, relation: str, claims: int, events: int, epoch: int) -> None:
        super().__init__(
            f"{relation}: claims were made on it already ({claims}). To decide them otherwise, all events "
            f"({events}) are folded again, into epoch {epoch}, which takes over when it is complete: "
            'register with `--new-epoch` (`"new_epoch": true`) to do that'
        )
        self.relation, self.claims, self.events, self.epoch = relation, claims, events, epoch


class EpochDropped(Incorrect):
    """What an epoch had made of the log was deleted: it can be neither asked nor built anew."""

    code = "incorrect.epoch_dropped"

    def __init__(self, *, epoch: int) -> None:
        super().__init__(f"epoch {epoch} was dropped; ask the one that serves")
        self.epoch = epoch


class ViewTaken(Incorrect):
    """The name stands for another view, and a pinned view never moves. Nothing was written."""

    code = "incorrect.view_taken"

    def __init__(self, *, name: str) -> None:
        super().__init__("this name stands for another view; choose one, or unpin the view first")
        self.name = name


class TenantIsLive(Incorrect):
    """The tenant has recorded something by its own clock; its past cannot be stated. Nothing was written."""

    code = "incorrect.tenant_is_live"

    def __init__(self) -> None:
        super().__init__("this tenant is live: a past is brought into a tenant that has none")


class TenantTaken(Incorrect):
    """The name is a tenant's, or was one's that was deleted. Nothing was written."""

    code = "incorrect.tenant_taken"

    def __init__(self) -> None:
        super().__init__(
            "the name is a tenant's here, or was one's that was deleted: choose another, or, for an export,"
            " another plane"
        )


class TenantSuspended(Incorrect):
    """An operator stopped appends to the tenant. Nothing was written."""

    code = "incorrect.tenant_suspended"

    def __init__(self) -> None:
        super().__init__("the tenant is suspended: it can be read, and takes nothing until it is resumed")


class QuotaExceeded(Incorrect):
    """The tenant's log would be larger than an operator allows. Nothing was written."""

    code = "incorrect.quota_exceeded"

    def __init__(self, *, quota: str, allowed: int, given: int) -> None:
        super().__init__(f"the tenant's log may hold {allowed} {quota}, and would hold {given}")
        self.quota, self.allowed, self.given = quota, allowed, given


class AddressTaken(Incorrect):
    """Another program listens where the API is to: waiting changes nothing. `holder` is None if unknown."""

    code = "incorrect.address_taken"

    def __init__(self, *, host: str, port: int, holder: str | None) -> None:
        other = port + 1 if port < _PORT_LAST else port - 1
        super().__init__(
            f"{host} port {port} is taken by {holder or 'a process of another account'}: end it, or choose "
            f"another port, such as `ECHOPLANE_HTTP_PORT={other} echoplane up`"
        )
        self.host, self.port, self.holder = host, port, holder


class RunRefused(Incorrect):
    """
    A measured run or a gate does not go on: what it found would no longer be evidence.

    There is no way around it. What is wrong is put right, or another gate is registered.
    """

    code = "incorrect.run_refused"

    def __init__(self, *, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what, self.reason = what, reason


class LimitExceeded(Incorrect):
    """A documented bound was passed."""

    code = "incorrect.limit_exceeded"

    def __init__(self, *, limit: str, allowed: int, given: int) -> None:
        super().__init__(f"{limit}: at most {allowed}, given {given}")
        self.limit, self.allowed, self.given = limit, allowed, given


class Stale(EchoplaneError):
    """What the caller saw has moved: read again, then retry."""

    code = "stale"


class VersionConflict(Stale):
    """Another writer appended first. Nothing was written."""

    code = "stale.version_conflict"

    def __init__(self, *, stream: str, expected: int) -> None:
        super().__init__(f"the stream is not at version {expected}")
        self.stream, self.expected = stream, expected


class NotYet(Stale):
    """The generation or commit asked for is not folded yet."""

    code = "stale.not_yet"

    def __init__(self, *, wanted: str, visible: str) -> None:
        super().__init__(f"{wanted} is not visible yet; the newest is {visible}")
        self.wanted, self.visible = wanted, visible


class ErasedMeanwhile(Stale):
    """An event that an answer stood on was erased while it was made: ask again. Nothing was stored."""

    code = "stale.erased_meanwhile"

    def __init__(self, *, commit: int) -> None:
        super().__init__(f"an event that was read has been erased by commit {commit}")
        self.commit = commit


class Unavailable(EchoplaneError):
    """A part is down or busy: retry as is, with the same idempotency keys."""

    code = "unavailable"

    def __init__(self, *, part: str, reason: str) -> None:
        super().__init__(f"{part} is unavailable: {reason}")
        self.part, self.reason = part, reason


class TooSlow(Unavailable):
    """A request did not come whole in its time. Nothing was written."""

    code = "unavailable.too_slow"

    def __init__(self, *, part: str, seconds: float) -> None:
        super().__init__(part=part, reason=f"it did not come whole within {seconds:g} s")
        self.seconds = seconds


class Busy(Unavailable):
    """More is waiting than the plane holds. Nothing was written; come again after `retry_after_seconds`."""

    code = "unavailable.busy"

    def __init__(self, *, part: str, reason: str, retry_after_seconds: float) -> None:
        super().__init__(part=part, reason=f"{reason}; come again in {math.ceil(retry_after_seconds)} s")
        self.retry_after_seconds = retry_after_seconds


class RateExceeded(Busy):
    """The tenant appends faster than an operator allows. Nothing was written; come again later."""

    code = "unavailable.rate_exceeded"

    def __init__(self, *, events_per_minute: int, retry_after_seconds: float) -> None:
        super().__init__(
            part="tenant",
            reason=f"it may append {events_per_minute} events a minute",
            retry_after_seconds=retry_after_seconds,
        )
        self.events_per_minute = events_per_minute


class Fault(EchoplaneError):
    """The plane itself is at fault; its operators act."""

    code = "fault"


class Poisoned(Fault):
    """An event could not be projected and stops its tenant's epoch before it."""

    code = "fault.poisoned"

    def __init__(self, *, epoch: int, position: int, error: str) -> None:
        super().__init__(f"the event at position {position} cannot be projected into epoch {epoch}: {error}")
        self.epoch, self.position, self.error = epoch, position, error


class OtherProjector(Fault):
    """An epoch was begun by another version of the projector; this one needs an epoch of its own."""

    code = "fault.other_projector"

    def __init__(self, *, epoch: int, begun_by: str, given: str) -> None:
        super().__init__(f"epoch {epoch} was begun by projector {begun_by}; {given} needs a new epoch")
        self.epoch, self.begun_by, self.given = epoch, begun_by, given


class OtherSchema(Fault):
    """A database was made by other migrations than this build's. Nothing was changed in it."""

    code = "fault.other_schema"

    def __init__(self, *, revision: str) -> None:
        super().__init__(
            f"this database was made by another build of schema {revision}, not released or newer: go on "
            "with that build; or export each tenant with it and restore it with this one; or start with a "
            "new data folder"
        )
        self.revision = revision


class IntegrityFault(Fault):
    """Stored bytes do not match the digest, seal or chain that covers them."""

    code = "fault.integrity"

    def __init__(self, *, what: str) -> None:
        super().__init__(f"integrity check failed: {what}")
        self.what = what


class ModelMismatch(Fault):
    """An index was built by another embedding model; rebuild it beside the old one."""

    code = "fault.model_mismatch"

    def __init__(self, *, index_model: str, served_model: str) -> None:
        super().__init__(f"index built with model {index_model}, serving {served_model}")
        self.index_model, self.served_model = index_model, served_model
