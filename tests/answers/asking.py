"""Questions about a table of revisions, in three wordings each, with what the oracle says of them."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from tests.answers.oracle import Cell, instant, months, number

DATA: Final = Path(__file__).parents[1] / "data"
UNSEEN: Final = json.loads((DATA / "wordings_revisions.json").read_text(encoding="utf-8"))
OURS: Final = json.loads((DATA / "wordings_revisions_ours.json").read_text(encoding="utf-8"))
OPERATIONS: Final = tuple(UNSEEN["operations"])
MISSING: Final = "missing"
_LAST_REVISION: Final = re.compile(r"\b(?:last|most recent(?:ly)?) (?:revis|change)")
"""What asks for a revision, and not for a figure, has no answer of what was never revised."""
_ORDINALS: Final = ("first", "second", "third", "fourth")


@dataclass(frozen=True)
class Asked:
    """One question, in one wording; `truth` is a value, or `MISSING`; `others` are values of other times."""

    operation: str
    wording: str
    text: str
    truth: Any
    others: tuple[float, ...]


@dataclass(frozen=True)
class Table:
    """A table that is asked about, and how one speaks of it."""

    tenant: str
    relation: str
    source: str
    quarterly: bool
    cells: Mapping[tuple[str, date], Cell]


def questions(table: Table, *, count: int, seed: int) -> Iterator[Asked]:
    """Yield `count` questions of each operation, each in three wordings."""
    for operation in OPERATIONS:
        chance = random.Random(f"{seed} {operation}")
        keys = sorted(table.cells)
        made = 0
        while made < count:
            slots, truth, others = _MADE[operation](table, keys, chance)
            if slots is None:
                continue
            ours = OURS["operations"][operation]
            unseen = UNSEEN["operations"][operation]
            for wording, template in (
                ("ours 1", ours[0]),
                ("ours 2", ours[1]),
                ("unseen", unseen[made % len(unseen)]),
            ):
                text = template.format(**slots)
                yield Asked(operation, wording, text, _of_wording(operation, text, truth), others)
            made += 1


def shuffled(every: Iterable[Asked], *, seed: int) -> list[Asked]:
    """Return questions in a chance order, the wordings of one side by side: a part of it is fair to all."""
    listed = list(every)
    threes = [listed[first : first + 3] for first in range(0, len(listed), 3)]
    random.Random(seed).shuffle(threes)
    return [asked for three in threes for asked in three]


# --- slots ---------------------------------------------------------------------------------------


def _period(table: Table, period: date, chance: random.Random) -> str:
    if table.quarterly:
        quarter = (period.month + 2) // 3
        way = chance.choice(UNSEEN["times"]["period_quarter"])
        return way.format(quarter=quarter, ordinal=_ORDINALS[quarter - 1], year=period.year)
    return _day(period, chance)


def _day(day: date, chance: random.Random) -> str:
    way = chance.choice(UNSEEN["times"]["known"])
    return way.format(day=day.day, month=day.strftime("%B"), year=day.year, iso=day.isoformat())


def _slots(table: Table, cell: Cell, chance: random.Random, **more: str) -> dict[str, str]:
    relation = table.relation.replace("_", " ")
    return {
        "entity": cell.entity.upper(),
        "relation": relation.upper() if table.quarterly else relation,
        "period": _period(table, cell.period, chance),
        **more,
    }


def _any(table: Table, keys: list[tuple[str, date]], chance: random.Random) -> Cell:
    return table.cells[chance.choice(keys)]


def _near(cell: Cell, chance: random.Random) -> date:
    """Return a day about the time in which the cell was told: a little before, to well after."""
    first, last = cell.steps[0][0], cell.steps[-1][0]
    return first + timedelta(days=chance.randint(-60, (last - first).days + 200))


def _said(value: Any) -> str:
    return f"{value:f}"


def _others(cell: Cell, truth: Any) -> tuple[float, ...]:
    return tuple(number(value) for value in cell.values() if number(value) != truth)


# --- one of each ---------------------------------------------------------------------------------

Made = tuple[dict[str, str] | None, Any, tuple[float, ...]]


def _as_of(table: Table, keys: list[Any], chance: random.Random) -> Made:
    cell = _any(table, keys, chance)
    known = _near(cell, chance)
    truth = number(cell.known(known))
    slots = _slots(table, cell, chance, known=_day(known, chance))
    return slots, MISSING if truth is None else truth, _others(cell, truth)


def _current(table: Table, keys: list[Any], chance: random.Random) -> Made:
    cell = _any(table, keys, chance)
    truth = number(cell.steps[-1][1])
    return _slots(table, cell, chance), truth, _others(cell, truth)


def _of(truth: Callable[[Table, Cell], Any]) -> Callable[[Table, list[Any], random.Random], Made]:
    def made(table: Table, keys: list[Any], chance: random.Random) -> Made:
        cell = _any(table, keys, chance)
        return _slots(table, cell, chance, value=_said(cell.steps[-1][1])), truth(table, cell), ()

    return made


def _largest(_: Table, cell: Cell) -> Any:
    change = cell.largest()
    return MISSING if change is None else {"change": number(change)}


def _difference(table: Table, keys: list[Any], chance: random.Random) -> Made:
    cell = _any(table, keys, chance)
    earlier = [key for key in keys if key[0] == cell.entity and key[1] < cell.period]
    if not earlier:
        return None, None, ()
    other = table.cells[earlier[-1] if chance.random() < 0.5 else chance.choice(earlier)]
    known = _near(cell, chance)
    ends = cell.known(known), other.known(known)
    truth = MISSING if ends[0] is None or ends[1] is None else number(ends[0] - ends[1])
    slots = _slots(table, cell, chance, other=_period(table, other.period, chance), known=_day(known, chance))
    return slots, truth, ()


def _what_changed(table: Table, keys: list[Any], chance: random.Random) -> Made:
    cell = _any(table, keys, chance)
    start, end = sorted([_near(cell, chance), _near(cell, chance)])
    if start == end:
        return None, None, ()
    truth: Any = [
        {"known_at": instant(day), "from": number(was), "to": number(value)}
        for day, was, value in cell.changes(start, end)
    ]
    if cell.known(end) is None:
        truth = MISSING
    slots = _slots(table, cell, chance, **{"from": _day(start, chance), "to": _day(end, chance)})
    return slots, truth, ()


def _yes_no(table: Table, keys: list[Any], chance: random.Random) -> Made:
    cell = _any(table, keys, chance)
    known = _near(cell, chance)
    value = chance.choice(cell.values())
    then = cell.known(known)
    if then is not None and chance.random() < 0.4:
        value = then
    slots = _slots(table, cell, chance, known=_day(known, chance), value=_said(value))
    return slots, MISSING if then is None else then == value, ()


def _when_value(table: Table, keys: list[Any], chance: random.Random) -> Made:
    cell = _any(table, keys, chance)
    day, value = chance.choice(cell.steps)
    if [told for _, told in cell.steps].count(value) > 1:
        return None, None, ()
    return _slots(table, cell, chance, value=_said(value)), instant(day), ()


def _order(table: Table, keys: list[Any], chance: random.Random) -> Made:
    one, two = _any(table, keys, chance), _any(table, keys, chance)
    if one.entity == two.entity or one.steps[0][0] == two.steps[0][0]:
        return None, None, ()
    slots = _slots(table, one, chance, peer=two.entity.upper(), other=_period(table, two.period, chance))
    first, second = one.steps[0][0], two.steps[0][0]
    return (
        slots,
        ([one.entity, two.entity] if first < second else [two.entity, one.entity], first < second),
        (),
    )


def _elapsed(_: Table, cell: Cell) -> Any:
    first, last = cell.steps[0][0], cell.steps[-1][0]
    days = (last - first).days
    return {
        "days": days,
        "weeks": days // 7,
        "months": months(first, last),
        "years": months(first, last) // 12,
    }


_MADE: Final[Mapping[str, Callable[[Table, list[Any], random.Random], Made]]] = {
    "as_of": _as_of,
    "current": _current,
    "first_known": _of(lambda _, cell: instant(cell.steps[0][0])),
    "times_revised": _of(lambda _, cell: len(cell.steps) - 1),
    "largest_revision": _of(_largest),
    "difference": _difference,
    "since_when": _of(lambda _, cell: (instant(cell.steps[-1][0]), len(cell.steps) > 1)),
    "who_said": _of(lambda table, _: [table.source]),
    "what_changed": _what_changed,
    "yes_no": _yes_no,
    "list_values": _of(lambda _, cell: [number(value) for value in cell.values()]),
    "count_values": _of(lambda _, cell: len(cell.values())),
    "when_value": _when_value,
    "order": _order,
    "elapsed": _of(_elapsed),
    "total_change": _of(lambda _, cell: number(cell.steps[-1][1] - cell.steps[0][1])),
}


def _of_wording(operation: str, text: str, truth: Any) -> Any:
    """Return the form of a truth that a wording asks for."""
    if operation == "order":
        return truth[1] if re.match(r"(Did|Was)\b", text) else truth[0]
    if operation == "since_when":
        return MISSING if _LAST_REVISION.search(text) and not truth[1] else truth[0]
    if operation == "elapsed":
        if _LAST_REVISION.search(text) and not truth["days"]:
            return MISSING
        unit = re.match(r"How many (\w+)", text)
        return truth[unit[1]] if unit else {"days": truth["days"]}
    return truth
