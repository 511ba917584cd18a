"""Keys that hold states alone are answered in one call with the pinning, as they are from all claims."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import limits
from contracts.erasures import ErasureRequest
from contracts.errors import EpochDropped, IntegrityFault, NotFound, NotYet
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.resolutions import Resolved
from contracts.times import KnownAt, ValidAt
from contracts.views import Generation, View, ViewRequest
from ledger import _alike, _found, _ground, _stated, log, resolve
from ledger._answers import answer_of
from ledger._claims import micros
from ledger._court import court_of
from ledger._plain import read_plain
from ledger._world import Reader
from ledger.erase import erase
from ledger.write import fold
from tests.ledger.folded import Ledger
from tests.ledger.random_logs import CONTRACTS, VALUES, days, instant, instants_of
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.test_fold import QUICK

NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
KEY = ("ann", "home")


@st.composite
def states(draw: st.DrawFn) -> list[list[dict]]:
    """Commits of one state or end each, said by one source, in no order of time."""
    commits = []
    for number in range(draw(st.integers(1, 12))):
        claim = {"entity": KEY[0], "relation": KEY[1], "stance": "assert"}
        if draw(st.integers(0, 5)):
            claim["value"] = draw(st.sampled_from([*VALUES, " a "]))
        else:
            claim["stance"] = "end"
        since = draw(st.sampled_from([None, instant(draw(days)), "2026-01", "2025"]))
        if since is not None:
            claim["valid"] = {"since": since}
        event = {
            "stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"},
            "source_event_id": f"e{number + 1}", "claims": [claim],
        }  # fmt: skip
        commits.append([event])
    return commits


def may_hold(claim, at):
    """Whether a state may have begun by an instant, and has not surely."""
    earliest, start = claim.validity.earliest, claim.validity.start
    return earliest is not None and earliest <= at < start


async def answered(ledger: Ledger, tenant: str, view: View):
    """Return what one call brings, and the answer as other keys are decided."""
    request = ViewRequest(
        valid_at=view.valid_at, known_at=view.known_at, generation=Generation(epoch=1, commit=view.cut),
        min_commit=None,
    )  # fmt: skip
    async with ledger.db.snapshot(tenant) as conn:
        keys = await log.tenant_keys(ledger.db, tenant, conn)
        # It knows the contracts from then on.
        decided = await resolve.resolve(conn, keys, view, *KEY)
    return await read_plain(ledger.db, keys, request, KEY), decided


@pytest.mark.parametrize("listed", [2, limits.LISTED_CLAIMS_MAX])
def test_states_are_answered_in_one_call_as_they_are_decided(database, monkeypatch, listed):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", listed)
    ledger = Ledger(database)

    @settings(QUICK, max_examples=8)
    @given(states(), st.data())
    def holds(commits, data):
        tenant = ledger.tenant()
        ledger.append(tenant, commits)
        ledger.fold(tenant, events_max=data.draw(st.integers(1, 12)))
        claims = ledger.claims(tenant)
        cut = data.draw(st.sampled_from([claim.commit for claim in claims]))
        court = court_of([claim for claim in claims if claim.commit <= cut], CONTRACTS)
        for at in data.draw(st.lists(st.sampled_from(instants_of(claims)), min_size=4, max_size=4)):
            view = View(
                valid_at=ValidAt(at), known_at=KnownAt(ledger.clock.now + timedelta(days=1)), cut=cut, epoch=1
            )
            full = answer_of(
                court.decide(*KEY, micros(at)), entity=KEY[0], relation=KEY[1], view=view,
                contract=CONTRACTS.of(KEY[1]), unplaced=(),
            )  # fmt: skip
            found, decided = ledger.run(answered(ledger, tenant, view))
            # Where a coarse start leaves anything open, that is read in other calls.
            is_open = any(may_hold(claim, at) for claim in claims if claim.commit <= cut)
            if isinstance(full.resolution, Resolved) and not is_open:
                assert found == decided
                assert found.resolution.form == full.resolution.form
            else:
                assert found == view
            assert decided == full or decided.truncated

    try:
        holds()
    finally:
        ledger.close()


# --- in one call --------------------------------------------------------------------------------


@pytest.fixture
def say(db, clock):
    async def say(value, *, folded=True, actor="ann", **fields):
        clock.now += timedelta(days=1)
        claim = {"entity": KEY[0], "relation": KEY[1], **fields}
        if value is not None:
            claim["value"] = value
        form = {
            "stream": "s", "kind": "claim", "actor": {"id": actor, "class": "user"},
            "observed_at": clock.now.isoformat(), "claims": [claim],
        }  # fmt: skip
        receipt = await log.append(db, "acme", [EventDraft.model_validate(form)], grant=LOCAL_GRANT)
        if folded:
            await fold(db, "acme", PlainProjector(), events_max=100)
        return receipt

    return say


@pytest.fixture
def in_one_call(db, monkeypatch):
    """Ask, and say whether the first call brought the answer."""

    async def ask(request=NEWEST, *, tenant="acme"):
        opened = []
        snapshot = log.Database.snapshot

        def noted(self, tenant):
            opened.append(tenant)
            return snapshot(self, tenant)

        with monkeypatch.context() as patched:
            patched.setattr(log.Database, "snapshot", noted)
            found, _ = await resolve.resolve_at(db, tenant, request, *KEY, wait_ms=0)
        return found, not opened

    return ask


async def test_a_plain_key_takes_one_call_once_its_contracts_are_known(say, in_one_call):
    await say("Lyon")
    await say("Oslo")
    first, was_known = await in_one_call()

    again, is_known = await in_one_call()

    assert (was_known, is_known) == (False, True)
    assert again == first
    assert [claim.value for claim in again.resolution.superseded] == ["Lyon"]


@pytest.mark.parametrize("claims", [2, limits.LISTED_CLAIMS_MAX + 5])
async def test_what_is_in_memory_and_what_is_said_later_change_no_answer_at_an_older_cut(
    say, in_one_call, claims
):
    for number in range(claims):
        receipt = await say(f"room {number}")
    await in_one_call()
    then = replace(NEWEST, generation=Generation(epoch=1, commit=receipt.commit))
    then = replace(then, valid_at=ValidAt(receipt.recorded_at), known_at=KnownAt(receipt.recorded_at))
    warm, is_warm = await in_one_call(then)
    _ground._KEPT.clear()
    cold, is_cold = await in_one_call(then)

    await say("Bern", valid={"from": "2020-01-01", "to": "2021-01-01"})
    await say("Ulm", stance="correct", targets=[{"event": receipt.event_ids[0]}])
    await say("anna", relation="same_as")
    after, is_quick = await in_one_call(then)

    assert (is_warm, is_cold, is_quick) == (True, False, False)
    assert warm == cold == after
    assert warm.truncated == (claims > limits.LISTED_CLAIMS_MAX)


async def test_it_sees_what_was_asked_for_and_nothing_later(db, say, in_one_call, clock):
    await say("Lyon")
    between = clock.now + timedelta(hours=1)
    receipt = await say("Oslo")
    await in_one_call()

    then = await in_one_call(replace(NEWEST, known_at=between))
    earlier = await in_one_call(replace(NEWEST, valid_at=between))
    pinned = await in_one_call(replace(NEWEST, generation=Generation(epoch=1, commit=1)))
    mine = await in_one_call(replace(NEWEST, min_commit=receipt.commit))
    clock.now -= timedelta(days=400)
    back = await in_one_call()

    assert [one.resolution.value for one, _ in (then, earlier, pinned, mine, back)] == [
        "Lyon", "Lyon", "Lyon", "Oslo", "Oslo",
    ]  # fmt: skip
    assert [one.view.cut for one, _ in (then, earlier, pinned, mine, back)] == [1, 2, 1, 2, 2]
    assert all(quick for _, quick in (then, earlier, pinned, mine, back))


async def test_what_cannot_be_pinned_at_once_is_waited_for_or_refused(db, say, in_one_call, owner_engine):
    await say("Lyon")
    await in_one_call()
    receipt = await say("Oslo", folded=False)

    with pytest.raises(NotYet):
        await in_one_call(replace(NEWEST, min_commit=receipt.commit))
    for generation in (Generation(epoch=1, commit=9), Generation(epoch=7, commit=0)):
        with pytest.raises(NotYet):
            await in_one_call(replace(NEWEST, generation=generation))
    with pytest.raises(NotFound):
        await in_one_call(tenant="nobody")
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("UPDATE epoch SET state = 'dropped'"))
    with pytest.raises(EpochDropped):
        await in_one_call(replace(NEWEST, generation=Generation(epoch=1, commit=1)))


@pytest.mark.parametrize(
    "fields",
    [
        {"stance": "dispute"},
        {"stance": "correct"},
        {"stance": "retract"},
        {"value": "Bern", "valid": {"from": "2020-01-01", "to": "2021-01-01"}},
        {"relation": "same_as", "value": "anna"},
    ],
    ids=str,
)
async def test_a_key_that_anything_else_is_said_about_is_decided_in_full(say, in_one_call, fields):
    receipt = await say("Lyon")
    await say("Oslo")
    await in_one_call()
    if fields.get("stance") == "correct":
        fields = {**fields, "value": "Bern", "targets": [{"event": receipt.event_ids[0]}]}

    await say(fields.get("value"), **{name: told for name, told in fields.items() if name != "value"})
    await in_one_call()
    found, is_quick = await in_one_call()

    assert not is_quick
    assert found.disputes or fields.get("stance") != "dispute"


@pytest.mark.parametrize(
    ("fields", "claims"),
    [({"stance": "dispute"}, 1), ({"value": "Bern", "valid": {"from": "2020-01-01", "to": "2027-01-01"}}, 0)],
    ids=str,
)
async def test_nor_is_it_plain_where_that_was_said_long_ago(say, in_one_call, monkeypatch, fields, claims):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", 1)
    await say("Lyon")
    await say(fields.get("value"), **{name: told for name, told in fields.items() if name != "value"})
    for value in ("Oslo", "Rome", "Oslo"):
        await say(value)
    await in_one_call()

    found, is_quick = await in_one_call()

    assert (len(found.disputes), is_quick) == (claims, False)


async def test_a_name_that_was_merged_is_answered_with_what_is_said_of_the_other(db, say, in_one_call):
    await say("Lyon")
    await say("Oslo", entity="anna")
    alone, _ = await in_one_call()
    form = {
        "stream": "s", "kind": "claim", "actor": {"id": "op", "class": "operator"},
        "claims": [{"entity": "ann", "relation": "same_as", "value": "anna"}],
    }  # fmt: skip
    await log.append(db, "acme", [EventDraft.model_validate(form)], grant=LOCAL_GRANT)
    await fold(db, "acme", PlainProjector(), events_max=100)

    merged, _ = await in_one_call()

    assert (alone.resolution.value, merged.resolution.value) == ("Lyon", "Oslo")


async def test_what_an_erasure_left_is_decided_in_full(db, say, in_one_call):
    receipt = await say("Lyon")
    await say("Oslo")
    await in_one_call()

    request = ErasureRequest(subject=None, event_ids=receipt.event_ids)
    await erase(db, "acme", PlainProjector(), request, grant=LOCAL_GRANT)
    await in_one_call()
    found, is_quick = await in_one_call()

    assert (found.resolution.value, is_quick) == ("Oslo", False)
    assert found.resolution.superseded == ()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE claim SET body = convert_to(replace(convert_from(body, 'utf8'), 'Oslo', 'Bern'), 'utf8')",
        "UPDATE claim SET commit = 9 WHERE position = 1",
        "UPDATE claim SET stance = 'end' WHERE position = 2",
        "UPDATE claim SET entity = 'bob' WHERE position = 2",
        "UPDATE claim SET claim_id = decode(repeat('00', 32), 'hex') WHERE position = 2",
        "UPDATE claim SET seal = decode(repeat('00', 32), 'hex') WHERE position = 1",
        "UPDATE cell SET state = 'ended'",
        "UPDATE cell SET claims = (SELECT array_agg(claim_id) FROM claim)",
        "UPDATE cell SET valid = tstzrange(lower(valid), '2099-01-01') WHERE upper_inf(valid)",
        "UPDATE cell SET known = int8range(1, NULL) WHERE upper_inf(known)",
        "UPDATE cell SET seal = (SELECT min(seal) FROM cell AS o WHERE o.seal <> cell.seal)",
        "DELETE FROM cell",
        "UPDATE line SET part = 'x'",
    ],
)
async def test_a_changed_row_is_refused_in_one_call_too(say, in_one_call, owner_engine, statement):
    await say("Lyon")
    await say("Oslo")
    await in_one_call()
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("ALTER TABLE cell DISABLE TRIGGER USER"))
        await conn.execute(sa.text("ALTER TABLE claim DISABLE TRIGGER USER"))
        assert (await conn.execute(sa.text(statement))).rowcount > 0

    with pytest.raises(IntegrityFault):
        await in_one_call()


@pytest.mark.parametrize("listed", [1, limits.LISTED_CLAIMS_MAX])
async def test_an_old_cell_that_was_put_back_is_refused(say, in_one_call, owner_engine, monkeypatch, listed):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", listed)
    await say("Lyon")
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("CREATE TABLE kept AS SELECT * FROM cell"))
    await say("Oslo")
    await in_one_call()
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("ALTER TABLE cell DISABLE TRIGGER USER"))
        await conn.execute(sa.text("DELETE FROM cell"))
        await conn.execute(
            sa.text(
                "INSERT INTO cell (tenant, line, valid, known, state, claims, seal) "
                "SELECT tenant, line, valid, known, state, claims, seal FROM kept"
            )
        )

    with pytest.raises(IntegrityFault):
        await in_one_call()


async def test_a_call_names_its_tenant_for_itself_alone(db, say, in_one_call):
    await say("Lyon")
    await in_one_call()
    await in_one_call()

    assert await db.rows("SELECT count(*) FROM claim", {}) == [(0,)]


@pytest.mark.parametrize("listed", [1, limits.LISTED_CLAIMS_MAX])
async def test_no_state_is_read_that_begins_after_the_instant(db, say, in_one_call, monkeypatch, listed):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", listed)
    receipt = await say("Lyon")
    await say("Oslo", valid={"since": "2031-01-01"})
    await in_one_call()
    brought = []
    decided = _stated.answer_of_states

    def noted(read, *more):
        brought.append(read)
        return decided(read, *more)

    for module in (_stated, _alike):
        monkeypatch.setattr(module, "answer_of_states", noted)
    found, was_plain = await in_one_call()
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        reader = Reader(conn=conn, keys=keys, epoch=1, cut=receipt.commit + 1)
        assert await resolve.resolve(conn, keys, found.view, *KEY) == found
        _, [whole] = await _found.found_on(reader, [KEY], at=found.view.valid_at)

    assert (was_plain, found.resolution.value, found.truncated) == (True, "Lyon", listed == 1)
    assert len(brought) == 2
    for read in brought:
        assert [told.value for told in read.own] == ["Lyon"]
        assert (read.is_cut, read.is_long, read.own_from) == (True, listed == 1, 2 if listed == 1 else 0)
    assert ([told.value for told in whole.own], whole.newest) == (["Lyon", "Oslo"], None)
