"""The use cases of epochs: list them, rebuild, change a contract in use, drop, wait until one serves."""

from __future__ import annotations

import asyncio

from contracts.epoch_wire import DropAnswer, EpochAnswer, EpochsAnswer, RebuildAnswer
from contracts.errors import OtherProjector, Poisoned, Unavailable
from contracts.grants import EPOCHS, Grant
from echoplane._plane import ask_for
from echoplane._state import Role
from echoplane._wiring import FOLD_STALL_SECONDS, Plane
from ledger.log import Epoch, EpochState, list_epochs
from ledger.write import begin_epoch, drop_epoch
from projection import RuleProjector

_POLL_SECONDS = 0.1


async def epochs(plane: Plane, tenant: str, *, after: int, limit: int) -> EpochsAnswer:
    """Return a page of the epochs of a tenant: those after one."""
    found = await list_epochs(plane.database, tenant, after=after, limit=limit)
    return EpochsAnswer(tenant=tenant, epochs=[_answer(epoch) for epoch in found])


async def rebuild(plane: Plane, tenant: str, *, grant: Grant, actor_id: str) -> RebuildAnswer:
    """Begin to fold the whole log again, by the projector of this build, beside the epoch that serves."""
    begun = await begin_epoch(
        plane.database,
        tenant,
        projector_version=RuleProjector().version,
        stream=EPOCHS,
        actor_id=actor_id,
        grant=grant,
    )
    return RebuildAnswer(tenant=tenant, epoch=begun.epoch, begun=begun.is_new)


async def drop(plane: Plane, tenant: str, epoch: int, *, grant: Grant) -> DropAnswer:
    """Delete what a retired epoch made of the log."""
    rows_count = await drop_epoch(plane.database, tenant, epoch, grant=grant)
    return DropAnswer(tenant=tenant, epoch=epoch, rows_count=rows_count)


async def wait_serving(plane: Plane, tenant: str, number: int) -> EpochAnswer:
    """
    Wait until an epoch serves, as long as it moves, or until another one has taken its place.

    Raises:
        Poisoned: An event stops it.
        OtherProjector: It was begun by another version of the projector.
        Unavailable: Nothing moved for `FOLD_STALL_SECONDS`.
    """
    await ask_for(plane.settings, Role.WORKER)
    clock = asyncio.get_running_loop().time
    moved, commit = clock(), -1
    while True:
        found = await list_epochs(plane.database, tenant)
        epoch = next(one for one in found if one.number == number)
        if epoch.state is not EpochState.BUILDING:
            return _answer(epoch)
        if epoch.stopped_at is not None:
            raise Poisoned(epoch=number, position=epoch.stopped_at, error="see the worker's log")
        if epoch.projector_version not in {"", RuleProjector().version}:
            raise OtherProjector(
                epoch=number, begun_by=epoch.projector_version, given=RuleProjector().version
            )
        if epoch.commit != commit:
            moved, commit = clock(), epoch.commit
        if clock() - moved > FOLD_STALL_SECONDS:
            raise Unavailable(
                part="worker", reason=f"epoch {number} is at {epoch.commit} of {epoch.head} and stands still"
            )
        await asyncio.sleep(_POLL_SECONDS)


def _answer(epoch: Epoch) -> EpochAnswer:
    return EpochAnswer(
        epoch=epoch.number,
        state=epoch.state.value,
        commit=epoch.commit,
        head=epoch.head,
        lag=epoch.head - epoch.commit,
        projector=epoch.projector_version,
        stopped_at=epoch.stopped_at,
    )
