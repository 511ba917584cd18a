"""
Rendering of evidence, and its inverse.

One event is one line:

    [e12] 8 May 2023 13:56+02 Caroline (superseded from commit 41): "I live in Lyon."
    [e13] 13:58 Melanie: "Since when?"
    [e14] Caroline: "Since March."

Everything but the text is paid from the budget again with each line, so it is as short as it can be
and still say all: seconds only where there are any, quotes only about a speaker who is not one plain
word, and no class where it is what the speaker's name says, or else `user`. Of its time a line says
what is not as in the line above: nothing, or the time of the same day and offset, or all of it.

Injective: `parse(render(lines)) == lines` for any text. Speaker and text are JSON strings in
which no control, bidirectional, invisible or line-separating character stands as itself, so a
memory can neither end its line nor look like one of ours.

Source: DESIGN decision 7; the Trojan Source report (CVE-2021-42574) for the direction marks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
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
_DAY: Final = rf"[0-9]{{1,2}} (?:{'|'.join(_MONTHS)}) [0-9]{{4}}"
_CLOCK: Final = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{6})?)?"
_ZONE: Final = r"Z|[+-][0-9]{2}(?::[0-9]{2})?"
_LINE: Final = re.compile(
    r"\[e(?P<position>[1-9][0-9]{0,18})\] "
    rf"(?:(?P<day>{_DAY}) (?P<clock>{_CLOCK})(?P<zone>{_ZONE}) |(?P<later>{_CLOCK}) )?"
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


@dataclass(frozen=True, slots=True)
class Written:
    """One event as it is written, its time apart: equal words of two times are equal times."""

    id_: str
    day: str
    clock: str
    zone: str
    rest: str

    def below(self, above: Written | None) -> str:
        """Return the line, without a line end, as it stands below another one; below none it says all."""
        if above is None or (self.day, self.zone) != (above.day, above.zone):
            return f"{self.id_} {self.day} {self.clock}{self.zone} {self.rest}"
        return self.bare() if self.clock == above.clock else f"{self.id_} {self.clock} {self.rest}"

    def bare(self) -> str:
        """Return the line without its time."""
        return f"{self.id_} {self.rest}"


def written(line: Shown) -> Written:
    """
    Return the parts of a line.

    Raises:
        BadRequest: A lone surrogate: the log refuses them, and no escape could be told apart.
    """
    mark = "" if line.mark == Mark.PLAIN else f" ({_mark_words(line)})"
    speaker = line.speaker if _PLAIN.fullmatch(line.speaker) else _quote(line.speaker)
    class_ = ""
    if line.speaker_class != _usual_class(line.speaker):
        bare = _BARE.fullmatch(line.speaker_class) is not None
        class_ = f" {line.speaker_class if bare else _quote(line.speaker_class)}"
    return Written(
        f"[{line_id(line.position)}]",
        *_time(line.observed_at, line.offset_minutes),
        f"{speaker}{class_}{mark}: {_quote(line.text)}",
    )


def lines_of(lines: Iterable[Written]) -> list[str]:
    """Return lines as they stand one below the other, without line ends."""
    every = list(lines)
    return [line.below(above) for line, above in zip(every, [None, *every], strict=False)]


def render(lines: Sequence[Shown]) -> str:
    """Return the whole context as a reader gets it: one line each, each with its line end."""
    return "".join(f"{line}\n" for line in lines_of(written(line) for line in lines))


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
    found: list[Shown] = []
    above = None
    # Not `splitlines`: it would also split at characters that are not our line end.
    for line in text[:-1].split("\n"):
        shown_ = _parse_line(line, above)
        above = written(shown_)
        found.append(shown_)
    return tuple(found)


def _usual_class(speaker: str) -> str:
    """Return the class that a speaker has where none is shown."""
    return speaker if speaker in _CLASSES else USER


def _time(instant: datetime, offset_minutes: int) -> tuple[str, str, str]:
    """Return the day, the time of day and the offset, in the words of a line."""
    local = instant.astimezone(timezone(timedelta(minutes=offset_minutes)))
    seconds = f":{local:%S}" if local.second or local.microsecond else ""
    fraction = f".{local.microsecond:06}" if local.microsecond else ""
    hours, minutes = divmod(abs(offset_minutes), 60)
    offset = f"{'-' if offset_minutes < 0 else '+'}{hours:02}" + (f":{minutes:02}" if minutes else "")
    day = f"{local.day} {_MONTHS[local.month - 1]} {local.year:04}"
    return day, f"{local:%H:%M}{seconds}{fraction}", offset if offset_minutes else "Z"


def _time_said(parts: Mapping[str, str | None], above: Written | None) -> tuple[str, str, str]:
    """Return the time of a line in words: its own, and what it leaves out as the line above has it."""
    match parts["day"], parts["clock"], parts["zone"], above:
        case str(day), str(clock), str(zone), _:
            return day, clock, zone
        case _, _, _, Written():
            return above.day, parts["later"] or above.clock, above.zone
        case _:
            raise BadRequest(field="context", reason="a first line without its day")


def _instant(day: str, clock: str, zone: str) -> tuple[datetime, int]:
    """Return the instant and the offset in minutes that these words give."""
    day_, month, year = day.split(" ")
    hours, _, minutes = zone[1:].partition(":")
    offset = int(hours or 0) * 60 + int(minutes or 0)
    offset = -offset if zone.startswith("-") else offset
    local = datetime.combine(
        date(int(year), _MONTHS.index(month) + 1, int(day_)),
        time.fromisoformat(clock),
        timezone(timedelta(minutes=offset)),
    )
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


def _parse_line(line: str, above: Written | None) -> Shown:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadRequest(field="context", reason="not a rendered line")
    parts = match.groupdict()
    try:
        observed_at, offset_minutes = _instant(*_time_said(parts, above))
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
    if written(result).below(above) != line:
        raise BadRequest(field="context", reason="not as a line is rendered")
    return result
