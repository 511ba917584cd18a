"""What is read is what was written, or a fault; an erased event is told by its type."""

from __future__ import annotations

import hmac
import os
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import IntegrityFault, NotFound
from contracts.events import ErasedEvent, Event, EventDraft, Kind
from contracts.limits import APPEND_EVENTS_MAX
from contracts.times import Precision
from ledger import log
from ledger._drafts import draft_bytes
from ledger._events import StoredEvent, new_ids, open_event, seal_events
from ledger._keys import TenantKeys, key_ring
from ledger._prepare import idempotency_digest, prepare, source_digest
from tests.ledger.conftest import MASTER_KEY
from tests.ledger.log_drafts import append, as_owner, claim, draft, read_all

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
VALUES = st.recursive(
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: (
        st.lists(inner | st.none(), max_size=3) | st.dictionaries(TEXTS, inner | st.none(), max_size=3)
    ),
    max_leaves=8,
)
VALID = st.sampled_from(
    [
        None,
        {"since": "2023"},
        {"from": "2023-04", "to": None},
        {"from": None, "to": None},
        {"at": "2023-04-05T06:07:08.9+05:30", "precision": "day"},
    ]
)


@st.composite
def drafts(draw: st.DrawFn) -> EventDraft:
    """Any turn with structured claims, as a caller may send it."""
    claims = draw(st.lists(st.tuples(VALUES, VALID), max_size=3))
    observed = st.sampled_from([None, "2023-05-01T10:00Z", "2023-05-01T10:00:00.120-02:00"])
    return draft(
        draw(TEXTS),
        observed_at=draw(observed),
        claims=[claim(value, **({} if valid is None else {"valid": valid})) for value, valid in claims],
    )


def tenant_keys() -> TenantKeys:
    ring = key_ring(MASTER_KEY)
    return ring.open_tenant("acme", ring.new_tenant("acme", randomness=bytes))


def stored(keys: TenantKeys, sent: EventDraft, **changes: Any) -> StoredEvent:
    (made,) = seal_events(
        keys,
        ["ev_1"],
        [(sent, draft_bytes(sent))],
        [{}],
        sent_at=None,
        backfilled=False,
        randomness=lambda count: b"\x07" * count,
    )
    row = {
        "event_id": "ev_1",
        "position": 1,
        "commit": 1,
        "recorded_at": datetime(2026, 1, 1, tzinfo=UTC),
        "erased_by": None,
        "kind": made.kind.value,
        "header": made.header,
        "ciphertext": made.ciphertext,
        "hash": made.hash,
        "wrapped_key": made.wrapped_key,
    }
    return StoredEvent(**(row | changes))


@given(drafts())
def test_every_event_comes_back_as_it_was_sent(sent):
    event = open_event(tenant_keys(), stored(tenant_keys(), sent))

    assert isinstance(event, Event)
    assert event.draft == sent
    assert draft_bytes(event.draft) == draft_bytes(sent)


@pytest.mark.parametrize("column", ["header", "ciphertext", "hash", "wrapped_key"])
def test_a_changed_byte_anywhere_is_a_fault(column):
    keys = tenant_keys()
    intact = stored(keys, draft())
    for index in range(len(getattr(intact, column))):
        changed = bytearray(getattr(intact, column))
        changed[index] ^= 1

        with pytest.raises(IntegrityFault):
            open_event(keys, stored(keys, draft(), **{column: bytes(changed)}))


@pytest.mark.parametrize(("column", "value"), [("event_id", "ev_2"), ("kind", "claim")])
def test_a_row_that_its_header_contradicts_is_a_fault(column, value):
    with pytest.raises(IntegrityFault):
        open_event(tenant_keys(), stored(tenant_keys(), draft(), **{column: value}))


