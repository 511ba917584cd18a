"""
Typed answers over the development conversations: what is claimed, and how much of it is right.

Strict: the same words as the published answer, in any order, or its number. What was answered is printed
beside what was expected, so that everybody can judge; nothing of it is kept.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from audit._statistics import wilson
from contracts.answers import AnswerStatus
from contracts.limits import WAIT_DEFAULT_MS
from contracts.trails import Question
from echoplane._session import with_plane
from echoplane._wiring import NEWEST
from tests.acceptance.planes import RunningPlane
from tests.answers.nothing import NoCandidates

UNANSWERABLE = 5
"""The category of questions that the conversation does not answer."""


async def ask_talk(plane: RunningPlane, path: Path, *, only: list[str] | None, budget_tokens: int) -> None:
    """Import each conversation into a tenant of its own, and ask all its questions."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        samples = [one for one in json.load(file) if not only or one["sample_id"] in only]
    for sample in samples:
        name = sample["sample_id"]
        with plane.http() as client:
            is_there = client.get(f"/v1/{name}").status_code == 200
        if not is_there:
            print(plane.run("import", "locomo", str(path), "--conversation", name, "--tenant", name).strip())
    verdicts: Counter[str] = Counter()
    async with with_plane(plane.settings) as open_plane:
        asking = replace(open_plane.path, discovery=NoCandidates())
        for sample in samples:
            for row in sample["qa"]:
                question = Question(
                    text=row["question"], budget_tokens=budget_tokens, disclose_conflicts=False
                )
                asked = await asking.ask(sample["sample_id"], question, NEWEST, wait_ms=WAIT_DEFAULT_MS)
                verdict = judge(row, asked.answer.status, asked.answer.value, asked.answer.reason)
                verdicts[verdict] += 1
                if verdict not in {"not claimed", "rightly withheld"}:
                    print(f"{verdict}: {row['question']}\n  {asked.answer.value} {asked.answer.reason}\n  "
                          f"expected: {row.get('answer', 'nothing')}", flush=True)  # fmt: skip
    print(_summary(verdicts))


def judge(row: dict[str, Any], status: AnswerStatus, value: Any, reason: str | None) -> str:
    """Return how an answer compares with the published one."""
    is_answerable = row["category"] != UNANSWERABLE
    if status == AnswerStatus.ANSWERED:
        return "right" if is_answerable and _words(row["answer"]) == _words(value) else "wrong"
    if status == AnswerStatus.EVIDENCE or reason == "nothing_found":
        return "not claimed"
    return "wrongly withheld" if is_answerable else "rightly withheld"


def _words(value: Any) -> frozenset[str]:
    texts = value if isinstance(value, list) else [value]
    return frozenset(word for text in texts for word in re.findall(r"\w+", str(text).casefold()))


def _summary(verdicts: Counter[str]) -> str:
    whole = sum(verdicts.values())
    claimed = verdicts["right"] + verdicts["wrong"]
    share, right = wilson(claimed, whole), wilson(verdicts["right"], claimed)
    return (
        f"{dict(verdicts)}\nclaimed {claimed} of {whole} ({100 * share.low:.1f}–{100 * share.high:.1f} %), "
        f"right {verdicts['right']} of {claimed} ({100 * right.low:.0f}–{100 * right.high:.0f} %)"
    )
