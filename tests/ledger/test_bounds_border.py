"""What one append may cost before it is written, however its events name each other."""

from __future__ import annotations

import pytest

from contracts import limits
from contracts.errors import LimitExceeded
from contracts.limits import EVENT_REFERENCES_MAX, TARGETS_MAX
from ledger import _border, _named
from tests.ledger.typed import append, ask, claim, event, fold_all, refused, typed

LEVELS = 6
WIDTH = 8


def chain(level, values):
    """Corrections without a key, each of all targets, and every target the one event before."""
    targets = [{"source_event_id": f"e{level - 1}"}] * WIDTH
    claims = [{"value": value} for value in values]
    return event(*claims, kind="correction", targets=targets, source_event_id=f"e{level}")


async def test_corrections_of_corrections_are_looked_at_once_however_many_ways_lead_to_them(db, monkeypatch):
    # Each way by itself would be 8^6 claims and more.
    monkeypatch.setattr(_named, "NAMED_CLAIMS_MAX", 2 * LEVELS * WIDTH + 1)
    await typed(db, "range", "number", unit="km")
    await append(db, event(claim("5 km"), source_event_id="e0"))
    for level in range(1, LEVELS):
        await append(db, chain(level, ["6 km"] * WIDTH))

    error = await refused(db, chain(LEVELS, ["6 km"] * (WIDTH - 1) + ["7 kg"]))

    assert error.field == f"events[0].claims[{WIDTH - 1}].value"


async def test_a_wrong_value_of_what_is_too_far_to_look_for_decides_nothing_and_is_reported(db, monkeypatch):
    monkeypatch.setattr(_named, "NAMED_CLAIMS_MAX", 2)
    await typed(db, "range", "number", unit="km")
    first = event(claim("5 km"), source_event_id="e0")
    second = event({"value": "6 km"}, kind="correction", targets=[{"source_event_id": "e0"}])
    third = event({"value": "7 kg"}, kind="correction", targets=[{"source_event_id": "e0"}])

    await append(db, first, second, third)
    report = await fold_all(db)

    assert report.unplaced == 1
    assert (await ask(db)).resolution.value == "6 km"


async def test_claims_of_one_event_share_one_look_at_its_targets(db, monkeypatch):
    monkeypatch.setattr(_named, "NAMED_CLAIMS_MAX", 2)
    await typed(db, "range", "number", unit="km")
    await append(db, event(claim("5 km"), source_event_id="e0"))
    corrections = [
        event(
            *[{"value": value} for value in ("6 km", "7 km", "8 kg")],
            kind="correction",
            targets=[{"source_event_id": "e0"}],
        )
    ]

    error = await refused(db, *corrections)

    assert error.field == "events[0].claims[2].value"


def disputes(claims_count, *, targets):
    return event(*[{"stance": "dispute"}] * claims_count, targets=targets)


async def test_targets_that_claims_share_count_with_each_of_them(db):
    await append(db, event(claim(1), source_event_id="e0"))
    targets = [{"source_event_id": "e0"}] * TARGETS_MAX

    with pytest.raises(LimitExceeded) as caught:
        await append(db, disputes(EVENT_REFERENCES_MAX // TARGETS_MAX, targets=targets))

    # Each of the claims may also have a winner.
    assert (caught.value.limit, caught.value.given) == ("EVENT_REFERENCES_MAX", 16 * 257)
    await append(db, disputes(15, targets=targets))


async def test_so_do_their_bytes(db):
    await append(db, event(claim(1), source_event_id="e0"))
    long = {"source_event_id": "e0", "value": "v" * 16_000}

    with pytest.raises(LimitExceeded) as caught:
        await append(db, disputes(66, targets=[long]))

    assert caught.value.limit == "EVENT_BYTES_MAX"
    await append(db, disputes(64, targets=[long]))


async def test_and_together_in_one_append(db, monkeypatch):
    monkeypatch.setattr(limits, "APPEND_REFERENCES_MAX", 10)
    await append(db, event(claim(1), source_event_id="e0"))
    own = disputes(2, targets=[{"source_event_id": "e0"}] * 2)

    with pytest.raises(LimitExceeded) as caught:
        await append(db, own, own)

    assert (caught.value.limit, caught.value.given) == ("APPEND_REFERENCES_MAX", 12)


async def test_values_with_a_schema_are_held_to_a_bound_for_all_of_an_append(db, monkeypatch):
    # Each of the values holds three: itself and two items. The schema holds two.
    monkeypatch.setattr(_border, "APPEND_CHECKS_MAX", 3 * 2 * 2)
    await typed(db, "parts", "json", schema='{"items":{"type":"number"}}')

    with pytest.raises(LimitExceeded) as caught:
        await append(db, event(*[claim([1, 2], "parts")] * 3))

    assert (caught.value.limit, caught.value.given) == ("APPEND_CHECKS_MAX", 18)
    await append(db, event(*[claim([1, 2], "parts")] * 2))
