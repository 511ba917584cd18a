"""Commands about tenants: who there is, what holds of each, and deleting one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from pydantic import ValidationError

from contracts.errors import BadRequest
from contracts.grants import LOCAL_GRANT
from contracts.limits import LIST_ROWS_MAX
from contracts.tenant_wire import (
    DecidedAnswer,
    DeletedAnswer,
    QuotaBody,
    RetainAnswer,
    RetentionBody,
    TenantsAnswer,
    TenantUseAnswer,
)
from contracts.wire import TenantAnswer
from echoplane._cli_erase import print_scrub
from echoplane._cli_options import (
    After,
    DataDir,
    Json,
    Limit,
    ask_whether_meant,
    print_json,
    print_line,
    run,
    settings_for,
)
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE, refusal
from echoplane._requests import read_name, read_tenant
from echoplane._scrub import settle, settled
from echoplane._session import with_plane
from echoplane._settings import Settings

if TYPE_CHECKING:
    from echoplane._wiring import Plane

Answer = TypeVar("Answer")

Name = Annotated[str, typer.Argument(metavar="TENANT", help="Its name.")]
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the log, or where it was.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")]
NONE = "none"


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    tenants = typer.Typer(no_args_is_help=True, help="Who there is, what holds of each, and deleting one.")
    tenants.command("create")(create_tenant)
    tenants.command("list")(list_tenants)
    tenants.command("show")(show_tenant)
    tenants.command("suspend")(suspend_tenant)
    tenants.command("resume")(resume_tenant)
    tenants.command("quota")(set_quota)
    tenants.command("retention")(set_retention)
    tenants.command("retain")(retain_tenant)
    tenants.command("delete")(delete_tenant)
    app.add_typer(tenants, name="tenants")


def create_tenant(tenant: Name, *, data_dir: DataDir = None, json: Json = False) -> int:
    """Make a tenant unless it is there."""
    name = read_tenant(tenant)

    async def work(plane: Plane) -> TenantAnswer:
        from echoplane._tenants import OPERATOR  # noqa: PLC0415 - the ledger is slow to load

        return TenantAnswer(tenant=name, created=await plane.make_tenant(name, created_by=OPERATOR))

    answer = run(_with(settings_for(data_dir), work))
    if json:
        print_json(answer)
    else:
        print_line(f"{name}: {'made' if answer.created else 'is there already'}")
    return EXIT_OK


def list_tenants(
    *, after: After = None, limit: Limit = LIST_ROWS_MAX, data_dir: DataDir = None, json: Json = False
) -> int:
    """List tenants by name, deleted ones too."""

    async def work(plane: Plane) -> TenantsAnswer:
        from echoplane._tenants import tenants  # noqa: PLC0415 - as above

        return await tenants(plane, after=after or "", limit=limit, only=None)

    answer = run(_with(settings_for(data_dir), work))
    if json:
        print_json(answer)
        return EXIT_OK
    print_line(f"{'state':<9} {'commits':>9} {'events':>9}  tenant")
    for one in answer.tenants:
        print_line(f"{one.state:<9} {one.commits:>9} {one.events:>9}  {one.tenant}")
    return EXIT_OK


def show_tenant(tenant: Name, *, data_dir: DataDir = None, json: Json = False) -> int:
    """Show a tenant's state, what its log takes, and what holds of it; of a deleted one, what is left."""
    name = read_tenant(tenant)

    async def work(plane: Plane) -> TenantUseAnswer:
        from echoplane._tenants import show  # noqa: PLC0415 - as above

        return await show(plane, name)

    answer = run(_with(settings_for(data_dir), work))
    if json:
        print_json(answer)
    else:
        _print_use(answer)
    return EXIT_OK


def suspend_tenant(tenant: Name, *, reason: Reason, data_dir: DataDir = None, json: Json = False) -> int:
    """Take no more appends of a tenant. It is still read, folded and erased from."""
    return _decide(settings_for(data_dir), tenant, {"suspended": True}, reason=reason, as_json=json)


def resume_tenant(tenant: Name, *, reason: Reason, data_dir: DataDir = None, json: Json = False) -> int:
    """Take appends of a suspended tenant again."""
    return _decide(settings_for(data_dir), tenant, {"suspended": False}, reason=reason, as_json=json)


