"""
Revision data: tables of what was published when about which period.

A row says of an entity that a value held for a period (valid time) and when that was published
(record time). All rows of one record time become one commit that was known then; each value is a
span on the key (entity, relation), and a later publication replaces an earlier one.
"""

from __future__ import annotations

import calendar
import csv
import gzip
import io
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from contracts.claims import SENSOR
from contracts.errors import BadRequest
from contracts.events import EventDraft
from contracts.limits import APPEND_EVENTS_MAX, CLAIMS_MAX, VINTAGE_ROWS_MAX
from contracts.times import KnownAt, Term, format_instant, parse_term
from echoplane._failures import refusal

STREAM: Final = "vintages"
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
EVENT_CLAIMS: Final = 16
"""
Claims of one event, where a commit has room for so many events.

An event is read and checked whole, and is what an answer cites: with many claims in one, each answer
would look at all of a publication for one figure of it.
"""
_GZIP: Final = b"\x1f\x8b"
_NUMBER: Final = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class Period(StrEnum):
    """For how long a value holds, from its valid time on."""

    DAY = "day"
    MONTH = "month"
    QUARTER = "quarter"
    YEAR = "year"


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """
    Which columns say what. `values` are relations by column.

    `entity` is a column, or None where `constant` names the one entity.
    """

    entity: str | None
    constant: str | None
    valid: str
    known: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What became known at one time: one commit."""

    at: KnownAt
    drafts: tuple[EventDraft, ...]
    rows_count: int
    claims_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Vintages:
    """A whole table: its publications in the order of their record times."""

    publications: tuple[Publication, ...]
    relations: tuple[str, ...]
    repeated_count: int
    """Values that repeat what was published of the same period last."""


def parse_columns(text: str, *, entity: str | None, relation: str | None) -> Columns:
    """
    Read `entity=id,valid=time,known=pub_date,value=value`; `value` may stand several times.

    Args:
        text: The option `--columns`.
        entity: The option `--entity`: the one entity that all rows are about.
        relation: The option `--relation`; else each value column names its own.

    Raises:
        BadRequest: A part is missing, unknown or said twice.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for part in text.split(","):
        name, equals, column = part.partition("=")
        if not equals or not column.strip() or name.strip() not in {"entity", "valid", "known", "value"}:
            raise BadRequest(
                field="--columns", reason="expected entity=COLUMN,valid=COLUMN,known=COLUMN,value=COLUMN"
            )
        found[name.strip()].append(column.strip())
    for name in ("valid", "known"):
        if len(found[name]) != 1:
            raise BadRequest(field="--columns", reason=f"{name} must be named once")
    if len(found["entity"]) + (entity is not None) != 1:
        raise BadRequest(field="--columns", reason="name one column of entities, or --entity")
    values = found["value"]
    if not values or len(set(values)) != len(values) or (relation is not None and len(values) > 1):
        raise BadRequest(
            field="--columns", reason="value must be named; with --relation, once; else each column once"
        )
    return Columns(
        entity=found["entity"][0] if found["entity"] else None,
        constant=entity,
        valid=found["valid"][0],
        known=found["known"][0],
        values={column: relation or column for column in values},
    )


def read_vintages(path: Path, columns: Columns, *, period: Period, source: str) -> Vintages:
    """
    Read a whole table, plain or gzip, in whatever order its rows are.

    Args:
        path: The CSV file, with a header line.
        columns: Which columns say what. An empty value is none: not known yet.
        period: For how long a value holds.
        source: Who published it: the actor of the events, and part of their ids.

    Raises:
        BadRequest: It cannot be read; names the line.
        LimitExceeded: It has more than `VINTAGE_ROWS_MAX` rows.
    """
    by_time: dict[KnownAt, list[dict[str, Any]]] = defaultdict(list)
    by_relation: dict[str, list[dict[str, Any]]] = defaultdict(list)
    rows: dict[KnownAt, int] = defaultdict(int)
    said: list[tuple[KnownAt, dict[str, Any]]] = []
    for number, row in _rows(path, columns):
        where = f"{path.name}, line {number}"
        known = KnownAt(_term(row[columns.known], where=f"{where}, {columns.known}").first)
        start = _term(row[columns.valid], where=f"{where}, {columns.valid}").first
        entity = columns.constant if columns.entity is None else row[columns.entity]
        assert entity is not None, "either is given"
        rows[known] += 1
        for column, relation in columns.values.items():
            if row[column].strip():
                claim: dict[str, Any] = {
                    "entity": entity, "relation": relation, "value": row[column].strip(),
                    "valid": {"from": format_instant(start), "to": format_instant(_end(start, period))},
                }  # fmt: skip
                by_time[known].append(claim)
                by_relation[relation].append(claim)
                said.append((known, claim))
    for claims in by_relation.values():
        _as_numbers(claims)
    publications = tuple(
        Publication(
            at=known,
            drafts=_drafts(known, by_time[known], source=source, where=path.name),
            rows_count=rows[known],
            claims_count=len(by_time[known]),
        )
        for known in sorted(by_time)
    )
    return Vintages(
        publications=publications,
        relations=tuple(dict.fromkeys(columns.values.values())),
        repeated_count=_repeated(said),
    )


