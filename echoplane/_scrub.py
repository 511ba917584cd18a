"""
Scrubbing: after an erasure its bytes go from the files, or it is said where they may still lie.

Who erases announces it in a file before, so that a scrub is owed however the erasing process ends.
Whoever comes first pays: the command that erased, the supervisor, or `echoplane scrub`. One scrub
pays for every erasure that was committed before it began.

    <data folder>/scrub/
        NAME.announced     an erasure under way, with the process that does it
        NAME.owed          one that has been committed, or may have been
        report.json        how the last scrub ended
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import structlog
from psycopg import AsyncConnection
from pydantic import ValidationError

from contracts.erasure_wire import PlaceAnswer, ScrubAnswer
from contracts.errors import EchoplaneError, Unavailable
from contracts.times import format_instant
from echoplane._clock import wall_clock
from echoplane._embedded import DATABASE
from echoplane._folders import DataFolder
from echoplane._postgres import SUPERUSER, find_postgres
from echoplane._processes import ProcessRecord, exclusive
from echoplane._scrub_database import (
    connected,
    remove_leftovers,
    renew_log,
    renew_statistics,
    rewrite_statistics,
    rewrite_tables,
)
from echoplane._settings import Settings
from echoplane._state import PlaneState

LOOK_SECONDS: Final = 10.0
"""Between two looks of the supervisor for a scrub that it was not told of: whoever owes it was killed."""
RETRY_SECONDS: Final = 30.0
"""Between two tries of a scrub that could not be done."""

_NOTHING: Final = ScrubAnswer(state="done", at=None, failure=None, places=[])

log = structlog.get_logger(__name__)


class Announcement:
    """An erasure that is about to be written; from then on it is owed a scrub, however its process ends."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        place = folder.root / "scrub"
        place.mkdir(mode=0o700, exist_ok=True)
        self._path = place / f"{secrets.token_hex(8)}.announced"
        owner = ProcessRecord.of(os.getpid())
        assert owner is not None
        owner.write(self._path)
        _to_disk(self._path)
        _to_disk(place)

    def owe(self) -> None:
        """Say that it was committed, or that nobody knows."""
        self._path.rename(self._path.with_suffix(".owed"))
        state = PlaneState.read(self._folder)
        if state is not None:
            state.process.signal(signal.SIGUSR1)


@contextmanager
def announcing(folder: DataFolder) -> Iterator[Callable[[], None]]:
    """
    Yield what announces an erasure: it is to be called once it is known what goes, before any of it does.

    Once it was called, a scrub is owed however the block ends. What is refused before owes nothing.
    """
    made: list[Announcement] = []
    try:
        yield lambda: made.append(Announcement(folder))
    finally:
        for announcement in made:
            announcement.owe()


def is_owed(folder: DataFolder) -> bool:
    """Whether an erasure waits for its scrub."""
    return bool(_debts(folder))


def read_scrub(folder: DataFolder) -> ScrubAnswer:
    """Return how it stands."""
    try:
        last = ScrubAnswer.model_validate_json(_report(folder).read_bytes())
    except (FileNotFoundError, ValidationError):
        last = _NOTHING
    if is_owed(folder):
        return last.model_copy(update={"state": "pending"})
    # What failed was paid for since, or taken away by hand.
    return last if last.state != "pending" else _NOTHING


async def settled(settings: Settings) -> ScrubAnswer:
    """Scrub if it is owed, and return how it stands then, also where it could not be done and stays owed."""
    try:
        return await settle(settings)
    except Unavailable:
        return read_scrub(DataFolder.at(settings.data_dir))


