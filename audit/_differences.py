"""What of an answer differs from another answer to the same question, in words that a person reads. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from contracts.contexts import ContextPack
from contracts.resolutions import Conflict, KeyResolution, Missing, Resolution, Resolved, ResolvedSet
from contracts.trails import Rebuilt


def differences(before: Rebuilt, after: Rebuilt) -> tuple[str, ...]:
    """Return what differs: the answer first, then keys, then lines; nothing where all is the same."""
    return (
        *_answers(before, after),
        *key_differences(before.resolutions, after.resolutions),
        *_lines(before.pack, after.pack),
    )


def answer_words(rebuilt: Rebuilt) -> str:
    """Return an answer in one line: its status, and its value or the reason why there is none."""
    answer = rebuilt.answer
    if answer.value is not None:
        return f"{answer.status.value} {_json(answer.value)}"
    return answer.status.value if answer.reason is None else f"{answer.status.value} ({answer.reason})"


def key_differences(before: Sequence[KeyResolution], after: Sequence[KeyResolution]) -> Iterator[str]:
    """Yield each key that stands otherwise, and how."""
    then = {(one.entity, one.relation): resolution_words(one.resolution) for one in before}
    now = {(one.entity, one.relation): resolution_words(one.resolution) for one in after}
    for entity, relation in sorted(then.keys() | now.keys()):
        key = (entity, relation)
        if then.get(key) != now.get(key):
            yield f"{entity} {relation}: {then.get(key, 'not looked at')} -> {now.get(key, 'not looked at')}"


def resolution_words(resolution: Resolution) -> str:
    """Return what stands on a key, in one line."""
    match resolution:
        case Resolved():
            return _json(resolution.value)
        case ResolvedSet():
            members = ", ".join(sorted(_json(member.value) for member in resolution.members))
            disputed = f" and {resolution.disputed_count} disputed" if resolution.disputed_count else ""
            return f"{{{members}}}{disputed}"
        case Missing():
            return f"nothing ({resolution.reason.value})"
        case Conflict():
            rivals = ("an end" if rival.ended else _json(rival.value) for rival in resolution.rivals)
            return f"in conflict: {' or '.join(sorted(rivals))}"
        case _:
            assert_never(resolution)


def _answers(before: Rebuilt, after: Rebuilt) -> Iterator[str]:
    then, now = answer_words(before), answer_words(after)
    if then != now:
        yield f"answer: {then} -> {now}"
    elif before.answer.cites != after.answer.cites:
        yield f"cites: {' '.join(before.answer.cites)} -> {' '.join(after.answer.cites)}"


def _lines(before: ContextPack, after: ContextPack) -> Iterator[str]:
    then = {line.line_id: line for line in before.lines}
    now = {line.line_id: line for line in after.lines}
    for name in sorted(then.keys() | now.keys(), key=lambda name: int(name[1:])):
        if name not in now:
            yield f"line {name}: no longer shown"
        elif name not in then:
            yield f"line {name}: shown now"
        elif then[name].mark != now[name].mark:
            yield f"line {name}: {then[name].mark.value} -> {now[name].mark.value}"


def _json(value: Any) -> str:  # noqa: ANN401 - a value is any JSON
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
