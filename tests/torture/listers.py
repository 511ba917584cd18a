"""Clients that append to the same few streams and read them, each noting what it did and was told."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import httpx

from contracts.limits import PAGE_EVENTS_MAX
from tests.torture.lists import Append, End, Operation, Read

STREAMS: Final = ("list-a", "list-b", "list-c")
RETRY_SECONDS: Final = 0.05
PATIENCE_SECONDS: Final = 120.0
PAUSE_SECONDS: Final = 0.03


class Lister:
    """
    One client: what it does is a function of its seed, and what it was told is in `history`.

    Args:
        name: Of the client, unique; its elements carry it.
        tenant: Whose streams.
        seed: Of what it does.
        client: Makes a client of the HTTP door.
    """

    def __init__(self, name: str, tenant: str, *, seed: int, client: Callable[[], httpx.Client]) -> None:
        self.history: list[Operation] = []
        self.refused: list[str] = []
        self.name, self.tenant, self._client = name, tenant, client
        self._chance = random.Random(seed)
        self._known = dict.fromkeys(STREAMS, 0)
        self._number = 0

    def run(self, stopping: threading.Event, *, operations_max: int | None = None) -> None:
        """Append and read until told to stop, or so often."""
        with self._client() as client:
            while not stopping.is_set() and not self.refused:
                if operations_max is not None and len(self.history) >= operations_max:
                    return
                self._append(client) if self._chance.random() < 0.5 else self._read(client)
                if operations_max is None:
                    time.sleep(PAUSE_SECONDS)

    def _append(self, client: httpx.Client) -> None:
        streams = self._chance.choice(((STREAMS[0],), (STREAMS[1],), STREAMS, (STREAMS[2], STREAMS[2])))
        expected = None
        if len(set(streams)) == 1 and self._chance.random() < 0.5:
            expected = self._known[streams[0]]
        elements = []
        for stream in streams:
            self._number += 1
            elements.append((stream, f"{self.name}-{self._number}"))
        body: dict[str, Any] = {
            "events": [
                {"stream": stream, "kind": "turn", "actor": {"id": self.name, "class": "user"},
                 "text": element, "idempotency_key": element}
                for stream, element in elements
            ],
            "expected_version": expected,
        }  # fmt: skip
        began = time.monotonic()
        answer = self._asked(lambda: client.post(f"/v1/{self.tenant}/events", json=body))
        end = End.UNKNOWN
        if answer is not None and answer.is_success:
            end = End.DONE
        elif answer is not None and answer.status_code == httpx.codes.CONFLICT:
            end = End.REFUSED
        elif answer is not None:
            self.refused.append(f"{answer.status_code} {answer.text[:300]}")
        self.history.append(
            Append(
                began=began, ended=time.monotonic(), end=end, elements=tuple(elements),
                expected_version=expected,
            )
        )  # fmt: skip

    def _read(self, client: httpx.Client) -> None:
        stream = self._chance.choice(STREAMS)
        offset = self._chance.choice((0, max(0, self._known[stream] - 5), self._known[stream]))
        elements: list[str] = []
        began = time.monotonic()
        # A stream only grows: pages read one after the other are what stood there at the last one.
        while True:
            page = self._page(client, stream, offset + len(elements))
            if page is None:
                return
            elements += page
            # A page may end before it is full, by its bytes.
            if not page:
                break
        self._known[stream] = max(self._known[stream], offset + len(elements))
        self.history.append(
            Read(
                began=began, ended=time.monotonic(), stream=stream, offset=offset, elements=tuple(elements)
            )
        )  # fmt: skip

    def _page(self, client: httpx.Client, stream: str, after: int) -> list[str] | None:
        parameters: dict[str, Any] = {"stream": stream, "after_version": after, "limit": PAGE_EVENTS_MAX}
        answer = self._asked(lambda: client.get(f"/v1/{self.tenant}/events", params=parameters))
        if answer is None or not answer.is_success:
            self.refused.append(
                "no answer" if answer is None else f"{answer.status_code} {answer.text[:300]}"
            )
            return None
        return [one["event"]["text"] for one in answer.json()["events"]]

    @staticmethod
    def _asked(ask: Callable[[], httpx.Response]) -> httpx.Response | None:
        """Ask until there is an answer; None where there is none for long."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                answer = ask()
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                return answer
            time.sleep(RETRY_SECONDS)
        return None
