"""How a role ends: nothing that it is at in a thread is waited for."""

from __future__ import annotations

import asyncio
import threading

from echoplane import _roles
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
