"""What changed in what was known between two views, and by which claims."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from contracts.errors import BadRequest
from contracts.grants import LOCAL_GRANT
from contracts.relations import Cardinality
from ledger._relations import unregistered
from ledger.write import register_contract
from tests.ledger.telling import Told, day, since, span


@pytest.fixture
def tell(db, clock):
    return Told(db, clock)


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

    (phone, pair) = (await tell.diff(await tell.view(4), await tell.view(5), entity="mary")).changes
    assert (pair.relation, [claim.event_id for claim in pair.causes]) == ("same_as", list(merged.event_ids))
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