def test_a_secret_makes_the_key_of_what_it_was_made_for_and_of_nothing_else():
    keys = tenant_keys()
    key, secret = keys.new_key("ev_1", randomness=lambda count: b"K" * count)
    sealed = key.encrypt(b"said", context=b"", randomness=bytes)
    other = TenantKeys(tenant="acme", _wrapping_key=b"w" * 32, _digest_key=b"d" * 32)

    assert keys.open_key("ev_1", secret).decrypt(sealed, context=b"", what="it") == b"said"
    assert keys.open_key("ev_1", secret).digest(b"a") == key.digest(b"a")
    for opened in (keys.open_key("ev_2", secret), other.open_key("ev_1", secret)):
        assert opened.digest(b"a") != key.digest(b"a")
        with pytest.raises(IntegrityFault):
            opened.decrypt(sealed, context=b"", what="it")
    with pytest.raises(IntegrityFault):
        keys.open_key("ev_1", secret[1:])


@pytest.mark.parametrize(
    "parts", [(b"",), (b"x",), (b"a", b"bc"), (b"ab", b"c"), (b"long" * 100, b"er" * 50)]
)
def test_a_digest_is_the_keyed_hash_of_the_library(parts):
    keys = TenantKeys(tenant="t", _wrapping_key=b"w" * 32, _digest_key=b"d" * 32)
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in (b"seal", b"table", *parts))
    assert keys.seal("table", *parts) == hmac.digest(b"d" * 32, framed, "sha256")
    one = b"".join(len(part).to_bytes(8, "big") + part for part in (b"digest", parts[0]))
    assert keys.digest(parts[0]) == hmac.digest(b"d" * 32, one, "sha256")


def test_keys_that_count_lie_together_and_are_told_apart():
    keys = tenant_keys()
    found = [source_digest(keys, "s", f"r-{number}") for number in range(100, 200)]
    others = [source_digest(keys, *named) for named in (("s", "r-200"), ("s", "r-1000"), ("t", "r-100"))]

    assert len({*found, *others}) == 103
    assert {len(digest) for digest in found} == {32}
    assert len({digest[:8] for digest in found}) == 1
    assert len({digest[:8] for digest in (found[0], *others)}) == 4
    said = [draft(stream="s", source_event_id=f"r-{number}") for number in range(100, 200)]
    own = draft(stream="s", source_event_id="r-100", idempotency_key="r-100")
    prepared = prepare(keys, [*said, own]).events
    assert [event.source for event in prepared] == [*found, found[0]]
    assert [event.idempotency for event in prepared[:100]] == found
    assert prepared[100].idempotency == idempotency_digest(keys, own, found[0]) != found[0]


def test_ids_of_one_append_differ_at_their_end_and_from_those_of_any_other():
    found = [new_ids("ev", count, os.urandom) for count in (1, APPEND_EVENTS_MAX, APPEND_EVENTS_MAX)]

    assert {len(one) for ids in found for one in ids} == {len("ev_") + 26}
    assert len({one for ids in found for one in ids}) == 1 + 2 * APPEND_EVENTS_MAX
    assert [sorted(ids) == ids for ids in found] == [True] * 3
    assert len({one[:-2] for ids in found for one in ids}) == 3


def test_another_tenants_keys_open_nothing():
    ring = key_ring(MASTER_KEY)
    other = ring.open_tenant("other", ring.new_tenant("other", randomness=bytes))

    with pytest.raises(IntegrityFault):
        open_event(other, stored(tenant_keys(), draft()))


def test_another_master_key_opens_no_tenant():
    wrapped = key_ring(MASTER_KEY).new_tenant("acme", randomness=bytes)

    with pytest.raises(IntegrityFault):
        key_ring(b"\xff" * 32).open_tenant("acme", wrapped)
    with pytest.raises(ValueError, match="32 bytes"):
        key_ring(b"short")


def test_no_key_shows_in_a_repr():
    keys = tenant_keys()
    key, _ = keys.new_key("ev_1", randomness=lambda count: b"K" * count)

    assert "K" * 8 not in repr(key)
    assert "x00" not in repr(keys)


def test_no_word_of_a_caller_stands_in_the_clear():
    made = stored(tenant_keys(), draft("SECRET", subjects=["SECRET"], source_event_id="SECRET"))

    assert b"SECRET" not in made.header + made.ciphertext