def set_quota(
    tenant: Name,
    *,
    events: Annotated[str | None, typer.Option("--events", help="Of the whole log, or `none`.")] = None,
    size: Annotated[str | None, typer.Option("--bytes", help="Of all its events, or `none`.")] = None,
    per_minute: Annotated[
        str | None, typer.Option("--per-minute", help="Events, on average; or `none`.")
    ] = None,
    reason: Reason,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Bound a tenant's log; a bound that is not named stays as it is."""
    given = {"events_max": events, "bytes_max": size, "events_per_minute": per_minute}
    bounds = {name: _number(value, name) for name, value in given.items() if value is not None}
    try:
        change = QuotaBody(reason=reason, **bounds).change()
    except ValidationError as error:
        raise refusal(error) from None
    return _decide(settings_for(data_dir), tenant, change, reason=reason, as_json=json)


def set_retention(
    tenant: Name,
    *,
    days: Annotated[str, typer.Option("--days", help="After so many an event is erased; `none`: never.")],
    reason: Reason,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Have events erased once they are too old. A plane that is up looks for them every hour."""
    try:
        body = RetentionBody(reason=reason, days=_number(days, "days"))
    except ValidationError as error:
        raise refusal(error) from None
    change = {"retention_days": body.days}
    return _decide(settings_for(data_dir), tenant, change, reason=reason, as_json=json)


def retain_tenant(tenant: Name, *, data_dir: DataDir = None, json: Json = False) -> int:
    """Erase now what is too old by a tenant's retention policy, and scrub the files."""
    name, settings = read_tenant(tenant), settings_for(data_dir)

    async def work(plane: Plane) -> RetainAnswer:
        from echoplane._retention import retain  # noqa: PLC0415 - as above

        await plane.must_have(name)
        answer = await retain(plane, name)
        await settle(settings)
        return answer

    answer = run(_with(settings, work))
    if json:
        print_json(answer)
    else:
        print_line(f"{name}: erased {answer.erased} events in {answer.erasures} erasures")
    return EXIT_OK


def delete_tenant(
    tenant: Name,
    *,
    reason: Reason,
    yes: Yes = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Whether to stay until the files are scrubbed.")
    ] = True,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Delete a tenant whole, for ever, and scrub the files; its name is not given again."""
    name, why, settings = read_tenant(tenant), read_name(reason, field="--reason"), settings_for(data_dir)
    question = f"Delete {name}, with all that it remembers? Nothing brings it back, and nobody gets its name."
    if not yes:
        ask_whether_meant(question, as_json=json, refused="nothing was deleted")

    async def work(plane: Plane) -> DeletedAnswer:
        from echoplane._tenants import delete  # noqa: PLC0415 - as above

        answer = await delete(plane, name, reason=why, grant=LOCAL_GRANT)
        # Deleted it is: where the files could not be scrubbed, the report says why.
        return answer.model_copy(update={"scrub": await settled(settings)}) if wait else answer

    answer = run(_with(settings, work))
    if json:
        print_json(answer)
    else:
        _print_use(answer)
        print_scrub(answer.scrub)
    return EXIT_VERDICT_FALSE if wait and answer.scrub.state == "pending" else EXIT_OK


async def _with(settings: Settings, work: Callable[[Plane], Awaitable[Answer]]) -> Answer:
    async with with_plane(settings) as plane:
        return await work(plane)


def _decide(settings: Settings, tenant: str, change: dict[str, Any], *, reason: str, as_json: bool) -> int:
    name, why = read_tenant(tenant), read_name(reason, field="--reason")

    async def work(plane: Plane) -> DecidedAnswer:
        from echoplane._tenants import decide  # noqa: PLC0415 - as above

        return await decide(plane, name, change, reason=why, grant=LOCAL_GRANT)

    answer = run(_with(settings, work))
    if as_json:
        print_json(answer)
        return EXIT_OK
    said = "holds already" if answer.commit is None else f"decided by commit {answer.commit}"
    print_line(f"{name}: {said}")
    _print_policy(answer)
    return EXIT_OK


def _number(text: str, field: str) -> int | None:
    if text == NONE:
        return None
    if not text.isascii() or not text.isdigit():
        raise BadRequest(field=field, reason=f"a number, or `{NONE}`")
    return int(text)


def _print_use(one: TenantUseAnswer) -> None:
    made = "" if one.created_at is None else f", made {one.created_at} by {one.created_by}"
    print_line(f"{one.tenant}: {one.state}{made}")
    if one.deleted_at is not None:
        print_line(f"  deleted    {one.deleted_at} by {one.deleted_by}: {one.reason}")
    print_line(f"  log        {one.commits} commits, {one.events} events, {one.bytes} bytes")
    if one.deleted_at is None:
        _print_policy(one)


def _print_policy(one: TenantUseAnswer | DecidedAnswer) -> None:
    policy = one.policy
    print_line(f"  appends    {'suspended' if policy.suspended else 'taken'}")
    print_line(f"  quota      {_shown(policy.events_max)} events, {_shown(policy.bytes_max)} bytes")
    print_line(f"  rate       {_shown(policy.events_per_minute)} events a minute")
    print_line(f"  retention  {_shown(policy.retention_days)} days")


def _shown(bound: int | None) -> str:
    return "any number of" if bound is None else str(bound)
