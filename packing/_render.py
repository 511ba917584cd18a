"""
Rendering of evidence, and its inverse.

One event is one line:

    [e12] 8 May 2023 13:56+02 Caroline (superseded from commit 41): "I live in Lyon."

Everything but the text is paid from the budget again with each line, so it is as short as it can be
and still say all: seconds only where there are any, quotes only about a speaker who is not one plain
word, and no class where it is what the speaker's name says, or else `user`.

Injective: `parse(render(lines)) == lines` for any text. Speaker and text are JSON strings in
which no control, bidirectional, invisible or line-separating character stands as itself, so a
memory can neither end its line nor look like one of ours.

Source: DESIGN decision 7; the Trojan Source report (CVE-2021-42574) for the direction marks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import Final

from contracts.claims import ASSISTANT, DERIVED, OPERATOR, SENSOR, USER
from contracts.contexts import Evidence, Mark
from contracts.errors import BadRequest

# A list of our own, not a Unicode category: categories change with the Python version, and the
# bytes of a context must not. C0 and `"` and `\` are escaped by JSON itself.
_ESCAPED: Final = re.compile(
    "[\x7f-\x9f"  # DEL and C1, with NEL
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e"  # soft hyphen, joiners, Arabic mark, fillers
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"  # zero width space, directions, separators
    "\u3164\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"  # fillers, byte order mark, annotations
    "\U0001d173-\U0001d17a"  # musical format controls
    "\U000e0000-\U000e0fff]"  # tags and supplementary variation selectors: invisible text
)
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_BARE: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.@-]{0,63}")
_CLASSES: Final = frozenset({ASSISTANT, DERIVED, OPERATOR, SENSOR, USER})
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_LINE: Final = re.compile(
    r"\[e(?P<position>[1-9][0-9]{0,18})\] "
    rf"(?P<day>[0-9]{{1,2}}) (?P<month>{'|'.join(_MONTHS)}) (?P<year>[0-9]{{4}}) "
    r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{6}))?)?"
    r"(?:Z|(?P<sign>[+-])(?P<hours>[0-9]{2})(?::(?P<minutes>[0-9]{2}))?) "
    rf"(?P<speaker>{_PLAIN.pattern}|{_STRING})"
    rf"(?: (?P<class_>{_BARE.pattern}|{_STRING}))?"
    r"(?: \((?P<mark>active|superseded|withdrawn|disputed)(?: from commit (?P<commit>[0-9]{1,19}))?\))?"
    rf": (?P<text>{_STRING})"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """
    What a reader sees of one event. `observed_at` is UTC, shown in the source's offset.

    `marked_commit` goes with a mark other than plain; None where the mark always held.
    """

    position: int
    observed_at: datetime
    offset_minutes: int
    speaker: str
    speaker_class: str
    mark: Mark
    marked_commit: int | None
    text: str


def shown(evidence: Evidence) -> Shown:
    """Return what a reader sees of an event."""
    return Shown(
        position=evidence.position,
        observed_at=evidence.observed_at,
        offset_minutes=evidence.offset_minutes,
        speaker=evidence.actor_id,
        speaker_class=evidence.actor_class,
        mark=evidence.mark,
        marked_commit=None if evidence.mark == Mark.PLAIN else evidence.marked_commit,
        text=evidence.text,
    )


def line_id(position: int) -> str:
    """Return the id that an answer cites an event by: `e` and its position in the log."""
    return f"e{position}"


def render_line(line: Shown) -> str:
    """
    Return the line, without a line end.

    Raises:
        BadRequest: A lone surrogate: the log refuses them, and no escape could be told apart.
    """
    observed = _time(line.observed_at, line.offset_minutes)
    mark = "" if line.mark == Mark.PLAIN else f" ({_mark_words(line)})"
    speaker = line.speaker if _PLAIN.fullmatch(line.speaker) else _quote(line.speaker)
    class_ = ""
    if line.speaker_class != _usual_class(line.speaker):
        bare = _BARE.fullmatch(line.speaker_class) is not None
        class_ = f" {line.speaker_class if bare else _quote(line.speaker_class)}"
    return f"[{line_id(line.position)}] {observed} {speaker}{class_}{mark}: {_quote(line.text)}"


def render(lines: Sequence[Shown]) -> str:
    """Return the whole context as a reader gets it: one line each, each with its line end."""
    return "".join(f"{render_line(line)}\n" for line in lines)


def parse(text: str) -> tuple[Shown, ...]:
    """
    Return what was rendered.

    Raises:
        BadRequest: These are not bytes that `render` writes.
    """
    if not text:
        return ()
    if not text.endswith("\n"):
        raise BadRequest(field="context", reason="the last line has no end")
    # Not `splitlines`: it would also split at characters that are not our line end.
    return tuple(_parse_line(line) for line in text[:-1].split("\n"))


def _usual_class(speaker: str) -> str:
    """Return the class that a speaker has where none is shown."""
    return speaker if speaker in _CLASSES else USER


def _time(instant: datetime, offset_minutes: int) -> str:
    local = instant.astimezone(timezone(timedelta(minutes=offset_minutes)))
    seconds = f":{local:%S}" if local.second or local.microsecond else ""
    fraction = f".{local.microsecond:06}" if local.microsecond else ""
    hours, minutes = divmod(abs(offset_minutes), 60)
    offset = f"{'-' if offset_minutes < 0 else '+'}{hours:02}" + (f":{minutes:02}" if minutes else "")
    day = f"{local.day} {_MONTHS[local.month - 1]} {local.year:04}"
    return f"{day} {local:%H:%M}{seconds}{fraction}{offset if offset_minutes else 'Z'}"


def _instant(parts: Mapping[str, str | None]) -> tuple[datetime, int]:
    """Return the instant and the offset that a line shows."""
    offset = int(parts["hours"] or 0) * 60 + int(parts["minutes"] or 0)
    offset = -offset if parts["sign"] == "-" else offset
    local = datetime(
        int(parts["year"] or 0), _MONTHS.index(parts["month"] or "") + 1, int(parts["day"] or 0),
        int(parts["hour"] or 0), int(parts["minute"] or 0), int(parts["second"] or 0),
        int(parts["fraction"] or 0), tzinfo=timezone(timedelta(minutes=offset)),
    )  # fmt: skip
    return local.astimezone(UTC), offset


def _unquoted(said: str) -> str:
    return str(json.loads(said)) if said.startswith('"') else said


def _mark_words(line: Shown) -> str:
    return line.mark.value if line.marked_commit is None else f"{line.mark} from commit {line.marked_commit}"


def _quote(text: str) -> str:
    if _SURROGATE.search(text):
        raise BadRequest(field="text", reason="holds a lone surrogate")
    return _ESCAPED.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    # `json.dumps` of the one character writes \uXXXX, and a surrogate pair past U+FFFF.
    return json.dumps(match.group(), ensure_ascii=True)[1:-1]


def _parse_line(line: str) -> Shown:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadRequest(field="context", reason="not a rendered line")
    parts = match.groupdict()
    try:
        observed_at, offset_minutes = _instant(parts)
        speaker = _unquoted(parts["speaker"])
        result = Shown(
            position=int(parts["position"]),
            observed_at=observed_at,
            offset_minutes=offset_minutes,
            speaker=speaker,
            speaker_class=_usual_class(speaker) if parts["class_"] is None else _unquoted(parts["class_"]),
            mark=Mark(parts["mark"] or Mark.PLAIN),
            marked_commit=None if parts["commit"] is None else int(parts["commit"]),
            text=json.loads(parts["text"]),
        )
    except (ValueError, OverflowError) as error:
        raise BadRequest(field="context", reason=f"not a rendered line: {error}") from error
    # One value has one form: whatever else would read as the same value was not written by us.
    if render_line(result) != line:
        raise BadRequest(field="context", reason="not as a line is rendered")
    return result
