"""
A history as a picture: valid time to the right, known commits upwards, a rectangle for what stood where.

Both axes are ordinal: each bound that occurs takes one step, so that an hour is seen beside a year.
The picture is a pure function of the history: no clock, no font metrics, no identifier.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from itertools import groupby
from typing import Any, Final

from contracts.limits import PICTURE_CELLS_MAX
from contracts.read_wire import HistoryAnswer, HistoryCell

_STEP_X: Final = 130
_STEP_Y: Final = 44
_LEFT: Final = 92
_TOP: Final = 34
_BOTTOM: Final = 46
_GAP: Final = 18
_LABEL_CHARACTERS_MAX: Final = 19
_COLORS: Final = (
    "#9ecae1", "#a1d99b", "#fdd0a2", "#dadaeb", "#fbb4b9", "#c7e9b4", "#fee391", "#bcbddc",
)  # fmt: skip
_PATTERNS: Final = {
    "conflict": ("#e34a33", "6"), "ended": ("#636363", "9"), "withdrawn": ("#969696", "4"),
    "undetermined": ("#bdbdbd", "3"), "erased": ("#252525", "5"),
}  # fmt: skip
"""Of each state that has no single value: the colour and the width of its hatching."""
_OPEN_START: Final = "-∞"
_OPEN_END: Final = "∞"


def picture(history: HistoryAnswer) -> str:
    """
    Return an SVG of a history's rectangles, one panel for each line, at most `PICTURE_CELLS_MAX` of them.

    Args:
        history: As the door of history gives it, of the shape `rectangles`.
    """
    cells = history.cells[:PICTURE_CELLS_MAX]
    panels = [
        _Panel(history, list(own)) for _, own in groupby(cells, key=lambda cell: (cell.relation, cell.part))
    ]
    width = max((panel.width for panel in panels), default=_LEFT * 3)
    body: list[str] = []
    top = 0
    for panel in panels:
        body.append(f'<g transform="translate(0 {top})">{panel.drawn()}</g>')
        top += panel.height + _GAP
    if not panels:
        body.append(_text(12, _TOP, f"{history.entity}: nothing was ever known"))
        top = 2 * _TOP
    if len(history.cells) > len(cells) or history.truncated:
        body.append(_text(12, top, "… and more"))
        top += _GAP
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {top}" width="{width}" '
        f'height="{top}" font-family="sans-serif" font-size="12" role="img">\n'
        f"<title>{_escaped(_title(history))}</title>\n<defs>{_patterns()}</defs>\n"
        f'<rect width="100%" height="100%" fill="#fff"/>\n' + "\n".join(body) + "\n</svg>\n"
    )


class _Panel:
    """One line: its rectangles over the bounds that occur in it."""

    def __init__(self, history: HistoryAnswer, cells: Sequence[HistoryCell]) -> None:
        self._cells = cells
        self._title = " · ".join(one for one in (history.entity, cells[0].relation) if one)
        edges = {edge for cell in cells for edge in (cell.valid_from, cell.valid_to) if edge is not None}
        starts = [_OPEN_START] if any(cell.valid_from is None for cell in cells) else []
        ends = [_OPEN_END] if any(cell.valid_to is None for cell in cells) else []
        self._xs = [*starts, *sorted(edges), *ends]
        commits = {cell.known_from for cell in cells}
        commits |= {cell.known_to for cell in cells if cell.known_to is not None}
        self._ys: list[int | None] = [*sorted(commits), None]
        self.width = _LEFT + _STEP_X * max(1, len(self._xs) - 1) + 40
        self._floor = _TOP + _STEP_Y * (len(self._ys) - 1)
        self.height = self._floor + _BOTTOM

    def drawn(self) -> str:
        shapes = [_text(12, 18, self._title, weight="bold")]
        shapes += [self._rectangle(cell) for cell in self._cells]
        for edge in self._xs:
            x = self._x(edge)
            shapes.append(f'<path d="M{x} {self._floor} v5" stroke="#000"/>')
            for row, part in enumerate(_instant(edge)):
                shapes.append(_text(x, self._floor + 18 + 13 * row, part, anchor="middle", size=10))
        for commit in self._ys:
            label = "now" if commit is None else f"commit {commit}"
            shapes.append(_text(_LEFT - 8, self._y(commit) + 4, label, anchor="end", size=10))
        right = self._x(self._xs[-1])
        shapes.append(
            f'<path d="M{_LEFT} {_TOP - 6} V{self._floor} H{right + 14}" fill="none" stroke="#000"/>'
        )
        return "".join(shapes)

    def _rectangle(self, cell: HistoryCell) -> str:
        left, right = self._x(cell.valid_from or _OPEN_START), self._x(cell.valid_to or _OPEN_END)
        low, high = self._y(cell.known_from), self._y(cell.known_to)
        words = cell.state
        if cell.state in {"value", "conflict"}:
            said = " / ".join("ended" if value is None else _value(value) for value in cell.values)
            words = said if cell.state == "value" else f"conflict {said}"
        fill = _color(cell) if cell.state == "value" else f"url(#{cell.state})"
        full = (
            f"{words}: valid {cell.valid_from or _OPEN_START} to {cell.valid_to or _OPEN_END}, "
            f"known from commit {cell.known_from} to {cell.known_to or 'now'}"
        )
        return (
            f'<g><title>{_escaped(full)}</title><rect x="{left}" y="{high}" width="{right - left}" '
            f'height="{low - high}" fill="{fill}" stroke="#444"/>'
            + _text((left + right) // 2, (low + high) // 2 + 4, _short(words), anchor="middle", halo=True)
            + "</g>"
        )

    def _x(self, edge: str) -> int:
        return _LEFT + _STEP_X * self._xs.index(edge)

    def _y(self, commit: int | None) -> int:
        return self._floor - _STEP_Y * self._ys.index(commit)


def _title(history: HistoryAnswer) -> str:
    of = history.entity if history.relation is None else f"{history.entity}, {history.relation}"
    return f"{of}: what stood when (to the right), as known at which commit (upwards, to {history.cut})"


def _color(cell: HistoryCell) -> str:
    """The same value has the same colour in every picture."""
    text = json.dumps(cell.values, sort_keys=True, ensure_ascii=False)
    return _COLORS[sum(text.encode()) % len(_COLORS)]


def _patterns() -> str:
    return "".join(
        f'<pattern id="{state}" width="{width}" height="{width}" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect width="{width}" height="{width}" fill="#fff"/>'
        f'<line x1="0" y1="0" x2="0" y2="{width}" stroke="{color}" stroke-width="1.5"/></pattern>'
        for state, (color, width) in _PATTERNS.items()
    )


def _text(
    x: int, y: int, words: str, *, anchor: str = "start", size: int = 12, weight: str = "", halo: bool = False
) -> str:
    style = f' font-weight="{weight}"' if weight else ""
    if halo:
        style += ' stroke="#fff" stroke-width="3" paint-order="stroke"'
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}"{style}>{_escaped(words)}</text>'


def _instant(edge: str) -> tuple[str, ...]:
    """Day and, where it is not midnight, time of day below."""
    day, _, clock = edge.partition("T")
    return (day,) if clock in {"", "00:00:00Z"} else (day, clock)


def _value(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _short(words: str) -> str:
    return words if len(words) <= _LABEL_CHARACTERS_MAX else words[: _LABEL_CHARACTERS_MAX - 1] + "…"


def _escaped(words: str) -> str:
    """What XML cannot hold, or what would turn the text around it, is shown as its code point."""
    return escape("".join(one if one.isprintable() else f"\\u{ord(one):04x}" for one in words))
