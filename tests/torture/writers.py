"""Writers that append until they are told to stop, each event again until it is acknowledged."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from tests.acceptance.planes import PATIENCE_SECONDS, RunningPlane

PLACES: Final = ("Lyon", "Graz", "Oslo", "Turin", "Porto", "Ghent")
THINGS: Final = ("tea", "chess", "maps", "opera", "figs")
ACTORS_MAX: Final = 40
"""Speakers of one writer: none of their keys grows long."""
PAUSE_SECONDS: Final = 0.02
RETRY_SECONDS: Final = 0.05
TIMEOUT_SECONDS: Final = 10.0
"""For one answer: a plane that is being killed may never give it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """One event that a writer was told is kept, and where."""

    tenant: str
    key: str
    event_id: str
    position: int
    commit: int
    event_hash: str


@dataclass(slots=True, kw_only=True)
class Counts:
    """What a writer met on its way."""

    requests: int = 0
    failures: int = 0
    repeated: int = 0
    refused: list[str] = field(default_factory=list)


class Writer(threading.Thread):
    """
    One client. What it says is a function of its seed; what it was told is in `acknowledged`.

    Any answer but a receipt or `unavailable` ends it, and stands in `counts.refused`.
    """

    def __init__(self, plane: RunningPlane, tenant: str, *, name: str, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.plane, self.tenant = plane, tenant
        self.chance = random.Random(seed)
        self.acknowledged: list[Acknowledged] = []
        self.counts = Counts()
        self.stopping = threading.Event()
        self._number = 0

    def run(self) -> None:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{self.plane.port}",
            headers={"authorization": f"Bearer {self.plane.token}"},
            timeout=TIMEOUT_SECONDS,
            trust_env=False,
        ) as client:
            while not self.stopping.is_set() and not self.counts.refused:
                self._say(client, [self._event() for _ in range(self.chance.choice((1, 1, 1, 1, 2, 5)))])
                time.sleep(PAUSE_SECONDS)

    def _say(self, client: httpx.Client, events: Sequence[dict[str, Any]]) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            self.counts.requests += 1
            try:
                answer = client.post(f"/v1/{self.tenant}/events", json={"events": events})
            except httpx.TransportError:
                answer = None
            if answer is not None and answer.status_code in {200, 201}:
                self._note(events, answer.json())
                return
            if answer is not None and answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                self.counts.refused.append(f"{answer.status_code} {answer.text[:300]}")
                return
            self.counts.failures += 1
            if time.monotonic() > deadline:
                self.counts.refused.append(f"not acknowledged within {PATIENCE_SECONDS} s")
                return
            time.sleep(RETRY_SECONDS)

    def _note(self, events: Sequence[dict[str, Any]], receipt: dict[str, Any]) -> None:
        self.counts.repeated += receipt["repeated"]
        self.acknowledged += [
            Acknowledged(
                tenant=self.tenant, key=event["idempotency_key"], event_id=event_id, position=position,
                commit=receipt["commit"], event_hash=event_hash,
            )
            for event, event_id, position, event_hash in zip(
                events, receipt["event_ids"], receipt["positions"], receipt["event_hashes"], strict=True
            )
        ]  # fmt: skip

    def _event(self) -> dict[str, Any]:
        self._number += 1
        who = f"{self.name}-{self.chance.randrange(ACTORS_MAX)}"
        event: dict[str, Any] = {
            "stream": self.name, "actor": {"id": who, "class": "user"},
            "idempotency_key": f"{self.name}-{self._number}",
        }  # fmt: skip
        earlier = self.acknowledged[-50:]
        match self.chance.randrange(10) if earlier else 0:
            case 8:
                target = self.chance.choice(earlier).event_id
                return event | {"kind": "retraction", "targets": [{"event": target}]}
            case 9:
                value = self.chance.choice(PLACES)
                claim = {"entity": who, "relation": "lives_in", "value": value, "stance": "correct"}
                target = self.chance.choice(earlier).event_id
                return event | {"kind": "correction", "claims": [claim], "targets": [{"event": target}]}
            case 6 | 7:
                claims = [{"entity": who, "relation": "mood", "value": self.chance.randrange(9)}]
                return event | {"kind": "claim", "claims": claims}
            case _:
                place, thing = self.chance.choice(PLACES), self.chance.choice(THINGS)
                return event | {"kind": "turn", "text": f"I live in {place}. I like {thing}."}
