"""Commands that start, stop and look at a plane: `up down status doctor`, and what `up` runs."""

from __future__ import annotations

import contextlib
import os
from typing import Annotated

import typer

from contracts.reports import StatusAnswer
from echoplane._cli_options import DataDir, Json, print_json, print_line, run, settings_for
from echoplane._doctor import examine
from echoplane._failures import EXIT_OK, EXIT_VERDICT_FALSE
from echoplane._folders import DataFolder
from echoplane._logging import configure_logging
from echoplane._plane import child_environment, claim_or_promote, ensure_supervisor, follow, stop_plane
from echoplane._processes import open_log
from echoplane._roles_entry import ROLE_COMMAND, run_child
from echoplane._settings import Settings
from echoplane._state import Mode, Role
from echoplane._status import read_status
from echoplane._supervisor import Supervisor
from echoplane._tokens import LOCAL_TOKEN_FILE


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command()(up)
    app.command()(down)
    app.command()(status)
    app.command()(doctor)
    app.command(hidden=True)(role)


def up(
    *,
    detach: Annotated[bool, typer.Option("--detach", help="Return once it is up.")] = False,
    data_dir: DataDir = None,
    json: Json = False,
) -> int:
    """Start the plane and keep it running: in the foreground, or with --detach behind it."""
    settings = settings_for(data_dir)
    if detach:
        run(ensure_supervisor(settings, mode=Mode.UP))
    else:
        run(_stay_up(settings, as_json=json))
        return EXIT_OK
    answer = run(read_status(settings))
    if json:
        print_json(answer)
    else:
        _print_up(answer)
    return EXIT_OK


async def _stay_up(settings: Settings, *, as_json: bool) -> None:
    async def say() -> None:
        answer = await read_status(settings)
        print_json(answer) if as_json else _print_up(answer)

    folder = DataFolder.at(settings.data_dir)
    with (
        open_log(folder.log / "supervisor.log") as descriptor,
        os.fdopen(os.dup(descriptor), "a", buffering=1, encoding="utf-8") as file,
    ):
        # The log file is the supervisor's standard error; this terminal gets words for a person.
        with contextlib.redirect_stderr(file):
            configure_logging(settings.log_level)
        supervisor = Supervisor(settings, environment=child_environment(settings), mode=Mode.UP)
        before = await claim_or_promote(settings, supervisor)
        if before is None:
            await supervisor.run(started=say)
        elif before.mode is Mode.EPHEMERAL:
            # It stays now, and so does this command, which was asked to.
            await say()
            await follow(before.process)
        else:
            answer = await read_status(settings)
            print_json(answer) if as_json else print_line(
                f"echoplane is already up (process {answer.supervisor}); `echoplane down` stops it"
            )


def _print_up(answer: StatusAnswer) -> None:
    print_line(f"echoplane is up: {answer.http}  (data in {answer.data_dir})")
    print_line(f"  token  {answer.data_dir}/keys/{LOCAL_TOKEN_FILE}")
    print_line("  look   echoplane status, echoplane doctor     stop  echoplane down")


def down(*, data_dir: DataDir = None, json: Json = False) -> int:
    """Stop the plane and its own servers, whoever uses them."""
    settings = settings_for(data_dir)
    stopped = run(stop_plane(settings))
    if json:
        print_json(run(read_status(settings)))
    else:
        print_line("echoplane is down" if stopped else "echoplane was not up")
    return EXIT_OK


def status(*, data_dir: DataDir = None, json: Json = False) -> int:
    """Say which roles run and how far each tenant is folded. Exit 1 if it is not up or cannot be read."""
    answer = run(read_status(settings_for(data_dir)))
    if json:
        print_json(answer)
    else:
        _print_status(answer)
    return EXIT_OK if answer.up and answer.failure is None else EXIT_VERDICT_FALSE


def _print_status(answer: StatusAnswer) -> None:
    if not answer.up:
        print_line(f"echoplane is {answer.mode} (data in {answer.data_dir})")
    else:
        print_line(f"echoplane is {answer.mode}: {answer.http or 'no HTTP'}  (process {answer.supervisor})")
    for one in answer.roles:
        print_line(f"  {one.role:<10} {one.state:<8} pid {one.pid or '-'}  restarts {one.restarts}")
    if answer.failure:
        print_line(f"  tenants cannot be read: {answer.failure}")
    if answer.tenants:
        print_line(f"  {'tenant':<24} {'head':>8} {'folded':>8} {'lag':>6} {'dead':>5}  epoch")
    for tenant in answer.tenants:
        print_line(
            f"  {tenant.tenant:<24} {tenant.head:>8} {tenant.cursor:>8} {tenant.lag:>6} "
            f"{tenant.dead_letters:>5}  {tenant.epoch}"
        )
        if tenant.building is not None:
            next_one = tenant.building
            print_line(
                f"  {'':<24} {tenant.head:>8} {next_one.cursor:>8} {next_one.lag:>6} "
                f"{next_one.dead_letters:>5}  {next_one.epoch} (building)"
            )


def doctor(*, data_dir: DataDir = None, json: Json = False) -> int:
    """Check everything that can be wrong and say what to do. Exit 1 if something is."""
    answer = run(examine(settings_for(data_dir)))
    if json:
        print_json(answer)
    else:
        for check in answer.checks:
            print_line(f"  {'ok  ' if check.ok else 'FAIL'} {check.check:<16} {check.found}")
            if check.act:
                print_line(f"       {'':<16} -> {check.act}")
    return EXIT_OK if answer.ok else EXIT_VERDICT_FALSE


def role(name: Annotated[Role, typer.Argument()], number: Annotated[int, typer.Argument(min=1)] = 1) -> int:
    """Run one role in this process. The supervisor starts it as `python -m echoplane role NAME NUMBER`."""
    return run_child([ROLE_COMMAND, name.value, str(number)])
