"""
Claims as rows: canonical bytes, keyed ids, and a keyed seal over every column.

A claim that names no key of its own (a correction, retraction, settlement or dispute that only
names targets) carries the empty name as entity and relation: no key is called that. A correction
that states no validity carries `UNSTATED`.
"""

from __future__ import annotations

import functools
import hmac
import json
import operator
from binascii import hexlify
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import DERIVED, Claim, Position, Source, Span, TargetRef, Validity, ValidityKind
from contracts.errors import IntegrityFault
from contracts.events import Stance
from contracts.times import MICROSECOND, KnownAt
from ledger import _tables

UNSTATED: Final = Validity(kind=ValidityKind.SINCE, start=None, end=None, earliest=None, timeless=True)
"""The validity of a correction that gives none and so inherits its target's. A stated `since` has a start."""

NO_KEY: Final = ""
"""Entity and relation of a claim that names no key of its own."""

ACTING: Final = frozenset({Stance.CORRECT, Stance.RETRACT, Stance.SETTLE, Stance.DISPUTE})
"""Stances that bear on what was said before."""

_ENCODE: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode
_QUOTED: Final[Callable[[str], str]] = json.encoder.encode_basestring_ascii
_OF_EVENT: Final = 56
"""Of the 64 digits of a claim's id, those that are of its event."""
_DECODE: Final = json.JSONDecoder().raw_decode
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Digester(Protocol):
    """The tenant's digest key."""

    def digest(self, data: bytes) -> bytes:
        """Return the keyed digest of `data`."""
        ...


COLUMNS: Final = (
    "claim_id", "position", "ordinal", "commit", "event_id", "entity", "relation", "stance", "body",
)  # fmt: skip
"""Of a claim, beside its tenant and epoch, which all that are read together share, and its seal."""

_IN_ORDER: Final = operator.itemgetter(*COLUMNS)


class Told(NamedTuple):
    """A claim as it was read; `said` is its body, as it is written. They sort by position."""

    position: int
    ordinal: int
    claim_id: bytes
    commit: int
    event_id: str
    entity: str
    relation: str
    stance: str
    said: list[Any]

    @property
    def value(self) -> Any:  # noqa: ANN401 — any JSON value
        """Return what it says, None where it says that something ended."""
        return self.said[0]

    @property
    def start(self) -> int | None:
        """Return where its validity begins, in microseconds; None where that is open."""
        start: int | None = self.said[1][1]
        return start


def canonical(value: object) -> bytes:
    """Return the one way in which a JSON value is written in a row: sorted keys, ASCII, no spaces."""
    return _ENCODE(value).encode("ascii")


# Of an event nearly all times are one and the same.
@functools.lru_cache(maxsize=1_024)
def micros(instant: datetime) -> int:
    """Return whole microseconds since 1970, exact for every year that a term can name."""
    return (instant - _EPOCH) // MICROSECOND


def instant_of(value: int) -> datetime:
    """Return the instant of `micros`. UTC."""
    return _EPOCH + timedelta(microseconds=value)


def claim_id_of(keys: Digester, *, tenant: str, event_id: str, ordinal: int, epoch: int) -> str:
    """Return the claim's id as hex: the same event folded twice in one epoch makes the same row."""
    return claim_ids(keys, tenant=tenant, event_id=event_id, epoch=epoch)(ordinal)


def claim_ids(keys: Digester, *, tenant: str, event_id: str, epoch: int) -> Callable[[int], str]:
    """
    Return what gives the ids of an event's claims, by their ordinals.

    The digest is one of the event in its epoch, and the ordinal stands at its end: a digest for each claim
    would take longer than its seal, and each would be looked up, and put into its index, at another place.
    """
    # As `canonical` writes it: where an event has one claim, that takes as long as the digest.
    name = f'["claim",{_QUOTED(tenant)},{_QUOTED(event_id)},{epoch}]'
    event = keys.digest(name.encode("ascii")).hex()[:_OF_EVENT]
    return lambda ordinal: f"{event}{ordinal:08x}"


def state_start(claim: Claim) -> int | None:
    """
    Return where a state begins that is plainly said, in microseconds; None for any other claim.

    It stands in a column of its own, for the next state of a key is looked for by it.
    """
    validity = claim.validity
    if claim.stance not in {Stance.ASSERT, Stance.END} or validity.kind != ValidityKind.SINCE:
        return None
    if claim.inputs or claim.source.actor_class == DERIVED or validity.start is None:
        return None
    return micros(validity.start)


def unsure_between(claim: Claim) -> tuple[int, int] | None:
    """
    Return from when on and until when a state with a coarse start may have begun, in microseconds.

    None of a claim whose start is exact, and of what is no state.
    """
    start, earliest = claim.validity.start, claim.validity.earliest
    if start is None or earliest is None or earliest >= start or claim.validity.kind != ValidityKind.SINCE:
        return None
    return micros(earliest), micros(start)


