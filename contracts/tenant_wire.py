"""Tenants as doors show them: who there is, what holds of each, and what becomes of it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from contracts._wire import Wire
from contracts.erasure_wire import ScrubAnswer
from contracts.errors import BadRequest
from contracts.limits import QUOTA_MAX, RATE_EVENTS_MAX, RETENTION_DAYS_MAX
from contracts.names import Name


class PolicyAnswer(Wire):
    """What a tenant may do; null is unbounded."""

    suspended: bool
    events_max: int | None
    bytes_max: int | None
    events_per_minute: int | None
    retention_days: int | None


class TenantRecordAnswer(Wire):
    """
    One tenant: `active`, `suspended`, `deleting` or `deleted`, and how long its log is, or was.

    Of a deleted one it is not known any more when it was made, and by whom.
    """

    tenant: str
    state: str
    created_at: str | None
    created_by: str | None
    commits: int
    events: int
    deleted_at: str | None
    deleted_by: str | None


class TenantsAnswer(Wire):
    """Tenants by name; none are left where there are none."""

    tenants: list[TenantRecordAnswer]


class TenantUseAnswer(TenantRecordAnswer):
    """One tenant with the bytes that its log takes, what holds of it, and why it was deleted."""

    bytes: int
    policy: PolicyAnswer
    reason: str | None


class DeletedAnswer(TenantUseAnswer):
    """What is left of a deleted tenant, and how it stands with the files."""

    scrub: ScrubAnswer


class DecidedAnswer(Wire):
    """What holds of a tenant from `commit` on; null where it held already."""

    tenant: str
    policy: PolicyAnswer
    commit: int | None


class RetainAnswer(Wire):
    """What a retention policy erased, in how many erasures."""

    tenant: str
    erased: int
    erasures: int


class MovedAnswer(Wire):
    """An exported or restored tenant: the end of its log, the root of its tree, and all that is with it."""

    tenant: str
    commits: int
    events: int
    commit_hash: str
    root: str
    rows: int
    bytes: int


class ReasonBody(Wire):
    """Why a tenant is suspended, resumed or deleted."""

    reason: Name


class QuotaBody(Wire):
    """What bounds a tenant's log, and why. Null lifts a bound; one that is left out stays."""

    reason: Name
    events_max: Annotated[int, Field(ge=0, le=QUOTA_MAX)] | None = None
    bytes_max: Annotated[int, Field(ge=0, le=QUOTA_MAX)] | None = None
    events_per_minute: Annotated[int, Field(ge=1, le=RATE_EVENTS_MAX)] | None = None

    def change(self) -> dict[str, Any]:
        """
        Return what is decided.

        Raises:
            BadRequest: Nothing is.
        """
        change = self.model_dump(exclude={"reason"}, exclude_unset=True)
        if not change:
            raise BadRequest(field="events_max", reason="name a bound, or null to lift it")
        return change


class RetentionBody(Wire):
    """After how many days events are erased, and why; null for never."""

    reason: Name
    days: Annotated[int, Field(ge=1, le=RETENTION_DAYS_MAX)] | None
