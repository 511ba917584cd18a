"""What is done to a plane while it works: everything that dies, stands still, or forgets."""

from __future__ import annotations

import contextlib
import random
import signal
from collections import Counter
from collections.abc import Callable
from typing import Final

import psycopg
import redis as redis_py

from contracts.errors import EchoplaneError
from echoplane._processes import ProcessRecord
from echoplane._state import Role
from projection._stream import GROUP, STREAM
from tests.acceptance.planes import RunningPlane
from tests.torture.parts import Part, Parts

_NOT_THERE: Final = (psycopg.Error, redis_py.RedisError, OSError, AssertionError, EchoplaneError)
"""What is to be hurt may be down already: then there is nothing to do."""


class Faults:
    """
    The faults of one run, in an order that its seed decides.

    Args:
        plane: What is hurt.
        parts: Its relay and workers beside its own.
        chance: Of the run.
    """

    def __init__(self, plane: RunningPlane, parts: Parts, chance: random.Random) -> None:
        self.done: Counter[str] = Counter()
        self._plane, self._parts, self._chance = plane, parts, chance
        self._frozen: Part | None = None
        self._kinds: tuple[Callable[[], None], ...] = (
            self.kill_postgres, self.kill_redis, self.kill_api, self.kill_worker, self.kill_beside,
            self.kill_relay, self.flush, self.delete_group, self.trim, self.freeze, self.cut_connections,
            self.thaw,
        )  # fmt: skip
        self._waiting: list[Callable[[], None]] = []

    def only(self, *kinds: Callable[[], None]) -> None:
        """Do these alone."""
        self._kinds = kinds

    def next(self) -> str:
        """Do the next fault and return its name; each comes once before any comes again, in any order."""
        if not self._waiting:
            self._waiting = list(self._kinds)
            self._chance.shuffle(self._waiting)
        fault = self._waiting.pop()
        with contextlib.suppress(*_NOT_THERE):
            fault()
            self.done[fault.__name__] += 1
        return fault.__name__

    @property
    def is_round_done(self) -> bool:
        """Whether each fault has come as often as any other."""
        return not self._waiting

    def kill_postgres(self) -> None:
        self._kill("postgres")

    def kill_redis(self) -> None:
        self._plane.kill_redis()

    def kill_api(self) -> None:
        self._kill_role(Role.API)

    def kill_worker(self) -> None:
        self._kill_role(Role.WORKER)

    def kill_beside(self) -> None:
        self._chance.choice(self._parts.workers).signal(signal.SIGKILL)

    def kill_relay(self) -> None:
        self._parts.relay.signal(signal.SIGKILL)

    def flush(self) -> None:
        self._redis().flushall()

    def delete_group(self) -> None:
        self._redis().xgroup_destroy(STREAM, GROUP)

    def trim(self) -> None:
        self._redis().xtrim(STREAM, maxlen=0, approximate=False)

    def freeze(self) -> None:
        """Stop a worker; it wakes up with a later fault, past its lease or not."""
        self.thaw()
        self._frozen = self._chance.choice(self._parts.workers)
        self._frozen.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        if self._frozen is not None:
            self._frozen.signal(signal.SIGCONT)
            self._frozen = None

    def cut_connections(self) -> None:
        with self._plane.superuser() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'echoplane_%'"
            )

    def _kill(self, server: str) -> None:
        record = ProcessRecord.read(self._plane.folder.run / f"{server}.json")
        assert record is not None
        assert record.signal(signal.SIGKILL)

    def _kill_role(self, role: Role) -> None:
        process = self._plane.process_of(role)
        assert process is not None
        assert process.signal(signal.SIGKILL)

    def _redis(self) -> redis_py.Redis:
        socket = self._plane.folder.socket_folder("redis") / "redis.sock"
        return redis_py.Redis(unix_socket_path=str(socket), socket_timeout=2)