def row_of(claim: Claim, *, tenant: str, keys: Digester) -> dict[str, Any]:
    """Return the claim as a row of the table `claim`, sealed."""
    row: dict[str, Any] = {
        "tenant": tenant,
        "epoch": claim.epoch,
        "claim_id": bytes.fromhex(claim.claim_id),
        "position": claim.position.event,
        "ordinal": claim.position.ordinal,
        "commit": claim.commit,
        "event_id": claim.event_id,
        "entity": claim.entity,
        "relation": claim.relation,
        "stance": claim.stance.value,
        "body": body_of(claim),
    }
    row["seal"] = seal_of(row, keys=keys)
    return row


def seal_of(row: Mapping[str, Any], *, keys: Digester) -> bytes:
    """Return the keyed digest over every column of a claim row but the seal itself."""
    return keys.digest(sealed_message(_IN_ORDER(row), tenant=row["tenant"], epoch=row["epoch"]))


def sealed_message(columns: Sequence[Any], *, tenant: str, epoch: int) -> bytes:
    """Return what the seal of a claim row is a digest of; `columns` are those of `COLUMNS`."""
    *numbers, event_id, entity, relation, stance, body = columns
    rows = [[column] for column in (*numbers, event_id, body)]
    [message] = sealed_messages([(entity, relation, stance)], rows, tenant=tenant, epoch=epoch)
    return message


def sealed_messages(
    names: Sequence[tuple[str, str, str]], columns: Iterable[Sequence[Any]], *, tenant: str, epoch: int
) -> list[bytes]:
    """
    Return what the seals of claim rows are digests of.

    Args:
        names: Of each its entity, relation and stance. What those of one name share is written once.
        columns: Each of the other columns of `COLUMNS`, of all.
        tenant: Whose they are.
        epoch: Theirs.
    """
    claim_ids, positions, ordinals, commits, event_ids, bodies = columns
    forms = {name: _sealed_form(name, tenant=tenant, epoch=epoch) for name in set(names)}
    hexed = list(map(hexlify, claim_ids))
    rows = zip(
        positions, ordinals, commits, map(len, hexed), map(len, event_ids), hexed,
        map(str.encode, event_ids), bodies, strict=True,
    )  # fmt: skip
    return [forms[name] % row for name, row in zip(names, rows, strict=True)]


def _sealed_form(name: tuple[str, str, str], *, tenant: str, epoch: int) -> bytes:
    # The lengths stand first: no column's end can be read as the start of the next one.
    entity, relation, stance = name
    whose, said = (text.replace("%", "%%") for text in (tenant, f"{entity}{relation}{stance}"))
    return (
        f"claim-row {epoch} %d %d %d {len(tenant)} %d %d {len(entity)} {len(relation)} {len(stance)}:"
        f"{whose}%b%b{said}:%b"
    ).encode()


def told_of(columns: Sequence[Any]) -> Told:
    """Return the claim of a row whose seal was checked; `columns` are those of `COLUMNS`."""
    claim_id, position, ordinal, commit, event_id, entity, relation, stance, body = columns
    [said] = said_in([body])
    return Told(position, ordinal, claim_id, commit, event_id, entity, relation, stance, said)


def said_in(bodies: Iterable[bytes]) -> list[list[Any]]:
    """Return what the bodies of rows say whose seals were checked: they are what was written."""
    # Canonical JSON: ASCII, and nothing around it. Read together, for most of the time goes to begin.
    said: list[list[Any]] = _DECODE(str(b"[" + b",".join(bodies) + b"]", "ascii"))[0]
    return said


def claim_of(row: Mapping[str, Any], *, keys: Digester) -> Claim:
    """
    Return the claim of a row.

    Raises:
        IntegrityFault: A column does not match the seal.
    """
    if not hmac.compare_digest(seal_of(row, keys=keys), bytes(row["seal"])):
        raise IntegrityFault(what=f"the seal of claim {row['position']}#{row['ordinal']}")
    return claim_told(told_of(_IN_ORDER(row)), epoch=row["epoch"])


def claim_told(told: Told, *, epoch: int) -> Claim:
    """Return the claim as the object that it is."""
    position, ordinal, claim_id, commit, event_id, entity, relation, stance, said = told
    value, validity, source, recorded_at, observed_at, spans, occurrence_id, targets, winner, inputs = said
    kind, start, end, earliest, timeless = validity
    return Claim(
        claim_id=claim_id.hex(),
        epoch=epoch,
        entity=entity,
        relation=relation,
        value=value,
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
        targets=tuple(_target_of(target) for target in targets),
        winner=None if winner is None else _target_of(winner),
        inputs=tuple(_target_of(target) for target in inputs),
    )


