"""Checkpoints of a log: signed, checked elsewhere, and true to it whatever happens to it later."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from contracts.erasures import ErasureRequest
from contracts.errors import BadRequest, EchoplaneError, IntegrityFault, NotFound
from contracts.grants import LOCAL_GRANT
from ledger import log
from ledger._tree import EMPTY_ROOT, Frontier
from ledger.erase import erase
from projection import RuleProjector
from tests.ledger.log_drafts import append, as_owner, draft

KEY = log.SigningKey.of(bytes(range(32)))
OTHER_KEY = log.SigningKey.of(bytes(range(1, 33)))


async def write(db, tenant: str, sizes=(1, 2, 1)) -> list[str]:
    await log.create_tenant(db, tenant)
    return [
        event_id
        for number, size in enumerate(sizes)
        for event_id in (
            await append(db, *(draft(f"{number}-{one}") for one in range(size)), tenant=tenant)
        ).event_ids
    ]


async def exported(db, tenant: str = "acme", key: log.SigningKey = KEY) -> list[bytes]:
    checkpoint = await log.read_checkpoint(db, tenant)
    head = log.ExportedHead(note=key.sign(checkpoint), key=str(key.public(tenant)))
    commits = [log.commit_line(one) async for one in log.commits_up_to(db, tenant, checkpoint.size)]
    return [head.line(), *commits]


def checked(lines: list[bytes], key: log.SigningKey | None = KEY, tenant: str = "acme"):
    return log.check_export(lines, None if key is None else key.public(tenant))


async def test_the_server_and_we_grow_the_same_tree(db):
    await write(db, "acme", [1] * 21)
    async with db.snapshot("acme") as conn:
        stored = [
            bytes(row.tree) for row in await conn.execute(sa.text("SELECT tree FROM commit ORDER BY commit"))
        ]
    tree, roots = Frontier(), [EMPTY_ROOT]
    grown = []
    async for commit in log.commits_up_to(db, "acme", 21):
        grown.append(tree.add(commit.hash))
        roots.append(tree.root())

    assert stored == grown
    assert [(await log.read_checkpoint(db, "acme", size=size)).root for size in range(22)] == roots


async def test_appends_that_share_a_transaction_grow_it_too(db):
    import asyncio  # noqa: PLC0415 - only here

    await log.create_tenant(db, "acme")
    await asyncio.gather(*(append(db, draft(str(number))) for number in range(19)))

    assert (await log.verify(db, "acme")).intact
    assert checked(await exported(db)).commits == 19


async def test_proofs_of_the_log_are_checked_with_the_checkpoint_alone(db):
    await write(db, "acme", [1, 2, 1, 1, 3, 1, 1])
    for size in (1, 3, 4, 7):
        checkpoint = await log.read_checkpoint(db, "acme", size=size)
        problems = log.Problems()
        for commit in range(1, size + 1):
            log.check_inclusion(await log.read_inclusion(db, "acme", commit, size=size), checkpoint, problems)
        log.check_consistency(await log.read_consistency(db, "acme", old=size), checkpoint, problems)
        assert problems.listed == []


async def test_a_proof_is_of_its_own_checkpoint_commit_and_tenant(db):
    await write(db, "acme", [1, 1, 1, 1, 1])
    await write(db, "other", [1, 1, 1, 1, 1])
    checkpoint = await log.read_checkpoint(db, "acme", size=4)
    inclusion = await log.read_inclusion(db, "acme", 2, size=4)
    consistency = await log.read_consistency(db, "acme", old=4)
    commit = inclusion.commit

    inclusions = [
        replace(inclusion, size=5),
        replace(inclusion, path=()),
        replace(inclusion, commit=replace(commit, commit=3)),
        replace(inclusion, commit=replace(commit, first_position=9)),
        replace(inclusion, commit=replace(commit, event_hashes=(bytes(32),))),
        replace(inclusion, commit=replace(commit, previous=bytes(32))),
        replace(inclusion, commit=replace(commit, hash=bytes(32))),
        replace(inclusion, commit=replace(commit, recorded_at=commit.recorded_at.replace(year=2001))),
        await log.read_inclusion(db, "other", 2, size=4),
        await log.read_inclusion(db, "acme", 2, size=5),
    ]
    consistencies = [
        replace(consistency, size=3),
        replace(consistency, path=(*consistency.path, bytes(32))),
        replace(consistency, later=replace(consistency.later, root=bytes(32))),
        replace(consistency, later=replace(consistency.later, tenant="other")),
        await log.read_consistency(db, "acme", old=3),
        await log.read_consistency(db, "other", old=4),
    ]
    for check, mutants in (
        (log.check_inclusion, inclusions), (log.check_consistency, consistencies),
    ):  # fmt: skip
        for mutant in mutants:
            problems = log.Problems()
            check(mutant, checkpoint, problems)
            assert problems.count, mutant


async def test_an_export_is_checked_without_a_database(db):
    await write(db, "acme")

    report = checked(await exported(db))

    assert (report.intact, report.commits, report.events) == (True, 3, 4)
    assert report.checkpoint == await log.read_checkpoint(db, "acme")


async def test_no_changed_byte_of_an_export_passes(db):
    await write(db, "acme", (1, 2))
    lines = await exported(db)
    whole = b"".join(lines)
    passed = []
    for place in range(len(whole)):
        mutant = bytearray(whole)
        mutant[place] ^= 1 << place % 7
        try:
            report = checked(bytes(mutant).splitlines(keepends=True))
        except EchoplaneError:
            continue
        if report.intact:
            passed.append(place)

    assert checked(lines).intact
    assert passed == []


async def test_no_line_of_an_export_can_go_come_or_move(db):
    await write(db, "acme", (1, 2, 1, 1))
    await write(db, "other", (1, 2, 1, 1))
    lines, others = await exported(db), await exported(db, "other")
    mutants = {
        "cut": lines[:-1],
        "without the first": [lines[0], *lines[2:]],
        "without one": [*lines[:3], *lines[4:]],
        "twice": [*lines[:3], *lines[2:]],
        "one more": [*lines, lines[-1]],
        "exchanged": [lines[0], lines[2], lines[1], *lines[3:]],
        "one of another log": [*lines[:3], others[3], *lines[4:]],
        "another log": [lines[0], *others[1:]],
        "another checkpoint": [others[0], *lines[1:]],
        "an empty line": [*lines, b"\n"],
        "without the last end": [*lines[:-1], lines[-1][:-1]],
    }

    for name, mutant in mutants.items():
        assert not checked(mutant).intact, name


async def test_who_signs_a_forged_log_anew_is_found_by_the_key(db):
    await write(db, "acme")
    forged = await exported(db, key=OTHER_KEY)

    assert checked(forged, key=None).intact
    assert not checked(forged).intact


def test_no_changed_byte_of_a_note_passes():
    checkpoint = log.Checkpoint(tenant="acme", size=12, root=bytes(range(32)))
    note, key = KEY.sign(checkpoint), KEY.public("acme")
    raw = note.encode()

    mutants = [
        bytes([*raw[:place], raw[place] ^ bit, *raw[place + 1 :]]).decode(errors="replace")
        for place in range(len(raw))
        for bit in (1, 16)
    ]

    assert key.open(note) == checkpoint
    assert [mutant for mutant in mutants if key.open(mutant) is not None] == []
    assert KEY.public("other").open(note) is None
    assert OTHER_KEY.public("acme").open(note) is None
    assert key.open(note + "\n") is None
    assert key.open(KEY.sign(replace(checkpoint, tenant="other"))) is None


def test_a_public_key_is_read_as_it_is_written():
    key = str(KEY.public("acme"))

    assert log.PublicKey.parse(key) == KEY.public("acme")
    for place in range(len(key)):
        with pytest.raises(BadRequest):
            log.PublicKey.parse(key[:place] + chr(ord(key[place]) ^ 1) + key[place + 1 :])


async def test_proofs_and_checkpoints_hold_after_an_erasure(db):
    event_ids = await write(db, "acme", (1, 2, 1))
    before = await exported(db)
    checkpoint = await log.read_checkpoint(db, "acme")
    inclusion = await log.read_inclusion(db, "acme", 2)

    request = ErasureRequest(subject=None, event_ids=tuple(event_ids[1:2]))
    await erase(db, "acme", RuleProjector(), request, grant=LOCAL_GRANT)

    assert await log.read_inclusion(db, "acme", 2, size=3) == inclusion
    assert (await exported(db))[1:4] == before[1:]
    problems = log.Problems()
    log.check_consistency(await log.read_consistency(db, "acme", old=3), checkpoint, problems)
    assert problems.listed == []
    report = await log.verify(db, "acme", checkpoint=checkpoint)
    assert (report.intact, report.erased) == (True, 1)


async def test_a_log_that_begins_otherwise_than_signed_is_found(db, owner_engine):
    await write(db, "acme", (1, 1, 1))
    await write(db, "other", (1, 1, 1))
    kept = await log.read_checkpoint(db, "acme", size=2)
    later = await log.read_checkpoint(db, "acme")
    empty = await log.read_checkpoint(db, "acme", size=0)

    async def found(tenant: str, checkpoint: log.Checkpoint) -> list[str]:
        report = await log.verify(db, tenant, checkpoint=checkpoint)
        return [str(problem) for problem in report.problems]

    assert [await found("acme", one) for one in (empty, kept, later)] == [[], [], []]
    # Every hash of the other log adds up; it is another log all the same.
    assert await found("other", kept) == ["commit 2: checkpoint"]
    assert await found("acme", replace(later, size=4)) == ["commit 4: checkpoint"]
    assert await found("acme", replace(empty, root=bytes(32))) == ["commit 0: checkpoint"]


async def test_a_changed_node_is_found_and_no_proof_is_made_of_it(db, owner_engine):
    await write(db, "acme", (1, 1, 1, 1))
    checkpoint = await log.read_checkpoint(db, "acme")
    await as_owner(
        owner_engine, "UPDATE commit SET tree = set_byte(tree, 3, get_byte(tree, 3) # 1) WHERE commit = 2"
    )

    report = await log.verify(db, "acme", checkpoint=checkpoint)
    problems = log.Problems()
    log.check_inclusion(await log.read_inclusion(db, "acme", 3), checkpoint, problems)

    assert [str(problem) for problem in report.problems] == ["commit 2: commit.tree"]
    assert [problem.check for problem in problems.listed] == ["proof.path"]


async def test_a_commit_that_is_gone_makes_no_proof(db, owner_engine):
    await write(db, "acme", (1, 1, 1))
    await as_owner(owner_engine, "DELETE FROM event_key USING event e WHERE e.event_id = event_key.event_id")
    await as_owner(owner_engine, "DELETE FROM event WHERE commit = 2")
    await as_owner(owner_engine, "DELETE FROM commit WHERE commit = 2")

    with pytest.raises(IntegrityFault):
        await log.read_checkpoint(db, "acme")


async def test_what_never_was_is_refused(db):
    await write(db, "acme", (1, 1))

    for refused in (
        log.read_checkpoint(db, "acme", size=3),
        log.read_checkpoint(db, "acme", size=-1),
        log.read_inclusion(db, "acme", 3),
        log.read_inclusion(db, "acme", 2, size=1),
        log.read_inclusion(db, "acme", 0),
        log.read_consistency(db, "acme", old=3),
        log.read_consistency(db, "acme", old=2, new=1),
    ):
        with pytest.raises(BadRequest):
            await refused
    with pytest.raises(NotFound):
        await log.read_checkpoint(db, "nobody")
    with pytest.raises(NotFound):
        await log.read_commits(db, "nobody", after_commit=0, limit=1)


async def test_an_empty_log_has_a_checkpoint(db):
    lines = await exported(db)

    report = checked(lines)

    assert (report.intact, report.checkpoint.size, report.checkpoint.root) == (True, 0, EMPTY_ROOT)


async def test_pages_of_commits_are_bounded_by_their_events(db, monkeypatch):
    from ledger import _commits  # noqa: PLC0415 - only here are its pages short

    monkeypatch.setattr(_commits, "PAGE_EVENTS_MAX", 3)
    await write(db, "acme", (2, 1, 1, 3, 1))

    pages, after = [], 0
    while page := await log.read_commits(db, "acme", after_commit=after, limit=10):
        pages.append([commit.commit for commit in page])
        after = page[-1].commit

    assert pages == [[1, 2], [3], [4], [5]]
    assert checked(await exported(db)).commits == 5
