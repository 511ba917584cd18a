"""What the doors say about the plane itself: how it stands, what is wrong, whether it is ready."""

from __future__ import annotations

from typing import Any, Literal

from contracts._wire import Wire


class RoleStatus(Wire):
    """One role process as the supervisor sees it."""

    role: str
    pid: int | None
    state: Literal["running", "waiting", "stopped"]
    restarts: int


class BuildingStatus(Wire):
    """Where an epoch stands that is being built beside the one that serves."""

    epoch: int
    cursor: int
    lag: int
    lag_seconds: float
    dead_letters: int


class TenantStatus(Wire):
    """
    Where a tenant's log and its serving epoch stand.

    `lag` is in commits, `lag_seconds` how long the oldest of them has waited to be folded.
    `projector` made the serving epoch; empty until something is folded.
    """

    tenant: str
    head: int
    cursor: int
    epoch: int
    lag: int
    lag_seconds: float
    dead_letters: int
    projector: str
    building: BuildingStatus | None


class StatusAnswer(Wire):
    """Whether the plane runs, and how it stands. `failure` says why `tenants` could not be read."""

    up: bool
    mode: Literal["up", "ephemeral", "down"]
    supervisor: int | None
    data_dir: str
    http: str | None
    roles: list[RoleStatus]
    tenants: list[TenantStatus]
    failure: str | None


class CheckAnswer(Wire):
    """One check of `doctor`: what was found, and what to do where it is not ok."""

    check: str
    ok: bool
    found: str
    act: str | None


class DoctorAnswer(Wire):
    """All checks; `ok` where every one is."""

    ok: bool
    checks: list[CheckAnswer]


class HealthAnswer(Wire):
    """The process lives."""

    status: Literal["ok"]


class ReadyAnswer(Wire):
    """Whether questions can be answered, and why not. Parts that only degrade are listed too."""

    ready: bool
    parts: dict[str, str]


class MismatchAnswer(Wire):
    """
    Where a ledger and a case differ: what the case expects and what the ledger has.

    `error` says instead why there is nothing to compare: the case is not of its format, or was refused.
    """

    case: str
    where: str
    expected: Any
    found: Any
    error: str | None


class ConformanceAnswer(Wire):
    """
    How a file of cases went. Each query agreed, is among the `mismatched`, or is not applicable.

    `mismatched` also counts what was accepted or refused against the case's word.
    """

    cases: int
    queries: int
    agreed: int
    mismatched: int
    not_applicable: int
