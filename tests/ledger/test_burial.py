"""What an erasure has to work out costs no more than what it takes, however much of it is on one key."""

from __future__ import annotations

import tracemalloc

from ledger._burial import Burial
from ledger._identity import identity_of
from ledger._withdrawal import Replay
from tests.ledger.erased_logs import veil
from tests.ledger.random_logs import CONTRACTS, claims_in


def burial_of(events):
    """Erasing ann from a log of one commit, all of whose events are about her but those of "bob"."""
    claims = claims_in([events])
    replay = Replay(CONTRACTS, identity_of(claims, CONTRACTS).identity)
    replay.extend(claims)
    return Burial(
        replay=replay, claims=claims, subjects=frozenset({"ann"}), erased_in=2, veil=veil,
        erased_ids=frozenset(event["source_event_id"] for event in events if event["stream"] != "bob"),
    )  # fmt: skip


def said(number, *claims, stream="s", **fields):
    return {
        "stream": stream, "kind": "claim", "actor": {"id": "op", "class": "operator"},
        "source_event_id": f"e{number}", "claims": list(claims), **fields,
    }  # fmt: skip


def home(number, **fields):
    return {"entity": "ann", "relation": "home", "value": f"{number}", **fields}


def bytes_taken(burial):
    """At the most, beside what was there before."""
    tracemalloc.start()
    try:
        assert burial.tombstones() == []
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_key_takes_memory_as_it_has_claims_and_not_as_their_square():
    few = bytes_taken(burial_of([said(n, home(n)) for n in range(150)]))
    many = bytes_taken(burial_of([said(n, home(n)) for n in range(1_200)]))

    assert many < 8 * 2 * few


def test_claims_that_name_whole_events_take_memory_as_they_are_many_and_not_as_their_square():
    def wide(count):
        """Claims, each of which acts on an event of as many claims."""
        acting = [
            {"stance": "dispute", "targets": [{"event": "e0"}], "entity": "ann", "relation": "home"}
        ] * count
        return burial_of([said(0, *(home(n) for n in range(count))), said(1, *acting)])

    few, many = bytes_taken(wide(20)), bytes_taken(wide(160))

    assert many < 8 * 2 * few


def test_what_is_connected_with_others_is_all_of_a_key_and_of_an_event_that_is_acted_on():
    box = {"entity": "box", "relation": "home", "value": "shelf"}
    job = {"entity": "ann", "relation": "job", "value": "baker"}
    moved = {"entity": "ann", "relation": "place", "stance": "correct", "value": "floor"}
    burial = burial_of([
        said(0, box, stream="bob"),
        # It acts on what stays; its event is of two claims, and something acts on the event.
        said(1, moved | {"targets": [{"event": "e0"}]}, job),
        said(2, {"stance": "dispute", "targets": [{"event": "e1"}]}),
        # On the key of the one, and on no such key.
        said(3, {"entity": "ann", "relation": "job", "value": "smith"}),
        said(4, {"entity": "ann", "relation": "hobby", "value": "chess"}),
    ])  # fmt: skip

    kept = {(stone.position.event, stone.position.ordinal) for stone in burial.tombstones()}

    assert kept == {(2, 0), (2, 1), (3, 0), (4, 0)}