async def settle(settings: Settings, *, force: bool = False) -> ScrubAnswer:
    """
    Scrub if it is owed, and return how it stands then.

    Args:
        settings: Whose data folder.
        force: Whether to scrub in any case.

    Raises:
        Unavailable: It could not be done now; it stays owed, and the report says why.
    """
    folder = DataFolder.at(settings.data_dir)
    async with exclusive(folder.run / "scrub.lock"):
        debts = _debts(folder)
        if not debts and not force:
            return read_scrub(folder)
        try:
            places = await _scrub(settings, folder)
        except Unavailable as error:
            _write(folder, read_scrub(folder).model_copy(update={"failure": str(error), "state": "pending"}))
            raise
        answer = ScrubAnswer(
            state="operator" if any(place.state == "operator" for place in places) else "done",
            at=format_instant(wall_clock()),
            failure=None,
            places=places,
        )
        _write(folder, answer)
        for debt in debts:
            debt.unlink(missing_ok=True)
        return read_scrub(folder)


async def keep_settled(settings: Settings, *, told: asyncio.Event) -> None:
    """Scrub whenever it is owed, at once when `told` is set, until cancelled: the supervisor's part."""
    folder = DataFolder.at(settings.data_dir)
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                await told.wait()
        told.clear()
        if not is_owed(folder):
            continue
        try:
            answer = await settle(settings)
        except (EchoplaneError, OSError) as error:
            log.warning("scrub_put_off", error=getattr(error, "code", type(error).__name__))
            await asyncio.sleep(RETRY_SECONDS)
        else:
            log.info("scrubbed", state=answer.state)


async def _scrub(settings: Settings, folder: DataFolder) -> list[PlaceAnswer]:
    if settings.database_url is None:
        postgres = await find_postgres(folder)
        if postgres is None:
            raise Unavailable(part="scrub", reason="the database does not run")
        async with connected(postgres.conninfo(role=SUPERUSER, database=DATABASE)) as connection:
            return await _scrub_own(connection)
    if settings.database_owner_url is None:
        return [_left("tables and indexes", "VACUUM FULL as their owner"), *_OUT_OF_REACH]
    url = settings.database_owner_url.get_secret_value().replace("postgresql+psycopg:", "postgresql:", 1)
    async with connected(url) as connection:
        return await _scrub_external(connection)


async def _scrub_own(connection: AsyncConnection) -> list[PlaceAnswer]:
    tables = await rewrite_tables(connection)
    await renew_statistics(connection, tables)
    await rewrite_statistics(connection)
    leftovers = await remove_leftovers(connection)
    files = await renew_log(connection)
    return [
        _done("tables and indexes", f"{len(tables)} written anew"),
        _done("statistics", "made and written anew"),
        _done("left-over files", f"{leftovers} deleted"),
        _done("write-ahead log", f"{files} files deleted"),
    ]


async def _scrub_external(connection: AsyncConnection) -> list[PlaceAnswer]:
    tables = await rewrite_tables(connection)
    await renew_statistics(connection, tables)
    return [_done("tables and indexes", f"{len(tables)} written anew"), *_OUT_OF_REACH]


def _done(place: str, words: str) -> PlaceAnswer:
    return PlaceAnswer(place=place, state="done", words=words)


def _left(place: str, words: str) -> PlaceAnswer:
    return PlaceAnswer(place=place, state="operator", words=f"not observable from here: {words}")


_OUT_OF_REACH: Final = (
    _left("statistics", "VACUUM FULL pg_statistic as superuser"),
    _left("left-over files", "files of the server that no relation uses"),
    _left("write-ahead log", "go on in new files, delete the old ones, their archive and standbys' copies"),
    _left("server log", "delete it, unless it is set to print no rows and parameters"),
)


def _debts(folder: DataFolder) -> list[Path]:
    """Return what is owed: committed, or announced by a process that is gone."""
    place = folder.root / "scrub"
    debts = list(place.glob("*.owed"))
    for announcement in place.glob("*.announced"):
        owner = ProcessRecord.read(announcement)
        if owner is None or not owner.is_alive():
            debts.append(announcement)
    return debts


def _report(folder: DataFolder) -> Path:
    return folder.root / "scrub" / "report.json"


def _write(folder: DataFolder, answer: ScrubAnswer) -> None:
    path = _report(folder)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(answer.model_dump_json(), encoding="utf-8")
    beside.replace(path)


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
