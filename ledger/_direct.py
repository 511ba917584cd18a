"""Connections past SQLAlchemy, for statements that each are a transaction of their own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.pq import TransactionStatus

from contracts.errors import Unavailable

Driver: TypeAlias = "psycopg.AsyncConnection[Any]"

IDLE_SECONDS_MAX: Final = 1.0
"""After so long a connection that was not in use is asked whether it still stands."""


async def fetched(driver: Driver, statement: str, parameters: Mapping[str, object]) -> Sequence[Any]:
    """Return what a query returns, in binary; the server plans it once for each connection, not each time."""
    cursor = driver.cursor(binary=True)
    await cursor.execute(statement, parameters, prepare=True)
    return await cursor.fetchall()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    driver: Driver
    returned_at_seconds: float


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
            driver = await self._taken()
            try:
                return await fetched(driver, statement, parameters)
            finally:
                await self._give_back(driver)
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

    async def _taken(self) -> Driver:
        if self._closed:
            raise Unavailable(part="database", reason="its connections are closed")
        while self._held:
            held = self._held.pop()
            if time.monotonic() - held.returned_at_seconds < IDLE_SECONDS_MAX:
                return held.driver
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
                return held.driver
        return await psycopg.AsyncConnection.connect(self._conninfo, autocommit=True)

    async def _give_back(self, driver: Driver) -> None:
        if driver.pgconn.transaction_status == TransactionStatus.IDLE and not self._closed:
            self._held.append(_Held(driver=driver, returned_at_seconds=time.monotonic()))
        else:
            await driver.close()
