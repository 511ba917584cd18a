"""What the learner learns from: for each question what every route says of its best units. No words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import numpy.typing as npt

from audit._beam import read_beam, read_beam_gold
from audit._histories import Gold, History
from audit._locomo import read_locomo, read_locomo_gold
from audit._longmemeval import read_longmemeval, read_longmemeval_gold
from contracts.events import Event, EventDraft
from contracts.limits import TEXT_CHARACTERS_MAX
from contracts.proposals import RouteState
from contracts.times import KnownAt, ValidAt, parse_term
from contracts.views import View
from discovery._embedder import Vectors
from discovery._index import TenantIndex
from discovery._model import WIDTH
from discovery._planner import plan_question
from discovery._propose import Dense, gather
from discovery._routes import ROUTES
from discovery._signals import strongest
from discovery._speakers import dense_question, dense_turn
from discovery._units import unit_of

READERS = {
    "locomo": (read_locomo, read_locomo_gold),
    "beam": (read_beam, read_beam_gold),
    "longmemeval": (read_longmemeval, read_longmemeval_gold),
}
EXAMPLE_UNITS_MAX = 200
"""Units of a question that are learnt from, the best by the weights set by hand: as many as are proposed."""

Embed = Callable[[Sequence[str]], Vectors]
_UNDATED = "2000-01-01T00:00:00-00:00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """
    One question.

    `features` has a row a unit and two columns a route, what it says and the same times how short the
    tenant's turns are; `gold` marks rows, and `gold_count` is all of them, found or not.
    """

    data_set: str
    history: str
    features: npt.NDArray[np.float64]
    by_hand: npt.NDArray[np.float64]
    gold: npt.NDArray[np.bool_]
    gold_count: int


def examples(data_set: str, path: Path, embed: Embed) -> Iterator[tuple[Example, str]]:
    """Yield the examples of a set, each with the digest of the history it is of."""
    read, read_gold = READERS[data_set]
    for number, (history, gold) in enumerate(zip(read(path), read_gold(path), strict=True)):
        asked = [place for place, one in enumerate(gold) if one.turns and not one.apart]
        # What was fitted on is told by the histories and by what was called gold in them.
        told = repr([(one.kind, sorted(one.turns), one.apart) for one in gold])
        digest = hashlib.sha256(f"{history.digest}{told}".encode()).hexdigest()
        if asked:
            for example in _of_history((data_set, number), history, gold, asked, embed):
                yield example, digest


def _of_history(
    name: tuple[str, int], history: History, gold: Sequence[Gold], asked: Sequence[int], embed: Embed
) -> Iterator[Example]:
    index, places = _index(history, embed)
    count = len(index)
    texts = [history.questions[place].text for place in asked]
    vectors = embed([dense_question(index, text, count) for text in texts])
    newest = max((turn.observed_at for turn in history.turns if turn.observed_at), default=_UNDATED)
    for place, text, vector in zip(asked, texts, vectors, strict=True):
        at = datetime.fromisoformat(history.questions[place].asked_at or newest).astimezone(UTC)
        view = View(valid_at=ValidAt(at), known_at=KnownAt(at), cut=index.last_commit, epoch=1)
        plan = plan_question(text, index.names.at(view.cut), valid_at=at)
        dense = Dense(state=RouteState.OK, vector=vector, near=None, duration_us=0)
        found = gather(index, plan, text, view=view, late=False, dense=dense)
        rows = strongest(found.scores, EXAMPLE_UNITS_MAX)
        said = [
            found.signals[route].scores[rows] if route in found.signals else np.zeros(len(rows))
            for route in ROUTES
        ]
        yield Example(
            data_set=name[0],
            history=f"{name[0]}-{name[1]}",
            features=np.stack([*said, *(found.shortness * one for one in said)], axis=1),
            by_hand=found.scores[rows],
            gold=np.array([places[row] in gold[place].turns for row in rows.tolist()], dtype=np.bool_),
            gold_count=len(gold[place].turns),
        )


def _index(history: History, embed: Embed) -> tuple[TenantIndex, list[int]]:
    """Return the index of a history's turns, and the place of each row."""
    said = [(place, turn) for place, turn in enumerate(history.turns) if turn.text.strip()]
    events = []
    for place, turn in said:
        draft = EventDraft.model_validate(
            {
                "stream": f"session-{turn.session:05}",
                "kind": "turn",
                "actor": {"id": turn.speaker, "class": turn.speaker_class},
                "observed_at": turn.observed_at or _UNDATED,
                "text": turn.text[:TEXT_CHARACTERS_MAX],
            }
        )
        events.append(_event(draft, position=place + 1))
    index = TenantIndex(dimensions=WIDTH)
    for event in events:
        index.add(event)
    index.complete_commit = index.last_commit
    units = [unit for event in events if (unit := unit_of(event)) is not None]
    texts = [dense_turn(index, unit.dense_text, row) for row, unit in enumerate(units)]
    index.set_vectors(range(len(texts)), embed(texts))
    return index, [place for place, _ in said]


def _event(draft: EventDraft, *, position: int) -> Event:
    return Event(
        backfilled=False,
        sent_at=None,
        event_id=f"ev{position:07}",
        position=position,
        commit=position,
        recorded_at=KnownAt(datetime(2000, 1, 1, tzinfo=UTC)),
        observed=parse_term(draft.observed_at, field="observed_at"),
        draft=draft,
    )
