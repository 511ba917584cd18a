"""The extractor against labelled sentences: precision is asserted, recall is printed."""

import json
import math
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contracts.events import Event, EventDraft
from contracts.times import KnownAt, parse_term
from projection import RuleProjector

DATA = Path(__file__).parent.parent / "data"
FILES = ("sentences_ours.jsonl", "sentences_unseen.jsonl")
PRECISION_MIN = 0.95


@dataclass(frozen=True)
class Score:
    right: int
    emitted: int
    labelled: int
    dates_right: int
    dates: int
    sentences: int
    wrong: tuple[str, ...]
    missed: tuple[str, ...]


def wilson(right, n):
    """95% Wilson interval of a proportion."""
    if n == 0:
        return (0.0, 1.0)
    z = 1.96
    p = right / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return (middle - half, middle + half)


def event_of(line):
    draft = EventDraft.model_validate(
        {"stream": "s", "kind": "turn", "actor": line["actor"], "text": line["text"]}
        | ({"observed_at": line["observed_at"]} if line.get("observed_at") else {})
    )
    observed = parse_term(draft.observed_at, field="observed_at") if draft.observed_at else None
    recorded = KnownAt(datetime(2026, 1, 1, tzinfo=UTC))
    return Event(
        event_id="e",
        position=1,
        commit=1,
        recorded_at=recorded,
        observed=observed,
        backfilled=False,
        sent_at=None,
        draft=draft,
    )


def key_of(claim):
    value = claim["value"]
    text = "" if value is None else str(value).strip().casefold()
    return (claim["entity"].strip().casefold(), claim["relation"], text, claim["stance"])


def emitted_by(projector, line):
    claims = []
    for projected in projector.project(event_of(line)):
        valid = projected.draft.valid
        claims.append(
            {
                "entity": projected.draft.entity,
                "relation": projected.draft.relation,
                "value": projected.draft.value,
                "stance": str(projected.stance),
                "valid": None if valid is None else valid.model_dump(by_alias=True, exclude_unset=True),
            }
        )
    return claims


def score(path):
    projector = RuleProjector()
    right = emitted = labelled = dates_right = dates = sentences = 0
    wrong, missed = [], []
    for text in path.read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        sentences += 1
        wanted = {key_of(claim): claim for claim in line["claims"]}
        found = emitted_by(projector, line)
        emitted += len(found)
        labelled += len(line["claims"])
        left = Counter(key_of(claim) for claim in line["claims"])
        for claim in found:
            if left[key_of(claim)] == 0:
                wrong.append(f"{line['id']} {line['text']!r}: {key_of(claim)}")
                continue
            left[key_of(claim)] -= 1
            right += 1
            label = wanted[key_of(claim)]
            if label.get("valid"):
                dates += 1
                dates_right += label["valid"] == claim["valid"]
        missed += [f"{line['id']} {line['text']!r}: {key}" for key, count in left.items() if count]
    return Score(
        right=right,
        emitted=emitted,
        labelled=labelled,
        dates_right=dates_right,
        dates=dates,
        sentences=sentences,
        wrong=tuple(wrong),
        missed=tuple(missed),
    )


@pytest.mark.parametrize("name", FILES)
def test_what_the_extractor_says_is_right(name, capsys):
    found = score(DATA / name)

    precision = found.right / found.emitted
    recall = found.right / found.labelled
    with capsys.disabled():
        low, high = wilson(found.right, found.emitted)
        print(  # noqa: T201 — the figures are what this test is for
            f"\n{name}: {found.sentences} sentences; precision {precision:.3f} "
            f"({found.right}/{found.emitted}, 95% {low:.3f}-{high:.3f}); ",
            end="",
        )
        low, high = wilson(found.right, found.labelled)
        print(  # noqa: T201 — the figures are what this test is for
            f"recall {recall:.3f} ({found.right}/{found.labelled}, 95% {low:.3f}-{high:.3f}); "
            f"dates {found.dates_right}/{found.dates}"
        )
    assert precision >= PRECISION_MIN, "\n".join(found.wrong)
