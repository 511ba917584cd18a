"""
Golden files of events as they were written: one for each version, never changed once it is there.

`python -m tests.ledger.event_files` writes the one of the version that is written now, if there is none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from contracts.events import EventDraft
from ledger._drafts import draft_bytes
from ledger._events import seal_events
from ledger._keys import TenantKeys, key_ring
from ledger._versions import EVENT_VERSION

FOLDER = Path(__file__).resolve().parents[1] / "data"
MASTER_KEY = bytes(range(32))
TENANT = "golden"
SENT_AT = datetime(2026, 1, 1, 11, 59, 58, 500_000, tzinfo=UTC)
ANN = {"id": "ann", "class": "user"}
DRAFTS: list[dict[str, Any]] = [
    {"stream": "chat-1", "kind": "turn", "actor": ANN, "text": "I moved to Lyon. 🏠"},
    {
        "stream": "run-1", "kind": "observation", "actor": {"id": "robot-1", "class": "sensor"},
        "observed_at": "2024-05-01T10:00+02:00", "source_event_id": "r-1",
        "correlation": "run", "causation": "x", "subjects": ["mug"], "claims": [
            {"entity": "mug", "relation": "weight", "value": {"amount": 2**60, "of": [1.5, True, "g"]}},
            {"entity": "mug", "relation": "located_in", "value": "kitchen", "valid": {"since": "2024-05"}},
        ],
    },
    {
        "stream": "chat-1", "kind": "retraction", "actor": ANN, "idempotency_key": "k",
        "observed_at": "2024-05-02T10:00:00.5Z", "targets": [{"source_event_id": "t-1", "span": [0, 4]}],
    },
]  # fmt: skip


def randomness() -> Callable[[int], bytes]:
    """Bytes that are the same in each run, and no two of them alike."""
    count = 0

    def draw(size: int) -> bytes:
        nonlocal count
        count += 1
        return hashlib.sha512(count.to_bytes(8, "big")).digest()[:size]

    return draw


def keys_of(wrapped: str) -> TenantKeys:
    return key_ring(MASTER_KEY).open_tenant(TENANT, bytes.fromhex(wrapped))


def path_of(version: int) -> Path:
    return FOLDER / f"events_version_{version}.json"


def sealed_now() -> dict[str, Any]:
    """Seal the drafts as this build does."""
    drawn = randomness()
    wrapped = key_ring(MASTER_KEY).new_tenant(TENANT, randomness=drawn).hex()
    keys = keys_of(wrapped)
    events = []
    for number, form in enumerate(DRAFTS):
        draft = EventDraft.model_validate(form)
        (sealed,) = seal_events(
            keys,
            [f"ev_{number:026}"],
            [(draft, draft_bytes(draft))],
            [{"t-1": "ev_" + "0" * 26} if draft.targets else {}],
            sent_at=SENT_AT if number else None,
            backfilled=number == 1,
            randomness=drawn,
        )
        events.append({
            "event_id": sealed.event_id, "kind": sealed.kind.value, "header": sealed.header.hex(),
            "ciphertext": sealed.ciphertext.hex(), "wrapped_key": sealed.wrapped_key.hex(),
            "hash": sealed.hash.hex(), "draft": form,
        })  # fmt: skip
    return {"version": EVENT_VERSION, "tenant_keys": wrapped, "events": events}


def main() -> None:
    path = path_of(EVENT_VERSION)
    if not path.exists():
        path.write_text(json.dumps(sealed_now(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
