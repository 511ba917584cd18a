"""What the formats of cases have in common: how a case is run, times are read and sides compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeAlias

from contracts.errors import BadRequest, Incorrect
from contracts.times import format_instant, parse_term
from echoplane._conformance_ledger import CaseLedger

Fields: TypeAlias = Mapping[str, Any]

REMARKS: Final = frozenset({"about", "comment", "id", "note", "rule", "source", "tags", "title", "why"})
"""Fields that say something to a reader and nothing to the runner."""

REFUSALS: Final = (Incorrect, ValueError)
"""How the plane refuses what it is told; a shape that validation refuses is a ValueError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """What a case expects, what the ledger has, both as JSON values, and whether they are the same."""

    expected: object
    found: object
    agree: bool


def sides(expected: object, found: object, *, whole: object = None) -> Sides:
    """
    Compare two JSON values: `1` and `1.0` are not the same, nor are `1` and `true`.

    Args:
        expected: What the case says.
        found: As much of the answer as the case speaks of.
        whole: The answer to show where they differ, if it says more.
    """
    agree = written(expected) == written(found)
    return Sides(expected=expected, found=found if agree or whole is None else whole, agree=agree)


class Case(Protocol):
    """One case of a file."""

    name: str
    queries: Sequence[Fields]
    is_applicable: bool

    def kind(self, query: Fields) -> str:
        """Return what a query asks for, in a word."""
        ...

    async def tell(self, ledger: CaseLedger) -> list[tuple[str, Sides]]:
        """Tell it to a ledger and fold; return what was accepted and refused against the case's word."""
        ...

    async def ask(self, ledger: CaseLedger, query: Fields) -> Sides:
        """
        Ask one of its queries.

        Raises:
            BadRequest: The query is none that the format has.
        """
        ...


def written(value: object) -> str:
    """Return the one text of a JSON value."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def in_order(values: Sequence[object]) -> list[object]:
    """Return a list whose order says nothing, in the one order it is compared in."""
    return sorted(values, key=written)


def instant(wording: object, *, field: str) -> datetime:
    """
    Return an instant; of a calendar term, its first.

    Raises:
        BadRequest: It is no time.
    """
    if not isinstance(wording, str):
        raise BadRequest(field=field, reason="a time is text")
    return parse_term(wording, field=field).first


def bound(wording: object, *, field: str) -> datetime | None:
    """
    Return the bound of an interval; None is open.

    Raises:
        BadRequest: It is no time.
    """
    return None if wording is None else instant(wording, field=field)


def same_time(wording: object) -> object:
    """Return a time in the one wording that answers have; what is no time, as it is."""
    if not isinstance(wording, str):
        return wording
    try:
        return format_instant(instant(wording, field="time"))
    except BadRequest:
        return wording


def only(fields: Fields, known: frozenset[str]) -> None:
    """
    Refuse what the format does not have: to pass it over would be to answer another question.

    Raises:
        BadRequest: A field is unknown.
    """
    for name in fields:
        if name not in known | REMARKS:
            raise BadRequest(field=name, reason="unknown to this format")


def need(fields: Fields, name: str) -> Any:  # noqa: ANN401 - any JSON
    """
    Return a field that must be there.

    Raises:
        BadRequest: It is not.
    """
    if name not in fields:
        raise BadRequest(field=name, reason="is missing")
    return fields[name]
