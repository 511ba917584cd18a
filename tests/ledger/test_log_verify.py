"""Whatever is changed in a log, verification finds it; each mutant must be named."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa

from contracts.claims import Claim, Position, Source, Validity, ValidityKind
from contracts.errors import IntegrityFault, NotFound
from contracts.events import Stance
from contracts.times import KnownAt
from ledger import _tables, log
from ledger._claims import claim_id_of, row_of
from ledger._problems import PROBLEMS_LISTED_MAX, Problems
from ledger._world import relation_seal
from tests.ledger.log_drafts import append, as_owner, claim, draft, head_of
from tests.ledger.recalls import store


@pytest.fixture
async def written(db, clock):
    await write_log(db, clock, "acme")


async def write_log(db, clock, tenant: str) -> None:
    """Write three commits and five events, one claim, and two recalls."""
    await log.create_tenant(db, tenant)
    receipt = await append(db, draft("a", source_event_id="m1"), draft("b", stream="chat-2"), tenant=tenant)
    await append(db, draft("c", observed_at="2023-05-01T10:00Z", claims=[claim()]), tenant=tenant)
    await append(
        db, draft("d"), draft(None, kind="retraction", targets=[{"source_event_id": "m1"}]), tenant=tenant
    )
    async with db.tenant(tenant) as conn:
        keys = await log.tenant_keys(db, tenant, conn)
        made = Claim(
            claim_id=claim_id_of(keys, tenant=tenant, event_id=receipt.event_ids[0], ordinal=0, epoch=1),
            epoch=1,
            entity="ann",
            relation="lives_in",
            value="Lyon",
            stance=Stance.ASSERT,
            validity=Validity(
                kind=ValidityKind.SINCE, start=clock.now, end=None, earliest=clock.now, timeless=False
            ),
            source=Source(actor_id="ann", actor_class="user"),
            position=Position(event=1, ordinal=0),
            commit=1,
            event_id=receipt.event_ids[0],
            recorded_at=KnownAt(clock.now),
            observed_at=None,
            spans=(),
            occurrence_id=None,
            targets=(),
            winner=None,
            inputs=(),
        )
        contract = {"epoch": 1, "relation": "lives_in", "commit": 1, "form": b"{}"}
        row = {
            "tenant": tenant, "epoch": 1, "relation": "lives_in", "commit": 1, "contract": b"{}",
            "seal": relation_seal(keys, **contract),
        }  # fmt: skip
        await conn.execute(sa.insert(_tables.relation), row)
        await conn.execute(sa.insert(_tables.claim), row_of(made, tenant=tenant, keys=keys))
    await store(db, b"one", tenant=tenant)
    await store(db, b"two", tenant=tenant)


async def checks_of(db, tenant: str = "acme") -> set[str]:
    report = await log.verify(db, tenant)
    assert report.intact == (not report.problems)
    return {problem.check for problem in report.problems}


async def test_an_intact_log_is_intact(db, written):
    report = await log.verify(db, "acme")

    assert report.problems == ()
    assert (report.commits, report.events, report.erased, report.claims, report.trails) == (3, 5, 0, 1, 2)
    assert report.head == await head_of(db)


async def test_an_empty_log_is_intact(db):
    report = await log.verify(db, "acme")

    assert (report.intact, report.commits, report.events) == (True, 0, 0)


EMPTIED = (
    "UPDATE event SET ciphertext = '\\x00'::bytea, hash = echoplane_event_hash(header, '\\x00') "
    "WHERE position = 2"
)
MOVED_TO_ANOTHER_STREAM = (
    "UPDATE event AS e SET stream_digest = o.stream_digest, stream_version = 9 FROM event AS o "
    "WHERE e.position = 2 AND o.position = 1"
)
KEYS_EXCHANGED = (
    "UPDATE event_key AS k SET wrapped_key = o.wrapped_key FROM event_key AS o WHERE k.event_id <> o.event_id"
)
FLIP = "set_byte({0}, 3, get_byte({0}, 3) # 1)"


MUTATIONS = [
    (f"UPDATE event SET header = {FLIP.format('header')} WHERE position = 2", "event.hash"),
    (f"UPDATE event SET ciphertext = {FLIP.format('ciphertext')} WHERE position = 2", "event.hash"),
    (f"UPDATE event SET hash = {FLIP.format('hash')} WHERE position = 2", "event.hash"),
    (f"UPDATE event SET hash = {FLIP.format('hash')} WHERE position = 2", "commit.hash"),
    # Its hash made anew: the commit still knows the old one, and the payload does not open.
    (EMPTIED, "event.payload"),
    (EMPTIED, "commit.hash"),
    ("UPDATE event SET kind = 'claim' WHERE position = 2", "event.header"),
    ("UPDATE event SET header = '\\x7b'::bytea WHERE position = 2", "event.header"),
    ("UPDATE event SET commit = 2 WHERE position = 2", "event.commit"),
    ("UPDATE event SET stream_version = 7 WHERE position = 3", "event.stream_version"),
    (MOVED_TO_ANOTHER_STREAM, "event.stream"),
    ("UPDATE event SET source_digest = NULL WHERE position = 1", "event.source"),
    ("UPDATE event SET source_digest = hash WHERE position = 2", "event.source"),
    ("UPDATE event SET idempotency_digest = NULL WHERE position = 1", "event.idempotency"),
    ("UPDATE event SET content_digest = hash WHERE position = 1", "event.content"),
    (f"UPDATE event_key SET wrapped_key = {FLIP.format('wrapped_key')}", "event.payload"),
    (KEYS_EXCHANGED, "event.payload"),
    (
        "UPDATE commit SET recorded_at = recorded_at + interval '1 microsecond' WHERE commit = 3",
        "commit.hash",
    ),
    (
        "UPDATE commit SET recorded_at = recorded_at + interval '1 day' WHERE commit = 1",
        "commit.clock",
    ),
    ("UPDATE commit SET event_count = 1 WHERE commit = 1", "commit.hash"),
    ("UPDATE commit SET event_count = 2000000000 WHERE commit = 3", "event.gap"),
    ("UPDATE commit SET event_count = -5 WHERE commit = 3", "commit.position"),
    ("UPDATE commit SET first_position = 2 WHERE commit = 2", "commit.position"),
    (f"UPDATE commit SET hash = {FLIP.format('hash')} WHERE commit = 2", "commit.hash"),
    (f"UPDATE commit SET hash = {FLIP.format('hash')} WHERE commit = 2", "commit.chain"),
    (f"UPDATE commit SET previous_hash = {FLIP.format('hash')} WHERE commit = 2", "commit.chain"),
    (f"UPDATE commit SET hash = {FLIP.format('hash')} WHERE commit = 3", "head.hash"),
    (f"UPDATE commit SET tree = {FLIP.format('tree')} WHERE commit = 2", "commit.tree"),
    ("UPDATE head SET commit = 2", "head.commit"),
    ("UPDATE head SET commit = 4", "head.commit"),
    ("UPDATE head SET position = 4", "head.position"),
    ("UPDATE head SET recorded_at = recorded_at + interval '1 second'", "head.clock"),
    (f"UPDATE head SET hash = {FLIP.format('hash')}", "head.hash"),
    (f"UPDATE claim SET body = {FLIP.format('body')}", "claim.seal"),
    ("UPDATE claim SET entity = 'bob'", "claim.seal"),
    ("UPDATE claim SET commit = 2", "claim.event"),
    ("UPDATE claim SET position = 2", "claim.event"),
    ("UPDATE relation SET contract = 'x'", "relation.seal"),
    ("UPDATE relation SET commit = 2", "relation.seal"),
    ("UPDATE epoch SET commit = 9", "epoch.cursor"),
    ("UPDATE epoch SET position = 2", "epoch.cursor"),
    (f"UPDATE trail SET body = {FLIP.format('body')} WHERE number = 1", "trail.seal"),
    (f"UPDATE trail SET ciphertext = {FLIP.format('ciphertext')} WHERE number = 1", "trail.seal"),
    ("UPDATE trail SET number = 5 WHERE number = 2", "trail.gap"),
    ("UPDATE trail_head SET number = 3", "trail.head"),
    (f"UPDATE context SET ciphertext = {FLIP.format('ciphertext')}", "context"),
    ("UPDATE context SET content_hash = 'x'", "context"),
]


async def test_every_changed_column_is_found(db, owner_engine, clock):
    """Each mutation hits a tenant of its own, which was intact before."""
    missed = {}
    for number, (mutation, check) in enumerate(MUTATIONS):
        tenant = f"mutant-{number}"
        await write_log(db, clock, tenant)
        assert (await log.verify(db, tenant)).intact
        await as_owner(owner_engine, mutation, tenant=tenant)

        found = await checks_of(db, tenant)
        if check not in found:
            missed[mutation] = (check, found)

    assert missed == {}


async def test_two_events_that_changed_places_are_found(db, owner_engine, written):
    await as_owner(owner_engine, "UPDATE event SET position = 99 WHERE position = 4")
    await as_owner(owner_engine, "UPDATE event SET position = 4 WHERE position = 5")
    await as_owner(owner_engine, "UPDATE event SET position = 5 WHERE position = 99")

    assert {"commit.hash", "event.stream_version"} <= await checks_of(db)


async def test_two_payloads_that_changed_places_are_found(db, owner_engine, written):
    await as_owner(
        owner_engine,
        "UPDATE event AS e SET ciphertext = o.ciphertext, "
        "hash = echoplane_event_hash(e.header, o.ciphertext) "
        "FROM event AS o WHERE (e.position, o.position) IN ((1, 2), (2, 1))",
    )

    assert {"commit.hash", "event.payload"} <= await checks_of(db)


async def drop(engine, condition: str) -> None:
    await as_owner(
        engine,
        f"DELETE FROM event_key USING event AS e WHERE event_key.event_id = e.event_id AND {condition}",
    )
    await as_owner(engine, f"DELETE FROM event AS e WHERE {condition}")


@pytest.mark.parametrize("position", [2, 3, 4, 5])
async def test_a_dropped_event_is_found(db, owner_engine, written, position):
    await drop(owner_engine, f"e.position = {position}")

    assert {"event.gap", "commit.hash"} <= await checks_of(db)


async def test_a_log_cut_short_is_found_by_its_head(db, owner_engine, written):
    await drop(owner_engine, "e.commit = 3")
    await as_owner(owner_engine, "DELETE FROM commit WHERE commit = 3")

    assert {"head.commit", "head.position", "head.hash"} <= await checks_of(db)


async def test_a_log_cut_short_with_its_head_is_found_by_a_head_kept_elsewhere(db, owner_engine, written):
    anchor = await head_of(db)
    await drop(owner_engine, "e.commit = 3")
    await as_owner(owner_engine, "DELETE FROM commit WHERE commit = 3")
    await as_owner(
        owner_engine,
        "UPDATE head SET commit = c.commit, position = 3, recorded_at = c.recorded_at, hash = c.hash "
        "FROM commit AS c WHERE c.commit = 2",
    )

    assert (await log.verify(db, "acme")).intact
    report = await log.verify(db, "acme", anchor=anchor)
    assert {problem.check for problem in report.problems} == {"anchor"}
    kept = await log.verify(db, "acme", anchor=report.head)
    assert kept.intact


async def test_a_head_kept_elsewhere_that_the_log_contradicts_is_found(db, written):
    anchor = replace(await head_of(db), commit=2)

    report = await log.verify(db, "acme", anchor=anchor)

    assert [str(problem) for problem in report.problems] == ["commit 2: anchor"]


async def test_a_dropped_commit_is_found(db, owner_engine, written):
    await drop(owner_engine, "e.commit = 2")
    await as_owner(owner_engine, "DELETE FROM commit WHERE commit = 2")

    assert {"commit.gap", "commit.position", "commit.chain"} <= await checks_of(db)


async def test_an_event_that_no_commit_claims_is_found(db, owner_engine, written):
    await as_owner(
        owner_engine,
        "INSERT INTO event SELECT tenant, 6, commit, 'ev_x', kind, stream_digest, 3, NULL, NULL, "
        "content_digest, header, ciphertext, hash FROM event WHERE position = 2",
    )

    assert {"event.without_commit", "event.header"} <= await checks_of(db)


async def test_a_target_that_does_not_stand_earlier_is_found(db, owner_engine, written):
    # The target changes places with an event after the one that names it.
    await as_owner(owner_engine, "UPDATE event SET position = 99 WHERE position = 1")

    assert "event.target" in await checks_of(db)


async def test_a_key_that_was_lost_without_an_erasure_is_found(db, owner_engine, written):
    await as_owner(
        owner_engine,
        "DELETE FROM event_key USING event AS e WHERE e.event_id = event_key.event_id AND e.position = 4",
    )

    report = await log.verify(db, "acme")

    assert [problem.check for problem in report.problems] == ["event.key"]
    assert (report.events, report.erased) == (5, 1)


async def test_changed_tenant_keys_stop_everything(db, owner_engine, written):
    await as_owner(owner_engine, f"UPDATE tenant SET wrapped_keys = {FLIP.format('wrapped_keys')}")
    db.tenant_keys.clear()

    with pytest.raises(IntegrityFault):
        await log.verify(db, "acme")


async def test_a_tenant_that_is_not_there_is_not_intact_either(db):
    with pytest.raises(NotFound):
        await log.verify(db, "nobody")


def test_a_report_lists_the_first_problems_and_counts_all():
    problems = Problems()

    for number in range(PROBLEMS_LISTED_MAX + 5):
        problems.add("event.hash", f"event {number}")

    assert problems.count == PROBLEMS_LISTED_MAX + 5
    assert [problem.place for problem in problems.listed][-1] == f"event {PROBLEMS_LISTED_MAX - 1}"


async def test_logs_of_many_pages_are_read_to_the_end(db, monkeypatch):
    from ledger import _read, _verify, _verify_rows  # noqa: PLC0415 - only here are their pages short

    for module in (_read, _verify, _verify_rows):
        monkeypatch.setattr(module, "PAGE_EVENTS_MAX", 3)
    for size in (1, 4, 2, 7):
        await append(db, *(draft(str(number)) for number in range(size)))

    report = await log.verify(db, "acme")

    assert (report.intact, report.commits, report.events) == (True, 4, 14)


def test_every_word_of_a_report_stands_in_the_docs():
    root = Path(__file__).parents[2]
    sources = "".join(path.read_text(encoding="utf-8") for path in (root / "ledger").glob("_verify*.py"))
    words = set(
        re.findall(
            r'"((?:commit|event|head|claim|relation|epoch|trail)\.\w+|anchor|checkpoint|context)"', sources
        )
    )
    documented = set(re.findall(r"`([\w.]+)`", (root / "docs" / "log.md").read_text(encoding="utf-8")))

    assert len(words) > 25
    assert words - documented == set()
