"""Where servers live: reachable by their account, private to it, and never another's leavings."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess

import pytest

from contracts.errors import Unavailable
from echoplane._folders import DataFolder, programs, server_user
from echoplane._postgres import _answers, ensure_postgres
from echoplane._redis import ensure_redis
from tests.echoplane.conftest import stop_and_discard

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user's servers run as that user")


@pytest.mark.parametrize("name", ["long" * 30, "a folder, of hers: 100% 'mine'"])
async def test_a_path_that_is_no_name_for_a_socket_gets_a_short_private_one(place, name):
    folder = DataFolder.at(place / name, system=place / "system")
    try:
        redis, address = await ensure_redis(folder), await ensure_postgres(folder, settings={})

        assert len(os.fsencode(redis.socket)) < 108
        assert stat.S_IMODE(redis.socket.parent.stat().st_mode) == 0o700
        assert await _answers(address)
    finally:
        await stop_and_discard(folder)

    assert not redis.socket.parent.exists()


@needs_root
async def test_under_a_private_folder_root_keeps_the_cluster_in_a_system_folder(place):
    closed = place / "home"
    closed.mkdir()
    closed.chmod(0o700)
    folder = DataFolder.at(closed / "data", system=place / "system")
    try:
        address = await ensure_postgres(folder, settings={})

        assert folder.outside()["postgres"].parent == place / "system" / "servers"
        assert await _answers(address)
    finally:
        await stop_and_discard(folder)

    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert list((place / "system" / "servers").iterdir()) == []


@needs_root
async def test_a_data_folder_made_anew_does_not_find_the_cluster_of_the_old_one(place):
    closed = place / "home"
    closed.mkdir()
    closed.chmod(0o700)
    first = DataFolder.at(closed / "data", system=place / "system").home("postgres")
    shutil.rmtree(closed / "data")

    second = DataFolder.at(closed / "data", system=place / "system").home("postgres")

    assert second != first


@needs_root
def test_programs_that_the_account_cannot_read_are_copied_by_digest_with_their_libraries(place, monkeypatch):
    closed = place / "closed"
    program = closed / "wheel_of_ours" / "bin" / "server"
    program.parent.mkdir(parents=True)
    (closed / "wheel_of_ours" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    program.write_text('#!/bin/sh\nexec cat "$(dirname "$0")/../../wheel_of_ours.libs/library"\n')
    program.chmod(0o700)
    (closed / "wheel_of_ours.libs").mkdir()
    (closed / "wheel_of_ours.libs" / "library").write_text("loaded")
    closed.chmod(0o700)
    monkeypatch.syspath_prepend(str(closed))
    user = server_user()
    assert user is not None

    copy = programs("wheel_of_ours", "bin", server="postgres", system=place / "system")
    said = subprocess.run(
        [copy / "server"],
        check=True,
        capture_output=True,
        user=user.uid,
        group=user.gid,
        extra_groups=[],
        cwd="/",
    )
    (closed / "wheel_of_ours.libs" / "library").write_text("newer")
    newer = programs("wheel_of_ours", "bin", server="postgres", system=place / "system")

    assert said.stdout == b"loaded"
    assert copy.is_relative_to(place / "system" / "programs")
    assert newer != copy


def test_a_machine_without_programs_is_told_to_name_servers_of_its_own(place):
    with pytest.raises(Unavailable, match="ECHOPLANE_DATABASE_URL"):
        programs("no_such_wheel", "bin", server="postgres", system=place / "system")
