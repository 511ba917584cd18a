"""An index made of drafts, and a question put to it without a service."""

from __future__ import annotations

from hypothesis import strategies as st

from contracts.proposals import Proposal, RouteState
from discovery._index import TenantIndex
from discovery._planner import plan_question
from discovery._propose import NO_DENSE, Dense, compose
from discovery._speakers import dense_question, dense_turn
from discovery._units import unit_of
from tests.discovery.values import WordEmbedder, event, turn, view

EMBEDDER = WordEmbedder()


def index_of(drafts, claims=(), *, embed=True) -> TenantIndex:
    index = TenantIndex(dimensions=384)
    for position, draft in enumerate(drafts, 1):
        index.add(event(draft, position))
    index.complete_commit = index.last_commit
    for made in claims:
        index.add_claim(made)
    if embed and len(index):
        texts = [unit_of(event(draft, 1)).dense_text for draft in drafts]
        index.set_vectors(
            range(len(index)),
            EMBEDDER.embed([dense_turn(index, text, row) for row, text in enumerate(texts)]),
        )
    return index


def ask(
    index: TenantIndex,
    text: str,
    cut: int | None = None,
    *,
    dense: bool = True,
    without: tuple[str, ...] = (),
) -> Proposal:
    at = view(index.complete_commit if cut is None else cut)
    plan = plan_question(text, index.names.at(at.cut), valid_at=at.valid_at)
    part = NO_DENSE
    if dense:
        vector = EMBEDDER.embed([dense_question(index, text, index.count_at(at.cut))])[0]
        part = Dense(state=RouteState.OK, vector=vector, near=None, duration_us=0)
    return compose(index, plan, text, view=at, late=False, dense=part, without=without)


WORDS = st.lists(st.sampled_from(["lamp", "tea", "fjord", "Ann", "the"]), min_size=1, max_size=4).map(
    " ".join
)
DRAFTS = st.lists(
    st.builds(
        lambda text, actor, stream: turn(text, actor=actor, stream=stream),
        WORDS,
        st.sampled_from(["Ann", "Bob"]),
        st.sampled_from(["x", "y"]),
    ),
    min_size=1,
    max_size=8,
)
