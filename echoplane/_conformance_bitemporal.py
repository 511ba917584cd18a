"""
Cases of bitemporal databases (`bitemporal-cases/1`), told to a ledger of claims.

A put is an assert of an interval, a delete an end over it, an erase an erasure of the subject; each
key is an entity of its own with the one relation `value`, on which whoever comes later replaces
whoever was before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain
from typing import Any, Final

from contracts.claims import USER
from contracts.erasures import ErasureRequest
from contracts.errors import BadRequest
from contracts.events import EventDraft
from contracts.relations import OTHERS, RelationContract, Supersession, default_contract
from contracts.resolutions import Conflict, Missing, Resolved, ResolvedSet
from contracts.times import MICROSECOND, format_instant
from contracts.views import View
from echoplane._conformance_forms import (
    REFUSALS,
    Fields,
    Sides,
    bound,
    in_order,
    instant,
    need,
    only,
    same_time,
    sides,
    written,
)
from echoplane._conformance_ledger import CaseLedger, Step
from ledger.resolve import Pair, Rectangle, Window, history, join, known_commits, resolve_many, timeline

SCHEMA: Final = "bitemporal-cases/1"
RELATION: Final = "value"
CONTRACT: Final[RelationContract] = replace(
    default_contract(RELATION), supersession=((OTHERS, Supersession.ANY),)
)
NOT_APPLICABLE: Final = frozenset({"update", "patch"})
"""Tags of cases that merge fields into what stands: a claim states a value, it does not edit one."""

_SYSTEM: Final = "@system"
_NO_START: Final = "-infinity"
_LATEST: Final = "latest"
_OP_FIELDS: Final = {
    "put": frozenset({"op", "key", "value", "valid_from", "valid_to"}),
    "delete": frozenset({"op", "key", "valid_from", "valid_to"}),
    "erase": frozenset({"op", "key"}),
}
_TIMES: Final = frozenset({"valid_from", "valid_to", "known_from", "known_to"})
_VALID: Final = ("value", "valid_from", "valid_to", "by")
_KNOWN: Final = ("value", "known_from", "known_to", "by")
_BOTH: Final = ("value", "valid_from", "valid_to", "known_from", "known_to", "by")
_SHOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "timeline": _VALID,
    "valid_window": _VALID,
    "valid_join": _VALID,
    "system_history": _KNOWN,
    "rectangles": _BOTH,
    "system_window": _BOTH,
    "bitemporal_join": _BOTH,
}
"""Of each kind that answers with rows, what a row has where the case expects none."""
_QUERY_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    kind: frozenset({"kind", "expect", *fields})
    for kind, fields in {
        "point": {"key", "valid_at", "known_at"},
        "timeline": {"key", "known_at"},
        "rectangles": {"key"},
        "system_history": {"key", "valid_at"},
        "valid_window": {"key", "known_at", "start", "end", "mode", "clamp"},
        "system_window": {"key", "start", "end", "mode"},
        "valid_join": {"left", "right", "known_at", "on"},
        "bitemporal_join": {"left", "right", "on"},
        "system_times": set[str](),
        "rectangle_count": {"key"},
    }.items()
}


def drafts_of(ops: Iterable[Fields], *, known_at: datetime) -> list[EventDraft]:
    """
    Return puts and deletes as events, one each.

    Raises:
        BadRequest: An operation that the format does not have, or one that is not applicable.
        ValidationError: An interval is empty or inverted, or a value none.
    """
    return [_draft(op, known_at) for op in ops]


def _draft(op: Fields, known_at: datetime) -> EventDraft:
    _check_op(op)
    if op["op"] == "erase":
        raise BadRequest(field="op", reason="an erase is no event")
    claim: dict[str, Any] = {
        "entity": need(op, "key"),
        "relation": RELATION,
        "stance": "assert" if op["op"] == "put" else "end",
        "valid": {
            "from": _op_bound(need(op, "valid_from"), known_at),
            "to": _op_bound(need(op, "valid_to"), known_at),
        },
    }
    if op["op"] == "put":
        claim["value"] = need(op, "value")
    return EventDraft.model_validate(
        {"stream": "case", "kind": "claim", "actor": {"id": "app", "class": USER}, "claims": [claim]}
    )


def _check_op(op: Fields) -> None:
    kind = need(op, "op")
    if kind not in _OP_FIELDS:
        raise BadRequest(field="op", reason=f"{kind} is none of {', '.join(_OP_FIELDS)}")
    only(op, _OP_FIELDS[kind])
    for name in sorted(_OP_FIELDS[kind]):
        need(op, name)


def _op_bound(wording: object, known_at: datetime) -> object:
    if wording == _SYSTEM:
        return format_instant(known_at)
    return None if wording == _NO_START else wording


class BitemporalCase:
    """One case."""

    def __init__(self, form: Fields) -> None:
        self.name = str(need(form, "id"))
        self.transactions: Sequence[Fields] = need(form, "transactions")
        self.queries: Sequence[Fields] = need(form, "queries")
        self.is_applicable = not NOT_APPLICABLE & set(form.get("tags", ()))

    async def tell(self, ledger: CaseLedger) -> list[tuple[str, Sides]]:
        """See `Case`."""
        wrong: list[tuple[str, Sides]] = []
        readings = [_reading(transaction) for transaction in self.transactions]
        # Before any is told: what the format does not have is no refusal of the ledger's.
        for transaction in self.transactions:
            for op in need(transaction, "ops"):
                _check_op(op)
        await ledger.register([CONTRACT], before=min(readings, default=ledger.clock.now))
        for number, (transaction, reading) in enumerate(zip(self.transactions, readings, strict=True)):
            status = need(transaction, "status")
            if status not in {"committed", "rejected"}:
                raise BadRequest(field="status", reason="is committed or rejected")
            head = await ledger.head()
            try:
                await self._transact(ledger, transaction, reading)
                found, why = "committed", ""
            except REFUSALS as error:
                found, why = "rejected", f" ({error})"
                if await ledger.head() != head:
                    why = " in part" + why
            if found != status or why.startswith(" in part"):
                wrong.append((f"transaction {number + 1}", sides(status, found + why)))
        await ledger.fold()
        return wrong

    async def _transact(self, ledger: CaseLedger, transaction: Fields, reading: datetime) -> None:
        ops: Sequence[Fields] = transaction["ops"]
        if "system" in transaction and ledger.recorded_at and reading <= ledger.recorded_at[-1]:
            # A ledger never goes back; told at this reading it would say that it knew it later.
            raise BadRequest(field="system", reason="is not after the last commit")
        erased = {need(op, "key"): number for number, op in enumerate(ops) if op["op"] == "erase"}
        told = [(number, op) for number, op in enumerate(ops) if op["op"] != "erase"]
        # What this very transaction erases again is told first, then erased, then the rest is told.
        groups = (
            [op for number, op in told if number < erased.get(op["key"], -1)],
            [op for number, op in told if number > erased.get(op["key"], -1)],
        )
        steps_count = len(erased) + sum(1 for group in groups if group)
        known_at = ledger.known_time(reading, steps=steps_count)
        before, after = (drafts_of(group, known_at=known_at) for group in groups)
        steps: list[Step] = [before] if before else []
        steps += [ErasureRequest(subject=str(key), event_ids=()) for key in erased]
        steps += [after] if after else []
        names = [_names(groups[0])] if before else []
        names += [[] for _ in erased]
        names += [_names(groups[1])] if after else []
        await ledger.tell(steps, names=names, reading=reading)

    def kind(self, query: Fields) -> str:
        """See `Case`."""
        return str(query.get("kind"))

    async def ask(self, ledger: CaseLedger, query: Fields) -> Sides:
        """See `Case`."""
        kind = need(query, "kind")
        if kind not in _QUERY_FIELDS:
            raise BadRequest(field="kind", reason=f"{kind} is none of {', '.join(sorted(_QUERY_FIELDS))}")
        only(query, _QUERY_FIELDS[kind])
        expected = need(query, "expect")
        match kind:
            case "point":
                return sides(expected, await self._point(ledger, query))
            case "system_times":
                found = [format_instant(at) for at in ledger.recorded_at]
                return sides([same_time(at) for at in expected], found)
            case "rectangle_count":
                keys = [query["key"]] if "key" in query else self._keys()
                rectangles = [await _rectangles(ledger, key) for key in keys]
                return sides(expected, sum(map(len, rectangles)))
            case "valid_join" | "bitemporal_join":
                rows = await _joined(ledger, query)
            case "rectangles" | "system_history" | "system_window":
                rows = await _known_rows(ledger, query)
            case _:
                rows = await _valid_rows(ledger, query)
        return _compared(kind, expected, rows)

    async def _point(self, ledger: CaseLedger, query: Fields) -> dict[str, Any]:
        view = await _view(ledger, query, valid_at=instant(need(query, "valid_at"), field="valid_at"))
        keys = [query["key"]] if "key" in query else self._keys()
        async with ledger.snapshot() as conn:
            found = await resolve_many(conn, await ledger.keys(conn), view, [(key, RELATION) for key in keys])
        values: dict[str, Any] = {}
        for answer in found:
            match answer.resolution:
                case Resolved(value=value):
                    values[answer.entity] = value
                case Conflict(rivals=rivals):
                    values[answer.entity] = {"conflict": [rival.value for rival in rivals]}
                case Missing() | ResolvedSet():
                    pass
        return values

    def _keys(self) -> list[str]:
        ops = chain.from_iterable(transaction["ops"] for transaction in self.transactions)
        return sorted({op["key"] for op in ops})


def _reading(transaction: Fields) -> datetime:
    only(transaction, frozenset({"system", "clock", "ops", "status", "reason"}))
    if ("system" in transaction) == ("clock" in transaction):
        raise BadRequest(field="system", reason="give one of system and clock")
    name = "system" if "system" in transaction else "clock"
    return instant(transaction[name], field=name)


def _names(ops: Iterable[Fields]) -> list[str]:
    return [str(op.get("id", "")) for op in ops]


async def _view(ledger: CaseLedger, query: Fields, *, valid_at: datetime | None) -> View:
    wording = need(query, "known_at")
    known_at = None if wording == _LATEST else instant(wording, field="known_at")
    return await ledger.view(valid_at=valid_at, known_at=known_at)


async def _rectangles(ledger: CaseLedger, key: str, window: Window | None = None) -> list[Rectangle]:
    view = await ledger.view(valid_at=None)
    everything = Window(valid_from=None, valid_to=None, known_from=None, known_to=None)
    async with ledger.snapshot() as conn:
        found = await history(
            conn, await ledger.keys(conn), key, RELATION, epoch=view.epoch, cut=view.cut,
            window=window or everything,
        )  # fmt: skip
    return _values(found.rectangles)


async def _known_rows(ledger: CaseLedger, query: Fields) -> list[dict[str, Any]]:
    window = None
    if query["kind"] == "system_window":
        start, end = _window(query)
        async with ledger.snapshot() as conn:
            commits = await known_commits(conn, await ledger.keys(conn), start, end)
        window = Window(valid_from=None, valid_to=None, known_from=commits[0], known_to=commits[1])
    found = await _rectangles(ledger, need(query, "key"), window)
    if query["kind"] == "system_history":
        at = instant(need(query, "valid_at"), field="valid_at")
        found = [
            one
            for one in found
            if (one.valid_from is None or one.valid_from <= at)
            and (one.valid_to is None or at < one.valid_to)
        ]
    return [_row(ledger, one) for one in found]


async def _valid_rows(ledger: CaseLedger, query: Fields) -> list[dict[str, Any]]:
    start, end = _window(query) if query["kind"] == "valid_window" else (None, None)
    view = await _view(ledger, query, valid_at=None)
    async with ledger.snapshot() as conn:
        found = await timeline(
            conn, await ledger.keys(conn), view, need(query, "key"), RELATION, valid_from=start, valid_to=end
        )
    segments = _values(found.rectangles)
    if query.get("clamp", False):
        stop = bound(query["end"], field="end")
        segments = [_clamped(one, start, stop) for one in segments]
    return [_row(ledger, one) for one in segments]


async def _joined(ledger: CaseLedger, query: Fields) -> list[dict[str, Any]]:
    on = query.get("on")
    if on not in {None, "value"}:
        raise BadRequest(field="on", reason="value is the only thing to join on")
    bitemporal = query["kind"] == "bitemporal_join"
    view = await ledger.view(valid_at=None) if bitemporal else await _view(ledger, query, valid_at=None)
    async with ledger.snapshot() as conn:
        found = await join(
            conn, await ledger.keys(conn), view, (need(query, "left"), RELATION),
            (need(query, "right"), RELATION), on_value=on == "value" or not bitemporal,
            bitemporal=bitemporal, valid_from=None, valid_to=None,
        )  # fmt: skip
    return [_pair_row(ledger, pair) for pair in found.pairs]


def _window(query: Fields) -> tuple[datetime | None, datetime | None]:
    """Return the window, half-open: one whose end is part of it ends a microsecond later."""
    mode = need(query, "mode")
    if mode not in {"from_to", "between"}:
        raise BadRequest(field="mode", reason="is from_to or between")
    end = bound(need(query, "end"), field="end")
    if end is not None and mode == "between":
        end += MICROSECOND
    return bound(need(query, "start"), field="start"), end


def _values(rectangles: Iterable[Rectangle]) -> list[Rectangle]:
    # A conflict is no value, and none can be here: it is shown, so that it is seen.
    return [one for one in rectangles if one.state in {"value", "conflict"}]


def _clamped(one: Rectangle, start: datetime | None, end: datetime | None) -> Rectangle:
    starts = [at for at in (one.valid_from, start) if at is not None]
    ends = [at for at in (one.valid_to, end) if at is not None]
    return replace(one, valid_from=max(starts, default=None), valid_to=min(ends, default=None))


def _row(ledger: CaseLedger, one: Rectangle) -> dict[str, Any]:
    values = [claim.value for claim in one.claims]
    return {
        "value": values[0] if one.state == "value" else {"conflict": values},
        "valid_from": _NO_START if one.valid_from is None else format_instant(one.valid_from),
        "valid_to": None if one.valid_to is None else format_instant(one.valid_to),
        "known_from": format_instant(one.known_from_at),
        "known_to": None if one.known_to_at is None else format_instant(one.known_to_at),
        "by": ledger.sources.get(one.claims[0].event_id),
    }


def _pair_row(ledger: CaseLedger, pair: Pair) -> dict[str, Any]:
    sides = [_row(ledger, pair.left), _row(ledger, pair.right)]
    values = [side["value"] for side in sides]
    known_to = pair.known_to_at
    return {
        "value": values[0] if written(values[0]) == written(values[1]) else values,
        "valid_from": _NO_START if pair.valid_from is None else format_instant(pair.valid_from),
        "valid_to": None if pair.valid_to is None else format_instant(pair.valid_to),
        "known_from": format_instant(pair.known_from_at),
        "known_to": None if known_to is None else format_instant(known_to),
        "by": [side["by"] for side in sides],
    }


def _compared(kind: str, expected: Sequence[Fields], rows: Sequence[Fields]) -> Sides:
    """Compare rows by the fields that the case gives them; their order says nothing."""
    shown = tuple(dict.fromkeys(name for row in expected for name in row)) or _SHOWN[kind]
    wanted = [
        {name: same_time(value) if name in _TIMES else value for name, value in row.items()}
        for row in expected
    ]
    found = [{name: row.get(name) for name in shown} for row in rows]
    return sides(in_order(wanted), in_order(found), whole=in_order(rows))
