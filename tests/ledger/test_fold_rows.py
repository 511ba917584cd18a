"""What a fold reads without validating and writes while it reads: the same as with more care."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError

from contracts.errors import IntegrityFault
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.limits import FOLD_LEASE_SECONDS
from ledger import log
from ledger._arrays import binaries, binaries_text, digests, instants, numbers, texts
from ledger._canonical import canonical, parse
from ledger._claims import micros
from ledger._drafts import draft_bytes, draft_of
from ledger._intervals import FOREVER, NEVER
from ledger._lease import begin_fold
from ledger._rows import CLAIMS_SENT, ClaimStream
from ledger.write import fold
from tests.ledger.random_logs import logs
from tests.ledger.scenario_logs import PlainProjector

RICH = {
    "stream": "s", "kind": "correction", "actor": {"id": "ann", "class": "user"}, "subjects": ["ann"],
    "observed_at": "2024-05-01T10:00:00+02:00", "source_event_id": "e1", "idempotency_key": "k",
    "causation": "c", "correlation": "d", "text": "no", "occurrence_id": "o",
    "claims": [{
        "entity": "ann", "relation": "home", "value": {"$int": [1, 2.5, "x", None]}, "stance": "correct",
        "valid": {"from": None, "to": "2024"}, "occurrence_id": "p",
        "targets": [{"event": "ev_1", "ordinal": 0, "value": "Lyon", "span": [0, 4]}],
    }],
    "targets": [{"entity": "ann", "relation": "home", "interval": {"from": "2023", "to": None}}],
    "winner": {"source_event_id": "e0"},
}  # fmt: skip


def taken_at_its_word(draft: EventDraft) -> EventDraft:
    return draft_of(parse(draft_bytes(draft)))


def test_a_stored_draft_is_the_draft_that_was_validated():
    draft = EventDraft.model_validate(RICH)

    made = taken_at_its_word(draft)

    assert made == draft
    assert made.model_dump() == draft.model_dump()
    assert made.claims[0].valid.model_fields_set == {"from_", "to"}
    assert draft_bytes(made) == draft_bytes(draft) == canonical(parse(draft_bytes(draft)))


@given(logs(derived=True, identity=True))
def test_so_is_that_of_any_log(commits):
    for events in commits:
        for event in events:
            draft = EventDraft.model_validate(event)

            assert taken_at_its_word(draft) == draft
            assert draft_bytes(draft) == canonical(parse(draft_bytes(draft)))


def test_lists_of_two_drafts_are_two_lists():
    form = parse(draft_bytes(EventDraft.model_validate({**RICH, "subjects": [], "kind": "claim"})))

    assert draft_of(form).subjects is not draft_of(form).subjects


@pytest.mark.parametrize("broken", [{"kind": "no such kind"}, {"nothing": 1}, {"claims": 5}])
async def test_bytes_that_no_draft_was_written_as_are_a_fault_without_words(db, monkeypatch, broken):
    # Under the tenant's own keys: nobody else can make such an event.
    monkeypatch.setattr(
        "ledger._prepare.draft_bytes", lambda draft: canonical(parse(draft_bytes(draft)) | broken)
    )
    draft = EventDraft.model_validate({**RICH, "kind": "claim", "targets": [], "winner": None, "claims": []})
    await log.append(db, "acme", [draft], grant=LOCAL_GRANT)
    monkeypatch.undo()

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        with pytest.raises(IntegrityFault) as caught:
            await log.read_events(conn, keys, after_position=0, limit=1)

    assert "the draft of event" in str(caught.value)
    assert "no such kind" not in str(caught.value)


async def test_arrays_are_read_as_they_were_meant(db):
    odd = ['a"b', "c\\d", "", "{e}", "NULL", "f,g", " h ", "é\u2028"]
    query = (
        "SELECT CAST(:texts AS text[]), CAST(:numbers AS bigint[]), CAST(:binaries AS bytea[]), "
        "CAST(:instants AS timestamptz[]), CAST(:none AS text[]), CAST(:nothing AS bytea[]), "
        "CAST(:literal AS bytea[]), CAST(:plain AS text[]), CAST(:digests AS bytea[])"
    )
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(9998, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)]
    bounds = [NEVER, *map(micros, times), FOREVER]
    held = [b"", None, bytes(range(256))]
    async with db.snapshot("acme") as conn:
        row = (
            await conn.execute(
                sa.text(query),
                {
                    "texts": texts(odd), "numbers": numbers([1, None, -(2**62)]), "none": texts([]),
                    "binaries": binaries(held), "instants": instants(bounds), "nothing": digests([]),
                    "literal": binaries_text(held), "plain": texts(["a", "b c"]),
                    "digests": digests([b"12", b"34"]),
                },
            )
        ).one()  # fmt: skip

    assert list(row[:4]) == [odd, [1, None, -(2**62)], held, [None, *times, None]]
    assert list(row[4:]) == [[], [], held, ["a", "b c"], [b"12", b"34"]]


def reading(number: int, *, claims: int) -> EventDraft:
    said = {"entity": "box", "relation": "bay", "value": "3"}
    return EventDraft.model_validate({
        "stream": "s", "kind": "observation", "actor": {"id": "r1", "class": "sensor"},
        "source_event_id": f"e{number}", "claims": [said] * claims,
    })  # fmt: skip


async def test_claims_of_many_statements_are_all_there(db):
    drafts = [reading(number, claims=200) for number in range(1, 6)]
    await log.append(db, "acme", drafts, grant=LOCAL_GRANT)

    report = await fold(db, "acme", PlainProjector(), events_max=100)

    async with db.snapshot("acme") as conn:
        assert await conn.scalar(sa.text("SELECT count(*) FROM claim")) == report.claims == 1_000


async def test_a_fold_that_thinks_for_long_is_not_taken_for_one_left_alone(db):
    asked = sa.text("SHOW idle_in_transaction_session_timeout")
    async with db.tenant("acme") as conn:
        usual = await conn.scalar(asked)
        await begin_fold(conn, wait_seconds=1)
        assert (usual, await conn.scalar(asked)) == ("1min", f"{FOLD_LEASE_SECONDS}s")

    async with db.tenant("acme") as conn:
        assert await conn.scalar(asked) == usual


async def test_a_statement_that_fails_on_its_way_fails_the_stream():
    class Refusing:
        def __init__(self) -> None:
            self.sent = 0

        def claim_values(self, claims):
            return {"epoch": len(claims)}

        async def write_claims(self, values):
            self.sent += 1
            await asyncio.sleep(0)
            raise IntegrityError("statement", {}, ValueError())

    async def send(rows):
        async with ClaimStream(rows, None) as stream:
            await stream.take([None] * CLAIMS_SENT)
            await stream.take([None] * CLAIMS_SENT)

    rows = Refusing()

    with pytest.raises(IntegrityError):
        await send(rows)

    assert rows.sent == 1


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_texts_have_no_way_out_of_their_quotes(items):
    literal = texts(items)

    inner = literal.replace("\\\\", "").replace('\\"', "")

    assert inner.count('"') == 2 * len(items)
