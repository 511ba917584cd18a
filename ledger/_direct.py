"""Connections: how all wait for the server, and some past SQLAlchemy, for statements that stand alone."""

from __future__ import annotations

import asyncio
import functools
import re
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.abc import Transformer as Transforming
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import execute, fetch, send
from psycopg.pq import ExecStatus, Format, TransactionStatus
from psycopg.pq.abc import PGresult
from psycopg.waiting import Ready, Wait

from contracts.errors import Unavailable

Driver: TypeAlias = "psycopg.AsyncConnection[Any]"
Given = TypeVar("Given")

IDLE_SECONDS_MAX: Final = 1.0
"""After so long a connection that was not in use is asked whether it still stands."""
PLANS_MAX: Final = 100
"""Statements that one connection keeps ready, as many as the driver itself does."""
_INTERVAL_SECONDS: Final = 0.1
_CANCEL_SECONDS: Final = 5.0
_NAME: Final = re.compile(r"%\((\w+)\)s")


class Connection(psycopg.AsyncConnection[Any]):
    """
    A connection that takes what the server sends when it comes.

    Of a large result it comes in many pieces. The driver's own way to wait registers for each anew,
    sets a timer and wakes the task: several times what it costs to take the piece in.
    """

    def __init__(self, *of: Any, **more: Any) -> None:  # noqa: ANN401 — the driver's own
        super().__init__(*of, **more)
        self.held = _Held(self)

    def _deallocate(self, name: bytes | None) -> PQGen[None]:
        # After a rollback the driver gives up all that the server has made ready, ours too.
        if name is None:
            self.held.forget()
        yield from super()._deallocate(name)

    async def wait(
        self,
        gen: PQGen[Given],
        interval: float = _INTERVAL_SECONDS,
        timeout: float | None = None,  # noqa: ASYNC109 — the driver's own
    ) -> Given:
        """Return what a generator of the driver does, which says each time what it waits for."""
        try:
            state = next(gen)
        except StopIteration as done:
            given: Given = done.value
            return given
        if state != Wait.R or timeout is not None:
            return await super().wait(_resumed(gen, state), interval, timeout)
        loop, fd = asyncio.get_running_loop(), self.pgconn.socket
        ended: asyncio.Future[StopIteration | Wait] = loop.create_future()
        loop.add_reader(fd, _take, gen, ended, loop, fd)
        try:
            found = await ended
        except asyncio.CancelledError:
            if ended.cancelled():
                loop.remove_reader(fd)
            elif ended.exception() is None and not isinstance(found := ended.result(), StopIteration):
                state = found
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._give_up(gen, state)
            raise
        if isinstance(found, StopIteration):
            taken: Given = found.value
            return taken
        return await super().wait(_resumed(gen, found), interval)

    async def _give_up(self, gen: PQGen[Any], state: Wait) -> None:
        """End what the server is at: a connection in the middle of something serves nobody."""
        try:
            await self.cancel_safe(timeout=_CANCEL_SECONDS)
            await super().wait(_resumed(gen, state), timeout=_CANCEL_SECONDS)
        except psycopg.errors.QueryCanceled:
            pass
        except BaseException as error:
            self.pgconn.finish()
            if not isinstance(error, Exception):
                raise


def _take(
    gen: PQGen[Any], ended: asyncio.Future[StopIteration | Wait], loop: asyncio.AbstractEventLoop, fd: int
) -> None:
    """
    Take in what has come, until the generator is done or has something to send.

    A statement that is sent after the answer to another, as the first of a transaction is, may leave
    in many pieces. The socket is watched no longer than that: the driver closes it where it breaks,
    and its number is then another's.
    """
    if ended.done():
        return
    found: StopIteration | Wait
    try:
        found = gen.send(Ready.R)
        if found == Wait.R:
            return
    except StopIteration as done:
        found = done
    except Exception as error:  # noqa: BLE001 — whoever waits is told
        loop.remove_reader(fd)
        ended.set_exception(error)
        return
    loop.remove_reader(fd)
    ended.set_result(found)


def _resumed(gen: PQGen[Given], state: Wait) -> PQGen[Given]:
    """Go on with a generator that waits for something."""
    try:
        while True:
            state = gen.send((yield state))
    except StopIteration as done:
        given: Given = done.value
        return given


async def fetched(driver: Driver, statement: str, parameters: Mapping[str, object]) -> Sequence[Any]:
    """Return what a query returns, in binary; the server plans it once for each connection, not each time."""
    cursor = driver.cursor(binary=True)
    await cursor.execute(statement, parameters, prepare=True)
    return await cursor.fetchall()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """A statement that the server has made ready, and what reads its rows."""

    name: bytes
    rows: Transforming


