"""The command that reads the log: `events`."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import ValidationError

from contracts.limits import PAGE_EVENTS_MAX
from contracts.wire import EventAnswer, EventsAnswer
from echoplane._cli_options import DataDir, Json, Tenant, print_json, print_line, run, settings_for
from echoplane._event_pages import EventsParameters
from echoplane._failures import EXIT_OK, refusal
from echoplane._requests import read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(events)


def events(
    *,
    tenant: Tenant,
    commit: Annotated[int | None, typer.Option("--commit", help="Those of one commit.")] = None,
    stream: Annotated[str | None, typer.Option("--stream", help="Those of one stream.")] = None,
    after_version: Annotated[
        int | None, typer.Option("--after-version", help="Of a stream: after this version.")
    ] = None,
    correlation: Annotated[
        str | None, typer.Option("--correlation", help="Those with this correlation id.")
    ] = None,
    after_position: Annotated[
        int | None, typer.Option("--after-position", help="After this position of the log.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", help="At most so many.")] = PAGE_EVENTS_MAX,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """List a page of events, in the order of the log: of all, of a commit, a stream or a correlation id."""
    try:
        given = EventsParameters(
            commit=commit,
            stream=stream,
            after_version=after_version,
            correlation=correlation,
            after_position=after_position,
            limit=limit,
        )
    except ValidationError as error:
        raise refusal(error) from None
    answer = run(_page(settings_for(data_dir), read_tenant(tenant), given))
    for one in answer.events:
        if json:
            print_json(one)
        else:
            print_line(_line(one))
    return EXIT_OK


async def _page(settings: Settings, tenant: str, given: EventsParameters) -> EventsAnswer:
    async with with_plane(settings) as plane:
        from echoplane._following import listed  # noqa: PLC0415 - the ledger is slow to load

        await plane.must_have(tenant)
        return await listed(plane, tenant, given)


def _line(event: EventAnswer) -> str:
    said = "erased" if event.event is None else f"{event.event.stream}  {_on_one_line(event.event.text)}"
    return f"{event.position:>8}  {event.recorded_at}  {event.event_id}  {event.kind}  {said}".rstrip()


def _on_one_line(text: str | None) -> str:
    return " ".join((text or "").split())
