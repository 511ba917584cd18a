"""
What an erasure has to take: the events it means and those derived from them, and what recalls them.

Who is named in an event, and what a question says, stands in what is encrypted: so all of it is read.
Most of that is done before anybody has to wait; under lock only what came meanwhile.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import BadRequest, LimitExceeded, NotFound
from contracts.events import COMMAND_KINDS, Event, Kind
from contracts.limits import ERASED_EVENTS_MAX, PAGE_EVENTS_MAX
from ledger import _tables
from ledger._burial import about, reached_from
from ledger._canonical import canonical
from ledger._claims import NO_KEY
from ledger._erasures import ErasedRecall, events_cited
from ledger._identity import identity_of
from ledger._keys import TenantKeys
from ledger._reached import tombstones_apart
from ledger._read import read_events, read_events_by_id
from ledger._tombstone_rows import form_in, stone_of
from ledger._trails import StoredContext, open_context, open_trail, secret_of
from ledger._withdrawal import Replay
from ledger._world import Reader

_KEYS_OF: Final = sa.text(
    "SELECT DISTINCT entity, relation FROM claim WHERE tenant = :tenant AND epoch = :epoch "
    "AND entity = ANY(CAST(:names AS text[]))"
)
_STANDING: Final = sa.text(
    "SELECT e.event_id, e.kind, e.position, x.erasure_id FROM event e LEFT JOIN erased x "
    "ON x.tenant = e.tenant AND x.event_id = e.event_id "
    "WHERE e.tenant = :tenant AND e.event_id = ANY(CAST(:event_ids AS text[]))"
)


@dataclass(slots=True, kw_only=True)
class Scan:
    """
    What was read of the log and of the recalls so far, and what was found in it.

    `subjects_of` has, by event, the names among those looked for that it gives as its subjects;
    `derived` the events that name an event as an input. `recalls` are contexts and trails: by hash
    or id, the event ids in them and whether they name the subject.
    """

    names: frozenset[str]
    position: int = 0
    named: set[str] = field(default_factory=set)
    derived: dict[str, set[str]] = field(default_factory=dict)
    trail: int = 0
    contexts: dict[str, tuple[frozenset[str], bool]] = field(default_factory=dict)
    trails: dict[str, tuple[frozenset[str], bool]] = field(default_factory=dict)


async def scan_log(conn: AsyncConnection, keys: TenantKeys, scan: Scan) -> None:
    """Read on in the log, to its end: all of it where a subject is looked for, else what was derived."""
    if scan.names:
        while page := await read_events(conn, keys, after_position=scan.position, limit=PAGE_EVENTS_MAX):
            scan.position = page[-1].position
            _note(scan, page)
        return
    event = _tables.event
    query = (
        sa.select(event.c.event_id, event.c.position)
        .where(event.c.tenant == keys.tenant, event.c.kind == Kind.DERIVATION.value)
        .where(event.c.position > scan.position)
        .order_by(event.c.position)
    )
    found = (await conn.execute(query)).all()
    _note(scan, (await read_events_by_id(conn, keys, [row.event_id for row in found])).values())
    if found:
        scan.position = found[-1].position


def _note(scan: Scan, page: Iterable[object]) -> None:
    for event in page:
        if not isinstance(event, Event):
            continue
        if event.draft.kind not in COMMAND_KINDS and not scan.names.isdisjoint(event.draft.subjects):
            scan.named.add(event.event_id)
        for claim in event.draft.claims:
            for reference in claim.inputs:
                if reference.event is not None:
                    scan.derived.setdefault(reference.event, set()).add(event.event_id)


async def names_of(reader: Reader, subject: str) -> frozenset[str]:
    """Return every name that the subject is one entity under, as known at the reader's cut."""
    merges = identity_of(await reader.identity_claims(), await reader.contracts())
    return frozenset(merges.names_of(subject))


async def events_about(reader: Reader, names: frozenset[str]) -> tuple[set[str], set[str]]:
    """Return the events with a claim about any of these names, and erased ones with a tombstone about any."""
    contracts = await reader.contracts()
    identities = await reader.identity_claims()
    merges = identity_of(identities, contracts)
    bound = {"tenant": reader.keys.tenant, "epoch": reader.epoch, "names": sorted(names)}
    rows = await reader.conn.execute(_KEYS_OF, bound)
    own = {(row.entity, row.relation) for row in rows if row.relation != NO_KEY}
    if await reader.graves.are_there():
        own |= await reader.graves.keys_about(names)
    world, _ = await reader.world(own, merges)
    claims = {claim.claim_id: claim for claim in [*world, *identities]}
    ordered = sorted(await reader.graves.named(claims.values()), key=lambda claim: claim.position)
    replay = Replay(contracts, merges.identity)
    replay.extend(ordered)
    ids = about(ordered, names, replay)
    left, stones = tombstones_apart(claim for claim in ordered if claim.claim_id in ids)
    return {claim.event_id for claim in left}, {stone.event_id for stone in stones}


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """The events that go, in the order of the log, and those asked for that are gone already."""

    event_ids: tuple[str, ...]
    already: tuple[str, ...]


