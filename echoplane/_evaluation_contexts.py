"""A context of an evaluation in words, as a reader gets it, and as a cell of the task matrix."""

from __future__ import annotations

from audit import digest_of_lines
from contracts.artifacts import ContextCell
from contracts.qa import QaCell
from echoplane._evaluating import Outcome, Shown


def in_words(
    context: Shown, *, history: int, question: int, text: str, arm: str, outcome: Outcome
) -> tuple[QaCell, ContextCell]:
    """
    Return a context of one question, and its cell.

    The cell has no time and no trace: they are other ones when it is built again. Times are in the bundle.
    """
    name, budget = f"h{history}q{question}", context.budget_tokens
    turns, whole = parts_of(context)
    found = len(outcome.ranked)
    cell = QaCell(
        question=name, arm=arm, budget=budget, text=text, lines=list(context.lines), tokens=context.tokens
    )
    frozen = ContextCell(
        question=name, history=f"h{history}", arm=arm, budget=budget,
        context_sha256=digest_of_lines(context.lines), tokens=context.tokens,
        context_bytes=context.bytes_count, sources=tuple(f"h{history}t{turn}" for turn in turns),
        found=found, packed=len(turns), deferred=max(found - len(turns), 0), truncated=0 in whole,
        trace_sha256=None, retrieval_us=None, provider=arm, failure=None,
    )  # fmt: skip
    return cell, frozen


def parts_of(context: Shown) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the turns that a context shows, by place, and for each 1 where it is shown whole."""
    turns = tuple(sorted({*context.turns, *context.excerpts}))
    whole = set(context.turns)
    return turns, tuple(int(turn in whole) for turn in turns)
