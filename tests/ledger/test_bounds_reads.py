"""A join and a difference take work as what they are given and find is much, not as all pairs of it."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from contracts.histories import Rectangle
from ledger import _reads_diff, _reads_join
from ledger._cells import LineRow
from ledger._decide import State
from ledger._identity_history import NO_PAIRS
from ledger._lines import Cell
from ledger._reads_diff import _Comparison
from ledger._reads_join import _pairs
from ledger._timeline import Segment
from tests.ledger.telling import FIRST

MANY = 300


def rectangle(start, end, known_from, known_to):
    return Rectangle(
        relation="r",
        part="",
        valid_from=FIRST + timedelta(days=start),
        valid_to=None if end is None else FIRST + timedelta(days=end),
        known_from=known_from,
        known_to=known_to,
        known_from_at=FIRST,
        known_to_at=None,
        state=State.VALUE.value,
        claims=(),
    )


def stairs(count):
    """What appended states leave: each whole for one commit, and then up to where the next begins."""
    whole = [(number, None, number, number + 1) for number in range(1, count)]
    rest = [(number, number + 1, number + 1, None) for number in range(1, count)]
    return sorted([*whole, *rest, (count, None, count, None)], key=lambda form: (form[0], form[2]))


def anything(_rectangle):
    return ""


def overlap(one, other):
    return max(one.valid_from, other.valid_from) < min(
        one.valid_to or FIRST + timedelta(days=9_999), other.valid_to or FIRST + timedelta(days=9_999)
    ) and max(one.known_from, other.known_from) < min(one.known_to or 9_999, other.known_to or 9_999)


sides = st.lists(
    st.tuples(
        st.integers(0, 6), st.integers(1, 4) | st.none(), st.integers(1, 6), st.integers(1, 4) | st.none()
    ),
    max_size=12,
).map(
    lambda forms: sorted(
        (
            rectangle(start, None if width is None else start + width, known, height and known + height)
            for start, width, known, height in forms
        ),
        key=lambda one: one.valid_from,
    )
)


@given(sides, sides)
def test_a_join_finds_every_pair_that_overlaps_in_both_times_once(left, right):
    found = [(id(pair.left), id(pair.right)) for pair in _pairs([left, right], anything)]

    assert sorted(found) == sorted((id(a), id(b)) for a in left for b in right if overlap(a, b))


def test_a_join_of_two_long_keys_looks_at_few_rectangles_that_are_in_no_pair(monkeypatch):
    looks = 0
    plain = _reads_join.upper

    def upper(instant):
        nonlocal looks
        looks += 1
        return plain(instant)

    own = [rectangle(*form) for form in stairs(MANY)]
    other = [rectangle(*form) for form in stairs(MANY)]
    monkeypatch.setattr(_reads_join, "upper", upper)

    pairs = list(_pairs([own, other], anything))

    # All with all would be a hundred times as many.
    assert looks < 10 * (len(pairs) + len(own) + len(other))


def area(start, end, known_from, known_to):
    segment = Segment(start=start, end=end or 10**6, state="value", claims=(f"{start}/{known_from}",))
    return Cell(cell_id=None, segment=segment, known_from=known_from, known_to=known_to)


def changes(areas, first, last):
    line = LineRow(line_id=1, entity="e", relation="r", part="", tail=None)
    view = type("Cut", (), {})
    before, after = view(), view()
    before.cut, after.cut = first, last
    comparison = _Comparison(table=None, pairs=NO_PAIRS, before=before, after=after, at_instants=False)
    return comparison._along(line, areas)


def test_a_difference_is_that_of_both_cuts_at_each_stretch_with_its_commits():
    areas = [area(*form) for form in stairs(9)]

    for first, last in ((2, 7), (7, 2), (0, 9), (4, 5)):
        found = changes(areas, first, last)

        for at in range(1, 12):
            covering = [one for one in areas if one.segment.start <= at < one.segment.end]
            before, after = (_reads_diff._content(covering, cut) for cut in (first, last))
            low, high = sorted((first, last))
            commits = {edge for one in covering for edge in (one.known_from, one.known_to or 0)}
            here = [(one.before, one.after, one.commits) for one in found if one.start <= at < one.end]
            expected = (before, after, tuple(sorted(c for c in commits if low < c <= high)))
            assert here == ([expected] if before != after else [])


def test_a_change_names_the_newest_of_the_commits_at_which_it_came_about():
    areas = [area(*form) for form in stairs(MANY)]

    last = changes(areas, 0, MANY)[-1]

    assert last.commits == tuple(range(MANY - 31, MANY + 1))
