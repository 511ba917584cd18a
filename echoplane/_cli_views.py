"""Commands about views by name: `pin`, and `views list`, `show` and `remove`."""

from __future__ import annotations

from typing import Annotated

import typer

from contracts.errors import BadRequest
from contracts.limits import LIST_ROWS_MAX
from contracts.read_wire import PinnedViewAnswer
from contracts.views import ViewRequest
from echoplane._cli_options import (
    After,
    DataDir,
    GenerationOption,
    Json,
    KnownAtOption,
    Limit,
    MinCommit,
    Tenant,
    ValidAtOption,
    print_json,
    print_line,
    run,
    settings_for,
)
from echoplane._failures import EXIT_OK
from echoplane._requests import page_of, read_tenant, read_view
from echoplane._session import with_plane
from echoplane._settings import Settings

NOW = "now"

ViewArgument = Annotated[str, typer.Argument(metavar="NAME", help="1 to 63 of A-Z a-z 0-9 . _ -")]


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(pin)
    views = typer.Typer(no_args_is_help=True, help="Views that were pinned by name.")
    views.command("list")(list_views)
    views.command("show")(show_view)
    views.command("remove")(remove_view)
    app.add_typer(views, name="views")


def pin(
    name: ViewArgument,
    *,
    tenant: Tenant,
    at: Annotated[
        str | None, typer.Option("--at", help="`now`, or an instant: what held then, as known then.")
    ] = None,
    valid_at: ValidAtOption = None,
    known_at: KnownAtOption = None,
    generation: GenerationOption = None,
    min_commit: MinCommit = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Give a view a name, for good: asking at it later answers as it does now."""
    if at is not None and (valid_at is not None or known_at is not None):
        raise BadRequest(field="--at", reason="says both times; leave out --valid-at and --known-at")
    if at not in {None, NOW}:
        valid_at = known_at = at
    request = read_view(valid_at=valid_at, known_at=known_at, generation=generation, min_commit=min_commit)
    _print(run(_pin(settings_for(data_dir), read_tenant(tenant), name, request)), as_json=json)
    return EXIT_OK


async def _pin(settings: Settings, tenant: str, name: str, request: ViewRequest) -> PinnedViewAnswer:
    async with with_plane(settings) as plane:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        await plane.must_have(tenant)
        request = await plane.after_last_commit(tenant, request)
        return await _reads.pin_view(plane, tenant, name, request)


def list_views(
    *,
    tenant: Tenant,
    after: After = None,
    limit: Limit = LIST_ROWS_MAX,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """List the views that were pinned."""
    found = run(_list(settings_for(data_dir), read_tenant(tenant)))
    for answer in page_of(found, lambda one: one.name, after=after, limit=limit):
        _print(answer, as_json=json)
    return EXIT_OK


async def _list(settings: Settings, tenant: str) -> list[PinnedViewAnswer]:
    async with with_plane(settings) as plane:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        await plane.must_have(tenant)
        return await _reads.list_views(plane, tenant)


def show_view(name: ViewArgument, *, tenant: Tenant, data_dir: DataDir = None, json: Json = False) -> int:
    """Show which view a name stands for."""
    _print(run(_show(settings_for(data_dir), read_tenant(tenant), name)), as_json=json)
    return EXIT_OK


async def _show(settings: Settings, tenant: str, name: str) -> PinnedViewAnswer:
    async with with_plane(settings) as plane:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        await plane.must_have(tenant)
        return await _reads.show_view(plane, tenant, name)


def remove_view(name: ViewArgument, *, tenant: Tenant, data_dir: DataDir = None, json: Json = False) -> int:
    """Take a name away; it may then stand for another view."""
    _print(run(_remove(settings_for(data_dir), read_tenant(tenant), name)), as_json=json)
    return EXIT_OK


async def _remove(settings: Settings, tenant: str, name: str) -> PinnedViewAnswer:
    async with with_plane(settings) as plane:
        from echoplane import _reads  # noqa: PLC0415 -- loaded while the plane starts

        await plane.must_have(tenant)
        return await _reads.unpin_view(plane, tenant, name)


def _print(answer: PinnedViewAnswer, *, as_json: bool) -> None:
    if as_json:
        print_json(answer)
        return
    view = answer.view
    print_line(
        f"{answer.name:<24} valid {view.valid_at}, known {view.known_at}, cut {view.cut}, epoch {view.epoch}"
    )
