"""The processes of `part.py`, each started again after every exit, as the supervisor does with its roles."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Final, Self

ROOT: Final = Path(__file__).resolve().parents[2]
CLOCK_STEP: Final = "clock.step"
"""Beside the data folder: how many seconds the clocks of the parts are off."""
RESTART_SECONDS: Final = 0.3
LEASE_SECONDS: Final = 20.0
"""Of the workers beside the plane's own: a run cannot wait for the usual one."""


class Part(threading.Thread):
    """One process that is kept alive until `close`."""

    def __init__(self, what: str, data_dir: Path, consumer: str, log: Path) -> None:
        super().__init__(name=consumer, daemon=True)
        self._command = [
            sys.executable, "-m", "tests.torture.part", what, str(data_dir), consumer, str(LEASE_SECONDS),
        ]  # fmt: skip
        self._log = log
        self._closing = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self.starts_count = 0

    def run(self) -> None:
        with self._log.open("ab") as log:
            while not self._closing.is_set():
                self._process = subprocess.Popen(self._command, cwd=ROOT, stdout=log, stderr=log)
                self.starts_count += 1
                self._process.wait()
                self._closing.wait(RESTART_SECONDS)

    def signal(self, number: int) -> None:
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(number)

    def close(self) -> None:
        self._closing.set()
        while self.is_alive():
            # Stopped, it would not even hear of its end; and one may just have been started.
            self.signal(signal.SIGKILL)
            self.join(0.2)


class Parts:
    """A relay and some workers beside those of the plane."""

    def __init__(self, data_dir: Path, folder: Path, *, workers_count: int) -> None:
        self._clock = folder / CLOCK_STEP
        names = ["relay", *(f"worker-{number}" for number in range(workers_count))]
        self.all = [
            Part(name.split("-")[0], data_dir, f"torture-{name}-{os.getpid()}", folder / f"{name}.log")
            for name in names
        ]

    @property
    def relay(self) -> Part:
        return self.all[0]

    @property
    def workers(self) -> list[Part]:
        return self.all[1:]

    def step_clock(self, seconds: float) -> None:
        """Let their clocks be so many seconds off from now on."""
        beside = self._clock.with_suffix(".new")
        beside.write_text(str(seconds), encoding="utf-8")
        beside.replace(self._clock)

    def __enter__(self) -> Self:
        for part in self.all:
            part.start()
        return self

    def __exit__(self, *_: object) -> None:
        for part in self.all:
            part.close()
