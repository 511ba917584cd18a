"""The use cases of dead letters: list what stops a tenant, try it again, decide that it is passed over."""

from __future__ import annotations

from contracts.dead_wire import DeadLetterAnswer, DeadLettersAnswer, RetryAnswer, SkipAnswer
from contracts.grants import Grant
from contracts.times import format_instant
from echoplane._plane import ask_for
from echoplane._state import Role
from echoplane._wiring import Plane
from ledger.write import DeadLetter, dead_letters, retry_event, skip_event
from projection import RuleProjector


async def dead(plane: Plane, tenant: str) -> DeadLettersAnswer:
    """Return what stops a tenant."""
    found = await dead_letters(plane.database, tenant)
    return DeadLettersAnswer(tenant=tenant, dead=[_answer(one) for one in found])


async def retry(plane: Plane, tenant: str, position: int, *, grant: Grant) -> RetryAnswer:
    """Try again, in this very process, to fold an event; the worker goes on behind it."""
    still = await retry_event(plane.database, tenant, RuleProjector(), position=position, grant=grant)
    await ask_for(plane.settings, Role.WORKER)
    return RetryAnswer(
        tenant=tenant, position=position, passed=still is None, dead=None if still is None else _answer(still)
    )


async def skip(plane: Plane, tenant: str, position: int, *, reason: str, grant: Grant) -> SkipAnswer:
    """Decide that an event is passed over; the worker goes on behind it."""
    skipped = await skip_event(
        plane.database, tenant, position=position, reason=reason, actor_id="operator", grant=grant
    )
    await ask_for(plane.settings, Role.WORKER)
    return SkipAnswer(
        tenant=tenant,
        position=position,
        event_id=skipped.event_id,
        epoch=skipped.epoch,
        commit=skipped.commit,
        decided=skipped.is_new,
    )


def _answer(one: DeadLetter) -> DeadLetterAnswer:
    return DeadLetterAnswer(
        epoch=one.epoch,
        building=one.is_building,
        position=one.position,
        event_id=one.event_id,
        kind=one.kind.value,
        commit=one.commit,
        error=one.error,
        attempts=one.attempts,
        first_at=format_instant(one.first_at),
        last_at=format_instant(one.last_at),
    )
