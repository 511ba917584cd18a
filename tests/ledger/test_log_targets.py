"""A target names an event that stands earlier in the same tenant's log."""

from __future__ import annotations

import pytest

from contracts.errors import BadRequest
from ledger import log
from ledger._events import open_payload
from ledger._read import read_stored
from tests.ledger.log_drafts import append, claim, draft, head_of, read_all


def correction(target, **fields):
    return draft(None, kind="correction", claims=[{"value": "Paris"}], targets=[target], **fields)


async def test_a_target_by_id_is_kept_as_it_is(db):
    first = await append(db, draft())

    await append(db, correction({"event": first.event_ids[0], "ordinal": 0}))

    target = (await read_all(db))[1].draft.targets[0]
    assert (target.event, target.ordinal, target.source_event_id) == (first.event_ids[0], 0, None)


async def test_a_target_by_source_id_reads_as_the_event_it_named(db):
    await append(db, draft(source_event_id="m1", stream="other"))
    first = await append(db, draft(source_event_id="m1"))
    derivation = draft(
        None,
        kind="derivation",
        actor={"id": "worker", "class": "derived"},
        claims=[claim(inputs=[{"source_event_id": "m1"}])],
    )
    settlement = draft(None, kind="settlement", claims=[claim(winner={"source_event_id": "m1"})])

    await append(db, correction({"source_event_id": "m1"}))
    await append(db, derivation, settlement)

    events = await read_all(db)
    named = [
        events[2].draft.targets[0],
        events[3].draft.claims[0].inputs[0],
        events[4].draft.claims[0].winner,
    ]
    assert [target.event for target in named] == list(first.event_ids) * 3


async def test_what_the_caller_sent_is_what_is_stored(db):
    await append(db, draft(source_event_id="m1"))
    sent = correction({"source_event_id": "m1"})

    await append(db, sent)

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        stored = (await read_stored(conn, keys, after_position=1, limit=1))[0]
    payload = open_payload(keys, stored, keys.open_key(stored.event_id, stored.wrapped_key))
    assert payload["draft"]["targets"] == [{"source_event_id": "m1"}]
    assert (await append(db, sent)).commit == 3


async def test_a_target_may_stand_earlier_in_the_same_append(db):
    receipt = await append(db, draft(source_event_id="m1"), correction({"source_event_id": "m1"}))

    assert (await read_all(db))[1].draft.targets[0].event == receipt.event_ids[0]


async def test_a_source_id_used_twice_means_the_latest_before(db):
    await append(db, draft("a", source_event_id="m1", idempotency_key="k1"))
    latest = await append(db, draft("b", source_event_id="m1", idempotency_key="k2"))
    await append(db, correction({"source_event_id": "m1"}))
    await append(db, draft("c", source_event_id="m1", idempotency_key="k3"))

    assert (await read_all(db))[2].draft.targets[0].event == latest.event_ids[0]


@pytest.mark.parametrize(
    "target",
    [
        {"event": "ev_00000000000000000000000000"},
        {"source_event_id": "m9"},
        {"source_event_id": "own"},
        {"source_event_id": "later"},
        {"source_event_id": "elsewhere"},
    ],
)
async def test_a_target_that_stands_nowhere_earlier_refuses_the_whole_append(db, target):
    await append(db, draft(source_event_id="elsewhere", stream="other"))

    with pytest.raises(BadRequest) as refused:
        await append(
            db, draft("ok"), correction(target, source_event_id="own"), draft("x", source_event_id="later")
        )

    assert refused.value.field.startswith("events[1].targets[0].")
    assert (await head_of(db)).position == 1


async def test_an_event_of_another_tenant_is_no_target(db):
    await log.create_tenant(db, "other")
    foreign = await append(db, draft(source_event_id="m1"), tenant="other")

    with pytest.raises(BadRequest):
        await append(db, correction({"event": foreign.event_ids[0]}))
    with pytest.raises(BadRequest):
        await append(db, correction({"source_event_id": "m1"}))


@pytest.mark.parametrize(
    ("kind", "fields", "path"),
    [
        ("turn", {"stance": "retract", "targets": [{"event": "ev_0"}]}, "claims[0].targets[0].event"),
        ("settlement", {"winner": {"event": "ev_0"}}, "claims[0].winner.event"),
        ("derivation", {"inputs": [{"event": "ev_0"}]}, "claims[0].inputs[0].event"),
    ],
)
async def test_claims_targets_winners_and_inputs_are_held_to_the_same(db, kind, fields, path):
    with pytest.raises(BadRequest) as refused:
        await append(db, draft(kind=kind, claims=[claim(**fields)]))

    assert refused.value.field == f"events[0].{path}"


async def test_a_key_without_an_event_is_a_target_of_the_sources_own_claims(db):
    retraction = draft(None, kind="retraction", targets=[{"entity": "ann", "relation": "lives_in"}])

    await append(db, retraction)

    assert (await read_all(db))[0].draft == retraction
