"""Merges are kept in memory by the rows they were worked out from: no answer hangs on what is kept."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from contracts.errors import IntegrityFault
from contracts.resolutions import Missing, Resolved
from ledger import _ground
from ledger._ground import MergesKept
from ledger._identity import NO_MERGES
from ledger._keys import KEY_BYTES, TenantKeys
from tests.ledger.test_resolve import ask, say  # noqa: F401 — a fixture

WHO = {"key": ("Bob", "same_as")}


@pytest.fixture
def counted(monkeypatch):
    """Count how often merges are worked out while answering."""
    calls = []

    def counting(claims, contracts):
        calls.append(len(claims))
        return identity_of(claims, contracts)

    identity_of = _ground.identity_of
    monkeypatch.setattr(_ground, "identity_of", counting)
    return calls


async def test_who_is_one_with_whom_is_worked_out_once_and_again_after_each_change(db, say, counted):  # noqa: F811
    said = await say("ann", "Robert", **WHO)
    await say("eve", "Oslo", key=("Robert", "home"))

    for _ in range(3):
        assert isinstance((await ask(db, "Bob", "home")).resolution, Resolved)
    assert len(counted) == 1

    await say("ann", stance="retract", targets=[{"event": said.event_ids[0]}], key=("Zoe", "home"))
    assert isinstance((await ask(db, "Bob", "home")).resolution, Missing)
    assert len(counted) == 2


async def test_what_hangs_on_more_than_claims_of_identity_is_worked_out_each_time(db, say, counted):  # noqa: F811
    said = await say("ann", "Lyon")
    await say("ann", "Robert", **WHO)
    await say("ann", "Rob", targets=[{"event": said.event_ids[0]}], stance="correct", **WHO)

    for _ in range(2):
        await ask(db, "Bob", "home")

    assert len(counted) == 2


@pytest.mark.parametrize(
    "change", ["seal = '\\x00'", "body = '\\x5b22ff'", "body = '\\x00'", "entity = 'Rob'"]
)
async def test_a_changed_claim_of_identity_is_refused_though_its_merges_are_kept(
    db, say, owner_engine, counted, change  # noqa: F811
):  # fmt: skip
    await say("ann", "Robert", **WHO)
    await ask(db, "Bob", "home")
    assert len(counted) == 1

    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text(f"UPDATE claim SET {change} WHERE relation = 'same_as'"))

    with pytest.raises(IntegrityFault):
        await ask(db, "Bob", "home")


def keys_of(tenant):
    return TenantKeys(tenant=tenant, _wrapping_key=bytes(KEY_BYTES), _digest_key=bytes(KEY_BYTES))


def test_merges_of_all_tenants_together_are_kept_up_to_the_bound_those_used_last():
    kept, tenants = MergesKept(claims_max=10), [keys_of(f"t{number}") for number in range(3)]
    for keys in tenants[:2]:
        kept.put(keys, b"d", NO_MERGES, 4)
    assert kept.get(tenants[0], b"d") is NO_MERGES

    kept.put(tenants[2], b"d", NO_MERGES, 4)
    kept.put(tenants[2], b"d", NO_MERGES, 5)
    kept.put(tenants[2], b"larger", NO_MERGES, 11)

    assert [kept.get(keys, b"d") is not None for keys in tenants] == [True, False, True]
    assert kept.get(tenants[2], b"larger") is None
    assert kept.claims_count == 9


def test_merges_are_kept_no_longer_than_the_keys_of_their_tenant():
    kept, keys = MergesKept(claims_max=10), keys_of("t")
    kept.put(keys, b"one", NO_MERGES, 4)
    kept.put(keys, b"two", NO_MERGES, 4)

    del keys

    assert kept.claims_count == 0