class _Held:
    """What was made ready on a connection, and is read past the driver's cursors."""

    __slots__ = ("_given", "_named", "_plans", "driver", "returned_at_seconds")

    def __init__(self, driver: Connection) -> None:
        self.driver = driver
        self.returned_at_seconds = 0.0
        self._given: Transforming = Transformer(driver)
        self._named = 0
        self._plans: dict[tuple[str, tuple[int, ...]], _Plan] = {}

    def forget(self) -> None:
        """Know no more what was made ready: the server does not have it any more."""
        self._plans.clear()

    async def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Any]:
        """Return what `fetched` does, without a cursor for each: it takes as long as the call."""
        plan = await self._sent(statement, parameters)
        result = await self._result()
        if result.status != ExecStatus.TUPLES_OK:
            raise psycopg.ProgrammingError("the statement returns no rows")
        plan.rows.set_pgresult(result, format=Format.BINARY)
        try:
            return plan.rows.load_rows(0, result.ntuples, tuple)
        finally:
            plan.rows.set_pgresult(None)

    async def streamed(self, statement: str, parameters: Mapping[str, object]) -> AsyncGenerator[Any, None]:
        """
        Yield each row of a query when it comes, while the server looks for the next.

        Whoever ends before it is over must close it: until all has come nothing else can be asked for.
        """
        plan = await self._sent(statement, parameters)
        driver, pgconn = self.driver, self.driver.pgconn
        pgconn.set_single_row_mode()
        await driver.wait(send(pgconn))
        result: PGresult | None = None
        try:
            while (result := await driver.wait(fetch(pgconn))) is not None:
                if result.status == ExecStatus.FATAL_ERROR:
                    raise psycopg.errors.error_from_result(result)
                if result.status == ExecStatus.SINGLE_TUPLE:
                    plan.rows.set_pgresult(result, format=Format.BINARY)
                    yield plan.rows.load_rows(0, 1, tuple)[0]
        finally:
            while pgconn.transaction_status == TransactionStatus.ACTIVE:
                await driver.wait(fetch(pgconn))
            plan.rows.set_pgresult(None)

    async def _sent(self, statement: str, parameters: Mapping[str, object]) -> _Plan:
        """Send a statement, made ready if it was not yet."""
        text, names = _numbered(statement)
        given = self._given
        values = given.dump_sequence([parameters[name] for name in names], [PyFormat.AUTO] * len(names))
        types, formats = given.types or (), given.formats
        plan = self._plans.get((text, types))
        if plan is None:
            plan = self._plans[text, types] = await self._planned(text, types)
        self.driver.pgconn.send_query_prepared(plan.name, values, formats, Format.BINARY)
        return plan

    async def _planned(self, text: str, types: Sequence[int]) -> _Plan:
        if len(self._plans) >= PLANS_MAX:
            # There are far fewer, but for kinds of values that nobody thought of.
            # By name: the driver keeps statements of its own ready, and is not told.
            given_up = b"; ".join(b"DEALLOCATE " + plan.name for plan in self._plans.values())
            self._plans.clear()
            self.driver.pgconn.send_query(given_up)
            await self._result()
        # Whoever is cancelled here leaves a name that the server has and nobody knows.
        self._named += 1
        name = b"echoplane_%d" % self._named
        self.driver.pgconn.send_prepare(name, text.encode(), types)
        await self._result()
        return _Plan(name=name, rows=Transformer(self.driver))

    async def _result(self) -> PGresult:
        results: Sequence[PGresult] = await self.driver.wait(execute(self.driver.pgconn))
        result = results[-1]
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)
        return result


# There are as many as the ledger has.
@functools.lru_cache(maxsize=64)
def _numbered(statement: str) -> tuple[str, tuple[str, ...]]:
    """Return a statement with its parameters numbered, as the server has them, and their names in order."""
    names = tuple(dict.fromkeys(_NAME.findall(statement)))
    return _NAME.sub(lambda found: f"${names.index(found[1]) + 1}", statement), names


class Direct:
    """
    A few connections of one role, made when they are first needed.

    The one that was used last is used next: it has every plan at hand. To take one from SQLAlchemy's
    pool and give it back takes as long as the server does.
    """

    def __init__(self, conninfo: str, *, connections_max: int, wait_seconds: float) -> None:
        self._conninfo = conninfo
        self._wait_seconds = wait_seconds
        self._places = asyncio.Semaphore(connections_max)
        self._held: list[_Held] = []
        self._closed = False

    async def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Any]:
        """
        Return what a query returns: in one round trip, of one instant.

        Raises:
            Unavailable: All connections are in use, or closed.
            psycopg.Error: What the server said, or that it is not there.
        """
        await self._place()
        try:
            held = await self._taken()
            try:
                return await held.rows(statement, parameters)
            finally:
                await self._give_back(held)
        finally:
            self._places.release()

    async def close(self) -> None:
        """Close every connection; one that is reading closes after that."""
        self._closed = True
        while self._held:
            await self._held.pop().driver.close()

    async def _place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._places.acquire()
        except TimeoutError as error:
            raise Unavailable(part="database", reason="all connections are in use") from error

    async def _taken(self) -> _Held:
        if self._closed:
            raise Unavailable(part="database", reason="its connections are closed")
        while self._held:
            held = self._held.pop()
            if time.monotonic() - held.returned_at_seconds < IDLE_SECONDS_MAX:
                return held
            try:
                # A server that was restarted must not fail whoever comes next.
                await held.driver.execute("")
            except psycopg.Error:
                await held.driver.close()
            except BaseException:
                # Whoever asked has gone, and nobody holds it any more.
                await held.driver.close()
                raise
            else:
                return held
        return (await Connection.connect(self._conninfo, autocommit=True)).held

    async def _give_back(self, held: _Held) -> None:
        if held.driver.pgconn.transaction_status == TransactionStatus.IDLE and not self._closed:
            held.returned_at_seconds = time.monotonic()
            self._held.append(held)
        else:
            await held.driver.close()
