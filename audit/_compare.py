"""
The comparison of a stored context with the same context built anew. Pure.

It shares no code with packing: a hash is recomputed here from the form's own bytes, so that a
fault in the packer cannot agree with itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, Final

import rfc8785

from contracts.trails import Rebuilt, ReplayReport, Trail, Verdict

_ERASURE_MAY_CHANGE: Final = frozenset(
    {"admitted", "deferred", "tokens", "content_hash", "content.lines", "content.resolutions"}
)
"""Parts of a form that may differ where an event it stood on was erased; nothing else may."""
_LINE_MAY_CHANGE: Final = frozenset({"mark", "from_commit", "claims"})
"""Of a line that is still there: how the ledger stands to it, and which claims are left."""


def stored_faults(*, context_hash: str, content_hash: str, form: bytes, trail: Trail) -> tuple[str, ...]:
    """Return what in the stored rows contradicts itself, in stable words; nothing where all agrees."""
    checks = (
        ("stored_form", hashlib.sha256(form).hexdigest() == context_hash),
        ("stored_content_hash", _content_hash(form) == content_hash),
        ("trail.context_hash", trail.context_hash == context_hash),
        ("trail.content_hash", trail.content_hash == content_hash),
    )
    return tuple(word for word, holds in checks if not holds)


def compare(*, context_hash: str, form: bytes, trail: Trail, rebuilt: Rebuilt) -> ReplayReport:
    """
    Return how a replay ended, where the stored rows themselves are sound.

    `differences` name parts of the form by path, each with the first place in it that differs.
    """
    pack = rebuilt.pack
    # The pack's own word for its hash is not taken: only its bytes are.
    replayed_hash = hashlib.sha256(pack.form).hexdigest()
    differences = [] if pack.form == form else _form_differences(form, pack.form)
    if pack.form != form and not differences:
        differences.append("form")
    if (pack.context_hash, pack.content_hash) != (replayed_hash, _content_hash(pack.form)):
        differences.append("replayed_hash")
    if rebuilt.answer_digest != trail.answer_digest:
        differences.append("answer")
    return ReplayReport(
        verdict=_verdict(differences, form=form, rebuilt=rebuilt),
        context_hash=context_hash,
        replayed_hash=replayed_hash,
        differences=tuple(differences),
        erased_event_ids=tuple(sorted(rebuilt.erased_event_ids)),
    )


def _verdict(differences: Sequence[str], *, form: bytes, rebuilt: Rebuilt) -> Verdict:
    if not differences:
        return Verdict.IDENTICAL
    if not rebuilt.erased_event_ids or "form" in differences or "replayed_hash" in differences:
        return Verdict.MISMATCH
    stored, replayed = json.loads(form), json.loads(rebuilt.pack.form)
    parts = {_part(path) for path in differences if path != "answer"}
    if parts <= _ERASURE_MAY_CHANGE and _same_lines(stored, replayed, set(rebuilt.erased_event_ids)):
        return Verdict.REDACTED
    return Verdict.MISMATCH


def _same_lines(stored: dict[str, Any], replayed: dict[str, Any], erased: set[str]) -> bool:
    """Say whether every event shown both times says the same, and no erased one is shown again."""
    before = {line["event"]: line for line in stored["content"]["lines"]}
    after = {line["event"]: line for line in replayed["content"]["lines"]}
    return not erased & after.keys() and all(
        before[event][name] == value
        for event, line in after.items()
        if event in before
        for name, value in line.items()
        if name not in _LINE_MAY_CHANGE
    )


def _form_differences(form: bytes, other: bytes) -> list[str]:
    stored, replayed = json.loads(form), json.loads(other)
    parts = [*_parts(stored), *(part for part in _parts(replayed) if part not in _parts(stored))]
    found = (_first_difference(_get(stored, part), _get(replayed, part), part) for part in parts)
    return [path for path in found if path is not None]


def _parts(form: dict[str, Any]) -> list[str]:
    """Name the parts of a form: its fields in order, those of `content` one by one."""
    names = [name for name in sorted(form) if name != "content"]
    return [*(f"content.{name}" for name in sorted(form.get("content", {}))), *names]


def _get(form: dict[str, Any], part: str) -> object:
    inner, _, name = part.partition(".")
    return form.get("content", {}).get(name) if name else form.get(inner)


def _first_difference(stored: object, replayed: object, path: str) -> str | None:
    match stored, replayed:
        case dict(), dict():
            names = sorted(stored.keys() | replayed.keys())
            pairs = ((f"{path}.{name}", stored.get(name), replayed.get(name)) for name in names)
        case list(), list() if len(stored) == len(replayed):
            pairs = (
                (f"{path}[{place}]", one, other)
                for place, (one, other) in enumerate(zip(stored, replayed, strict=True))
            )
        case _:
            # `1 == True` to Python, and not in JSON.
            same = type(stored) is type(replayed) and stored == replayed
            return None if same else path
    return next((found for each in pairs if (found := _first_difference(each[1], each[2], each[0]))), None)


def _part(path: str) -> str:
    head, _, rest = path.partition(".")
    name = head.partition("[")[0]
    return f"content.{rest.partition('.')[0].partition('[')[0]}" if name == "content" else name


def _content_hash(form: bytes) -> str | None:
    """Return the content hash that a form's own bytes give; None where it is no form at all."""
    try:
        return hashlib.sha256(rfc8785.dumps(json.loads(form)["content"])).hexdigest()
    except (ValueError, KeyError, TypeError):
        return None
