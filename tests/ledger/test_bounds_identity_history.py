"""What pairs of names had is told with as much work as moved, however many pairs and claims there are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.claims import Source, TargetRef, ValidityKind
from contracts.events import Stance
from ledger import _identity_history
from ledger._entries import Entry
from ledger._identity import pair_verdict
from ledger._identity_history import _cells, _numbered
from ledger._intervals import EMPTY, FOREVER, NEVER
from ledger._keys import KEY_BYTES, TenantKeys
from ledger._pair_claims import PairClaims
from ledger._register import pair_of
from ledger._relations import Contracts
from ledger._timeline import claims_of_cell
from tests.ledger.test_bounds_identity import said

MANY = 60
NO_CONTRACTS = Contracts(registered={})
PAIR = pair_of("ann", "annie")


def by(number, actor, relation="same_as", **fields):
    claim = replace(said(number, "ann", "annie", relation), source=Source(actor_id=actor, actor_class="user"))
    return replace(claim, **fields)


def derived_from(number, of, one, other):
    reference = TargetRef(
        event_id=of.event_id, ordinal=0, entity=None, relation=None, value=None, span=None,
        interval_start=None, interval_end=None, has_interval=False,
    )  # fmt: skip
    return replace(said(number, one, other), inputs=(reference,))


@pytest.fixture
def judged(monkeypatch):
    """Count the claims that verdicts are made of."""
    counts = []

    def counted(entries):
        counts.append(len(entries))
        return pair_verdict(entries)

    monkeypatch.setattr(_identity_history, "pair_verdict", counted)
    return counts


def test_a_derived_pair_is_judged_again_only_where_what_it_was_derived_from_moved(judged):
    home = said(1, "zoe", "Lyon", "home")
    pairs = [derived_from(number, home, f"a{number}", f"b{number}") for number in range(2, MANY)]
    last = by(MANY, "ann")
    gone = replace(said(MANY + 1, "zoe", "Lyon", "home"), stance=Stance.RETRACT)

    told = _cells([home, *pairs, last, gone], NO_CONTRACTS)

    assert {own.cells[-1].segment.state for pair, own in told.items() if pair != PAIR} == {"withdrawn"}
    assert len(judged) == 2 * len(pairs) + 1


@pytest.mark.parametrize("actor", ["w{}", "w"])
def test_a_pair_that_many_say_or_one_says_often_is_judged_by_a_few_of_the_claims(judged, actor):
    own = _cells([by(number, actor.format(number)) for number in range(1, MANY)], NO_CONTRACTS)[PAIR]

    assert own.cells[-1].segment.state == "value"
    assert len(judged) == MANY - 1
    assert max(judged) <= 2


def test_where_it_takes_all_claims_the_work_is_bounded_and_what_is_left_out_is_said(judged, monkeypatch):
    monkeypatch.setattr(_identity_history, "PAIR_COMPARISONS_MAX", MANY)
    claims = [by(number, f"w{number}", stance=Stance.END) for number in range(1, MANY)]

    own = _cells([*claims, by(MANY, "zoe", "not_same_as")], NO_CONTRACTS)[PAIR]

    assert own.is_cut
    assert sum(judged) < 3 * MANY
    # 1 + 4 + 9 + 16 + 25 comparisons; the sixth would be one too many.
    assert own.cells[-2].known_to == 6
    assert (own.cells[-1].known_from, own.cells[-1].known_to) == (MANY, None)
    assert own.cells[-1].segment.state == pair_verdict(own.claims.all()).state.value


def test_a_pair_with_more_changes_than_are_looked_at_ends_with_what_stands(monkeypatch):
    monkeypatch.setattr(_identity_history, "HISTORY_CELLS_MAX", 5)
    claims = [by(number, "w", ("same_as", "not_same_as")[number % 2]) for number in range(1, MANY)]

    own = _cells(claims, NO_CONTRACTS)[PAIR]

    assert own.is_cut
    assert [(cell.known_from, cell.known_to) for cell in own.cells] == [
        *((number, number + 1) for number in range(1, 6)), (MANY - 1, None),
    ]  # fmt: skip
    assert own.cells[-1].segment.claims == (claims[-1].claim_id,)


def entry(number, rank, actor, relation, *, replaces_any):
    claim = by(number, actor, relation)
    return Entry(
        claim=claim, entity=PAIR, relation="same_as", actor_id=actor, stated_class="user",
        source_class="user", rank=rank, replaces_any=replaces_any, place=(number, 0), is_end=False,
        value=relation, normal=relation, lineage=frozenset({relation}), kind=ValidityKind.SPAN, start=NEVER,
        end=FOREVER, earliest=NEVER, occurrence=None, withdrawn=EMPTY, erased_in=None, inherits_from=None,
    )  # fmt: skip


@given(
    st.lists(
        st.tuples(
            st.sampled_from((0, 0, 1)), st.sampled_from("abc"), st.sampled_from(("not_same_as", "same_as")),
            st.booleans(), st.integers(0, 9),
        ),
        min_size=1, max_size=12,
    ),
    st.booleans() | st.none(),
)  # fmt: skip
def test_the_verdict_on_the_few_is_the_verdict_on_all(forms, rule):
    claims, left = PairClaims(), []
    for number, (rank, actor, relation, replaces_any, leaving) in enumerate(forms, start=1):
        made = entry(number, rank, actor, relation, replaces_any=replaces_any if rule is None else rule)
        claims.put(made)
        left.append(made)
        if leaving < len(left):
            claims.drop(left.pop(leaving))
        few = claims.deciding()
        assert few is not None or rule is None
        shown = [
            (verdict.state, claims_of_cell(verdict))
            for verdict in (pair_verdict(left), pair_verdict(claims.all() if few is None else few))
        ]
        assert shown[0] == shown[1]


def test_a_pair_has_the_same_number_whatever_is_beside_it_and_no_two_have_one(monkeypatch):
    keys = TenantKeys(tenant="acme", _wrapping_key=bytes(KEY_BYTES), _digest_key=bytes(KEY_BYTES))
    found = _cells([said(number, f"a{number}", f"b{number}") for number in range(1, MANY)], NO_CONTRACTS)

    def numbers(pairs):
        lines = _numbered({pair: found[pair] for pair in pairs}, keys).lines
        assert [line.line_id for line, _ in lines] == sorted({line.line_id for line, _ in lines})
        return {line.entity: line.line_id for line, _ in lines}

    every = numbers(found)
    assert numbers(list(found)[::2]) == {pair: every[pair] for pair in list(found)[::2]}
    assert all(2**52 <= number < 2**53 for number in every.values())
    monkeypatch.setattr(_identity_history, "_number_of", lambda *_: 2**52)
    assert list(numbers(found)) == sorted(found)
