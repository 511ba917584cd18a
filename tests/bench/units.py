"""
Units that nobody said: words by Zipf's law, vectors in clusters, any number of them, the same each time.

On random directions any index that is not exact looks bad and on equal texts any looks good; real
turns lie in between, in clusters of every size.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np

from contracts.events import Event, EventDraft
from contracts.times import KnownAt, parse_term

DIMENSIONS: Final = 384
WORDS: Final = 40_000
ACTORS: Final = 40
STREAM_UNITS: Final = 200
UNITS_A_CLUSTER: Final = 200
SPREAD: Final = 0.9
"""Length of what sets a unit apart from the centre of its cluster, which has length 1."""
START: Final = datetime(2015, 1, 1, tzinfo=UTC)
_SYLLABLES: Final = [first + second for first in "bdfgklmnprstvz" for second in ("a", "e", "i", "o", "u")]


def _word(number: int) -> str:
    parts = []
    while number or not parts:
        number, place = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[place])
    return "x" + "".join(parts)


@dataclass(frozen=True, slots=True)
class Units:
    """So many units; `vectors` has their vectors at two bytes a number."""

    size: int
    drafts: list[EventDraft]
    vectors: np.ndarray
    seed: int

    def events(self) -> Iterator[Event]:
        """Yield the units as the log gives them back, each a commit of its own."""
        for position, draft in enumerate(self.drafts, 1):
            yield event(draft, position)

    def questions(self, count: int) -> list[tuple[str, np.ndarray]]:
        """Return texts of some words of a unit, with a vector near to that of the unit."""
        chance = np.random.default_rng(self.seed + 1)
        asked = []
        for row in chance.integers(self.size, size=count).tolist():
            words = (self.drafts[row].text or "").rstrip(".").split()
            picked = chance.choice(words, size=min(5, len(words)), replace=False)
            noise = chance.standard_normal(DIMENSIONS) * (0.5 / np.sqrt(DIMENSIONS))
            vector = self.vectors[row].astype(np.float32) + noise.astype(np.float32)
            asked.append((f"what about {' '.join(picked)}?", vector / np.linalg.norm(vector)))
        return asked


def event(draft: EventDraft, position: int) -> Event:
    """Return a draft as the log would give it back."""
    return Event(
        backfilled=False,
        sent_at=None,
        event_id=f"ev_{position:026}",
        position=position,
        commit=position,
        recorded_at=KnownAt(START + timedelta(minutes=position)),
        observed=parse_term(draft.observed_at, field="observed_at"),
        draft=draft,
    )


def make(size: int, *, seed: int = 5) -> Units:
    """Return so many units."""
    chance = np.random.default_rng(seed)
    words = [_word(number) for number in range(WORDS)]
    shares = 1 / np.arange(1, WORDS + 1) ** 1.05
    bounds = np.cumsum(shares / shares.sum())
    lengths = chance.integers(8, 25, size=size)
    ends = np.cumsum(lengths)
    spoken = np.minimum(np.searchsorted(bounds, chance.random(int(ends[-1]))), WORDS - 1).tolist()
    actors = chance.integers(ACTORS, size=size).tolist()
    drafts = []
    form = EventDraft.model_validate({
        "stream": "s", "kind": "turn", "actor": {"id": "a", "class": "user"}, "text": "t",
        "observed_at": START.isoformat(),
    })  # fmt: skip
    people = [form.actor.model_copy(update={"id": f"person {number}"}) for number in range(ACTORS)]
    for row, end in enumerate(ends.tolist()):
        text = " ".join(words[number] for number in spoken[end - int(lengths[row]) : end])
        # Checked once: to check each of a million takes longer than what is measured.
        drafts.append(form.model_copy(update={
            "text": f"{text}.", "actor": people[actors[row]], "stream": f"s{row // STREAM_UNITS}",
            "observed_at": (START + timedelta(minutes=row)).isoformat(), "source_event_id": f"u{row}",
        }))  # fmt: skip
    return Units(size, drafts, _vectors(chance, size), seed)


def _vectors(chance: np.random.Generator, size: int) -> np.ndarray:
    clusters = max(16, size // UNITS_A_CLUSTER)
    centres = chance.standard_normal((clusters, DIMENSIONS), dtype=np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    shares = 1 / np.arange(1, clusters + 1) ** 0.6
    of = chance.choice(clusters, size=size, p=shares / shares.sum())
    made = np.empty((size, DIMENSIONS), dtype=np.float16)
    for start in range(0, size, 10_000):
        some = of[start : start + 10_000]
        part = centres[some] + chance.standard_normal((len(some), DIMENSIONS), dtype=np.float32) * (
            SPREAD / np.sqrt(DIMENSIONS)
        )
        made[start : start + len(some)] = part / np.linalg.norm(part, axis=1, keepdims=True)
    return made


def nearest(units: Units, vector: np.ndarray, limit: int) -> list[int]:
    """Return the rows nearest to a vector, by looking at each."""
    cosines = np.concatenate(
        [
            units.vectors[start : start + 50_000].astype(np.float32) @ vector
            for start in range(0, units.size, 50_000)
        ]
    )
    return np.argsort(-cosines, kind="stable")[:limit].tolist()
