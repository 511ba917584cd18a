"""What is done to a plane while it works: everything that dies, stands still, or forgets."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
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
CLOCK_STEPS_SECONDS: Final = (-400 * 86_400, -3_600, -1, 0, 3_600, 400 * 86_400)


class Faults:
    """
    The faults of one run, in an order that its seed decides.

    Args:
        plane: What is hurt.
        parts: Its relay and workers beside its own.
        chance: Of the run.
        redis_seconds: How long Redis stands still.
    """

    def __init__(
        self, plane: RunningPlane, parts: Parts, chance: random.Random, *, redis_seconds: float
    ) -> None:
        self.done: Counter[str] = Counter()
        self._plane, self._parts, self._chance = plane, parts, chance
        self._frozen: Part | None = None
        self._redis_seconds = redis_seconds
        self._resuming: list[threading.Timer] = []
        self._kinds: tuple[Callable[[], None], ...] = (
            self.kill_postgres, self.kill_redis, self.kill_api, self.kill_worker, self.kill_beside,
            self.kill_relay, self.flush, self.delete_group, self.trim, self.freeze, self.cut_connections,
            self.thaw, self.stop_redis, self.step_clock,
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

    def stop_redis(self) -> None:
        """Let Redis stand still for a while: it takes connections, and answers none."""
        record = self._record("redis")
        assert record.signal(signal.SIGSTOP)
        self._resuming.append(threading.Timer(self._redis_seconds, record.signal, [signal.SIGCONT]))
        self._resuming[-1].start()

    def step_clock(self) -> None:
        """Step the clock of the relay and the workers beside the plane, forth or back."""
        self._parts.step_clock(self._chance.choice(CLOCK_STEPS_SECONDS))

    def settle(self) -> None:
        """End what goes on of itself: whatever stands still goes on."""
        self.thaw()
        for timer in self._resuming:
            timer.cancel()
            timer.function(*timer.args)

    def cut_connections(self) -> None:
        with self._plane.superuser() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'echoplane_%'"
            )

    def _kill(self, server: str) -> None:
        assert self._record(server).signal(signal.SIGKILL)

    def _record(self, server: str) -> ProcessRecord:
        record = ProcessRecord.read(self._plane.folder.run / f"{server}.json")
        assert record is not None
        return record

    def _kill_role(self, role: Role) -> None:
        process = self._plane.process_of(role)
        assert process is not None
        assert process.signal(signal.SIGKILL)

    def _redis(self) -> redis_py.Redis:
        socket = self._plane.folder.socket_folder("redis") / "redis.sock"
        return redis_py.Redis(unix_socket_path=str(socket), socket_timeout=2)
