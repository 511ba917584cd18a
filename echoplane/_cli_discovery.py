"""The command `reindex`."""

from __future__ import annotations

from typing import Annotated

import typer

from contracts.discovery_wire import ReindexAnswer
from echoplane._cli_options import DataDir, Json, print_json, print_line, run, settings_for
from echoplane._failures import EXIT_OK
from echoplane._requests import read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings
from echoplane._state import Role

OneTenant = Annotated[str | None, typer.Option("--tenant", help="Which one; without it all of them.")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("reindex")(reindex)


def reindex(*, tenant: OneTenant = None, data_dir: DataDir = None, json: Json = False) -> int:
    """Drop discovery's index of a tenant, or of all, with the vectors of every model; it is made anew."""
    names = None if tenant is None else [read_tenant(tenant)]
    for answer in run(_reindex(settings_for(data_dir), names)):
        if json:
            print_json(answer)
        else:
            print_line(f"{answer.tenant}: {answer.vectors_dropped} vectors dropped; they are made anew")
    return EXIT_OK


async def _reindex(settings: Settings, names: list[str] | None) -> list[ReindexAnswer]:
    async with with_plane(settings, Role.DISCOVERY) as plane:
        await plane.wait_discovery()
        chosen = [one.tenant for one in await plane.standing()] if names is None else names
        return [await plane.reindex(name) for name in chosen]
