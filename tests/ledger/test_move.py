"""A tenant that is exported and restored elsewhere is the same to the last byte, or not there at all."""

from __future__ import annotations

import json
from dataclasses import replace

import psycopg
import pytest
import sqlalchemy as sa

from contracts.erasures import ErasureRequest
from contracts.errors import BadRequest, Forbidden, TenantTaken
from contracts.events import ErasedEvent
from contracts.grants import LOCAL_GRANT, Right
from contracts.relation_wire import ContractRequest
from contracts.times import ValidAt, parse_instant
from contracts.views import ViewRequest
from ledger import log
from ledger._export_form import EXPORTED, ExportWriter, file_of
from ledger._tables import metadata
from ledger.erase import erase
from ledger.resolve import pin, pin_view, resolve_at, verify_cells
from ledger.write import begin_epoch, fold, ledger_digest, register_contract, verify_claims
from tests.ledger.conftest import MASTER_KEY
from tests.ledger.log_drafts import append, as_owner, claim, draft, read_all
from tests.ledger.recalls import store
from tests.ledger.scenario_logs import PlainProjector

PROJECTOR = PlainProjector()
OTHER_KEY = bytes(reversed(range(32)))
NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


@pytest.fixture
async def other(elsewhere, clock):
    """An empty ledger of another plane: it has another master key."""
    made = log.open_database(
        plane_url=elsewhere.backfill, relay_url=elsewhere.relay, master_key=OTHER_KEY, clock=clock
    )
    yield made
    await made.close()


async def fold_all(db):
    while not (await fold(db, "acme", PROJECTOR, events_max=100)).is_at_head:
        pass


def says(name, value, *, since=None, **fields):
    stated = {} if since is None else {"valid": {"since": f"{since}T00:00:00Z"}}
    said = [claim(value, **stated, **fields.pop("claim", {}))]
    return draft(f"Ann lives in {value}.", source_event_id=name, claims=said, **fields)


async def fill(db, owner_engine):
    """Say, correct, erase, fold into two epochs, ask, pin and decide: rows in every table."""
    contract = ContractRequest(relation="age", value_type="number").contract()
    await register_contract(db, "acme", contract, stream="contracts", actor_id="op", grant=LOCAL_GRANT)
    await append(db, says("e1", "Lyon", since="2026-01-01"))
    secret = await append(db, says("e2", "Xanadu-4711", since="2026-02-01"))
    await append(db, says("e3", "Ulm", since="2026-03-01"))
    # On another key than what they correct: the two reach each other.
    apart = {"claim": {"relation": "place", "stance": "correct"}, "kind": "correction"}
    await append(db, says("e4", "Ulm", targets=[{"source_event_id": "e3"}], **apart))
    secret_too = await append(db, says("e5", "Xanadu-4711", targets=[{"source_event_id": "e1"}], **apart))
    await fold_all(db)
    await begin_epoch(
        db, "acme", projector_version=PROJECTOR.version, stream="epochs", actor_id="op", grant=LOCAL_GRANT
    )
    await fold_all(db)
    going = ErasureRequest(subject=None, event_ids=secret.event_ids + secret_too.event_ids)
    await erase(db, "acme", PROJECTOR, going, grant=LOCAL_GRANT)
    await store(db)
    await log.create_token(db, "acme", rights={"ask"}, actors={"*"}, classes={"*"}, label="t")
    await log.decide(db, "acme", {"events_max": 100}, reason="r", actor_id="op", grant=LOCAL_GRANT)
    await fold_all(db)
    await pin_view(db, "acme", "monday", await pin(db, "acme", NEWEST, wait_ms=0))
    await append(db, says("e6", "Rom"))
    await as_owner(owner_engine, "INSERT INTO dead_letter VALUES ('acme', 1, 1, 'e', 1, now(), now())")
    await as_owner(
        owner_engine,
        "INSERT INTO unit_vector SELECT 'acme', event_id, 'm', position, '\\x01', "
        "array_fill(0.1::real, ARRAY[384])::vector FROM event WHERE position = 2",
    )


async def moved(db, other, folder):
    await log.export_tenant(db, "acme", folder, grant=LOCAL_GRANT)
    return await log.restore_tenant(other, folder, tenant=None, master_key=MASTER_KEY, grant=LOCAL_GRANT)


