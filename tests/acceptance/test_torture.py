"""`make torture`, in short: each kind of fault once under eight writers, and the checker's own control."""

from __future__ import annotations

from dataclasses import replace

import psycopg
import pytest
import sqlalchemy as sa

from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from echoplane._clock import wall_clock
from echoplane._postgres import SUPERUSER
from ledger import log
from tests.torture.checker import digest_of, ledger_problems, log_problems, quiet_digest
from tests.torture.run import LOST_TAIL, torture
from tests.torture.writers import Acknowledged


@pytest.mark.timeout(900)
def test_nothing_that_dies_stands_still_or_forgets_changes_what_is_remembered():
    verdict = torture(seed=20, seconds=0.0, pause_seconds=(0.2, 0.5), say=print)

    print(verdict.line())
    assert verdict.problems == []
    assert verdict.acknowledged > 0
    assert verdict.is_control_caught


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_a_server_loses_that_does_not_wait_for_its_disk_is_found():
    verdict = torture(seed=21, seconds=20.0, pause_seconds=(1.0, 3.0), say=print, is_durable=False)

    assert [one for one in verdict.problems if "acknowledged and lost" in one]


@pytest.fixture
async def kept(database):
    """A log of three commits, and what its writer was told."""
    db = log.open_database(
        plane_url=database.plane, relay_url=database.relay, master_key=bytes(32), clock=wall_clock
    )
    await log.create_tenant(db, "north")
    told = []
    for number in range(3):
        draft = EventDraft.model_validate({
            "stream": "s", "kind": "turn", "actor": {"id": "ann", "class": "user"}, "text": "I live in Lyon.",
            "idempotency_key": f"k{number}",
        })  # fmt: skip
        receipt = await log.append(db, "north", [draft], grant=LOCAL_GRANT)
        told.append(
            Acknowledged(
                tenant="north", key=f"k{number}", event_id=receipt.event_ids[0],
                position=receipt.positions[0], commit=receipt.commit, event_hash=receipt.event_hashes[0],
            )
        )  # fmt: skip
    yield db, told
    await db.close()


async def test_the_checker_finds_nothing_where_nothing_is_wrong(kept):
    db, told = kept
    await quiet_digest(db, "north")

    assert await log_problems(db, "north", told) == []
    assert await ledger_problems(db, "north") == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda told: [*told, replace(told[0], key="k9")], "acknowledged and lost: k9"),
        (lambda told: [replace(told[0], position=2), *told[1:]], "not where it was acknowledged: k0"),
        (lambda told: [replace(told[0], event_hash="00"), *told[1:]], "not what was acknowledged: k0"),
        (lambda told: [*told, told[0]], "key k0 was acknowledged 2 times"),
    ],
)
async def test_the_checker_sees_what_is_not_as_it_was_told(kept, change, problem):
    db, told = kept

    found = await log_problems(db, "north", change(told))

    assert [one for one in found if one.startswith(problem)]


async def test_the_checker_sees_a_lost_tail_though_the_rest_is_whole(kept, postgres, database):
    db, told = kept
    with psycopg.connect(
        postgres.conninfo(role=SUPERUSER, database=sa.make_url(database.plane).database), autocommit=True
    ) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute(LOST_TAIL, {"tenant": "north"})

    assert await log_problems(db, "north", told) == ["acknowledged and lost: k2 at position 3"]
    assert await log_problems(db, "north", told[:2]) == []


async def test_the_checker_sees_a_claim_that_is_gone(kept, owner_engine):
    db, _ = kept
    before = await quiet_digest(db, "north")
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'north', true)"))
        await conn.execute(sa.text("DELETE FROM claim WHERE position = 2"))

    assert await ledger_problems(db, "north")
    assert await digest_of(db, "north") != before
