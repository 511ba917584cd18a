"""
The role processes: what `python -m echoplane role NAME` runs.

Standard input is a pipe from the supervisor. Its end means that the supervisor is gone, however it
went: then the role ends too, and the next supervisor starts a new one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from typing import Final, assert_never

import structlog

from echoplane._settings import Settings
from echoplane._state import Role

ORPHAN_GRACE_SECONDS: Final = 8.0
"""An orphan that does not end in order within this time is ended without it."""

log = structlog.get_logger()


def run_role(role: Role, settings: Settings) -> None:
    """Run one role until it is told to stop."""
    threading.Thread(target=_end_with_supervisor, daemon=True, name="supervisor-watch").start()
    structlog.contextvars.bind_contextvars(role=role.value)
    # Imported here: no role should pay for the libraries of the others.
    match role:
        case Role.WORKER:
            from echoplane._role_worker import serve_worker as serve  # noqa: PLC0415
        case Role.DISCOVERY:
            from echoplane._role_discovery import serve_discovery as serve  # noqa: PLC0415
        case Role.API:
            from echoplane._role_api import serve_api as serve  # noqa: PLC0415
        case _ as never:
            assert_never(never)
    asyncio.run(serve(settings))


def _end_with_supervisor() -> None:
    while os.read(0, 64):
        pass
    log.warning("supervisor_gone")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE_SECONDS)
    os._exit(1)
