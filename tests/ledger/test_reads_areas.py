"""Areas are the same plane as the cells they come from, cut only where they must be."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from ledger._lines import Cell
from ledger._reads_areas import areas_of, clipped
from ledger._timeline import Segment

INSTANTS, COMMITS = range(8), range(1, 7)


def cell(start, end, known_from, known_to, claim):
    segment = Segment(start=start, end=end, state="value", claims=(claim,))
    return Cell(cell_id=None, segment=segment, known_from=known_from, known_to=known_to)


def points_of(instant, commit, width, height):
    return set(product(range(instant, instant + width), range(commit, commit + height)))


@st.composite
def planes(draw):
    """What stands at each instant and commit, and cells that cover the same, cut at random."""
    plane = {point: draw(st.sampled_from([None, "a", "b"])) for point in product(INSTANTS, COMMITS)}
    left = {point for point, claim in plane.items() if claim is not None}
    cells = []
    while left:
        instant, commit = min(left)
        claim = plane[instant, commit]
        alike = {point for point in left if plane[point] == claim}
        sizes = product(range(1, 9), range(1, 7))
        fitting = [size for size in sizes if points_of(instant, commit, *size) <= alike]
        width, height = draw(st.sampled_from(fitting))
        left -= points_of(instant, commit, width, height)
        until = commit + height
        # The last commit is now: what stands there is open.
        cells.append(cell(instant, instant + width, commit, None if until > COMMITS[-1] else until, claim))
    return plane, draw(st.permutations(cells))


def expected(plane):
    """By the definition: of each instant the runs of commits, then equal runs side by side joined."""
    runs = []
    for instant in INSTANTS:
        since = None
        for commit in [*COMMITS, None]:
            claim = None if commit is None else plane[instant, commit]
            before = None if since is None else since[1]
            if claim != before:
                if before is not None:
                    runs.append((before, since[0], commit, instant))
                since = None if claim is None else (commit, claim)
    areas = []
    for claim, since, until, instant in sorted(runs, key=str):
        last = areas[-1] if areas else None
        if last is not None and last[:3] == (claim, since, until) and last[4] == instant:
            areas[-1] = (*last[:4], instant + 1)
        else:
            areas.append((claim, since, until, instant, instant + 1))
    return set(areas)


@given(planes())
def test_areas_are_the_longest_runs_whatever_the_cells_were(made):
    plane, cells = made

    areas = areas_of(cells)

    found = [
        (area.segment.claims[0], area.known_from, area.known_to, area.segment.start, area.segment.end)
        for area in areas
    ]
    assert len(found) == len(set(found))
    assert set(found) == expected(plane)
    assert found == sorted(found, key=lambda area: (area[3], area[1], area[4]))


def test_what_is_cut_to_a_window_keeps_its_commits():
    cut = clipped([cell(0, 10, 1, 4, "a"), cell(10, 20, 2, None, "b"), cell(20, 30, 1, None, "c")], 5, 20)

    assert cut == [cell(5, 10, 1, 4, "a"), cell(10, 20, 2, None, "b")]
