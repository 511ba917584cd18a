"""Streams are lists to concurrent clients; and the checker that says so sees one that is none."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator

import httpx
import pytest
import uvicorn

from echoplane._http import make_app
from tests.torture.checker import list_problems
from tests.torture.listers import Lister
from tests.torture.lists import Append, End, Read, anomalies


class _Server(uvicorn.Server):
    """Leaves the signals of the test run alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


CLIENTS_COUNT = 6
OPERATIONS_COUNT = 15


async def test_streams_are_lists_to_clients_that_append_and_read_at_once(plane):
    await plane.make_tenant("home")
    server = _Server(
        uvicorn.Config(make_app(plane), host="127.0.0.1", port=0, log_config=None, lifespan="off")
    )
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    (port,) = {one.getsockname()[1] for one in server.servers[0].sockets}

    def client() -> httpx.Client:
        return httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {plane.local_token}"},
            timeout=60, trust_env=False,
        )  # fmt: skip

    listers = [Lister(f"c{number}", "home", seed=number, client=client) for number in range(CLIENTS_COUNT)]
    never = threading.Event()
    await asyncio.gather(
        *(asyncio.to_thread(one.run, never, operations_max=OPERATIONS_COUNT) for one in listers)
    )
    server.should_exit = True
    await serving

    history = [one for lister in listers for one in lister.history]
    assert [one for lister in listers for one in lister.refused] == []
    assert len(history) == CLIENTS_COUNT * OPERATIONS_COUNT
    assert {one.end for one in history if isinstance(one, Append)} == {End.DONE, End.REFUSED}
    assert await list_problems(plane.database, "home", history) == []


# --- the checker -----------------------------------------------------------------------------------


def put(began, ended, *elements, end=End.DONE, stream="s", expected=None):
    return Append(
        began=began, ended=ended, end=end, elements=tuple((stream, one) for one in elements),
        expected_version=expected,
    )  # fmt: skip


def seen(began, ended, *elements, stream="s", offset=0):
    return Read(began=began, ended=ended, stream=stream, offset=offset, elements=elements)


def both(began, ended, element):
    return Append(
        began=began, ended=ended, end=End.DONE, elements=(("s", element), ("t", element)),
        expected_version=None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("history", "stands"),
    [
        ([put(0, 1, "a"), put(2, 3, "b"), seen(4, 5, "a", "b")], {"s": "ab"}),
        ([put(0, 9, "b"), put(0, 9, "a"), seen(1, 2, "a"), seen(3, 4, "a", "b")], {"s": "ab"}),
        ([put(0, 1, "a", end=End.UNKNOWN), seen(2, 3), seen(4, 5, "a")], {"s": "a"}),
        ([put(0, 1, "a", end=End.UNKNOWN), seen(2, 3)], {"s": ""}),
        ([put(0, 1, "a"), put(0, 9, "b", end=End.REFUSED, expected=0), seen(1, 2, offset=1)], {"s": "a"}),
        ([both(0, 1, "a"), both(0, 1, "b"), seen(2, 3, "a", "b"), seen(2, 3, "a", "b", stream="t")],
         {"s": "ab", "t": "ab"}),
    ],
)  # fmt: skip
def test_the_checker_finds_nothing_where_streams_were_lists(history, stands):
    assert anomalies(history, {"s": "", "t": ""} | stands) == []


@pytest.mark.parametrize(
    ("history", "stands", "word"),
    [
        ([put(0, 1, "a"), put(2, 3, "b")], {"s": "a"}, "lost"),
        ([put(0, 1, "a")], {"s": "aa"}, "duplicated"),
        ([put(0, 1, "a")], {"s": "ab"}, "from nowhere"),
        ([put(0, 1, "a", end=End.REFUSED)], {"s": "a"}, "half done"),
        ([put(0, 1, "a", "b", end=End.UNKNOWN)], {"s": "a"}, "torn"),
        ([put(0, 1, "a"), put(2, 3, "b", expected=0)], {"s": "ab"}, "not at its version"),
        # Read in another order than it stands.
        ([put(0, 9, "a"), put(0, 9, "b"), seen(1, 2, "b", "a")], {"s": "ab"}, "reordered"),
        # Acknowledged first, and stands behind.
        ([put(0, 1, "a"), put(2, 3, "b")], {"s": "ba"}, "no order"),
        # A read after the answer, without what was answered.
        ([put(0, 1, "a"), seen(2, 3)], {"s": "a"}, "no order"),
        # Seen, and gone for whoever reads later.
        ([put(0, 9, "a"), seen(1, 2, "a"), seen(3, 4)], {"s": "a"}, "no order"),
        # One commit, half of it seen; in one stream, and over two.
        ([put(0, 9, "a", "b"), seen(1, 2, "a")], {"s": "ab"}, "no order"),
        ([both(0, 9, "a"), seen(1, 2, "a"), seen(3, 4, stream="t")], {"s": "a", "t": "a"}, "no order"),
        # Two commits, each the first in one of two streams.
        ([both(0, 9, "a"), both(0, 9, "b")], {"s": "ab", "t": "ba"}, "no order"),
    ],
)  # fmt: skip
def test_the_checker_sees_what_no_list_can_show(history, stands, word):
    found = anomalies(history, {"s": "", "t": ""} | stands)

    assert found
    assert found[0].startswith(word)
