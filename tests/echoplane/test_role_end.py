"""How a role ends: nothing in its threads is waited for, nor is discovery past its own bound."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading

import pytest

from echoplane import _keeper, _roles
from echoplane._keeper import Post
from echoplane._settings import read_settings
from echoplane._state import Role


def test_the_end_of_a_role_waits_for_none_of_its_threads(monkeypatch, tmp_path):
    begun, let_go, ended = threading.Event(), threading.Event(), []

    def load():
        begun.set()
        ended.append(let_go.wait(5))

    async def serve(_):
        asyncio.get_running_loop().run_in_executor(None, load)
        await asyncio.sleep(0)

    monkeypatch.setattr(_roles, "_serve_of", lambda _: serve)
    # It would see that this process has no supervisor, and end it.
    monkeypatch.setattr(_roles, "_end_with_supervisor", lambda: None)
    monkeypatch.setenv("ECHOPLANE_DATA_DIR", str(tmp_path))

    _roles.run_role(Post(role=Role.DISCOVERY, number=1), read_settings())

    assert begun.wait(5)
    assert ended == []
    let_go.set()


DEAF = 'trap "" TERM; echo ready; exec sleep 600'
SLOW = 'trap "sleep 0.3; exit 0" TERM; echo ready; while :; do sleep 0.02; done'


@pytest.mark.parametrize(
    ("role", "does", "code"),
    [(Role.DISCOVERY, DEAF, -signal.SIGKILL), (Role.WORKER, SLOW, 0), (Role.API, SLOW, 0)],
)
async def test_only_discovery_has_no_longer_than_its_own_bound_to_end(monkeypatch, role, does, code):
    monkeypatch.setattr(_keeper, "STOP_SECONDS", 600)
    monkeypatch.setattr(_keeper, "DISCOVERY_STOP_SECONDS", 0.05)
    child = await asyncio.create_subprocess_exec("sh", "-c", does, stdout=asyncio.subprocess.PIPE)
    try:
        assert await child.stdout.readline() == b"ready\n"

        async with asyncio.timeout(60):
            await _keeper._end(child, role)

        assert child.returncode == code
    finally:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
