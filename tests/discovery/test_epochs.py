"""An index follows the epoch that serves, and knows how far each epoch is folded."""

from __future__ import annotations

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from discovery._keeper import Keeper
from discovery._wakeups import _moved
from ledger import log
from ledger.write import begin_epoch, fold
from projection import RuleProjector
from tests.discovery.values import emit


def lives(place):
    return EventDraft.model_validate({
        "stream": "s", "kind": "claim", "actor": {"id": "Ann", "class": "user"},
        "claims": [{"entity": "Ann", "relation": "lives_in", "value": place}],
    })  # fmt: skip


async def step(db, size):
    return await fold(db, "acme", RuleProjector(), events_max=size)


async def begun(db):
    await begin_epoch(
        db,
        "acme",
        projector_version=RuleProjector().version,
        stream="c",
        actor_id="op",
        grant=LOCAL_GRANT,
    )


async def test_claims_of_an_epoch_that_is_being_built_are_complete_as_far_as_that_is_folded(db):
    for place in ("Lyon", "Ghent", "Oslo", "Turin"):
        await emit(db, lives(place))
    await step(db, 100)
    await begun(db)
    await step(db, 1)
    keeper = Keeper(db, embedder=None)
    try:
        index = await keeper.ready("acme", cut=1, epoch=2, wait_seconds=60)
        assert index.claims[2].complete_commit == 1

        while not (await step(db, 100)).is_at_head:
            pass
        index = await keeper.ready("acme", cut=4, epoch=2, wait_seconds=60)

        assert index.claims[2].complete_commit == 5
        assert index.claims[2].position == 4
    finally:
        keeper.close()


async def test_a_wake_up_reads_the_epoch_that_serves_by_then(db):
    await emit(db, lives("Lyon"))
    await step(db, 100)
    keeper = Keeper(db, embedder=None)
    try:
        await keeper.ready("acme", cut=1, epoch=1, wait_seconds=60)
        await begun(db)
        while not (await step(db, 100)).is_at_head:
            pass
        async with db.snapshot("acme") as conn:
            assert (await log.serving(conn)).epoch == 2

        await keeper.wake("acme")
        index = await keeper.ready("acme", cut=0, epoch=None, wait_seconds=60)

        assert index.claims[2].complete_commit == 2
    finally:
        keeper.close()


def test_a_tenant_is_woken_where_its_head_moved_or_another_epoch_serves():
    seen = {"still": (3, 1), "more": (3, 1), "switched": (3, 1)}

    moved = _moved(
        seen, {"still": (3, 1), "more": (4, 1), "switched": (3, 2), "empty": (0, 1), "new": (1, 1)}
    )

    assert moved == ["more", "switched", "new"]
