"""How a plane is, for `/readyz` and `/metrics`: what is wrong and why; numbers and states, no content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from contracts.errors import EchoplaneError, Unavailable
from contracts.grants import Grant, Right
from contracts.reports import ReadyAnswer
from echoplane._folders import DataFolder
from echoplane._state import is_worker, living_state
from echoplane._status import waited_seconds
from echoplane._wiring import Plane
from ledger.log import Connections, connections, standings
from projection import Queue, queue

LAG_SUSPECT_SECONDS: Final = 30.0
"""A commit that waits longer to be folded is worth a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """How one epoch of one tenant follows its log."""

    tenant: str
    epoch: int
    projector: str
    lag_commits: int
    lag_seconds: float
    folded_commits: int
    folded_events: int
    dead_letters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """
    One look at a plane. `projections` are all there are; `shown` those of tenants that the caller may see.

    `queue` is None where Redis does not answer.
    """

    projections: Sequence[Projection]
    shown: Sequence[Projection]
    connections: Sequence[Connections]
    queue: Queue | None


async def look(plane: Plane, *, grant: Grant | None) -> Look:
    """
    Look at projections, pools and queue.

    Raises:
        Unavailable: The database is down or busy.
    """
    found = await _projections(plane)
    try:
        depth = await queue(plane.servers.redis_url)
    except Unavailable:
        depth = None
    return Look(
        projections=found,
        shown=[each for each in found if _may_see(grant, each.tenant)],
        connections=connections(plane.database),
        queue=depth,
    )


async def readiness(plane: Plane) -> ReadyAnswer:
    """
    Return whether questions can be answered, and what is wrong.

    Without a worker, discovery or Redis they are, less well.
    """
    parts: dict[str, str] = {}
    ready = True
    try:
        parts["fold"] = _fold_state(await _projections(plane))
        parts["database"] = "ok"
    except EchoplaneError as error:
        ready, parts["database"] = False, f"down: {error} [{error.code}]"
    parts["worker"] = _worker_state(DataFolder.at(plane.settings.data_dir))
    parts["discovery"] = await _discovery_state(plane)
    try:
        await queue(plane.servers.redis_url)
        parts["redis"] = "ok"
    except Unavailable as error:
        parts["redis"] = f"down: {error}; nothing is folded until it is back"
    return ReadyAnswer(ready=ready, parts=parts)


def _fold_state(projections: Sequence[Projection]) -> str:
    stopped = {one.tenant for one in projections if one.dead_letters}
    behind = [
        one for one in projections if one.lag_seconds > LAG_SUSPECT_SECONDS and one.tenant not in stopped
    ]
    said = []
    if stopped:
        said.append(f"stopped for {len(stopped)} tenants by an event that cannot be folded: see `dead list`")
    if behind:
        seconds = max(one.lag_seconds for one in behind)
        said.append(f"behind for {len(behind)} epochs, by {seconds:.0f} s at most")
    return "; ".join(said) or "ok"


def _worker_state(folder: DataFolder) -> str:
    """Return how the worker of this plane is; a plane that nobody supervises has none of its own."""
    state = living_state(folder)
    roles = [] if state is None else [role for role in state.roles if is_worker(role.role)]
    if not roles:
        return "not started by this plane: nothing is folded unless another one does"
    down = [role for role in roles if role.process is None or not role.process.is_alive()]
    if not down:
        return "ok"
    said = f"down after {down[0].restarts} restarts: see log/{down[0].role}.log"
    if len(down) < len(roles):
        return f"{len(roles) - len(down)} of {len(roles)} run: {down[0].role} is {said}"
    return f"{said}; nothing is folded until it is back"


async def _discovery_state(plane: Plane) -> str:
    try:
        health = await plane.discovery.health()
    except Unavailable:
        return "down: answers are degraded"
    return "ok" if health.model_digest is not None else "loading its model"


async def _projections(plane: Plane) -> list[Projection]:
    now = plane.database.clock()
    found: list[Projection] = []
    for one in await standings(plane.database):
        found.append(
            Projection(
                tenant=one.tenant, epoch=one.epoch, projector=one.projector_version,
                lag_commits=one.head - one.cursor, lag_seconds=waited_seconds(one.waits_since, now=now),
                folded_commits=one.cursor, folded_events=one.position, dead_letters=one.dead_letters,
            )
        )  # fmt: skip
        if one.building:
            found.append(
                Projection(
                    tenant=one.tenant, epoch=one.building, projector=one.building_projector_version,
                    lag_commits=one.head - one.building_cursor,
                    lag_seconds=waited_seconds(one.building_waits_since, now=now),
                    folded_commits=one.building_cursor, folded_events=one.building_position,
                    dead_letters=one.building_dead_letters,
                )
            )  # fmt: skip
    return found


def _may_see(grant: Grant | None, tenant: str) -> bool:
    return grant is not None and Right.ASK in grant.rights and grant.tenant in {None, tenant}
