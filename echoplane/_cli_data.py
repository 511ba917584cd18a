"""Commands that bring memory in and write it down: `emit import token schemas`."""

from __future__ import annotations

import json as json_module
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from contracts.claims import USER
from contracts.errors import BadRequest, EchoplaneError
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT, Grant, Right
from contracts.wire import SCHEMAS, ImportAnswer, ReceiptAnswer, TokenAnswer
from echoplane._cli_options import (
    DataDir,
    Json,
    Tenant,
    print_json,
    print_line,
    run,
    settings_for,
)
from echoplane._cli_relations import read_file
from echoplane._cli_vintages import import_vintages
from echoplane._emit import Append, Line, check_atomic, emit, numbered, read_lines
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE
from echoplane._import_armar7 import read_armar7
from echoplane._import_locomo import Batch, read_locomo
from echoplane._requests import read_name, read_tenant
from echoplane._session import with_plane
from echoplane._settings import Settings
from echoplane._state import Role

if TYPE_CHECKING:
    from echoplane._wiring import Plane


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("emit")(emit_file)
    app.command()(token)
    app.command(hidden=True)(schemas)
    imports = typer.Typer(no_args_is_help=True, help="Read a public data set as it is published.")
    imports.command("locomo")(import_locomo)
    imports.command("armar7")(import_armar7)
    imports.command("vintages")(import_vintages)
    app.add_typer(imports, name="import")


