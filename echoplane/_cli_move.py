"""Commands that move a tenant from one plane to another: `export` and `restore`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from contracts.grants import LOCAL_GRANT
from contracts.tenant_wire import MovedAnswer
from echoplane._cli_options import DataDir, Json, Tenant, print_json, print_line, run, settings_for
from echoplane._failures import EXIT_OK
from echoplane._keys import read_key
from echoplane._requests import read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("export")(export_folder)
    app.command("restore")(restore_folder)


def export_folder(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to; empty, or not there yet.")],
    *,
    tenant: Tenant,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Write a tenant, as it is at one instant, as JSON lines with a manifest that `restore` checks."""
    answer = run(_export(settings_for(data_dir), read_tenant(tenant), folder))
    _print(answer, "exported", as_json=json)
    return EXIT_OK


async def _export(settings: Settings, tenant: str, folder: Path) -> MovedAnswer:
    async with with_plane(settings) as plane:
        from echoplane._tenants import export  # noqa: PLC0415 - the ledger is slow to load

        return await export(plane, tenant, folder, grant=LOCAL_GRANT)


def restore_folder(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `export` wrote.")],
    *,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Whose export it has to be; else any.")
    ] = None,
    master_key: Annotated[
        Path | None,
        typer.Option("--master-key", help="File with the master key of the plane it comes from."),
    ] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Make a tenant of an export: times, commits, hashes, epochs and contexts as they were; or nothing."""
    name = None if tenant is None else read_tenant(tenant)
    key = None if master_key is None else read_key(master_key.expanduser(), named_by="--master-key")
    answer = run(_restore(settings_for(data_dir), folder, name, key))
    _print(answer, "restored", as_json=json)
    return EXIT_OK


async def _restore(settings: Settings, folder: Path, tenant: str | None, key: bytes | None) -> MovedAnswer:
    async with with_plane(settings) as plane:
        from echoplane._tenants import restore  # noqa: PLC0415 - as above

        return await restore(plane, folder, tenant=tenant, master_key=key, grant=LOCAL_GRANT)


def _print(answer: MovedAnswer, done: str, *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    print_line(
        f"{answer.tenant}: {done} {answer.commits} commits, {answer.events} events, {answer.rows} rows "
        f"({answer.bytes} bytes)"
    )
    print_line(f"  hash  {answer.commit_hash}")
    print_line(f"  root  {answer.root}")
