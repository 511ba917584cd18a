"""
The arms of an evaluation by name: the plane, the plane with a route off, public methods, and files.

Every arm answers the same questions; under a budget all but the plane itself show whole turns in order
of rank, as the lines that the plane would show.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from audit import BASELINES, History, Matrix, baseline_rankings, pack_plainly, said
from contracts.contexts import Mark
from contracts.errors import BadRequest
from contracts.limits import BUNDLE_ROWS_MAX
from contracts.ports import TokenCounter
from contracts.times import parse_instant
from discovery import ROUTES
from echoplane._evaluating import Shown
from echoplane._rewording import REWORDINGS
from packing import Shown as ShownLine
from packing import render, room_of

OURS: Final = "echoplane"
PLAIN: Final = "plain"
"""The plane's own candidates in their order, whole turns while they fit: what its packing is held against."""
EVERY: Final = "every"
ONLY: Final = (OURS, PLAIN, *BASELINES)
"""What can be asked for by name; others come with `--without`, `--reword` and `--ranking`."""
_WITHOUT: Final = f"{OURS}-without-"
_REWORDED: Final = f"{OURS}-reworded-"
_UNDATED: Final = "2000-01-01T00:00:00Z"
"""Stands for the time of a turn that has none: as long as the one it is recorded at."""
_BATCH_TEXTS: Final = 32

Embed = Callable[[Sequence[str]], Matrix]


class RankingLine(BaseModel):
    """
    One question of a ranking that another system made: turns by place, best first.

    `history` and `question` count from 0, in the order of the file of the set, every question counted.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    history: int
    question: int
    ranked: list[int]


Rankings = Mapping[tuple[int, int], tuple[int, ...]]


def arms_named(arms: str, *, without: Sequence[str] = (), reword: Sequence[str] = ()) -> tuple[str, ...]:
    """
    Return the arms that a command line names, each once.

    Raises:
        BadRequest: An arm, a route or a rewording is unknown.
    """
    named = _named([word.strip() for word in arms.split(",")], ONLY, option="--arms")
    if PLAIN in named and OURS not in named:
        raise BadRequest(field="--arms", reason=f"{PLAIN} packs what {OURS} finds: name both")
    routes = [f"{_WITHOUT}{route}" for route in _named(without, ROUTES, option="--without")]
    rules = [f"{_REWORDED}{rule}" for rule in _named(reword, tuple(REWORDINGS), option="--reword")]
    return tuple(dict.fromkeys([*named, *routes, *rules]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How an arm of the plane differs from the plane as it is."""

    without: tuple[str, ...]
    reword: Callable[[str], str]


def variant_of(arm: str) -> Variant | None:
    """Return what an arm of the plane does otherwise; None for any other arm."""
    if arm == OURS:
        return Variant(without=(), reword=str)
    if arm.startswith(_WITHOUT):
        return Variant(without=(arm.removeprefix(_WITHOUT),), reword=str)
    if arm.startswith(_REWORDED):
        return Variant(without=(), reword=REWORDINGS[arm.removeprefix(_REWORDED)])
    return None


def _named(words: Sequence[str], known: Sequence[str], *, option: str) -> list[str]:
    names = [name for word in words for name in (known if word == EVERY else (word,))]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadRequest(field=option, reason=f"there is no {unknown[0]}; there are {', '.join(known)}")
    return names


