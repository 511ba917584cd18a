"""Everyday questions about people, over lives made up by chance: never a wrong value."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from contracts.answers import AnswerStatus
from contracts.trails import Question
from contracts.views import ViewRequest
from tests.answers.lives import holds, lives, questions, told
from tests.answers.nothing import NoCandidates

NOW = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


@pytest.mark.parametrize(("seed", "coarse"), [(1, False), (2, True)])
async def test_everyday_questions_are_answered_with_what_is_true(plane, remember, seed, coarse):
    lived = lives(seed, coarse=coarse, people=4)
    await remember("home", *told(lived))
    path = replace(plane.path, discovery=NoCandidates())
    verdicts: Counter[tuple[str, str]] = Counter()
    wrong = []

    for asked in questions(lived, now=plane.database.clock(), seed=seed, people=1, towns=2):
        question = Question(text=asked.text, budget_tokens=16_384, disclose_conflicts=False)
        found = (await path.ask("home", question, NOW, wait_ms=0)).answer
        if found.status != AnswerStatus.ANSWERED:
            verdicts[asked.kind, "withheld" if asked.truth is None else f"not claimed {found.reason}"] += 1
        elif holds(asked, found.value):
            assert found.cites
            verdicts[asked.kind, "right"] += 1
        else:
            wrong.append((asked, found))

    assert wrong == []
    # Most of it is claimed, or the test would hold of a plane that says nothing.
    right = sum(count for (_, verdict), count in verdicts.items() if verdict == "right")
    assert right > sum(verdicts.values()) / 3
