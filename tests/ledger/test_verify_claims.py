"""Verification projects the log again: a claim that is missing is found although every seal holds."""

import pytest
import sqlalchemy as sa

from ledger.write import fold, verify_claims
from tests.ledger.log_drafts import append, claim, draft
from tests.ledger.scenario_logs import PlainProjector


@pytest.fixture
async def folded(db):
    for month, value in (("01", "Lyon"), ("06", "Ghent")):
        observed_at = f"2025-{month}-01T00:00:00Z"
        await append(db, draft(text=None, observed_at=observed_at, claims=[claim(value)]))
    await fold(db, "acme", PlainProjector(), events_max=100)
    return db


async def checks(db, projector=None):
    report = await verify_claims(db, "acme", projector or PlainProjector())
    return report.claims, [str(problem) for problem in report.problems]


async def test_claims_that_follow_from_the_log_are_intact(folded):
    assert await checks(folded) == (2, [])


async def tampered(owner_engine, *statements):
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        for statement in statements:
            await conn.execute(sa.text(statement))


async def test_a_claim_that_was_removed_without_a_trace_is_missing(folded, owner_engine):
    await tampered(
        owner_engine,
        "ALTER TABLE cell DISABLE TRIGGER USER",
        "DELETE FROM cell WHERE lower(known) = 2",
        "UPDATE cell SET known = int8range(1, NULL)",
        "ALTER TABLE cell ENABLE TRIGGER USER",
        "DELETE FROM claim WHERE position = 2",
    )

    assert await checks(folded) == (1, ["claim 2#0 of epoch 1: claim.missing"])


@pytest.mark.parametrize("column", ["starts = starts + 1", "unsure_from = 1", "unsure_to = 1"])
async def test_a_claim_that_would_be_looked_for_where_it_does_not_begin_is_found(
    folded, owner_engine, column
):
    await tampered(owner_engine, f"UPDATE claim SET {column} WHERE position = 2")

    assert await checks(folded) == (2, ["claim 2#0 of epoch 1: claim.content"])


async def test_a_claim_whose_event_lost_its_key_is_unfounded(folded, owner_engine):
    await tampered(
        owner_engine,
        "DELETE FROM event_key WHERE event_id = (SELECT event_id FROM event WHERE position = 2)",
    )

    assert await checks(folded) == (2, ["claim 2#0 of epoch 1: claim.unfounded"])


async def test_an_epoch_of_another_projector_is_said_to_be_unchecked(folded):
    class Other(PlainProjector):
        version = "plain-2"

    report = await verify_claims(folded, "acme", Other())

    assert (report.claims, report.unchecked_epochs, report.intact) == (0, (1,), True)


async def test_an_event_that_was_changed_leaves_its_epoch_unchecked_and_ends_nothing(folded, owner_engine):
    await tampered(owner_engine, "UPDATE event SET ciphertext = ciphertext || '\\x00' WHERE position = 1")

    assert await checks(folded) == (0, ["epoch 1: claim.unchecked"])