_SEALED_FORM: Final = 1
"""Of the bytes below. The epoch stood there while there was but one: contexts of then are built alike."""


def sealed_bytes(claim: Claim) -> bytes:
    """Return everything that a claim says, and nothing of its epoch: what a digest of the claim covers."""
    key = [_SEALED_FORM, claim.position.event, claim.position.ordinal, claim.commit, claim.event_id]
    return canonical([*key, claim.entity, claim.relation, claim.stance.value]) + body_of(claim)


async def read_claims(
    conn: AsyncConnection, keys: Digester, *, epoch: int, after_position: int, limit: int
) -> list[Claim]:
    """
    Read claims in order of their position, from the event after `after_position` on.

    The record only: names and values as they were claimed. It says nothing about what is current.
    The last event is whole or left out, unless it alone has more than `limit` claims.

    Raises:
        IntegrityFault: A row does not match its seal.
    """
    table = _tables.claim
    statement = (
        sa.select(table)
        .where(table.c.epoch == epoch, table.c.position > after_position)
        .order_by(table.c.position, table.c.ordinal)
        .limit(limit + 1)
    )
    rows: Sequence[Any] = (await conn.execute(statement)).mappings().all()
    if len(rows) > limit:
        last = rows[-1]["position"]
        whole = [row for row in rows if row["position"] < last]
        rows = whole or rows[:limit]
    return [claim_of(row, keys=keys) for row in rows]


def body_of(claim: Claim) -> bytes:
    """Return what a claim says, as a row carries it."""
    [body] = bodies_of([claim])
    return body


def bodies_of(claims: Iterable[Claim]) -> list[bytes]:
    """Return what claims say, as their rows carry it; what those of one event share is written once."""
    # A list and no names: nine tenths of all claims would carry more names than content. Joined by hand, as
    # `canonical` writes it: most of it is numbers, and what a claim seldom has.
    bodies: list[bytes] = []
    shared, like = "", None
    for claim in claims:
        if (
            like is None
            or claim.event_id != like.event_id
            or claim.source is not like.source
            or claim.validity is not like.validity
        ):
            shared, like = _when_and_who(claim), claim
        bodies.append(f"[{_ENCODE(claim.value)},{shared},{_seldom(claim)}]".encode("ascii"))
    return bodies


def _when_and_who(claim: Claim) -> str:
    validity, source = claim.validity, claim.source
    return (
        f'["{validity.kind}",{_written(validity.start)},{_written(validity.end)},'
        f"{_written(validity.earliest)},{'true' if validity.timeless else 'false'}],"
        f"[{_ENCODE(source.actor_id)},{_ENCODE(source.actor_class)}],"
        f"{micros(claim.recorded_at)},{_written(claim.observed_at)}"
    )


def _seldom(claim: Claim) -> str:
    winner = claim.winner
    if winner is None and claim.occurrence_id is None and not (claim.spans or claim.targets or claim.inputs):
        return "[],null,[],null,[]"
    return (
        f"{_ENCODE([[span.start, span.end] for span in claim.spans]) if claim.spans else '[]'},"
        f"{'null' if claim.occurrence_id is None else _ENCODE(claim.occurrence_id)},"
        f"{_targets_written(claim.targets)},{'null' if winner is None else _ENCODE(_target_form(winner))},"
        f"{_targets_written(claim.inputs)}"
    )


def _written(instant: datetime | None) -> str | int:
    return "null" if instant is None else micros(instant)


def _targets_written(targets: Sequence[TargetRef]) -> str:
    return _ENCODE([_target_form(target) for target in targets]) if targets else "[]"


def _target_form(target: TargetRef) -> dict[str, Any]:
    return {
        "event": target.event_id,
        "ordinal": target.ordinal,
        "entity": target.entity,
        "relation": target.relation,
        "value": target.value,
        "span": None if target.span is None else [target.span.start, target.span.end],
        "interval": [_micros(target.interval_start), _micros(target.interval_end)]
        if target.has_interval
        else None,
    }


def _target_of(form: Mapping[str, Any]) -> TargetRef:
    span, interval = form["span"], form["interval"]
    return TargetRef(
        event_id=form["event"],
        ordinal=form["ordinal"],
        entity=form["entity"],
        relation=form["relation"],
        value=form["value"],
        span=None if span is None else Span(start=span[0], end=span[1]),
        interval_start=None if interval is None else _instant(interval[0]),
        interval_end=None if interval is None else _instant(interval[1]),
        has_interval=interval is not None,
    )


def _micros(instant: datetime | None) -> int | None:
    return None if instant is None else micros(instant)


def _instant(value: int | None) -> datetime | None:
    return None if value is None else instant_of(value)
