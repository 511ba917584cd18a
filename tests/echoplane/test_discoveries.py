"""Several processes of discovery: each is kept and listens apart, where clients look for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from contracts.errors import BadRequest
from contracts.limits import DISCOVERIES_MAX
from discovery import Client
from echoplane._evaluating import Asker
from echoplane._folders import DataFolder
from echoplane._keeper import posts
from echoplane._settings import read_settings
from echoplane._sockets import discovery_socket, discovery_sockets
from echoplane._state import Role


def test_each_process_is_kept_under_a_name_of_its_own():
    made = posts(Role.DISCOVERY, workers=2, discoveries=3)

    assert [post.name for post in made] == ["discovery", "discovery-2", "discovery-3"]
    assert len(posts(Role.WORKER, workers=2, discoveries=3)) == 2
    assert len(posts(Role.API, workers=2, discoveries=3)) == 1


@pytest.mark.parametrize("name", ["data", "d" * 120])
def test_each_process_listens_apart_on_a_path_that_the_kernel_takes(tmp_path, name):
    folder = DataFolder.at(tmp_path / name)

    sockets = discovery_sockets(folder, count=DISCOVERIES_MAX)

    assert len(set(sockets)) == DISCOVERIES_MAX
    assert sockets[0] == discovery_socket(folder)
    assert {path.parent for path in sockets} == {sockets[0].parent}
    assert max(len(bytes(path)) for path in sockets) <= 107


def test_an_evaluation_asks_the_process_of_each_tenant_as_everybody_does(plane):
    several = replace(plane, settings=plane.settings.model_copy(update={"discoveries": 3}))

    asked = Asker(several, budgets=())._discovery._client

    folder = DataFolder.at(plane.settings.data_dir)
    everybody = Client(discovery_sockets(folder, count=3))
    tenants = [f"t{number}" for number in range(20)]
    paths = [asked._socket_of(tenant) for tenant in tenants]
    assert paths == [everybody._socket_of(tenant) for tenant in tenants]
    assert len(set(paths)) == 3


def test_there_is_at_least_one_and_not_more_than_allowed(monkeypatch):
    for wrong in ("0", str(DISCOVERIES_MAX + 1)):
        monkeypatch.setenv("ECHOPLANE_DISCOVERIES", wrong)
        with pytest.raises(BadRequest, match="DISCOVERIES"):
            read_settings()