def emit_file(
    file: Annotated[str, typer.Argument(help="JSONL, one event a line; `-` reads standard input.")],
    *,
    tenant: Tenant,
    atomic: Annotated[bool, typer.Option("--atomic", help="One commit for all, of at most 1,000.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """
    Append events, each line its own commit.

    Nothing is written if a line is no event. What the log alone can refuse (a value against its
    contract, a target that is not there) stops the file; the error says how many lines were written,
    and lines with a source_event_id or idempotency_key are not doubled when the file is sent again.
    With --atomic nothing is written whatever is wrong.
    """
    settings = settings_for(data_dir)
    name = read_tenant(tenant)
    lines = read_lines(read_file(file))
    if atomic:
        check_atomic(lines)
        run(_emit_atomic(settings, name, lines, as_json=json))
    else:
        run(_emit_lines(settings, name, lines, as_json=json))
    return EXIT_OK


async def _emit_atomic(settings: Settings, tenant: str, lines: Sequence[Line], *, as_json: bool) -> None:
    async with with_plane(settings) as plane:
        await plane.make_tenant(tenant)
        receipt = await plane.append(
            tenant, [line.draft for line in lines], grant=LOCAL_GRANT, expected_version=None
        )
    if as_json:
        print_json(receipt)
    else:
        print_line(
            _counted(len(lines), receipt.commit, receipt.commit, repeated=len(lines) * receipt.repeated)
        )


async def _emit_lines(settings: Settings, tenant: str, lines: Sequence[Line], *, as_json: bool) -> None:
    first = last = repeated = 0
    try:
        async with with_plane(settings) as plane:
            await plane.make_tenant(tenant)
            in_order = partial(plane.keeps_order, tenant)
            async for _, receipt in emit(lines, _append_to(plane, tenant), keeps_order=in_order):
                first, last, repeated = first or receipt.commit, receipt.commit, repeated + receipt.repeated
                if as_json:
                    print_json(receipt)
    except EchoplaneError as error:
        # Before the first line nothing was written; who sent a file is told so, too.
        if "written" not in error.details():
            error.located(written=0, commit=0)
        raise
    if not as_json:
        print_line(_counted(len(lines), first, last, repeated=repeated))


def _append_to(plane: Plane, tenant: str) -> Append:
    async def append(drafts: Sequence[EventDraft]) -> ReceiptAnswer:
        return await plane.append(tenant, drafts, grant=LOCAL_GRANT, expected_version=None)

    return append


def _counted(events: int, first: int, last: int, *, repeated: int) -> str:
    what = f"{events} event{'' if events == 1 else 's'}"
    where = f"commit {first}" if first == last else f"commits {first} to {last}"
    known = f", {repeated} of them there already" if repeated else ""
    return f"{what} in {where}{known}"


def import_locomo(
    path: Annotated[Path, typer.Argument(help="The published JSON, plain or gzip.")],
    *,
    conversation: Annotated[str | None, typer.Option("--conversation", help="Only this one.")] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Else one for each conversation.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Import conversations: their turns, never their questions, answers or summaries."""
    batches = read_locomo(path, conversation=conversation)
    if tenant is not None and len(batches) > 1:
        raise BadRequest(field="tenant", reason="one tenant takes one conversation: give --conversation too")
    return run(_import(settings_for(data_dir), batches, tenant=tenant, as_json=json))


def import_armar7(
    path: Annotated[Path, typer.Argument(help="The published events.jsonl, plain or gzip.")],
    *,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Else `armar7`.")] = None,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Import the log of a humanoid robot: one event for each step."""
    return run(_import(settings_for(data_dir), [read_armar7(path)], tenant=tenant, as_json=json))


async def _import(settings: Settings, batches: Sequence[Batch], *, tenant: str | None, as_json: bool) -> int:
    failures = 0
    async with with_plane(settings, Role.WORKER) as plane:
        for batch in batches:
            answer = await _import_batch(plane, read_tenant(tenant or batch.tenant), batch)
            failures += answer.projection_failures
            if as_json:
                print_json(answer)
            else:
                print_line(
                    f"{answer.tenant}: {answer.events} events ({answer.repeated} were there already) "
                    f"to commit {answer.commit}, folded to {answer.folded}, "
                    f"{answer.projection_failures} projection failures"
                )
    return EXIT_VERDICT_FALSE if failures else EXIT_OK


async def _import_batch(plane: Plane, tenant: str, batch: Batch) -> ImportAnswer:
    await plane.make_tenant(tenant)
    lines = numbered(batch.drafts)
    told = emit(lines, _append_to(plane, tenant), keeps_order=partial(plane.keeps_order, tenant))
    receipts: list[ReceiptAnswer] = [receipt async for _, receipt in told]
    commit = max((receipt.commit for receipt in receipts), default=0)
    standing = await plane.wait_folded(tenant, commit)
    return ImportAnswer(
        tenant=tenant,
        events=len(lines),
        repeated=sum(receipt.repeated for receipt in receipts),
        commit=commit,
        folded=standing.cursor,
        projection_failures=standing.dead_letters,
    )


def token(
    *,
    tenant: Tenant,
    right: Annotated[
        list[Right] | None, typer.Option("--right", help="What it may do; repeat it. Else `emit`, `ask`.")
    ] = None,
    actor: Annotated[
        list[str] | None, typer.Option("--actor", help="Whom it may speak for; repeat it. `*` is anyone.")
    ] = None,
    actor_class: Annotated[
        list[str] | None, typer.Option("--class", help="In which classes; repeat it. Else `user`.")
    ] = None,
    label: Annotated[str, typer.Option("--label", help="To recognize it by.")] = "cli",
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Make a bearer token for a tenant, and the tenant if it is not there. It is shown once."""
    rights = frozenset(right or [Right.EMIT, Right.ASK])
    if not actor and Right.EMIT in rights:
        # Whoever speaks as anyone can speak as the very person whose memory it is, with her authority.
        raise BadRequest(field="--actor", reason="name whom it may speak for, or `*` for anyone")
    grant = Grant(
        tenant=read_tenant(tenant),
        rights=rights,
        actors=frozenset(read_name(one, field="--actor") for one in actor or ()),
        classes=frozenset(read_name(one, field="--class") for one in actor_class or [USER]),
    )
    name = read_name(label, field="--label")
    answer = run(_token(settings_for(data_dir), read_tenant(tenant), grant, label=name))
    if json:
        print_json(answer)
    else:
        print_line(answer.token)
    return EXIT_OK


async def _token(settings: Settings, tenant: str, grant: Grant, *, label: str) -> TokenAnswer:
    async with with_plane(settings) as plane:
        await plane.make_tenant(tenant)
        return await plane.make_token(tenant, grant, label=label)


def schemas(folder: Annotated[Path, typer.Argument(help="Where to write them.")]) -> int:
    """Write the JSON Schemas of everything a caller sends or receives."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in SCHEMAS.items():
        text = json_module.dumps(model.model_json_schema(by_alias=True), indent=2, sort_keys=True)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    return EXIT_OK
