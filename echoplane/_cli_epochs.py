"""Commands about epochs: `epochs list`, `epochs drop` and `rebuild`."""

from __future__ import annotations

from typing import Annotated

import typer

from contracts.epoch_wire import DropAnswer, EpochAnswer, EpochsAnswer, RebuildAnswer
from contracts.grants import LOCAL_GRANT
from contracts.limits import LIST_ROWS_MAX
from echoplane._cli_options import (
    DataDir,
    Json,
    Limit,
    Tenant,
    ask_whether_meant,
    print_json,
    print_line,
    run,
    settings_for,
)
from echoplane._failures import EXIT_OK
from echoplane._requests import read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(rebuild)
    epochs = typer.Typer(no_args_is_help=True, help="Projections of the log, one of which serves.")
    epochs.command("list")(list_epochs)
    epochs.command("drop")(drop_epoch)
    app.add_typer(epochs, name="epochs")


def list_epochs(
    *,
    tenant: Tenant,
    after: Annotated[int, typer.Option("--after", min=0, help="Begin after this number.")] = 0,
    limit: Limit = LIST_ROWS_MAX,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """List the epochs of a tenant: state, how far each is folded, and by which projector."""
    answer = run(_list(settings_for(data_dir), read_tenant(tenant), after=after, limit=limit))
    if json:
        print_json(answer)
        return EXIT_OK
    print_line(f"{'epoch':>5}  {'state':<9} {'folded':>8} {'head':>8}  projector")
    for epoch in answer.epochs:
        stopped = "" if epoch.stopped_at is None else f"  STOPPED before position {epoch.stopped_at}"
        folded = f"{epoch.commit:>8} {epoch.head:>8}"
        print_line(f"{epoch.epoch:>5}  {epoch.state:<9} {folded}  {epoch.projector}{stopped}")
    return EXIT_OK


async def _list(settings: Settings, tenant: str, *, after: int, limit: int) -> EpochsAnswer:
    async with with_plane(settings) as plane:
        from echoplane._epochs import epochs  # noqa: PLC0415 - the ledger is slow to load

        await plane.must_have(tenant)
        return await epochs(plane, tenant, after=after, limit=limit)


def rebuild(
    *,
    tenant: Tenant,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """
    Fold the whole log again, beside the epoch that serves; it takes over when it is complete.

    Stays until it does. If it is interrupted, a plane that is up goes on with it.
    """
    begun, epoch = run(_rebuild(settings_for(data_dir), read_tenant(tenant)))
    if json:
        print_json(begun)
        print_json(epoch)
    else:
        print_line(served(epoch))
    return EXIT_OK


async def _rebuild(settings: Settings, tenant: str) -> tuple[RebuildAnswer, EpochAnswer]:
    async with with_plane(settings) as plane:
        from echoplane import _epochs as cases  # noqa: PLC0415 - as above

        await plane.must_have(tenant)
        begun = await cases.rebuild(plane, tenant, grant=LOCAL_GRANT, actor_id="operator")
        return begun, await cases.wait_serving(plane, tenant, begun.epoch)


def served(epoch: EpochAnswer) -> str:
    """Return what became of an epoch that was built."""
    if epoch.state == "serving":
        return f"epoch {epoch.epoch} serves, folded to {epoch.commit} of {epoch.head}"
    return f"epoch {epoch.epoch} was given up for a newer one: see `echoplane epochs list`"


def drop_epoch(
    epoch: Annotated[int, typer.Argument(help="Its number.", min=1)],
    *,
    tenant: Tenant,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask whether it is meant.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Delete what a retired epoch made of the log. What was answered from it cannot be replayed any more."""
    name = read_tenant(tenant)
    question = f"Drop epoch {epoch} of {name}? Contexts that were made in it cannot be replayed any more."
    if not yes:
        ask_whether_meant(question, as_json=json, refused="nothing was dropped")
    answer = run(_drop(settings_for(data_dir), name, epoch))
    if json:
        print_json(answer)
    else:
        print_line(f"epoch {answer.epoch}: dropped, {answer.rows_count} rows")
    return EXIT_OK


async def _drop(settings: Settings, tenant: str, epoch: int) -> DropAnswer:
    async with with_plane(settings) as plane:
        from echoplane._epochs import drop  # noqa: PLC0415 - as above

        await plane.must_have(tenant)
        return await drop(plane, tenant, epoch, grant=LOCAL_GRANT)
