"""
The role processes: what `python -m echoplane role NAME NUMBER` runs.

Standard input is a pipe from the supervisor. Its end means that the supervisor is gone, however it
went: then the role ends too, and the next supervisor starts a new one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import structlog

from echoplane._keeper import Post
from echoplane._settings import Settings
from echoplane._state import Role
from echoplane._survivors import survivors_spared

ORPHAN_GRACE_SECONDS: Final = 8.0
"""An orphan that does not end in order within this time is ended without it."""

log = structlog.get_logger()


def run_role(post: Post, settings: Settings) -> None:
    """Run one process of a role until it is told to stop."""
    threading.Thread(target=_end_with_supervisor, daemon=True, name="supervisor-watch").start()
    structlog.contextvars.bind_contextvars(role=post.name)
    serve = _serve_of(post)
    # After its libraries are there: they stay.
    with survivors_spared():
        asyncio.run(_served(serve, settings))


class _Unawaited(ThreadPoolExecutor):
    """
    Threads that the end of their loop does not wait for: what they are at is thrown away with the process.

    A model that is being loaded took `down` the ten seconds after which a role is killed.
    """

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:  # noqa: FBT001, FBT002 -- its own
        """Let them go."""
        del wait, cancel_futures
        super().shutdown(wait=False, cancel_futures=True)


async def _served(serve: Callable[[Settings], Coroutine[Any, Any, None]], settings: Settings) -> None:
    asyncio.get_running_loop().set_default_executor(_Unawaited(thread_name_prefix="role"))
    await serve(settings)


def _serve_of(post: Post) -> Callable[[Settings], Coroutine[Any, Any, None]]:
    # Imported here: no role should pay for the libraries of the others.
    match post.role:
        case Role.WORKER:
            from echoplane._role_worker import serve_worker  # noqa: PLC0415

            return partial(serve_worker, number=post.number)
        case Role.DISCOVERY:
            from echoplane._role_discovery import serve_discovery  # noqa: PLC0415

            return partial(serve_discovery, number=post.number)
        case Role.API:
            from echoplane._role_api import serve_api  # noqa: PLC0415

            return serve_api


def _end_with_supervisor() -> None:
    while os.read(0, 64):
        pass
    log.warning("supervisor_gone")
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ORPHAN_GRACE_SECONDS)
    os._exit(1)