def read_rankings(path: Path) -> dict[tuple[int, int], tuple[int, ...]]:
    """
    Read a file of rankings, a line a question.

    Raises:
        BadRequest: A line is none; says which.
    """
    found: dict[tuple[int, int], tuple[int, ...]] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadRequest(field=str(path), reason=f"cannot be read: {error.strerror}") from error
    if len(lines) > BUNDLE_ROWS_MAX:
        raise BadRequest(field=str(path), reason=f"has more than {BUNDLE_ROWS_MAX} lines")
    for number, raw in enumerate(lines, start=1):
        try:
            line = RankingLine.model_validate_json(raw)
        except ValidationError as error:
            reason = 'not {"history": 0, "question": 0, "ranked": [0, 1]}'
            raise BadRequest(field=f"{path}: line {number}", reason=reason) from error
        found[line.history, line.question] = tuple(dict.fromkeys(line.ranked))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Each turn of a history as a line, and what it costs: tokens by the counter, part by part."""

    of_turn: Mapping[int, Mapping[Hashable, int]]
    lines: Mapping[int, ShownLine]
    counter: TokenCounter

    @classmethod
    def of(cls, history: History, counter: TokenCounter) -> Costs:
        """Count every turn that has a text."""
        lines = {}
        for place, turn in enumerate(history.turns):
            if turn.text.strip():
                lines[place] = ShownLine(
                    position=place + 1,
                    observed_at=parse_instant(turn.observed_at or _UNDATED, field="observed_at"),
                    offset_minutes=0,
                    speaker=turn.speaker,
                    speaker_class=turn.speaker_class,
                    mark=Mark.PLAIN,
                    marked_commit=None,
                    text=turn.text,
                )
        rooms = room_of(list(lines.values()), counter)
        return cls(of_turn=dict(zip(lines, rooms, strict=True)), lines=lines, counter=counter)

    def packed(self, ranked: Sequence[int], *, budget_tokens: int) -> Shown:
        """Return the context of whole turns in order of rank."""
        turns = pack_plainly(ranked, self.of_turn, budget_tokens)
        rendered = self._rendered(turns)
        return Shown(
            budget_tokens=budget_tokens,
            turns=turns,
            excerpts=(),
            lines=tuple(rendered.split("\n")[:-1]),
            tokens=self.counter.count(rendered),
            bytes_count=len(rendered.encode()),
        )

    def fits(self, *, budget_tokens: int) -> bool:
        """Say whether the whole history fits."""
        return self.counter.count(self._rendered(tuple(self.lines))) <= budget_tokens

    def _rendered(self, turns: Sequence[int]) -> str:
        return render([self.lines[turn] for turn in turns])


def public_rankings(
    history: History, arms: Collection[str], *, embed: Embed | None
) -> dict[str, list[tuple[int, ...]] | None]:
    """Return what public methods rank for each question; None where the arm needs a model and has none."""
    vectors = None
    if embed is not None:
        vectors = embed([question.text for question in history.questions]), embed(said(history))
    return {arm: baseline_rankings(arm, history, vectors) for arm in BASELINES if arm in arms}


class VectorCache:
    """
    Vectors of texts by their digest, in a file of a folder: a run that is repeated embeds nothing anew.

    They are those of the dense baseline; the plane keeps its own.
    """

    def __init__(self, folder: Path, *, model_digest: str, embed: Embed) -> None:
        self._path = folder / f"{hashlib.sha256(model_digest.encode()).hexdigest()[:16]}.npz"
        self._embed = embed
        self._known: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = {}
        if self._path.exists():
            with np.load(self._path) as stored:
                self._known = dict(zip(stored["digests"].tolist(), stored["vectors"], strict=True))

    def __call__(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text."""
        digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
        missing = {
            digest: text for digest, text in zip(digests, texts, strict=True) if digest not in self._known
        }
        # By length: a batch is as wide as its longest text.
        ordered = sorted(missing.items(), key=lambda pair: len(pair[1]))
        for start in range(0, len(ordered), _BATCH_TEXTS):
            batch = ordered[start : start + _BATCH_TEXTS]
            made = self._embed([text for _, text in batch])
            self._known |= dict(zip((digest for digest, _ in batch), made, strict=True))
        if missing:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(
                self._path, digests=np.array(list(self._known)), vectors=np.stack(list(self._known.values()))
            )
        return np.stack([self._known[digest] for digest in digests])
