"""The use cases of reading events, and the form in which a commit is sent to whoever follows."""

from __future__ import annotations

from collections.abc import Sequence

from contracts.limits import PAGE_BYTES_MAX
from contracts.times import format_instant
from contracts.wire import EventsAnswer, FollowedAnswer
from echoplane._event_pages import EventsParameters
from echoplane._present import event_answer
from echoplane._requests import read_number
from echoplane._wiring import Plane
from ledger.log import (
    FollowedCommit,
    LoggedEvent,
    aside,
    read_commit,
    read_correlated,
    read_events,
    read_stream,
    tenant_keys,
)


async def listed(plane: Plane, tenant: str, page: EventsParameters) -> EventsAnswer:
    """Return the events of a commit, or a page of a stream, of what is correlated, or of the log."""
    async with plane.long_reads.of(tenant):
        events = await _found(plane, tenant, page)

        def answer() -> EventsAnswer:
            return EventsAnswer(tenant=tenant, events=[event_answer(tenant, event) for event in events])

        return await aside(answer, items=len(events))


async def _found(plane: Plane, tenant: str, page: EventsParameters) -> Sequence[LoggedEvent]:
    database, after, limit = plane.database, page.after_position or 0, page.limit
    if page.commit is not None:
        return (await read_commit(database, tenant, page.commit)).events
    if page.stream is not None:
        return await read_stream(
            database, tenant, page.stream, after_version=page.after_version or 0, limit=limit
        )
    if page.correlation is not None:
        return await read_correlated(database, tenant, page.correlation, after_position=after, limit=limit)
    async with database.snapshot(tenant) as conn:
        keys = await tenant_keys(database, tenant, conn)
        return await read_events(conn, keys, after_position=after, limit=limit, bytes_max=PAGE_BYTES_MAX)


def commit_message(tenant: str, commit: FollowedCommit) -> bytes:
    """Return a commit as a server-sent event: its number is the id from which a follower goes on."""
    answer = FollowedAnswer(
        tenant=tenant,
        commit=commit.commit,
        recorded_at=format_instant(commit.recorded_at),
        commit_hash=commit.hash.hex(),
        events=[event_answer(tenant, event) for event in commit.events],
    )
    return f"id: {commit.commit}\nevent: commit\ndata: {answer.model_dump_json(by_alias=True)}\n\n".encode()


def last_seen(last_event_id: str | None, after_commit: int) -> int:
    """
    Return after which commit to begin.

    Raises:
        BadRequest: A `Last-Event-ID` that we did not send.
    """
    return after_commit if last_event_id is None else read_number(last_event_id, field="Last-Event-ID")
