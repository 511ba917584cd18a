"""What operators decide about tenants holds for every append, is in the log, and ends with the tenant."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import psycopg
import pytest
import sqlalchemy as sa

from contracts.erasures import ErasureRequest
from contracts.errors import (
    BadRequest,
    Forbidden,
    NotFound,
    QuotaExceeded,
    RateExceeded,
    TenantSuspended,
    TenantTaken,
)
from contracts.events import ErasedEvent, Event, Kind
from contracts.grants import LOCAL_GRANT
from contracts.relation_wire import ContractRequest
from contracts.tenants import Policy
from ledger import _tenants, log
from ledger._ending import DELETED_IN_ORDER
from ledger._tables import metadata
from ledger.erase import erase
from ledger.write import fold, register_contract
from tests.ledger.log_drafts import append, as_owner, claim, draft, head_of, read_all
from tests.ledger.recalls import store
from tests.ledger.scenario_logs import PlainProjector

BY = {"reason": "ticket 7", "actor_id": "olga", "grant": LOCAL_GRANT}


async def decide(db, **change):
    return await log.decide(db, "acme", change, **BY)


async def test_a_suspended_tenant_takes_nothing_is_read_and_erased_from_and_goes_on_where_it_stood(plane_db):
    receipt = await append(plane_db, draft(idempotency_key="k"))
    decided = await decide(plane_db, suspended=True)

    with pytest.raises(TenantSuspended):
        await append(plane_db, draft())
    assert (await append(plane_db, draft(idempotency_key="k"))).commit == receipt.commit
    await fold(plane_db, "acme", PlainProjector(), events_max=100)
    request = ErasureRequest(subject=None, event_ids=receipt.event_ids)
    report = await erase(plane_db, "acme", PlainProjector(), request, grant=LOCAL_GRANT)

    resumed = await decide(plane_db, suspended=False)
    again = await append(plane_db, draft())
    assert [receipt.commit, decided.commit, report.commit, resumed.commit, again.commit] == [1, 2, 3, 4, 5]
    assert (await log.verify(plane_db, "acme")).intact


async def test_a_decision_is_an_event_that_says_who_decided_what_and_why_and_is_made_once(plane_db):
    await decide(plane_db, events_max=10, bytes_max=None)
    assert (await decide(plane_db, events_max=10)).commit is None

    (event,) = await read_all(plane_db)

    assert isinstance(event, Event)
    assert (event.draft.kind, event.draft.actor.id, event.draft.text) == (Kind.DECISION, "olga", "ticket 7")
    (said,) = event.draft.claims
    assert (said.entity, said.value) == ("acme", {"events_max": 10, "bytes_max": None})
    shown = await log.show_tenant(plane_db, "acme")
    assert shown.policy == replace(Policy.NONE, events_max=10)


async def test_who_appends_past_its_quota_is_told_how_much_is_allowed_and_writes_nothing(plane_db):
    await append(plane_db, draft(), draft())
    await decide(plane_db, events_max=4)

    await append(plane_db, draft())
    with pytest.raises(QuotaExceeded) as too_many:
        await append(plane_db, draft())

    assert too_many.value.details() == {"quota": "events", "allowed": 4, "given": 5}
    used = (await log.show_tenant(plane_db, "acme")).bytes
    await decide(plane_db, events_max=None, bytes_max=used + 1_000)
    with pytest.raises(QuotaExceeded) as too_large:
        await append(plane_db, draft("x" * 1_000))
    assert too_large.value.quota == "bytes"
    await append(plane_db, draft("x"))
    assert (await head_of(plane_db)).position == 6


async def test_the_bytes_of_a_quota_are_those_of_the_whole_log_and_no_event_is_read_to_know_them(
    plane_db, owner_engine
):
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("REVOKE SELECT ON event FROM echoplane_plane"))
    await append(plane_db, draft())
    before = (await log.show_tenant(plane_db, "acme")).bytes
    await decide(plane_db, bytes_max=10**6)
    await append(plane_db, draft("Bob."), draft(claims=[claim()]))

    counted = (await log.show_tenant(plane_db, "acme")).bytes
    ((added,),) = await as_owner(
        owner_engine, "SELECT sum(octet_length(header) + octet_length(ciphertext)) FROM event"
    )

    assert 0 < before < counted == added


async def test_of_appends_that_share_a_transaction_only_those_that_are_too_much_are_refused(plane_db):
    await decide(plane_db, events_max=4)

    outcomes = await asyncio.gather(
        append(plane_db, *[draft() for _ in range(5)]),
        append(plane_db, draft(), draft()),
        append(plane_db, draft()),
        append(plane_db, draft()),
        return_exceptions=True,
    )

    assert [type(one).__name__ for one in outcomes] == [
        "QuotaExceeded",
        "Receipt",
        "Receipt",
        "QuotaExceeded",
    ]


async def test_who_appends_too_fast_is_told_when_to_come_again_and_may_then(plane_db, owner_engine):
    await decide(plane_db, events_per_minute=1)
    # More than a minute's worth passes while something is left, and is made up for.
    await append(plane_db, *[draft() for _ in range(5)])

    with pytest.raises(RateExceeded) as refusal:
        await append(plane_db, draft())

    assert 0 < refusal.value.retry_after_seconds <= 5 * 60
    waited = "UPDATE tenant_policy SET allowance_at = allowance_at - interval '6 minutes'"
    await as_owner(owner_engine, waited)
    await append(plane_db, draft())
    with pytest.raises(RateExceeded):
        await append(plane_db, draft(), draft())


async def test_appends_that_share_a_transaction_are_together_no_faster_than_the_rate_allows(plane_db):
    await decide(plane_db, events_per_minute=1)

    outcomes = await asyncio.gather(
        *(append(plane_db, draft()) for _ in range(20)),
        append(plane_db, *[draft() for _ in range(5)]),
        return_exceptions=True,
    )

    assert [type(one).__name__ for one in outcomes] == ["Receipt"] + 20 * ["RateExceeded"]


async def test_a_tenants_own_token_lifts_none_of_its_bounds(plane_db):
    own = replace(LOCAL_GRANT, tenant="acme")

    for attempt in (
        log.decide(plane_db, "acme", {"suspended": False}, reason="r", actor_id="a", grant=own),
        log.delete_tenant(plane_db, "acme", reason="r", actor_id="a", grant=own),
    ):
        with pytest.raises(Forbidden):
            await attempt
    with pytest.raises(BadRequest):
        await decide(plane_db, events_per_minute=0)


async def test_retention_erases_what_was_recorded_too_long_ago_by_an_erasure_that_says_so(plane_db, clock):
    old = await append(plane_db, draft("Old."), draft("Older."))
    await decide(plane_db, retention_days=30)
    recorded_at = old.recorded_at
    later = replace(plane_db, clock=lambda: recorded_at + timedelta(days=30, microseconds=1))
    assert await log.retaining(plane_db) == ["acme"]

    request = await log.overdue(later, "acme")
    assert request is not None
    assert request.event_ids == old.event_ids
    rest = await log.overdue(later, "acme", after_event_id=old.event_ids[0])
    assert rest is not None
    assert rest.event_ids == old.event_ids[1:]
    report = await erase(
        later, "acme", PlainProjector(), request, grant=LOCAL_GRANT, actor_id=log.RETENTION_ACTOR
    )

    assert report.erased == old.event_ids
    assert await log.overdue(later, "acme") is None
    events = await read_all(plane_db)
    assert [isinstance(one, ErasedEvent) for one in events] == [True, True, False, False]
    assert events[-1].draft.actor.id == "retention"
    assert (
        await log.overdue(replace(plane_db, clock=lambda: recorded_at + timedelta(days=30)), "acme") is None
    )


async def test_a_deleted_tenant_leaves_its_name_and_no_row_in_any_table(plane_db, owner_engine, database):
    await register_contract_of_age(plane_db)
    await append(plane_db, draft(claims=[claim()]), draft(claims=[claim("Ulm")]))
    await fold(plane_db, "acme", PlainProjector(), events_max=100)
    await store(plane_db)
    await decide(plane_db, retention_days=30)
    await log.create_token(plane_db, "acme", rights=["ask"], actors=["*"], classes=["user"], label="l")
    await log.create_tenant(plane_db, "other")
    await append(plane_db, draft(claims=[claim()]), tenant="other")
    announced = []

    left = await log.delete_tenant(plane_db, "acme", **BY, announce=lambda: announced.append(1))

    assert announced == [1]
    assert (left.record.state, left.record.events, left.record.deleted_by) == ("deleted", 4, "olga")
    assert left.reason == "ticket 7"
    assert set(DELETED_IN_ORDER) == set(metadata.tables) - {"deleted_tenant"}
    async with owner_engine.connect() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', false)"))
        rows = {name: await conn.scalar(sa.text(f"SELECT count(*) FROM {name}")) for name in DELETED_IN_ORDER}
    assert rows == dict.fromkeys(DELETED_IN_ORDER, 0)
    assert await log.list_tenants(plane_db) == ["other"]
    assert (await log.verify(plane_db, "other")).intact
    for attempt in (append(plane_db, draft()), log.verify(plane_db, "acme")):
        with pytest.raises(NotFound):
            await attempt
    with pytest.raises(TenantTaken):
        await log.create_tenant(plane_db, "acme")
    again = await log.delete_tenant(plane_db, "acme", reason="again", actor_id="bo", grant=LOCAL_GRANT)
    assert again == left


async def register_contract_of_age(db) -> None:
    contract = ContractRequest(relation="age", value_type="number").contract()
    await register_contract(db, "acme", contract, stream="contracts", actor_id="op", grant=LOCAL_GRANT)


async def test_deleting_that_is_cut_off_has_ended_the_tenant_and_goes_on(plane_db, owner_engine, monkeypatch):
    await append(plane_db, draft(claims=[claim()]))
    await fold(plane_db, "acme", PlainProjector(), events_max=100)

    async def cut(*_):
        raise ConnectionError

    with monkeypatch.context() as patch:
        patch.setattr("ledger._ending._delete_rows", cut)
        with pytest.raises(ConnectionError):
            await log.delete_tenant(plane_db, "acme", **BY)

    assert (await log.show_tenant(plane_db, "acme")).record.state == "deleting"
    assert not await log.tenant_exists(plane_db, "acme")
    assert plane_db.tenant_keys == {}
    assert await as_owner(owner_engine, "SELECT wrapped_keys FROM tenant") == [(b"",)]
    for attempt in (append(plane_db, draft()), fold(plane_db, "acme", PlainProjector(), events_max=1)):
        with pytest.raises(NotFound):
            await attempt
    left = await log.delete_tenant(plane_db, "acme", **BY)
    assert left.record.state == "deleted"


async def test_nobody_deletes_rows_of_a_tenant_that_has_not_ended(plane_db, database):
    await append(plane_db, draft())

    with psycopg.connect(database.plane.replace("+psycopg", ""), autocommit=True) as conn:
        for statement in (
            "SELECT echoplane_delete_rows('acme', 'event', 10)",
            "SELECT echoplane_restore_rows('acme', 'event', '{}', '[]')",
            "SELECT echoplane_restore_tenant('new', '', now(), '')",
        ):
            with pytest.raises(
                (psycopg.errors.IntegrityConstraintViolation, psycopg.errors.InsufficientPrivilege)
            ):
                conn.execute(statement)


async def test_who_restores_cannot_leave_out_what_is_asked_of_keys(database):
    """An append need not ask whose its keys are, and says so by a setting that anybody can make."""
    key = json.dumps([{"event_id": "ev_none", "wrapped_key": "\\x01"}])

    with psycopg.connect(database.backfill.replace("+psycopg", "")) as conn:
        conn.execute("SELECT echoplane_restore_tenant('moved', '', now(), '')")
        conn.execute("SET echoplane.appending = 'on'")
        with pytest.raises(psycopg.errors.ForeignKeyViolation):
            conn.execute(
                "SELECT echoplane_restore_rows('moved', 'event_key', '{event_id,wrapped_key}', %s)", [key]
            )


async def test_tenants_are_listed_a_page_at_a_time_with_what_became_of_them(plane_db):
    for name in ("beta", "gamma", "delta"):
        await log.create_tenant(plane_db, name, created_by="olga")
    await log.decide(plane_db, "beta", {"suspended": True}, **BY)
    await log.delete_tenant(plane_db, "gamma", **BY)

    first = await log.read_tenants(plane_db, after="", limit=2)
    second = await log.read_tenants(plane_db, after=first[-1].tenant, limit=2)

    assert [(one.tenant, one.state) for one in first + second] == [
        ("acme", "active"), ("beta", "suspended"), ("delta", "active"), ("gamma", "deleted"),
    ]  # fmt: skip
    assert [one.created_by for one in first] == ["echoplane", "olga"]
    assert await log.read_tenants(plane_db, after="gamma", limit=2) == []
    (only,) = await log.read_tenants(plane_db, after="", limit=2, only="beta")
    assert only.commits == 1
    assert await log.read_tenants(plane_db, after="beta", limit=2, only="beta") == []


async def test_a_look_at_one_tenant_passes_no_other(plane_db):
    """Every table is asked for the one name; of a scan of all, nothing but its cost would say so."""
    async with plane_db.across_tenants() as conn:
        await conn.execute(sa.text("SET LOCAL enable_seqscan = off"))
        plan = list(await conn.scalars(sa.text(f"EXPLAIN {_tenants._ONE}"), {"tenant": "acme"}))

    assert len([line for line in plan if "Index Cond: (tenant = 'acme'::text)" in line]) == 4
    assert [line for line in plan if "Seq Scan" in line] == []