def _rows(path: Path, columns: Columns) -> Iterator[tuple[int, dict[str, str]]]:
    named = [columns.valid, columns.known, *columns.values, *([columns.entity] if columns.entity else [])]
    try:
        with path.open("rb") as raw:
            is_packed = raw.read(len(_GZIP)) == _GZIP
        with gzip.open(path, "rb") if is_packed else path.open("rb") as unpacked:
            reader = csv.DictReader(io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline=""), strict=True)
            missing = [column for column in named if column not in (reader.fieldnames or ())]
            if missing:
                raise BadRequest(field="--columns", reason=f"{path.name} has no column {missing[0]}")
            for count, row in enumerate(reader, start=1):
                if count > VINTAGE_ROWS_MAX:
                    raise BadRequest(field=path.name, reason=f"more than {VINTAGE_ROWS_MAX} rows")
                if any(row[column] is None for column in named):
                    raise BadRequest(
                        field=f"{path.name}, line {reader.line_num}", reason="a column is missing"
                    )
                yield reader.line_num, row
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise BadRequest(field=str(path), reason=f"cannot be read: {error}") from error


def _term(text: str, *, where: str) -> Term:
    return parse_term(text.strip(), field=where)


def _as_numbers(claims: Sequence[dict[str, Any]]) -> None:
    """Read the values of a relation as numbers if all of them are; else each stays the text that it is."""
    numbers = [_number(claim["value"]) for claim in claims]
    if None not in numbers:
        for claim, number in zip(claims, numbers, strict=True):
            claim["value"] = number


def _number(text: str) -> float | None:
    # As it is written everywhere: `007` is a name, and what Python reads of `1_000` nobody wrote.
    if _NUMBER.fullmatch(text) is None:
        return None
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return number if math.isfinite(number) else None


def _end(start: datetime, period: Period) -> datetime:
    if period == Period.DAY:
        return start + timedelta(days=1)
    months = start.month - 1 + _MONTHS[period.value]
    year, month = start.year + months // 12, months % 12 + 1
    return start.replace(year=year, month=month, day=min(start.day, calendar.monthrange(year, month)[1]))


def _drafts(
    known: KnownAt, claims: Sequence[dict[str, Any]], *, source: str, where: str
) -> tuple[EventDraft, ...]:
    """The events of one commit, each with a few claims."""
    if len(claims) > CLAIMS_MAX * APPEND_EVENTS_MAX:
        raise BadRequest(field=where, reason=f"more than {CLAIMS_MAX * APPEND_EVENTS_MAX} values at one time")
    at = format_instant(known)
    size = max(EVENT_CLAIMS, math.ceil(len(claims) / APPEND_EVENTS_MAX))
    try:
        return tuple(
            EventDraft.model_validate({
                "stream": STREAM, "kind": "observation", "actor": {"id": source, "class": SENSOR},
                "observed_at": at, "source_event_id": f"{source} {at} {number}",
                "claims": claims[first : first + size],
            })
            for number, first in enumerate(range(0, len(claims), size), start=1)
        )  # fmt: skip
    except ValidationError as error:
        raise refusal(error, where=f"{where}, published {at}") from error


def _repeated(said: Sequence[tuple[KnownAt, Mapping[str, Any]]]) -> int:
    newest: dict[tuple[str, str, str], object] = {}
    count = 0
    for _, claim in sorted(said, key=lambda one: one[0]):
        key = (claim["entity"], claim["relation"], claim["valid"]["from"])
        count += key in newest and newest[key] == claim["value"]
        newest[key] = claim["value"]
    return count


def start_of(vintages: Vintages) -> KnownAt:
    """Return when the contracts of the relations are registered: before anything was published."""
    return KnownAt(vintages.publications[0].at.astimezone(UTC) - timedelta(days=1))
