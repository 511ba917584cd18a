"""No word of the runtime was taken from a public set: its lists are held against the sets' proper names."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from audit import DATA_SETS
from tests.acceptance.planes import SHARED_DATA

ROOT = Path(__file__).resolve().parents[2]
RUNTIME = ("contracts", "discovery", "ledger", "packing", "projection", "realize")
SETS = {"locomo": "locomo/locomo5.json.gz", "beam": "beam/100K", "longmemeval": "longmemeval"}
SEEN_MIN = 3
"""Times that a word stands capitalized inside a sentence, and never in lower case, to count as a name."""

# What any reader of English knows without having seen a set: the calendar, feasts, peoples and their
# languages, faiths, makers of things and public services, callings, and words that are also surnames.
GENERAL = frozenset(
    re.findall(
        r"\w+",
        """
    january february march april july august september october november december mar fri
    friday fridays mondays saturday saturdays sunday sundays thursday thursdays tuesdays wednesdays
    easter halloween god
    american asian australian british canadian chinese dutch english european french german indonesian latin
    norwegian pakistani persian swiss thai turkish christian jewish muslim
    amazon android bluetooth excel facebook firefox ford honda hulu instagram microsoft netflix pinterest
    spotify twitter celsius
    academy economist godfather guild inc institute postman shepherd smith trader
    bay crate los
    """,
    )
)


@pytest.mark.slow
@pytest.mark.skipif(
    not all((SHARED_DATA / path).exists() for path in SETS.values()),
    reason=f"no public sets in {SHARED_DATA}",
)
def test_no_proper_name_of_a_set_stands_in_the_runtime_but_what_everybody_knows():
    names, speakers = proper_names()
    words = runtime_words()

    assert len(names) > 500
    assert {"caroline", "melanie"} <= speakers
    assert sorted(speakers & words) == []
    assert sorted((names & words) - GENERAL) == []


def proper_names() -> tuple[set[str], set[str]]:
    seen: Counter[str] = Counter()
    common: set[str] = set()
    speakers: set[str] = set()
    for name, path in SETS.items():
        for history in DATA_SETS[name].read(SHARED_DATA / path):
            speakers |= {turn.speaker.lower() for turn in history.turns}
            for text in [turn.text for turn in history.turns] + [one.text for one in history.questions]:
                common.update(re.findall(r"\b[a-z]+\b", text))
                seen.update(word.lower() for word in re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b", text))
    return {word for word, count in seen.items() if count >= SEEN_MIN} - common, speakers - {
        "user", "assistant",
    }  # fmt: skip


def runtime_words() -> set[str]:
    """Every word in a string of the runtime; comments and docstrings decide nothing."""
    words: set[str] = set()
    for package in RUNTIME:
        for path in (ROOT / package).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
            for node in ast.walk(tree):
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
                    words.update(word.lower() for word in re.findall(r"[A-Za-z]+", node.value))
    return words
