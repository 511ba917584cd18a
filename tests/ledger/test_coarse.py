"""What is only told to have begun some time in a span makes what was there before uncertain within it."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import pytest
import sqlalchemy as sa

from contracts import limits
from contracts.resolutions import Missing, MissingReason
from contracts.times import ValidAt, parse_instant
from contracts.views import ViewRequest
from ledger import _coarse, log
from ledger._claims import micros
from ledger._world import Reader
from ledger.resolve import as_certain, pin, resolve, resolve_at
from tests.ledger.erasing import claim, opened, said

NOW = "2026-05-01T00:00:00Z"


@pytest.fixture
async def ledger(db, database, clock):
    async with opened(db, database, clock) as made:
        await made.say(said("e1", claim("ann", "home", "Lyon", valid={"since": "2020-01-01T00:00:00Z"})))
        yield made


async def certain(ledger, at, *, days=0, relation="home", entity="ann"):
    """What a key has for certain through some days, or why that cannot be told."""
    await ledger.fold()
    request = ViewRequest(
        valid_at=ValidAt(parse_instant(at, field="at")), known_at=None, generation=None, min_commit=None
    )
    view = await pin(ledger.db, "acme", request, wait_ms=0)
    until = view.valid_at + (timedelta(days=days) or timedelta(microseconds=1))
    async with ledger.db.snapshot("acme") as conn:
        keys = await log.tenant_keys(ledger.db, "acme", conn)
        answer = await resolve(conn, keys, view, entity, relation)
        found = await as_certain(conn, keys, answer, until=until)
    match found.resolution:
        case Missing(reason=reason, superseded=superseded):
            assert found == dataclasses.replace(answer, resolution=found.resolution)
            return reason, [one.value for one in superseded]
        case _:
            assert found == answer
            return getattr(answer.resolution, "value", None)


MOVED = {"valid": {"since": "2023"}}
UNDETERMINED = (MissingReason.UNDETERMINED, ["Lyon", "Paris"])


async def test_who_moved_in_2023_may_have_lived_in_either_place_in_that_year_and_in_no_other(ledger):
    await ledger.say(said("e2", claim("ann", "home", "Paris", **MOVED)))

    assert await certain(ledger, "2022-12-31T23:59:59Z") == "Lyon"
    assert await certain(ledger, "2023-01-01T00:00:00Z") == UNDETERMINED
    assert await certain(ledger, "2023-12-31T23:59:59Z") == UNDETERMINED
    assert await certain(ledger, "2024-01-01T00:00:00Z") == "Paris"
    # Of the whole year as of its first day, and of the days up to it.
    assert await certain(ledger, "2023-01-01T00:00:00Z", days=365) == UNDETERMINED
    assert await certain(ledger, "2022-12-01T00:00:00Z", days=31) == "Lyon"
    assert await certain(ledger, "2022-12-01T00:00:00Z", days=32) == UNDETERMINED
    assert await certain(ledger, NOW) == "Paris"


@pytest.mark.parametrize(
    "later",
    [
        {"value": "Lyon"},
        {"value": "Paris", "actor": "bot", "actor_class": "assistant"},
        {"value": "Paris", "retracted": True},
    ],
)
async def test_what_would_change_nothing_where_it_begins_makes_nothing_uncertain(ledger, later):
    actor = {name: later[name] for name in ("actor", "actor_class") if name in later}
    await ledger.say(said("e2", claim("ann", "home", later["value"], **MOVED), **actor))
    if "retracted" in later:
        await ledger.say(said("e3", kind="retraction", targets=[{"source_event_id": "e2"}]))

    assert await certain(ledger, "2023-06-01T00:00:00Z") == "Lyon"


async def test_an_end_a_correction_and_what_was_erased_are_as_uncertain(ledger):
    await ledger.say(said("e2", claim("ann", "home", "Oslo", valid={"since": "2024-02-01T00:00:00Z"})))
    assert await certain(ledger, "2023-06-01T00:00:00Z") == "Lyon"
    target = [{"source_event_id": "e2"}]
    await ledger.say(said("e3", {"value": "Paris", **MOVED}, kind="correction", targets=target))
    assert await certain(ledger, "2023-06-01T00:00:00Z") == UNDETERMINED
    await ledger.erase("e2", "e3")
    assert await certain(ledger, "2023-06-01T00:00:00Z") == (MissingReason.UNDETERMINED, ["Lyon"])

    await ledger.say(said("e4", claim("bob", "home", "Graz", valid={"since": "2020-01-01T00:00:00Z"})))
    await ledger.say(said("e5", {"stance": "end", "entity": "bob", "relation": "home", **MOVED}))
    reason, _ = await certain(ledger, "2023-06-01T00:00:00Z", entity="bob")
    assert reason == MissingReason.UNDETERMINED


async def test_one_of_many_values_that_may_have_been_there_makes_the_set_uncertain(ledger):
    await ledger.register("likes")
    await ledger.say(said("e2", claim("ann", "likes", "tea", valid={"since": "2020-01-01T00:00:00Z"})))
    await ledger.say(said("e3", claim("ann", "likes", "chess", **MOVED)))

    found = await certain(ledger, "2023-06-01T00:00:00Z", relation="likes")
    assert found == (MissingReason.UNDETERMINED, ["tea", "chess"])


JUNE = "2023-06-01T00:00:00Z"


async def test_however_many_are_said_later_the_coarse_one_is_found(ledger):
    await ledger.say(said("e2", claim("ann", "home", "Paris", **MOVED)))
    # More that begin exactly, between the instant that is asked for and where the coarse one does, than one
    # reads of a key.
    days = [f"2023-10-{1 + number // 2:02d}T{number % 2 * 12:02d}:00:00Z" for number in range(40)]
    between = [claim("ann", "home", f"inn {number}", valid={"since": at}) for number, at in enumerate(days)]
    await ledger.say(*(said(f"r{number}", one) for number, one in enumerate(between)))

    assert await certain(ledger, JUNE) == UNDETERMINED


async def test_no_more_of_a_long_key_is_read_for_it_whatever_is_known_of_the_table(ledger):
    for batch in range(2):
        days = [f"20{21 + batch}-01-01T{number // 60:02d}:{number % 60:02d}:00Z" for number in range(600)]
        told = [claim("ann", "home", f"inn {at}", valid={"since": at}) for at in days]
        await ledger.say(*(said(f"i{batch}-{number}", one) for number, one in enumerate(told)))
    await ledger.fold()
    # Then all the rows are of one key, and none says how few have a coarse start.
    async with ledger.owner.begin() as conn:
        await conn.execute(sa.text("ANALYZE claim"))
    # Rows and index entries, of this connection: what it did before may still be counted in.
    read = sa.text(
        "SELECT seq_tup_read + idx_tup_fetch + (SELECT sum(pg_stat_get_xact_tuples_returned(indexrelid)) "
        "FROM pg_index WHERE indrelid = relid) FROM pg_stat_xact_user_tables WHERE relname = 'claim'"
    )
    one_call = sa.text(
        "SELECT count(*) FROM echoplane_read('acme', 1, 2, NULL, :at, now(), 'ann', 'home', 33)"
    )
    at = parse_instant(JUNE, field="at")
    async with ledger.db.tenant("acme") as conn:
        reader = Reader(conn=conn, keys=await log.tenant_keys(ledger.db, "acme", conn), epoch=1, cut=3)
        before = await conn.scalar(read)
        await reader.unsure_on([("ann", "home")], after=micros(at), before=micros(at) + 1, most=8)
        assert await conn.scalar(read) == before
        assert await conn.scalar(one_call, {"at": at}) > 2
        assert await conn.scalar(read) < before + 200


async def test_a_correction_that_names_no_key_is_found_however_many_act_on_it_later(ledger):
    later = "2024-02-01T00:00:00Z"
    await ledger.say(said("e2", claim("ann", "home", "Oslo", valid={"since": later})))
    target = [{"source_event_id": "e2"}]
    await ledger.say(said("e3", {"value": "Paris", **MOVED}, kind="correction", targets=target))
    others = [
        said(f"d{number}", kind="retraction", actor="bob", targets=[{"source_event_id": "e1"}])
        for number in range(limits.LISTED_CLAIMS_MAX + 3)
    ]
    await ledger.say(*others)

    assert await certain(ledger, JUNE) == UNDETERMINED


async def test_of_what_was_corrected_the_correction_may_have_held_and_not_the_slip(ledger):
    await ledger.say(said("e2", claim("ann", "home", "Pariss", **MOVED)))
    fixed = {"entity": "ann", "relation": "home", "value": "Paris"}
    await ledger.say(said("e3", fixed, kind="correction", targets=[{"source_event_id": "e2"}]))
    # One that puts the key right, and gives no time: it has that of what was said of another.
    await ledger.say(said("b1", claim("bob", "home", "Graz", valid={"since": "2020-01-01T00:00:00Z"})))
    await ledger.say(said("b2", claim("bop", "home", "Rome", **MOVED)))
    moved = {"entity": "bob", "relation": "home", "value": "Rome"}
    await ledger.say(said("b3", moved, kind="correction", targets=[{"source_event_id": "b2"}]))

    assert await certain(ledger, JUNE) == UNDETERMINED
    assert await certain(ledger, JUNE, entity="bob") == (MissingReason.UNDETERMINED, ["Graz", "Rome"])


async def test_a_correction_of_a_correction_brings_the_coarse_start_of_what_was_said_first(ledger):
    def corrected(name, of, entity):
        told = claim(entity, "home", "Rome")
        return said(name, told, kind="correction", targets=[{"source_event_id": of}])

    await ledger.say(said("e2", claim("anne", "home", "Roma", **MOVED)))
    await ledger.say(corrected("e3", "e2", "annie"))
    await ledger.say(corrected("e4", "e3", "ann"))

    assert await certain(ledger, "2023-06-01T00:00:00Z") == (MissingReason.UNDETERMINED, ["Lyon", "Rome"])
    assert await certain(ledger, "2024-01-01T00:00:00Z") == "Rome"


@pytest.mark.parametrize("gone", ["ended", "withdrawn"])
async def test_where_nothing_is_left_a_coarse_start_may_have_filled_it(ledger, gone):
    ended = {"stance": "end", "entity": "ann", "relation": "home", "valid": {"since": "2023-02-01T00:00:00Z"}}
    if gone == "ended":
        await ledger.say(said("e2", ended))
    else:
        await ledger.say(said("e2", kind="retraction", targets=[{"source_event_id": "e1"}]))
    await ledger.say(said("e3", claim("ann", "home", "Paris", **MOVED)))
    await ledger.fold()
    assert await ledger.reason("ann", "home", at=JUNE) == gone

    reason, might = await certain(ledger, JUNE)

    assert (reason, might[-1]) == (MissingReason.UNDETERMINED, "Paris")


async def test_more_than_are_looked_at_leave_it_in_doubt(ledger, monkeypatch):
    monkeypatch.setattr(_coarse, "STARTS_MAX", 1)

    async def taken_back(name, value, since):
        await ledger.say(said(name, claim("ann", "home", value, valid={"since": since})))
        await ledger.say(said(f"{name}-", kind="retraction", targets=[{"source_event_id": name}]))

    await taken_back("e2", "Nice", "2023-06")
    # One that was taken back changes nothing; nor does one that says the same, and it is not counted.
    await ledger.say(said("e3", claim("ann", "home", "Lyon", valid={"since": "2023-06-01"})))
    assert await certain(ledger, JUNE) == "Lyon"
    await taken_back("e4", "Rome", "2023")
    assert await certain(ledger, JUNE) == (MissingReason.UNDETERMINED, ["Lyon", "Nice", "Rome"])

    monkeypatch.setattr(_coarse, "STARTS_MAX", 8)
    assert await certain(ledger, JUNE) == "Lyon"
    monkeypatch.setattr(_coarse, "UNSURE_MAX", 3)
    reason, _ = await certain(ledger, JUNE)
    assert reason == MissingReason.UNDETERMINED


async def shown(ledger, at):
    """What `resolve` says, and what it leaves open."""
    await ledger.fold()
    request = ViewRequest(
        valid_at=ValidAt(parse_instant(at, field="at")), known_at=None, generation=None, min_commit=None
    )
    # Once the contracts are known most keys are read in one call: it says the same.
    first = await resolve_at(ledger.db, "acme", request, "ann", "home", wait_ms=0)
    answer, doubt = await resolve_at(ledger.db, "acme", request, "ann", "home", wait_ms=0)
    assert (answer.resolution, doubt) == (first[0].resolution, first[1])
    value = getattr(answer.resolution, "value", None) or answer.resolution.reason
    if doubt is None:
        return value, None
    return value, (f"{doubt.start:%Y-%m-%d}", f"{doubt.end:%Y-%m-%d}", [one.value for one in doubt.claims])


async def test_resolve_decides_as_ever_and_says_from_when_to_when_it_is_undetermined(ledger):
    assert await shown(ledger, JUNE) == ("Lyon", None)
    await ledger.say(said("e2", claim("ann", "home", "Paris", **MOVED)))
    in_2023 = ("2023-01-01", "2024-01-01", ["Paris"])

    assert await shown(ledger, "2022-12-31T23:59:59Z") == ("Lyon", None)
    assert await shown(ledger, "2023-01-01T00:00:00Z") == ("Lyon", in_2023)
    assert await shown(ledger, "2023-12-31T23:59:59Z") == ("Lyon", in_2023)
    assert await shown(ledger, "2024-01-01T00:00:00Z") == ("Paris", None)

    # One that may have begun at any time of a month: within it both may have.
    await ledger.say(said("e3", claim("ann", "home", "Nice", valid={"since": "2023-06"})))
    assert await shown(ledger, JUNE) == ("Lyon", ("2023-01-01", "2024-01-01", ["Paris", "Nice"]))
    assert await shown(ledger, "2023-07-01T00:00:00Z") == ("Nice", in_2023)


async def test_where_nothing_was_before_resolve_says_no_less(ledger):
    assert await shown(ledger, "2019-06-01T00:00:00Z") == (MissingReason.NOT_VALID_THEN, None)
    await ledger.say(said("e2", claim("ann", "home", "Graz", valid={"since": "2018"})))

    assert await shown(ledger, "2018-06-01T00:00:00Z") == (
        MissingReason.UNDETERMINED,
        ("2018-01-01", "2019-01-01", ["Graz"]),
    )