async def test_a_restored_tenant_is_the_same_in_every_row_and_answer_and_goes_on(
    plane_db, other, owner_engine, tmp_path
):
    await fill(plane_db, owner_engine)

    manifest = await moved(plane_db, other, tmp_path / "first")

    # What is exported again is the same, file by file: digests are keyed with the tenant's own key.
    again = await log.export_tenant(other, "acme", tmp_path / "again", grant=LOCAL_GRANT)
    assert again.tables == manifest.tables
    assert [one.table for one in manifest.tables if not one.rows] == []
    assert replace(again, wrapped_keys="", seal="") == replace(manifest, wrapped_keys="", seal="")
    assert again.wrapped_keys != manifest.wrapped_keys
    assert await log.read_checkpoint(other, "acme") == await log.read_checkpoint(plane_db, "acme")
    assert await read_all(other) == await read_all(plane_db)
    assert await log.list_trails(other, "acme", after_number=0, limit=10) == await log.list_trails(
        plane_db, "acme", after_number=0, limit=10
    )
    (trail,) = await log.list_trails(other, "acme", after_number=0, limit=10)
    for read in (log.read_trail, log.read_context):
        assert await read(other, "acme", trail.context_hash) == await read(
            plane_db, "acme", trail.context_hash
        )
    for at in ("2026-01-15", "2026-02-15", "2026-03-15"):
        request = replace(NEWEST, valid_at=ValidAt(parse_instant(f"{at}T00:00:00Z", field="at")))
        request = replace(request, known_at=parse_instant("2100-01-01T00:00:00Z", field="at"))
        answers = [
            (await resolve_at(one, "acme", request, "ann", "lives_in", wait_ms=0))[0].resolution
            for one in (plane_db, other)
        ]
        assert answers[0] == answers[1]

    for epoch in (1, 2):
        async with plane_db.snapshot("acme") as conn, other.snapshot("acme") as other_conn:
            assert await ledger_digest(other_conn, epoch) == await ledger_digest(conn, epoch)

    for one in (plane_db, other):
        await append(one, draft("Ann lives in Bern.", claims=[claim("Bern")]))
        await fold_all(one)
    assert (await log.verify(other, "acme")).intact
    assert (await verify_claims(other, "acme", PROJECTOR)).intact
    assert not (await verify_cells(other, "acme")).problems_count
    events = await read_all(other)
    shown = await log.show_tenant(other, "acme")
    async with other.snapshot("acme") as conn:
        added = await conn.scalar(
            sa.text("SELECT sum(octet_length(header) + octet_length(ciphertext)) FROM event")
        )
    assert (shown.record.events, shown.bytes) == (len(events), added)


async def test_an_export_holds_nothing_of_what_was_erased_but_what_the_log_keeps(
    plane_db, other, owner_engine, tmp_path
):
    await fill(plane_db, owner_engine)

    await moved(plane_db, other, tmp_path / "export")

    raw = b"".join(path.read_bytes() for path in sorted((tmp_path / "export").iterdir()))
    assert b"Ulm" in raw or b"Ulm".hex().encode() in raw
    for text in (b"Xanadu", b"nadu-47"):
        assert text not in raw
        assert text.hex().encode() not in raw
    events = await read_all(other)
    gone = [one.event_id for one in events if isinstance(one, ErasedEvent)]
    assert len(gone) == 2
    assert not any(one in (tmp_path / "export" / "event_key.jsonl").read_text() for one in gone)
    assert (tmp_path / "export" / "tombstone.jsonl").read_bytes()
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "export").iterdir())


