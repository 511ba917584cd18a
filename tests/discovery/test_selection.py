"""A large tenant is not scored whole: what comes out on top must be what scoring all would put there."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from contracts.proposals import RouteState
from discovery import _cells, _index, _selection
from discovery._cells import Codes, lay
from discovery._index import TenantIndex
from discovery._planner import plan_question
from discovery._propose import Dense, compose
from tests.discovery.values import claim, event, found, turn, view

DIMENSIONS = 32
PLACES = ("harbour", "attic", "meadow", "station", "cellar", "bridge")
THINGS = ("lantern", "violin", "ladder", "kettle", "compass", "parcel", "anchor")


def drafts(count: int):
    chance = np.random.default_rng(7)
    return [
        turn(
            f"The {chance.choice(THINGS)} {chance.choice(['stood', 'lay', 'hung'])} in the "
            f"{chance.choice(PLACES)} near number {chance.integers(count)}.",
            actor=str(chance.choice(["Ann", "Bob", "Cho"])),
            stream=f"chat {number // 40}",
        )
        for number in range(count)
    ]


def clustered(count: int, *, seed: int = 3):
    chance = np.random.default_rng(seed)
    centres = np.random.default_rng(1).standard_normal((max(4, count // 100), DIMENSIONS))
    vectors = centres[chance.integers(len(centres), size=count)]
    vectors = vectors + 0.4 * chance.standard_normal(vectors.shape)
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def index_of(count: int) -> TenantIndex:
    index = TenantIndex(dimensions=DIMENSIONS)
    for position, draft in enumerate(drafts(count), 1):
        index.add(event(draft, position))
    index.complete_commit = index.last_commit
    index.set_vectors(range(count), clustered(count))
    index.add_claim(claim("Ann", "lives_in", "Lyon", 17))
    return index


def ask(index: TenantIndex, text: str, vector, cut: int):
    at = view(cut)
    plan = plan_question(text, index.names.at(cut), valid_at=at.valid_at)
    near = None
    if index.codes is not None:
        near = index.codes.nearest(vector, count=index.count_at(cut), limit=_selection.DENSE_ROWS)
    dense = Dense(state=RouteState.OK, vector=vector, near=near, duration_us=0)
    return compose(index, plan, text, view=at, late=False, dense=dense)


@pytest.fixture(scope="module")
def whole():
    return index_of(1_500)


@pytest.fixture(scope="module")
def large():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_index, "WHOLE_UNITS_MAX", 1_000)
        return index_of(1_500)


@pytest.mark.parametrize("cut", [1_500, 1_100])
@pytest.mark.parametrize(
    "text",
    ["Where did the violin lie?", "What did Ann say of number 17 at the bridge?", "Where does Ann live?"],
)
def test_the_first_of_a_large_tenant_are_those_of_scoring_it_whole(whole, large, text, cut):
    vector = clustered(1_600)[1_550]

    expected, proposal = (ask(index, text, vector, cut) for index in (whole, large))

    assert large.codes is not None
    # Bytes for floats, and what is stretched over fewer units, move places that are nearly equal.
    assert len(set(found(proposal)[:10]) & set(found(expected)[:20])) == 10
    assert found(expected)[0] in found(proposal)[:5]
    assert proposal.keys[:1] == expected.keys[:1]


def test_a_route_of_words_alone_ranks_a_large_tenant_as_the_whole(whole, large):
    def ranks(index):
        at = view(1_500)
        plan = plan_question("the kettle in the cellar", index.names.at(1_500), valid_at=at.valid_at)
        dense = Dense(state=RouteState.OFF, vector=None, near=None, duration_us=0)
        proposal = compose(index, plan, "the kettle in the cellar", view=at, late=False, dense=dense)
        return [
            dataclasses.replace(hit, score_ppm=0)
            for candidate in proposal.candidates[:20]
            for hit in candidate.hits
            if hit.route == "lexical"
        ]

    assert ranks(large) == ranks(whole)


def test_times_that_turns_tell_of_are_those_of_the_rows_that_are_looked_at():
    index = TenantIndex(dimensions=DIMENSIONS)
    texts = (
        "It rained.",
        "It rained on 2024-05-01.",
        "It rained on 2024-05-02.",
        "From 2024-05-03 to 2024-05-04.",
    )
    for position, text in enumerate(texts, 1):
        index.add(event(turn(text), position))
    rows, told = index.told(4)

    selected, bounds = _selection.Selection(index, np.array([0, 1, 3]), count=4, near=None).told(3)

    assert rows.tolist() == [1, 2, 3, 3]
    assert selected.tolist() == [1, 2, 2]
    assert bounds.tolist() == told[[0, 2, 3]].tolist()
    assert index.told(2)[0].tolist() == [1]


def codes_of(vectors) -> Codes:
    codes = Codes(DIMENSIONS)
    for _ in vectors:
        codes.append_empty()
    codes.put(np.arange(len(vectors)), vectors)
    return codes


def test_cells_find_what_a_full_scan_finds_also_of_what_was_added_after_they_were_laid(monkeypatch):
    for name, value in (("SCANNED_MAX", 1_000), ("CELL_ROWS", 64), ("PROBED_MIN", 4)):
        monkeypatch.setattr(_cells, name, value)
    vectors = clustered(8_000)
    codes = codes_of(vectors[:6_000])
    assert codes.wants_layout
    codes.use(lay(*codes.stored()))
    for row in range(6_000, 8_000):
        codes.append_empty()
        codes.put(np.array([row]), vectors[row : row + 1])
    assert codes.probed < 6_000 // 64 // 2

    right = 0
    for vector in clustered(50, seed=11):
        exact = np.argsort(-(vectors @ vector), kind="stable")[:10]
        right += len(set(exact.tolist()) & set(codes.nearest(vector, count=8_000, limit=50).rows.tolist()))
    assert right >= 0.98 * 500
    assert not codes.wants_layout


def test_of_an_old_cut_all_is_read_and_nothing_later_is_near(monkeypatch):
    monkeypatch.setattr(_cells, "SCANNED_MAX", 100)
    monkeypatch.setattr(_cells, "CELL_ROWS", 64)
    vectors = clustered(3_000)
    codes = codes_of(vectors)
    codes.use(lay(*codes.stored()))

    near = codes.nearest(vectors[2_900], count=300, limit=100)

    assert len(near.rows) == 100
    assert near.rows.max() < 300


def test_a_vector_that_is_not_there_yet_is_near_to_nothing_and_found_once_it_came(monkeypatch):
    monkeypatch.setattr(_cells, "SCANNED_MAX", 100)
    monkeypatch.setattr(_cells, "CELL_ROWS", 64)
    vectors = clustered(2_000)
    codes = codes_of(vectors[:1_999])
    layout = lay(*codes.stored())
    codes.append_empty()
    codes.use(layout)
    before = codes.nearest(vectors[1_999], count=2_000, limit=1).rows.tolist()

    codes.put(np.array([1_999]), vectors[1_999:])

    near = codes.nearest(vectors[1_999], count=2_000, limit=5)
    assert before != [1_999]
    assert near.rows[0] == 1_999
    assert near.rows.tolist().count(1_999) == 1