async def events_going(conn: AsyncConnection, keys: TenantKeys, asked: Iterable[str], scan: Scan) -> Going:
    """
    Return what goes if these are erased: with them all that was derived from them, however often.

    Raises:
        NotFound: One of them is not in the log.
        BadRequest: One of them is a command; those say nothing about anybody.
        LimitExceeded: They are more than one erasure takes.
    """
    wanted = set(asked)
    # What was derived from what is gone already quotes it just the same, however far back that is.
    derived = {source: set(found) for source, found in scan.derived.items()}
    for source, event_id in await _derived_and_gone(conn, keys):
        derived.setdefault(source, set()).add(event_id)
    every = wanted | reached_from(wanted, derived)
    rows = (await conn.execute(_STANDING, {"tenant": keys.tenant, "event_ids": sorted(every)})).all()
    standing = {row.event_id: row for row in rows}
    if not wanted <= standing.keys():
        raise NotFound(what="event")
    for event_id in sorted(wanted):
        if standing[event_id].kind in COMMAND_KINDS:
            raise BadRequest(field="event_ids", reason=f"{event_id} is a {standing[event_id].kind} event")
    ordered = sorted(rows, key=lambda row: row.position)
    going = tuple(row.event_id for row in ordered if row.erasure_id is None)
    if len(going) > ERASED_EVENTS_MAX:
        raise LimitExceeded(limit="ERASED_EVENTS_MAX", allowed=ERASED_EVENTS_MAX, given=len(going))
    already = tuple(row.event_id for row in ordered if row.erasure_id is not None and row.event_id in wanted)
    return Going(event_ids=going, already=already)


async def _derived_and_gone(conn: AsyncConnection, keys: TenantKeys) -> list[tuple[str, str]]:
    """Return what erased events were derived from, as far as tombstones say: (input, event)."""
    table = _tables.tombstone
    rows = (await conn.execute(sa.select(table).where(table.c.tenant == keys.tenant))).mappings()
    stones = [stone_of(form_in(dict(row), keys=keys), keys=keys, epoch=0) for row in rows]
    return [
        (reference.event_id, stone.event_id)
        for stone in stones
        for reference in stone.inputs
        if reference.event_id is not None
    ]


# --- recalls -------------------------------------------------------------------------------------


async def scan_recalls(conn: AsyncConnection, keys: TenantKeys, scan: Scan) -> None:
    """
    Read on in the trails, to their end, and in the contexts that they built.

    Raises:
        IntegrityFault: One of them is not what was written.
    """
    trail, key = _tables.trail, _tables.trail_key
    while True:
        query = (
            sa.select(trail, key.c.wrapped_key)
            # With those that are erased: what they built stays until it is erased itself.
            .outerjoin(key, sa.and_(key.c.tenant == trail.c.tenant, key.c.trail_id == trail.c.trail_id))
            .where(trail.c.tenant == keys.tenant, trail.c.number > scan.trail)
            .order_by(trail.c.number)
            .limit(PAGE_EVENTS_MAX)
        )
        rows = (await conn.execute(query)).mappings().all()
        if not rows:
            return
        for row in rows:
            if row["wrapped_key"] is not None:
                text = canonical(secret_of(open_trail(keys, row))).decode()
                scan.trails[row["trail_id"]] = _cited(text, scan.names)
        await _scan_contexts(conn, keys, scan, [row["context_hash"] for row in rows])
        scan.trail = rows[-1]["number"]


async def _scan_contexts(conn: AsyncConnection, keys: TenantKeys, scan: Scan, hashes: Sequence[str]) -> None:
    context, key = _tables.context, _tables.context_key
    query = (
        sa.select(context, key.c.wrapped_key)
        .join(key, sa.and_(key.c.tenant == context.c.tenant, key.c.context_hash == context.c.context_hash))
        .where(context.c.tenant == keys.tenant)
        .where(context.c.context_hash.in_(sorted(set(hashes) - scan.contexts.keys())))
    )
    for row in (await conn.execute(query)).mappings():
        stored = open_context(keys, row)
        if isinstance(stored, StoredContext):
            scan.contexts[stored.context_hash] = _cited(stored.form.decode(), scan.names)


def _cited(text: str, names: frozenset[str]) -> tuple[frozenset[str], bool]:
    """Return the event ids in a JSON text, and whether any of the names stands in it as a word."""
    named = False
    if names:
        pattern = _words(names)
        named = any(pattern.search(_folded(said)) for said in _strings(json.loads(text)))
    return frozenset(events_cited(text)), named


@lru_cache(maxsize=16)
def _words(names: frozenset[str]) -> re.Pattern[str]:
    return re.compile("|".join(_word(folded) for folded in sorted(map(_folded, names)) if folded) or "(?!)")


def _word(name: str) -> str:
    before = r"(?<!\w)" if _ends_words(name[0]) else ""
    after = r"(?!\w)" if _ends_words(name[-1]) else ""
    return before + re.escape(name) + after


def _ends_words(character: str) -> bool:
    """Whether another letter beside it makes another word: not so in scripts that write no spaces."""
    return character.isdecimal() or character.lower() != character.upper()


def _folded(text: str) -> str:
    """Return a text as it is compared: however it was encoded, in no case, without what nobody sees."""
    seen = "".join(one for one in unicodedata.normalize("NFKC", text) if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", seen.casefold())


def _strings(value: Any) -> Iterator[str]:  # noqa: ANN401 — any JSON value
    match value:
        case str():
            yield value
        case list():
            for item in value:
                yield from _strings(item)
        case dict():
            for name, item in value.items():
                yield name
                yield from _strings(item)
        case _:
            return


def recalls_going(
    recalls: dict[str, tuple[frozenset[str], bool]], event_ids: Iterable[str]
) -> tuple[ErasedRecall, ...]:
    """Return those that cite any of the events or name the subject, each with the events that it cites."""
    going = frozenset(event_ids)
    return tuple(
        ErasedRecall(recall=name, event_ids=tuple(sorted(cited & going)))
        for name, (cited, is_named) in sorted(recalls.items())
        if is_named or not cited.isdisjoint(going)
    )
