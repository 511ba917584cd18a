"""What held on two keys at the same time, at one commit or whenever both were known."""

from __future__ import annotations

import pytest

from tests.ledger.telling import DAY, FIRST, Told, day, since, span


@pytest.fixture
def tell(db, clock):
    return Told(db, clock)


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


def named(found):
    return [(one.left.value, one.right.value, one.known_from, one.known_to) for one in found.pairs]


async def test_a_key_of_identity_is_joined_by_the_other_names_while_it_was_known(tell):
    await tell(since("Lyon", day(1), entity="bob"))
    # Whoever says so, and in whichever order: of bob it is ann, and of ann it is bob.
    await tell({"entity": "bob", "relation": "same_as", "value": "ann"})
    await tell({"entity": "ann", "relation": "not_same_as", "value": "cy"}, source="cy")
    undone = {"entity": "bob", "relation": "not_same_as", "value": "ann"}
    await tell(undone)

    async def joined(relation, **more):
        return named(await tell.join(("ann", relation), ("bob", "home"), **more))

    assert await joined("same_as", cut=3) == [("bob", "Lyon", 2, None)]
    assert await joined("not_same_as", cut=3) == [("cy", "Lyon", 3, None)]
    assert await joined("same_as") == []
    assert sorted(await joined("not_same_as")) == [("bob", "Lyon", 4, None), ("cy", "Lyon", 3, None)]
    assert await joined("same_as", bitemporal=True) == [("bob", "Lyon", 2, 4)]


async def test_identity_is_joined_on_values_that_name_the_other_entity_by_any_of_its_names(tell):
    await tell({"entity": "ann", "relation": "same_as", "value": "bob"})
    await tell({"entity": "cy", "relation": "same_as", "value": "bob"})
    await tell({"entity": "dan", "relation": "not_same_as", "value": "eve"})
    await tell(since("bob", day(1), entity="x"), since("eve", day(5), entity="x"))

    same = await tell.join(("ann", "same_as"), ("dan", "not_same_as"), on_value=True)
    other = await tell.join(("dan", "not_same_as"), ("x", "home"), on_value=True)
    far = await tell.join(("ann", "same_as"), ("x", "home"))

    assert named(same) == []
    assert pairs(other) == [("eve", "eve", day(5), None)]
    # A name that is joined through another is the entity's too.
    assert {one.left.value for one in far.pairs} == {"bob", "cy"}
