"""Commands about dead letters: `dead list`, `dead retry` and `dead skip`."""

from __future__ import annotations

from typing import Annotated

import typer

from contracts.dead_wire import DeadLettersAnswer, RetryAnswer, SkipAnswer
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
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE
from echoplane._requests import COMMIT_DIGITS_MAX, read_name, read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings

Position = Annotated[
    int, typer.Argument(help="Of the event, as `dead list` says.", min=1, max=10**COMMIT_DIGITS_MAX - 1)
]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    dead = typer.Typer(no_args_is_help=True, help="Events that cannot be folded and stop their tenant.")
    dead.command("list")(list_dead)
    dead.command("retry")(retry_dead)
    dead.command("skip")(skip_dead)
    app.add_typer(dead, name="dead")


def list_dead(*, tenant: Tenant, data_dir: DataDir = None, json: Json = False) -> int:
    """List the events that stop a tenant. Exit 1 if there is one."""
    answer = run(_list(settings_for(data_dir), read_tenant(tenant)))
    if json:
        print_json(answer)
    elif not answer.dead:
        print_line(f"nothing stops {answer.tenant}")
    for one in () if json else answer.dead:
        which = "which is being built" if one.building else "which serves"
        print_line(f"epoch {one.epoch}, {which}, waits before position {one.position} (commit {one.commit})")
        print_line(f"  event     {one.event_id} ({one.kind})")
        print_line(f"  error     {one.error}, tried {one.attempts} times")
        print_line(f"  first     {one.first_at}")
        print_line(f"  last      {one.last_at}")
    return EXIT_VERDICT_FALSE if answer.dead else EXIT_OK


async def _list(settings: Settings, tenant: str) -> DeadLettersAnswer:
    async with with_plane(settings) as plane:
        from echoplane._dead import dead  # noqa: PLC0415 - the ledger is slow to load

        await plane.must_have(tenant)
        return await dead(plane, tenant)


def retry_dead(position: Position, *, tenant: Tenant, data_dir: DataDir = None, json: Json = False) -> int:
    """Try now to fold an event that stops a tenant. Exit 1 if it still cannot be."""
    answer = run(_retry(settings_for(data_dir), read_tenant(tenant), position))
    if json:
        print_json(answer)
    elif answer.dead is None:
        print_line(f"position {position} is folded; what comes after it follows")
    else:
        print_line(f"position {position} still cannot be folded: {answer.dead.error}")
    return EXIT_OK if answer.passed else EXIT_VERDICT_FALSE


async def _retry(settings: Settings, tenant: str, position: int) -> RetryAnswer:
    async with with_plane(settings) as plane:
        from echoplane._dead import retry  # noqa: PLC0415 - as above

        return await retry(plane, tenant, position, grant=LOCAL_GRANT)


def skip_dead(
    position: Position,
    *,
    tenant: Tenant,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the log.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Decide, for good, that an event that stops a tenant is passed over by this fold and every later one."""
    name, why = read_tenant(tenant), read_name(reason, field="--reason")
    question = f"Skip the event at position {position} of {name}? Nothing that it says is ever remembered."
    if not yes:
        ask_whether_meant(question, as_json=json, refused="nothing was decided")
    answer = run(_skip(settings_for(data_dir), name, position, why))
    if json:
        print_json(answer)
    else:
        said = "skipped" if answer.decided else "was skipped before"
        print_line(
            f"position {answer.position}: {said}, from epoch {answer.epoch} on, by commit {answer.commit}"
        )
    return EXIT_OK


async def _skip(settings: Settings, tenant: str, position: int, reason: str) -> SkipAnswer:
    async with with_plane(settings) as plane:
        from echoplane._dead import skip  # noqa: PLC0415 - as above

        return await skip(plane, tenant, position, reason=reason, grant=LOCAL_GRANT)
