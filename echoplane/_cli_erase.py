"""Commands that make the plane forget: `erase`, and `scrub` for the files."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import ValidationError

from contracts.erasure_wire import ErasureAnswer, ErasureBody, ScrubAnswer
from contracts.erasures import ErasureRequest
from contracts.grants import LOCAL_GRANT
from echoplane._cli_options import (
    DataDir,
    Json,
    Tenant,
    ask_whether_meant,
    print_json,
    print_line,
    run,
    settings_for,
)
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE, refusal
from echoplane._requests import read_tenant
from echoplane._scrub import settle, settled
from echoplane._session import with_plane
from echoplane._settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(erase)
    app.command()(scrub)


def erase(
    *,
    tenant: Tenant,
    subject: Annotated[
        str | None, typer.Option("--subject", help="An entity, with all it is one with.")
    ] = None,
    event: Annotated[list[str] | None, typer.Option("--event", help="An event id; repeat it.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Whether to stay until the files are scrubbed.")
    ] = True,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Erase a subject or events, for ever, and scrub the files. Exit 1 if they could not be scrubbed."""
    name = read_tenant(tenant)
    request = _request(subject, event)
    if not yes:
        _ask(name, request, as_json=json)
    answer = run(_erase(settings_for(data_dir), name, request, wait=wait))
    if json:
        print_json(answer)
    else:
        _print(answer)
    return EXIT_VERDICT_FALSE if wait and answer.scrub.state == "pending" else EXIT_OK


def _ask(tenant: str, request: ErasureRequest, *, as_json: bool) -> None:
    if request.subject is None:
        what = f"{len(request.event_ids)} events"
    else:
        what = f"{request.subject}, with all that it is one with,"
    question = f"Erase {what} from {tenant}? Nothing brings it back."
    ask_whether_meant(question, as_json=as_json, refused="nothing was erased")


def _request(subject: str | None, events: list[str] | None) -> ErasureRequest:
    try:
        return ErasureBody(subject=subject, events=events or None).request()
    except ValidationError as error:
        raise refusal(error) from None


async def _erase(settings: Settings, tenant: str, request: ErasureRequest, *, wait: bool) -> ErasureAnswer:
    async with with_plane(settings) as plane:
        # Loaded here: the ledger is slow to load, and the plane has been starting meanwhile.
        from echoplane._erasing import erase as erase_from  # noqa: PLC0415

        answer = await erase_from(plane, tenant, request, grant=LOCAL_GRANT)
        if not wait:
            return answer
        # Erased it is: where the files could not be scrubbed, the report says why.
        return answer.model_copy(update={"scrub": await settled(settings)})


def _print(answer: ErasureAnswer) -> None:
    if answer.event_id is None:
        print_line(f"{answer.tenant}: nothing to erase ({len(answer.already_erased)} erased before)")
    else:
        print_line(
            f"{answer.tenant}: erased {len(answer.erased)} events in commit {answer.commit} "
            f"({answer.tombstones_count} tombstones, {answer.contexts_count} contexts, "
            f"{answer.trails_count} trails, {answer.units_count} units)"
        )
    print_scrub(answer.scrub)


def scrub(*, data_dir: DataDir = None, json: Json = False) -> int:
    """Take the bytes of everything erased out of the files. Exit 1 if an operator has to see to some."""
    answer = run(_scrub(settings_for(data_dir)))
    if json:
        print_json(answer)
    else:
        print_scrub(answer)
    return EXIT_OK if answer.state == "done" else EXIT_VERDICT_FALSE


async def _scrub(settings: Settings) -> ScrubAnswer:
    async with with_plane(settings):
        return await settle(settings, force=True)


def print_scrub(answer: ScrubAnswer) -> None:
    """Print how it stands with the files."""
    print_line(f"scrub: {answer.state}")
    if answer.state == "pending":
        print_line(f"  {answer.failure or 'the plane does it in the background'}; or `echoplane scrub`")
        return
    for place in answer.places:
        print_line(f"  {place.state:<8} {place.place}: {place.words}")
