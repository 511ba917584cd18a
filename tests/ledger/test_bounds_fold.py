"""What one event may cost the fold: counted, not timed."""

from __future__ import annotations

import pytest

from ledger import _world
from ledger._register import Register
from tests.ledger.typed import append, claim, event, fold_all

WIDTH = 12


@pytest.fixture
def calls(monkeypatch):
    """Count how often methods of the fold are called, and how many claims are opened."""
    counted = {"opened": 0}
    claims_of = _world.claims_of

    def opening(rows, *given, **named):
        counted["opened"] += len(rows)
        return claims_of(rows, *given, **named)

    monkeypatch.setattr(_world, "claims_of", opening)

    def count(owner, name):
        counted[name] = 0
        plain = getattr(owner, name)

        def counting(*given, **named):
            counted[name] += 1
            return plain(*given, **named)

        monkeypatch.setattr(owner, name, counting)

    count(Register, "_is_meant")
    count(_world.Reader, "of_events")
    return counted


async def test_disputes_of_the_claims_of_one_event_cost_as_many_looks_as_they_name_claims(db, calls):
    await append(db, event(*[claim(number, f"r{number}") for number in range(WIDTH)], source_event_id="e0"))
    await fold_all(db)
    targets = [{"source_event_id": "e0", "ordinal": ordinal} for ordinal in range(WIDTH)]
    await append(db, event(*[{"stance": "dispute"}] * WIDTH, targets=targets))
    calls.update(dict.fromkeys(calls, 0))

    await fold_all(db)

    # Each claim that is named once for what it meets and once for whether it is missed.
    assert calls["_is_meant"] <= WIDTH * (2 * WIDTH + 1)
    assert calls["of_events"] == 1
    # The claims of the event for what it bears on, and then with the disputes from each of their keys.
    assert calls["opened"] <= 4 * WIDTH


async def test_a_claim_that_bears_on_many_keys_is_read_once_for_all_of_them(db, calls):
    await append(db, event(*[claim(number, f"r{number}") for number in range(WIDTH)], source_event_id="e0"))
    about_all = event({"stance": "dispute"}, targets=[{"source_event_id": "e0"}])
    for _ in range(4):
        await append(db, about_all)
    await fold_all(db)
    await append(db, about_all)
    calls.update(dict.fromkeys(calls, 0))

    await fold_all(db)

    # Once for each of the keys, the four disputes before would make it 4 * WIDTH more.
    assert calls["opened"] < 3 * WIDTH
