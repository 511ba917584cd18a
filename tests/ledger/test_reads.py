"""Reads over both times: windows, timelines, what changed and by what, and what held together."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from contracts.errors import BadRequest
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.relations import Cardinality
from contracts.views import Generation, ViewRequest
from ledger import log
from ledger import resolve as reads
from ledger._relations import unregistered
from ledger._world import _BY_ID
from ledger.write import fold, register_contract
from tests.ledger.scenario_logs import PlainProjector

DAY = timedelta(days=1)
NEWEST = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)
FIRST = datetime(2026, 1, 1, 12, tzinfo=UTC)


def day(number):
    return datetime(2026, 1, number, tzinfo=UTC)


class Told:
    """A ledger that is told claims, one commit a day, and read at any commit."""

    def __init__(self, db, clock):
        self.db, self.clock = db, clock

    async def __call__(self, *claims, source="ann", kind="claim", fold_it=True):
        self.clock.now += DAY
        form = {
            "stream": "s",
            "kind": kind,
            "actor": {"id": source, "class": "user"},
            "claims": [claim | {"relation": claim.get("relation", "home")} for claim in claims],
        }
        receipt = await log.append(self.db, "acme", [EventDraft.model_validate(form)], grant=LOCAL_GRANT)
        if fold_it:
            while not (await fold(self.db, "acme", PlainProjector(), events_max=50)).is_at_head:
                pass
        return receipt

    async def view(self, commit=None, **fields):
        view = await reads.pin(self.db, "acme", NEWEST, wait_ms=0)
        return replace(view, cut=view.cut if commit is None else commit, **fields)

    async def read(self, function, *args, **kwargs):
        async with self.db.snapshot("acme") as conn:
            return await function(conn, await log.tenant_keys(self.db, "acme", conn), *args, **kwargs)

    async def history(self, entity, relation="home", *, cut=None, **window):
        open_ = {"valid_from": None, "valid_to": None, "known_from": None, "known_to": None}
        view = await self.view(cut)
        return await self.read(
            reads.history, entity, relation, epoch=view.epoch, cut=view.cut,
            window=reads.Window(**(open_ | window)),
        )  # fmt: skip

    async def timeline(self, entity, cut=None, *, relation="home", valid_from=None, valid_to=None):
        view = await self.view(cut)
        return await self.read(
            reads.timeline, view, entity, relation, valid_from=valid_from, valid_to=valid_to
        )

    async def diff(self, before, after, *, entity=None, relation=None, at_instants=False, from_line=0):
        return await self.read(
            reads.diff, before, after, entity=entity, relation=relation, at_instants=at_instants,
            from_line=from_line,
        )  # fmt: skip

    async def join(self, left, right, *, on_value=False, bitemporal=False, cut=None):
        return await self.read(
            reads.join, await self.view(cut), left, right, on_value=on_value, bitemporal=bitemporal,
            valid_from=None, valid_to=None,
        )  # fmt: skip


@pytest.fixture
def tell(db, clock):
    return Told(db, clock)


def span(value, start, end, *, entity="ann", **more):
    bounds = {
        "from": None if start is None else start.isoformat(),
        "to": None if end is None else end.isoformat(),
    }
    return {"entity": entity, "value": value, "valid": bounds, **more}


def since(value, start, *, entity="ann", **more):
    return {"entity": entity, "value": value, "valid": {"since": start.isoformat()}, **more}


def shown(found):
    return [
        (
            one.claims[0].value if one.claims else None,
            one.valid_from,
            one.valid_to,
            one.known_from,
            one.known_to,
        )
        for one in found.rectangles
    ]


# --- histories ------------------------------------------------------------------------------------


async def test_window_of_valid_time_cuts_off_what_lies_outside(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))

    found = await tell.history("ann", valid_from=day(5), valid_to=day(12))

    assert shown(found) == [
        ("Lyon", day(5), day(10), 1, None),
        ("Lyon", day(10), day(12), 1, 2),
        ("Oslo", day(10), day(12), 2, None),
    ]
    assert not found.truncated


async def test_window_of_known_time_shows_whole_what_touches_it(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))
    await tell(since("Bern", day(20)))

    assert shown(await tell.history("ann", known_from=1, known_to=2)) == [
        ("Lyon", day(1), day(10), 1, None),
        ("Lyon", day(10), None, 1, 2),
    ]
    # What was learned at commit 3 ends nothing that was known at 2 alone.
    assert ("Lyon", day(10), None, 1, 2) not in shown(await tell.history("ann", known_from=2))


async def test_known_window_in_instants_is_one_in_commits(tell):
    receipts = [await tell(since(city, day(number))) for number, city in enumerate(("a", "b", "c"), start=1)]
    first, second, third = (receipt.recorded_at for receipt in receipts)

    async def commits(start, end):
        return await tell.read(reads.known_commits, start, end)

    assert await commits(None, None) == (None, None)
    assert await commits(second, third) == (2, 3)
    assert await commits(second - timedelta(microseconds=1), third + timedelta(microseconds=1)) == (1, 4)
    assert await commits(first - DAY, first) == (0, 1)


async def test_one_instant_shows_how_what_is_known_about_it_changed(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))
    await tell(span("Rome", day(4), day(6)))
    await tell({"entity": "ann", "stance": "retract", "targets": [{"entity": "ann", "relation": "home"}],
                "valid": {"from": day(4).isoformat(), "to": day(5).isoformat()}})  # fmt: skip

    window = reads.Window.at(day(4))
    found = await tell.history("ann", valid_from=window.valid_from, valid_to=window.valid_to)

    assert [(one.state, one.known_from, one.known_to) for one in found.rectangles] == [
        ("value", 1, 3), ("value", 3, 4), ("withdrawn", 4, None),
    ]  # fmt: skip


async def test_timeline_is_what_stands_at_the_cut_and_its_segments_are_whole(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))
    await tell(span("Rome", day(4), day(6)))

    assert shown(await tell.timeline("ann", 1)) == [("Lyon", day(1), None, 1, None)]
    assert [row[:3] for row in shown(await tell.timeline("ann"))] == [
        ("Lyon", day(1), day(4)),
        ("Rome", day(4), day(6)),
        ("Lyon", day(6), day(10)),
        ("Oslo", day(10), None),
    ]
    touching = await tell.timeline("ann", valid_from=day(5), valid_to=day(6))
    assert [row[:3] for row in shown(touching)] == [("Rome", day(4), day(6))]
    assert shown(await tell.timeline("ann", 0)) == []


async def test_history_at_an_earlier_cut_does_not_know_what_ended_later(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))

    assert shown(await tell.history("ann", cut=1)) == [("Lyon", day(1), None, 1, None)]


async def test_claims_are_looked_up_by_their_id_before_the_tables_were_ever_analysed(tell, db):
    """By another index the whole tenant would be read once for each claim that a history names."""
    await tell(since("Lyon", day(1)))
    values = {"tenant": "acme", "epoch": 1, "claim_ids": [bytes(16)]}
    async with db.snapshot("acme") as conn:
        plan = "\n".join(await conn.scalars(sa.text(f"EXPLAIN {_BY_ID.text}"), values))

    assert "claim_pkey" in plan


# --- differences ----------------------------------------------------------------------------------


async def test_diff_says_what_changed_where_and_by_which_event(tell):
    await tell(since("Lyon", day(1)))
    moved = await tell(since("Oslo", day(10)))
    await tell(since("Metz", day(3), entity="bob"))

    found = await tell.diff(await tell.view(1), await tell.view(3))

    (own, other) = found.changes
    assert (own.entity, own.valid_from, own.valid_to) == ("ann", day(10), None)
    assert [claim.value for claim in own.before.claims] == ["Lyon"]
    assert [claim.value for claim in own.after.claims] == ["Oslo"]
    assert own.commits == (2,)
    assert [claim.event_id for claim in own.causes] == list(moved.event_ids)
    assert (other.entity, other.before.state, other.after.state) == ("bob", "nothing", "value")
    assert found.next_line is None


async def test_diff_backwards_turns_every_change_around(tell):
    await tell(since("Lyon", day(1)))
    await tell(since("Oslo", day(10)))

    there = (await tell.diff(await tell.view(1), await tell.view(2))).changes
    back = (await tell.diff(await tell.view(2), await tell.view(1))).changes

    assert [(one.after, one.before, one.commits) for one in back] == [
        (one.before, one.after, one.commits) for one in there
    ]


async def test_what_changed_and_changed_back_is_no_difference(tell):
    await tell(span("Lyon", day(1), day(9)), {"entity": "x", "value": "y"})
    wrong = await tell(span("Oslo", day(2), day(4)))
    await tell({"entity": "ann", "stance": "retract", "targets": [{"event": wrong.event_ids[0]}]})

    found = await tell.diff(await tell.view(1), await tell.view(3), entity="ann")

    assert found.changes == ()
    assert len((await tell.diff(await tell.view(1), await tell.view(2), entity="ann")).changes) == 1


async def test_a_change_that_came_from_afar_names_its_cause(tell, db):
    """Of a derived claim the move that it hung on; of a merged entity the claim that merged it."""
    home = await tell(since("Boston", day(1)))
    await tell(
        since("10 min", day(1), relation="commute", inputs=[{"event": home.event_ids[0]}]), kind="derivation"
    )
    moved = await tell(since("NYC", day(20)), {"entity": "zoe", "value": "1", "relation": "rank"})
    await tell(since("111", day(1), entity="maria", relation="phone"))
    merged = await tell({"entity": "maria", "relation": "same_as", "value": "mary"})

    (commute,) = (await tell.diff(await tell.view(2), await tell.view(3), relation="commute")).changes
    assert (commute.valid_from, commute.before.state, commute.after.state) == (day(20), "value", "nothing")
    assert [claim.event_id for claim in commute.causes] == list(moved.event_ids)
    assert {claim.relation for claim in commute.causes} == {"home"}

    (phone,) = (await tell.diff(await tell.view(4), await tell.view(5), entity="mary")).changes
    assert [claim.event_id for claim in phone.causes] == list(merged.event_ids)


async def test_diff_at_two_instants_tells_what_was_learned_from_time_that_went_by(tell):
    await tell(since("Lyon", day(1)), since("Oslo", day(10)))
    corrected = await tell(span("Rome", day(2), day(4)))

    def at(view, number):
        return replace(view, valid_at=day(number))

    one, two = await tell.view(1), await tell.view(2)
    (passed,) = (await tell.diff(at(one, 5), at(one, 12), at_instants=True)).changes
    (learned,) = (await tell.diff(at(one, 3), at(two, 3), at_instants=True)).changes

    assert (passed.commits, passed.causes) == ((), ())
    assert [passed.before.claims[0].value, passed.after.claims[0].value] == ["Lyon", "Oslo"]
    assert (learned.commits, [claim.event_id for claim in learned.causes]) == (
        (2,),
        list(corrected.event_ids),
    )
    assert (await tell.diff(at(one, 5), at(two, 5), at_instants=True)).changes == ()


async def test_diff_of_two_epochs_is_refused(tell):
    await tell(since("Lyon", day(1)))

    with pytest.raises(BadRequest, match="epoch"):
        await tell.diff(await tell.view(0), replace(await tell.view(1), epoch=2))


async def test_pages_of_a_difference_are_the_whole_of_it(tell, monkeypatch):
    await tell(*(since("Lyon", day(1), entity=f"p{number}") for number in range(30)))
    before, after = await tell.view(0), await tell.view()
    whole = (await tell.diff(before, after)).changes

    monkeypatch.setattr("ledger._reads_diff.DIFF_CHANGES_MAX", 7)
    monkeypatch.setattr("ledger._reads_diff._LINES_AT_ONCE", 4)
    paged, line, pages = [], 0, 0
    while line is not None:
        page = await tell.diff(before, after, from_line=line)
        assert len(page.changes) <= 7
        paged += page.changes
        line, pages = page.next_line, pages + 1

    assert len(whole) == 30
    assert paged == list(whole)
    assert pages >= 5


async def test_difference_is_where_the_timelines_differ_for_every_two_commits(tell, db):
    contract = replace(unregistered("tag"), cardinality=Cardinality.MANY)
    await register_contract(db, "acme", contract, stream="c", actor_id="op", grant=LOCAL_GRANT)
    chance = random.Random(7)  # noqa: S311 - it has to be repeatable
    for _ in range(9):
        start = chance.randrange(1, 20)
        relation = chance.choice(["home", "tag"])
        value = chance.choice("abc")
        if chance.random() < 0.5:
            claim = span(value, day(start), day(start + chance.randrange(1, 8)), relation=relation)
        else:
            claim = since(value, day(start), relation=relation)
        await tell(claim | ({"stance": "end"} if chance.random() < 0.2 else {}), fold_it=False)
    await tell(since("z", day(1)))
    last = (await tell.view()).cut

    async def stands(cut):
        found = await tell.timeline("ann", cut, relation=None)
        return {
            (one.relation, one.part, number): (one.state, one.claims)
            for number in range(1, 30)
            for one in found.rectangles
            if (one.valid_from is None or one.valid_from <= day(number))
            and (one.valid_to is None or day(number) < one.valid_to)
        }

    at = {cut: await stands(cut) for cut in range(last + 1)}
    for before in range(last + 1):
        for after in range(before, last + 1):
            found = await tell.diff(await tell.view(before), await tell.view(after), entity="ann")
            told = {
                (one.relation, one.part, number): (one.before, one.after)
                for one in found.changes
                for number in range(1, 30)
                if (one.valid_from is None or one.valid_from <= day(number))
                and (one.valid_to is None or day(number) < one.valid_to)
            }
            places = at[before].keys() | at[after].keys()
            differ = {
                place: (at[before].get(place, ("nothing", ())), at[after].get(place, ("nothing", ())))
                for place in places
                if at[before].get(place) != at[after].get(place)
            }
            assert {
                place: ((was.state, was.claims), (now.state, now.claims))
                for place, (was, now) in told.items()
            } == differ
            assert all(before < commit <= after for one in found.changes for commit in one.commits)
            assert all(one.commits and one.causes for one in found.changes)


# --- joins ----------------------------------------------------------------------------------------


def pairs(found):
    return [
        (one.left.claims[0].value, one.right.claims[0].value, one.valid_from, one.valid_to)
        for one in found.pairs
    ]


async def test_join_pairs_what_held_at_the_same_time(tell):
    await tell(since("Lyon", day(1)), since("Oslo", day(10)))
    await tell(span("Brightly", day(5), day(12), relation="employer"))

    found = await tell.join(("ann", "home"), ("ann", "employer"))

    assert pairs(found) == [
        ("Lyon", "Brightly", day(5), day(10)),
        ("Oslo", "Brightly", day(10), day(12)),
    ]
    assert pairs(await tell.join(("ann", "home"), ("ann", "employer"), cut=1)) == []


async def test_join_on_values_knows_equal_ones_as_the_resolver_does(tell):
    await tell(
        since("Lyon ", day(1)), since("Lyon", day(3), entity="bob"), since("Oslo", day(2), entity="cy")
    )

    assert pairs(await tell.join(("ann", "home"), ("bob", "home"), on_value=True)) == [
        ("Lyon ", "Lyon", day(3), None)
    ]
    assert pairs(await tell.join(("ann", "home"), ("cy", "home"), on_value=True)) == []


async def test_a_conflict_is_paired_with_nothing(tell):
    await tell(since("Lyon", day(1), entity="hq"))
    await tell(since("Paris", day(5), entity="hq"), source="bob")
    await tell(since("3", day(1), entity="hq", relation="floors"))

    assert pairs(await tell.join(("hq", "home"), ("hq", "floors"))) == [("Lyon", "3", day(1), day(5))]


async def test_bitemporal_join_pairs_what_was_known_together(tell):
    await tell(span("a", day(1), day(9)))
    await tell(span("a", day(4), day(20), entity="bob"))
    await tell(span("b", day(6), day(9)))

    (early, late) = (await tell.join(("ann", "home"), ("bob", "home"), bitemporal=True, on_value=True)).pairs

    assert (early.valid_from, early.valid_to, early.known_from, early.known_to) == (day(4), day(6), 2, None)
    assert (late.valid_from, late.valid_to, late.known_from, late.known_to) == (day(6), day(9), 2, 3)
    assert late.known_to_at == FIRST + 3 * DAY


async def test_what_was_never_known_at_the_same_time_is_no_pair(tell):
    await tell(span("a", day(1), day(9)))
    await tell(span("b", day(1), day(9)))
    await tell(span("a", day(1), day(9), entity="bob"))

    assert pairs(await tell.join(("ann", "home"), ("bob", "home"), bitemporal=True)) == [
        ("b", "a", day(1), day(9))
    ]


async def test_join_is_cut_at_its_bound_and_says_so(tell, monkeypatch):
    await tell(*(span("x", day(number), day(number + 1)) for number in range(1, 6)))
    await tell(span("y", day(1), day(9), entity="bob"))

    monkeypatch.setattr("ledger._reads_join.JOIN_PAIRS_MAX", 5)
    assert not (await tell.join(("ann", "home"), ("bob", "home"))).truncated
    monkeypatch.setattr("ledger._reads_join.JOIN_PAIRS_MAX", 4)
    cut = await tell.join(("ann", "home"), ("bob", "home"))

    assert (len(cut.pairs), cut.truncated) == (4, True)


# --- views by name --------------------------------------------------------------------------------


async def test_pinned_view_answers_the_same_whatever_came_after(tell, db):
    await tell(since("Lyon", day(1)))
    pinned = await reads.pin_view(db, "acme", "monday", await tell.view())
    before = await tell.read(reads.resolve, pinned.view, "ann", "home")
    await tell(since("Oslo", day(1)))
    await tell({"entity": "ann", "stance": "retract", "targets": [{"entity": "ann", "relation": "home"}]})

    found = await reads.pinned_view(db, "acme", "monday")
    view = await reads.pin(db, "acme", found.request, wait_ms=0)

    assert found == pinned
    assert view == pinned.view
    assert await tell.read(reads.resolve, view, "ann", "home") == before
    assert await tell.read(reads.resolve, await tell.view(), "ann", "home") != before


async def test_request_of_a_pinned_view_names_its_generation(tell, db):
    await tell(since("Lyon", day(1)))
    pinned = await reads.pin_view(db, "acme", "v", await tell.view())

    assert pinned.request.generation == Generation(epoch=1, commit=1)