async def test_no_word_of_a_caller_stands_in_the_log_tables(db, owner_engine):
    await append(db, draft("SECRET", stream="SECRET", subjects=["SECRET"], idempotency_key="SECRET"))

    for table in ("event", "event_key", "commit", "head", "outbox", "tenant"):
        for (row,) in await as_owner(owner_engine, f"SELECT t::text FROM {table} AS t"):
            assert "SECRET" not in row
            assert b"SECRET".hex() not in row


async def test_an_event_says_what_was_sent_and_what_the_log_added(db, clock):
    receipt = await append(db, draft("a", observed_at="2023-05-01T10:00:00+02:00"))

    event = await log.read_event(db, "acme", receipt.event_ids[0])

    assert isinstance(event, Event)
    assert (event.position, event.commit, event.recorded_at) == (1, 1, clock.now)
    assert event.observed is not None
    assert event.observed.first == datetime(2023, 5, 1, 8, tzinfo=UTC)
    assert (event.observed.precision, event.observed.offset_minutes) == (Precision.SECOND, 120)
    assert event.draft == draft("a", observed_at="2023-05-01T10:00:00+02:00")


async def test_an_event_that_is_not_there_or_another_tenants_is_not_found(db):
    await log.create_tenant(db, "other")
    foreign = await append(db, draft(), tenant="other")

    for event_id in ("ev_0", "", foreign.event_ids[0]):
        with pytest.raises(NotFound):
            await log.read_event(db, "acme", event_id)


async def test_pages_go_on_until_an_empty_one(db):
    await append(db, *(draft(str(number)) for number in range(5)))

    texts: list[str | None] = []
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        position = 0
        while page := await log.read_events(conn, keys, after_position=position, limit=2):
            assert len(page) <= 2
            texts += [event.draft.text for event in page if isinstance(event, Event)]
            position = page[-1].position

    assert texts == ["0", "1", "2", "3", "4"]


async def test_a_page_is_bounded_in_bytes_but_never_empty_before_the_end(db):
    await append(db, draft("x" * 1_000), draft("y"), draft("z"))

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        bound = {"limit": 100, "bytes_max": 600}
        first = await log.read_events(conn, keys, after_position=0, **bound)
        rest = await log.read_events(conn, keys, after_position=1, **bound)

    assert [event.position for event in first] == [1]
    assert [event.position for event in rest] == [2, 3]


async def test_events_are_read_by_id_and_unknown_ones_are_missing(db):
    receipt = await append(db, draft("a"), draft("b"))

    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        found = await log.read_events_by_id(conn, keys, [receipt.event_ids[1], "ev_0", receipt.event_ids[1]])
        data_keys = await log.event_keys(conn, keys, [*receipt.event_ids, "ev_0"])

    assert list(found) == [receipt.event_ids[1]]
    assert set(data_keys) == set(receipt.event_ids)
    assert data_keys[receipt.event_ids[0]].digest(b"a") != data_keys[receipt.event_ids[1]].digest(b"a")


async def test_an_event_whose_key_is_gone_is_erased_and_still_stands_in_its_place(db, owner_engine):
    receipt = await append(
        db, draft("a", observed_at="2023-05-01T10:00+02:00", source_event_id="1"), draft("b")
    )
    await as_owner(owner_engine, "DELETE FROM event_key WHERE event_id = :id", id=receipt.event_ids[0])

    erased, kept = await read_all(db)

    assert isinstance(erased, ErasedEvent)
    assert isinstance(kept, Event)
    assert (erased.position, erased.commit, erased.kind) == (1, 1, Kind.TURN)
    assert erased.observed is not None
    assert (erased.observed.precision, erased.observed.offset_minutes) == (Precision.MINUTE, 120)
    again = await append(db, draft("a", observed_at="2023-05-01T10:00+02:00", source_event_id="1"))
    assert again.repeated


@pytest.mark.parametrize("column", ["header", "ciphertext", "hash"])
async def test_a_byte_changed_in_the_table_is_found_when_it_is_read(db, owner_engine, column):
    receipt = await append(db, draft())
    await as_owner(
        owner_engine, f"UPDATE event SET {column} = set_byte({column}, 5, get_byte({column}, 5) # 1)"
    )

    with pytest.raises(IntegrityFault):
        await log.read_event(db, "acme", receipt.event_ids[0])