def mutants(folder):
    """Yield names of what can be wrong with an export, and how each is brought about."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for one in manifest["tables"]:
        name = file_of(one["table"])
        lines = (folder / name).read_bytes().splitlines(keepends=True)
        yield f"{name} is gone", name, None
        yield f"{name} has a line more", name, [*lines, b'{"epoch":1}\n']
        if lines:
            yield f"{name} is cut short", name, lines[:-1]
            yield f"{name} ends early", name, [*lines[:-1], lines[-1][:-1]]
            middle = len(lines[0]) // 2
            changed = lines[0][:middle] + bytes([lines[0][middle] ^ 1]) + lines[0][middle + 1 :]
            yield f"{name} has a changed byte", name, [changed, *lines[1:]]
        if len(lines) > 1:
            yield f"{name} has two lines exchanged", name, [lines[1], lines[0], *lines[2:]]
    for field, value in manifest.items():
        other = value[1:] if isinstance(value, list | str) else value + 1
        yield (
            f"the manifest says another {field}",
            "manifest.json",
            [json.dumps(manifest | {field: other}).encode()],
        )
    yield "there is no manifest", "manifest.json", None
    yield "the manifest is no JSON", "manifest.json", [b"{"]


async def test_an_export_that_is_changed_in_anything_is_refused_and_nothing_is_restored(
    plane_db, other, owner_engine, elsewhere, tmp_path
):
    await fill(plane_db, owner_engine)
    folder = tmp_path / "export"
    await log.export_tenant(plane_db, "acme", folder, grant=LOCAL_GRANT)
    count = 0

    for what, name, lines in mutants(folder):
        count += 1
        whole = (folder / name).read_bytes()
        (folder / name).unlink()
        if lines is not None:
            (folder / name).write_bytes(b"".join(lines))
        try:
            await log.restore_tenant(other, folder, tenant=None, master_key=MASTER_KEY, grant=LOCAL_GRANT)
        except BadRequest:
            (folder / name).write_bytes(whole)
            continue
        pytest.fail(what)

    assert count > 5 * len(EXPORTED) // 2
    await nothing_is_in(elsewhere)


async def test_a_holder_of_the_keys_who_seals_another_log_is_refused_all_the_same(
    plane_db, other, elsewhere, tmp_path
):
    """The tree is grown anew from the commits: it does not come to the root that is named."""
    await append(plane_db, draft())
    await append(plane_db, draft())
    manifest = await log.export_tenant(plane_db, "acme", tmp_path, grant=LOCAL_GRANT)
    keys = await log.tenant_keys(plane_db, "acme")
    path = tmp_path / "commit.jsonl"
    first, second = path.read_text().splitlines()
    row = json.loads(first)
    row["hash"] = "\\x" + "00" * 32
    path.unlink()
    writer = ExportWriter(tmp_path, metadata.tables["commit"], keys)
    for line in (json.dumps(row), second):
        writer.add(line)
    tables = tuple(writer.end() if one.table == "commit" else one for one in manifest.tables)
    forged = replace(manifest, tables=tables)
    (tmp_path / "manifest.json").unlink()
    replace(forged, seal=forged.sealed(keys)).write(tmp_path)

    with pytest.raises(BadRequest, match="another end of the log"):
        await log.restore_tenant(other, tmp_path, tenant=None, master_key=MASTER_KEY, grant=LOCAL_GRANT)

    await nothing_is_in(elsewhere)


async def nothing_is_in(urls):
    with psycopg.connect(urls.owner.replace("+psycopg", "")) as conn:
        conn.execute("SELECT set_config('echoplane.tenant', 'acme', false)")
        assert {
            name: conn.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in metadata.tables
        } == (dict.fromkeys(metadata.tables, 0))


async def test_a_file_that_changes_while_it_is_restored_takes_everything_back(
    plane_db, other, elsewhere, tmp_path, monkeypatch
):
    await append(plane_db, draft(claims=[claim()]))
    await fold_all(plane_db)
    await log.export_tenant(plane_db, "acme", tmp_path / "export", grant=LOCAL_GRANT)
    from ledger import _restore  # noqa: PLC0415

    fill_table = _restore._fill

    async def fill_and_spoil(conn, folder, exported, keys):
        await fill_table(conn, folder, exported, keys)
        if exported.table == "event":
            path = folder / "cell.jsonl"
            path.write_bytes(path.read_bytes() + b"\n")

    monkeypatch.setattr(_restore, "_fill", fill_and_spoil)
    with pytest.raises(BadRequest, match=r"cell\.jsonl"):
        await log.restore_tenant(
            other, tmp_path / "export", tenant=None, master_key=MASTER_KEY, grant=LOCAL_GRANT
        )

    await nothing_is_in(elsewhere)


async def test_only_who_may_state_the_past_restores_and_only_where_there_is_no_such_tenant(
    plane_db, other, elsewhere, clock, tmp_path
):
    await append(plane_db, draft())
    folder = tmp_path / "export"
    await log.export_tenant(plane_db, "acme", folder, grant=LOCAL_GRANT)
    plane = log.open_database(
        plane_url=elsewhere.plane, relay_url=elsewhere.relay, master_key=OTHER_KEY, clock=clock
    )
    lesser = replace(LOCAL_GRANT, rights=LOCAL_GRANT.rights - {Right.BACKFILL})
    usual = {"tenant": "acme", "master_key": MASTER_KEY, "grant": LOCAL_GRANT}

    for db, error, change in (
        (plane, Forbidden, {}),
        (other, Forbidden, {"grant": lesser}),
        (other, BadRequest, {"tenant": "other"}),
        (other, BadRequest, {"master_key": None}),
    ):
        with pytest.raises(error):
            await log.restore_tenant(db, folder, **usual | change)
    await plane.close()
    await nothing_is_in(elsewhere)
    with pytest.raises(BadRequest, match="not empty"):
        await log.export_tenant(plane_db, "acme", folder, grant=LOCAL_GRANT)
    # Its keys may be in use, be it ever so empty.
    await log.create_tenant(other, "acme")
    with pytest.raises(TenantTaken):
        await log.restore_tenant(other, folder, **usual)
    await log.delete_tenant(other, "acme", reason="r", actor_id="op", grant=LOCAL_GRANT)
    with pytest.raises(TenantTaken):
        await log.restore_tenant(other, folder, **usual)


async def test_every_table_is_exported_and_what_is_new_comes_with_it():
    assert {table.name for table in EXPORTED} == set(metadata.tables) - {"tenant", "deleted_tenant"}
