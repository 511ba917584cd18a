"""What PostgreSQL refuses of a tenant, by the name of its constraint, as errors that say who acts."""

from __future__ import annotations

from typing import Final

from contracts.errors import EchoplaneError, QuotaExceeded, RateExceeded, TenantSuspended, TenantTaken

TENANT_REFUSALS: Final = (TenantSuspended, QuotaExceeded, RateExceeded)
"""What holds a tenant back; nothing was written, of this append or of any that went with it."""


def refusal_of(constraint: str | None, detail: str | None) -> EchoplaneError | None:
    """Return the error that a constraint of 0003_tenants.sql stands for; None for any other."""
    words = (detail or "").split()
    match constraint:
        case "tenant_taken":
            return TenantTaken()
        case "tenant_suspended":
            return TenantSuspended()
        case "tenant_quota":
            quota, allowed, given = words
            return QuotaExceeded(quota=quota, allowed=int(allowed), given=int(given))
        case "tenant_rate":
            allowed, seconds = words
            return RateExceeded(events_per_minute=int(allowed), retry_after_seconds=float(seconds))
        case _:
            return None
