"""Tombstones as rows: canonical bytes without a name or a value, and a keyed seal over every column."""

from __future__ import annotations

import hmac
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from contracts.claims import Position, Source, Span, TargetRef, Validity, ValidityKind
from contracts.errors import IntegrityFault
from contracts.events import Stance
from contracts.times import KnownAt
from ledger import _tables
from ledger._claims import canonical, claim_id_of, instant_of, micros
from ledger._keys import TenantKeys
from ledger._tombstones import Erased, Moved, Spot, Tombstone


def form_of(stone: Tombstone) -> list[Any]:
    """Return a stored tombstone as JSON: what its erasure's event holds of it."""
    validity = stone.validity
    return [
        stone.position.event,
        stone.position.ordinal,
        stone.commit,
        stone.event_id,
        stone.entity,
        stone.relation,
        stone.stance.value,
        [
            validity.kind.value,
            _micros(validity.start),
            _micros(validity.end),
            _micros(validity.earliest),
            validity.timeless,
        ],
        [stone.source.actor_id, stone.source.actor_class],
        micros(stone.recorded_at),
        _micros(stone.observed_at),
        [[span.start, span.end] for span in stone.spans],
        stone.occurrence_id,
        _value_form(stone.value),
        [_reference_form(target) for target in stone.targets],
        [_reference_form(target) for target in stone.inputs],
        None if stone.winner is None else _reference_form(stone.winner),
        None if stone.pair is None else list(stone.pair),
        stone.erased_in,
        list(stone.selves),
        [list(spot) for spot in stone.meant_by],
        [list(key) for key in stone.called],
        [list(spot) for spot in stone.said_at],
        [[_value_form(moved.value), [list(spot) for spot in moved.said_at]] for moved in stone.moved],
        stone.is_wrong,
    ]


def stone_of(form: list[Any], *, keys: TenantKeys, epoch: int) -> Tombstone:
    """Return the tombstone of `form_of`, in an epoch."""
    (
        position, ordinal, commit, event_id, entity, relation, stance, validity, source, recorded_at,
        observed_at, spans, occurrence_id, value, targets, inputs, winner, pair, erased_in, selves, meant_by,
        called, said_at, moved, is_wrong,
    ) = form  # fmt: skip
    kind, start, end, earliest, timeless = validity
    return Tombstone(
        claim_id=claim_id_of(keys, tenant=keys.tenant, event_id=event_id, ordinal=ordinal, epoch=epoch),
        epoch=epoch,
        entity=entity,
        relation=relation,
        value=_erased(value),
        stance=Stance(stance),
        validity=Validity(
            kind=ValidityKind(kind),
            start=_instant(start),
            end=_instant(end),
            earliest=_instant(earliest),
            timeless=timeless,
        ),
        source=Source(actor_id=source[0], actor_class=source[1]),
        position=Position(event=position, ordinal=ordinal),
        commit=commit,
        event_id=event_id,
        recorded_at=KnownAt(instant_of(recorded_at)),
        observed_at=_instant(observed_at),
        spans=tuple(Span(start=start, end=end) for start, end in spans),
        occurrence_id=occurrence_id,
        targets=tuple(map(_reference, targets)),
        winner=None if winner is None else _reference(winner),
        inputs=tuple(map(_reference, inputs)),
        erased_in=erased_in,
        pair=None if pair is None else (pair[0], pair[1]),
        selves=tuple(selves),
        meant_by=_spots(meant_by),
        called=tuple((entity, relation) for entity, relation in called),
        said_at=_spots(said_at),
        moved=tuple(_moved(value, spots) for value, spots in moved),
        is_wrong=is_wrong,
    )


def row_of(form: list[Any], *, keys: TenantKeys) -> dict[str, Any]:
    """Return the row of a tombstone, sealed."""
    row = {
        "tenant": keys.tenant,
        "position": form[0],
        "ordinal": form[1],
        "commit": form[2],
        "event_id": form[3],
        "entity": form[4],
        "relation": form[5],
        "body": canonical(form[6:]),
    }
    return {**row, "seal": row_seal(row, keys=keys)}


def form_in(row: Mapping[str, Any], *, keys: TenantKeys) -> list[Any]:
    """
    Return the form of a row.

    Raises:
        IntegrityFault: A column does not match the seal.
    """
    if not hmac.compare_digest(row_seal(row, keys=keys), bytes(row["seal"])):
        raise IntegrityFault(what=f"the seal of tombstone {row['position']}#{row['ordinal']}")
    return [*(row[name] for name in _IN_CLEAR), *json.loads(bytes(row["body"]))]


def row_seal(row: Mapping[str, Any], *, keys: TenantKeys) -> bytes:
    """Return the seal over a row of the table `tombstone`."""
    columns = (str(row[name]).encode() for name in _IN_CLEAR)
    return keys.seal(_tables.tombstone.name, *columns, bytes(row["body"]))


_IN_CLEAR = ("position", "ordinal", "commit", "event_id", "entity", "relation")


def _value_form(value: object) -> list[Any] | None:
    if not isinstance(value, Erased):
        assert value is None, "a tombstone is stored without a value"
        return None
    return [list(value.spot), [list(spot) for spot in value.like]]


def _moved(form: list[Any], said_at: list[list[int]]) -> Moved:
    value = _erased(form)
    assert value is not None, "what was moved is a value"
    return Moved(spot=value.spot, value=value, said_at=_spots(said_at))


def _spots(forms: list[list[int]]) -> tuple[Spot, ...]:
    return tuple((position, ordinal, number) for position, ordinal, number in forms)


def _erased(form: list[Any] | None) -> Erased | None:
    if form is None:
        return None
    spot, like = form
    return Erased(spot=(spot[0], spot[1], spot[2]), like=_spots(like))


def _reference_form(reference: TargetRef) -> list[Any]:
    value = reference.value
    return [
        reference.event_id,
        reference.ordinal,
        reference.entity,
        reference.relation,
        # A name, where what is named is one with another: veiled.
        value if isinstance(value, str) else _value_form(value),
        None if reference.span is None else [reference.span.start, reference.span.end],
        [_micros(reference.interval_start), _micros(reference.interval_end)]
        if reference.has_interval
        else None,
    ]


def _reference(form: list[Any]) -> TargetRef:
    event_id, ordinal, entity, relation, value, span, interval = form
    return TargetRef(
        event_id=event_id,
        ordinal=ordinal,
        entity=entity,
        relation=relation,
        value=value if isinstance(value, str) else _erased(value),
        span=None if span is None else Span(start=span[0], end=span[1]),
        interval_start=None if interval is None else _instant(interval[0]),
        interval_end=None if interval is None else _instant(interval[1]),
        has_interval=interval is not None,
    )


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else micros(instant)


def _instant(value: int | None) -> datetime | None:
    return None if value is None else instant_of(value)
