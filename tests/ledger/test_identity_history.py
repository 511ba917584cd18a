"""Who was one with whom, commit by commit: a state like any other, in histories and in differences."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given

from contracts.resolutions import MissingReason
from ledger._claims import micros
from ledger._court import court_of
from ledger._identity_history import _cells
from ledger._register import pair_of
from tests.ledger.examples import examples
from tests.ledger.oracle import Oracle
from tests.ledger.random_logs import CONTRACTS, claims_in, instants_of, logs
from tests.ledger.telling import Told, day, since


@pytest.fixture
def tell(db, clock):
    return Told(db, clock)


def same(other="annie", **fields):
    return {"entity": "ann", "relation": "same_as", "value": other, **fields}


@pytest.mark.property
@examples(18)
@given(logs(events_max=9, relations=("home",), identity=True, derived=True))
def test_every_pair_has_at_every_cut_what_the_oracle_says(commits):
    compare(commits)


def compare(commits):
    claims = claims_in(commits)
    instants = instants_of(claims)
    told = _cells(claims, CONTRACTS)
    for cut in range(1, len(commits) + 1):
        oracle = Oracle([claim for claim in claims if claim.commit <= cut], CONTRACTS.of, instants)
        for one, other in itertools.combinations(("ann", "bob", "box"), 2):
            cells = told[pair_of(one, other)].cells if pair_of(one, other) in told else ()
            here = [c for c in cells if c.known_from <= cut and (c.known_to is None or cut < c.known_to)]
            pair = frozenset({one, other})
            sides = oracle.pair(pair)
            if sides is None:
                is_known = any(item.entity == pair for item in oracle.paired)
                assert [cell.segment.state for cell in here] == ["withdrawn"] * is_known
                continue
            (cell,) = here
            state = "conflict" if len(sides) > 1 else "ended" if None in sides else "value"
            assert cell.segment.state == state
            named = [
                [value for value, own in sides.items() if claim in {i.claim.claim_id for i in own}]
                for claim in cell.segment.claims
            ]
            assert sorted(map(str, itertools.chain(*named))) == sorted(map(str, sides))


def test_who_is_one_with_whom_is_told_from_what_each_name_says_before_any_two_are_one():
    """Her home made her one with the box; what she then takes back as the box takes nothing of that back."""
    first = {"stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"}}
    target = {"entity": "box", "relation": "home"}
    commits = [
        first | {"claims": [{"entity": "ann", "relation": "home", "value": "a"}]},
        first | {"kind": "derivation", "claims": [same("box", inputs=[{"event": "e1"}])]},
        first | {"claims": [{"stance": "retract", "targets": [target]}]},
    ]
    commits = [[form | {"source_event_id": f"e{n}"}] for n, form in enumerate(commits, start=1)]

    compare(commits)

    claims = claims_in(commits)
    cells = _cells(claims, CONTRACTS)[pair_of("ann", "box")].cells
    assert [(one.segment.state, one.known_from, one.known_to) for one in cells] == [("value", 2, None)]
    for name in ("ann", "box"):
        found = court_of(claims, CONTRACTS).decide(name, "home", micros(claims[-1].recorded_at))
        assert found.reason == MissingReason.WITHDRAWN


def test_a_pair_that_was_derived_goes_with_what_it_was_derived_from():
    worker = {"stream": "s", "kind": "derivation", "actor": {"id": "w", "class": "derived"}}
    first = {"stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"}}
    commits = [
        first | {"claims": [{"entity": "ann", "relation": "home", "value": "a"}]},
        worker | {"claims": [same(inputs=[{"event": "e1"}])]},
        first | {"claims": [{"stance": "retract", "targets": [{"event": "e1"}]}]},
    ]
    claims = claims_in([[form | {"source_event_id": f"e{n}"}] for n, form in enumerate(commits, start=1)])

    cells = _cells(claims, CONTRACTS)[pair_of("ann", "annie")].cells

    assert [(one.segment.state, one.known_from, one.known_to) for one in cells] == [
        ("value", 2, 3),
        ("withdrawn", 3, None),
    ]


async def test_the_history_of_an_entity_shows_with_whom_it_was_one_and_when_that_was_known(tell):
    await tell(same())
    await tell(since("Lyon", day(1)))
    await tell({"entity": "annie", "relation": "not_same_as", "value": "ann"})
    await tell(same("bob"))
    await tell(same(stance="retract"))

    for entity, relation in (("ann", "same_as"), ("ann", "not_same_as"), ("annie", "same_as")):
        found = (await tell.history(entity, relation)).rectangles
        pair = [one for one in found if one.part == pair_of("ann", "annie")]
        assert [(one.relation, one.state, one.known_from, one.known_to) for one in pair] == [
            ("same_as", "value", 1, 3),
            ("not_same_as", "value", 3, None),
        ]
        assert {(one.valid_from, one.valid_to) for one in pair} == {(None, None)}
    of_all = (await tell.history("ann", None)).rectangles
    assert {one.relation for one in of_all} == {"home", "same_as", "not_same_as"}
    assert {one.part for one in of_all if one.relation == "same_as"} == {
        pair_of("ann", "annie"), pair_of("ann", "bob"),
    }  # fmt: skip
    assert (await tell.history("eve", "same_as")).rectangles == ()


async def test_a_difference_shows_who_became_one_with_whom_and_by_which_event(tell, monkeypatch):
    await tell(since("Lyon", day(1)))
    said = await tell(same(), same("anna"))
    first = {"event": said.event_ids[0], "ordinal": 0}
    taken = await tell({"entity": "zoe", "stance": "retract", "targets": [first]})

    merged = (await tell.diff(await tell.view(1), await tell.view(2), relation="same_as")).changes
    undone = (await tell.diff(await tell.view(2), await tell.view(3), entity="annie")).changes
    nothing = await tell.diff(await tell.view(1), await tell.view(3), entity="eve")

    assert {(one.entity, one.before.state, one.after.state) for one in merged} == {
        (pair_of("ann", "anna"), "nothing", "value"), (pair_of("ann", "annie"), "nothing", "value"),
    }  # fmt: skip
    assert {claim.event_id for one in merged for claim in one.causes} == set(said.event_ids)
    (pair,) = [one for one in undone if one.relation == "same_as"]
    assert (pair.before.state, pair.after.state, pair.commits) == ("value", "withdrawn", (3,))
    assert [claim.event_id for claim in pair.causes] == list(taken.event_ids)
    assert nothing.changes == ()

    monkeypatch.setattr("ledger._reads_diff.DIFF_CHANGES_MAX", 1)
    paged, line = [], 0
    while line is not None:
        page = await tell.diff(await tell.view(0), await tell.view(3), from_line=line)
        paged += page.changes
        line = page.next_line
    assert [one.relation for one in paged].count("same_as") == 2
    assert len({one.part for one in paged if one.relation == "same_as"}) == 2


async def test_a_pair_that_comes_between_two_pages_of_a_difference_moves_none_of_the_others(
    tell, monkeypatch
):
    monkeypatch.setattr("ledger._reads_diff.DIFF_CHANGES_MAX", 1)
    await tell(*(same(f"n{number}") for number in range(4)))
    first = await tell.diff(await tell.view(0), await tell.view())
    await tell(*(same(f"a{number}") for number in range(8)))

    paged, line = [*first.changes], first.next_line
    while line is not None:
        page = await tell.diff(await tell.view(0), await tell.view(), from_line=line)
        paged += page.changes
        line = page.next_line

    pairs = [one.part for one in paged if '"n' in one.part]
    assert sorted(pairs) == [pair_of("ann", f"n{number}") for number in range(4)]
