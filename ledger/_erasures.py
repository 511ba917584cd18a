"""
The `erasure` event: what it holds of what it took, as text of its own; never content.

One erasure is one commit; where it has more to keep than one event may hold, it is several events.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.errors import IntegrityFault, LimitExceeded
from contracts.events import Event, EventDraft, Kind
from contracts.grants import ERASURES
from contracts.identity import SAME_AS
from contracts.limits import APPEND_BYTES_MAX, APPEND_EVENTS_MAX, TEXT_CHARACTERS_MAX
from ledger import _tables
from ledger._claims import canonical
from ledger._keys import TenantKeys
from ledger._read import read_events_by_id
from ledger._tenants import PLANE
from ledger._tombstones import veiled

_VERSION: Final = 1
_EVENT_ID: Final = re.compile(r"ev_[0-9a-hjkmnp-tv-z]{26}")
_ERASED_ON: Final = sa.text(
    "SELECT DISTINCT t.event_id FROM tombstone t WHERE t.tenant = :tenant AND (t.relation = :identity "
    "OR (t.entity, t.relation) IN (SELECT * FROM unnest(CAST(:entities AS text[]), "
    "CAST(:relations AS text[]))))"
)
_PART_CHARACTERS_MAX: Final = TEXT_CHARACTERS_MAX - 1_024
"""Characters of the items of one event: what else it says must fit beside them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasedRecall:
    """A context (by its hash) or a trail (by its id) that went, and the erased events that it cited."""

    recall: str
    event_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """
    What one erasure event says.

    `events` are ids with the hashes that the log has of them (hex), `subjects` the names that were
    erased with all that was about them, veiled, `stones` tombstones in the form of their rows. `taken`
    are the places, (position, ordinal), of earlier tombstones about these subjects: they go, save for
    those among the `stones` that stand in the same place.
    """

    events: tuple[tuple[str, str], ...]
    subjects: tuple[str, ...]
    taken: tuple[tuple[int, int], ...]
    stones: tuple[list[Any], ...]
    contexts: tuple[ErasedRecall, ...]
    trails: tuple[ErasedRecall, ...]


def erasure_drafts(erasure: Erasure, *, actor_id: str = PLANE) -> list[EventDraft]:
    """
    Return the events that say it, by whom, each with as much as it holds.

    Raises:
        LimitExceeded: One append does not hold them.
    """
    drafts = [_draft(part, actor_id) for part in _parts(erasure)]
    if len(drafts) > APPEND_EVENTS_MAX:
        raise LimitExceeded(limit="APPEND_EVENTS_MAX", allowed=APPEND_EVENTS_MAX, given=len(drafts))
    size_bytes = sum(len((draft.text or "").encode()) for draft in drafts)
    if size_bytes + 1_024 * len(drafts) > APPEND_BYTES_MAX:
        raise LimitExceeded(limit="APPEND_BYTES_MAX", allowed=APPEND_BYTES_MAX, given=size_bytes)
    return drafts


def events_in(draft: EventDraft) -> list[str]:
    """Return the ids of the events that one of `erasure_drafts` says are erased."""
    return [event_id for event_id, _ in json.loads(draft.text or "")["events"]]


def erasure_in(event: Event) -> Erasure:
    """
    Return what an erasure event says.

    Raises:
        IntegrityFault: It is none that `erasure_drafts` makes.
    """
    try:
        said = json.loads(event.draft.text or "")
        _check_version(said["version"])
        return Erasure(
            events=tuple((event_id, digest) for event_id, digest in said["events"]),
            subjects=tuple(said["subjects"]),
            taken=tuple((position, ordinal) for position, ordinal in said["taken"]),
            stones=tuple(said["tombstones"]),
            contexts=tuple(map(_recall, said["contexts"])),
            trails=tuple(map(_recall, said["trails"])),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise IntegrityFault(what=f"the record of erasure {event.event_id}") from error


async def erasures_of(conn: AsyncConnection, keys: TenantKeys) -> list[tuple[Event, Erasure]]:
    """
    Return every erasure that the log holds, in its order.

    Raises:
        IntegrityFault: An event is not what was written.
    """
    event = _tables.event
    query = sa.select(event.c.event_id).where(
        event.c.tenant == keys.tenant, event.c.kind == Kind.ERASURE.value
    )
    found = (await read_events_by_id(conn, keys, list(await conn.scalars(query)))).values()
    events = sorted((one for one in found if isinstance(one, Event)), key=lambda one: one.position)
    return [(one, erasure_in(one)) for one in events]


async def erased_recall(
    conn: AsyncConnection, keys: TenantKeys, recall: str
) -> tuple[str | None, tuple[str, ...]]:
    """
    Return what erased a context or a trail, None where nothing did, and the erased events that it cited.

    Raises:
        IntegrityFault: An erasure is not what was written.
    """
    for event, erasure in await erasures_of(conn, keys):
        for one in (*erasure.contexts, *erasure.trails):
            if one.recall == recall:
                return event.event_id, one.event_ids
    return None, ()


async def erased_on(conn: AsyncConnection, keys: TenantKeys, wanted: Iterable[tuple[str, str]]) -> set[str]:
    """
    Return the erased events that had a claim on any of these keys, or about who is one with whom.

    An answer that stood on none of them by name may have hung on one of them all the same.
    """
    veils = {(veiled(keys, entity), veiled(keys, relation)) for entity, relation in wanted}
    ordered = sorted(veils)
    bound = {
        "tenant": keys.tenant,
        "identity": veiled(keys, SAME_AS),
        "entities": [entity for entity, _ in ordered],
        "relations": [relation for _, relation in ordered],
    }
    return set(await conn.scalars(_ERASED_ON, bound))


def events_cited(text: str) -> set[str]:
    """Return every event id that stands in a text."""
    return set(_EVENT_ID.findall(text))


def _check_version(version: object) -> None:
    if version != _VERSION:
        raise ValueError("an unknown version")


def _parts(erasure: Erasure) -> Iterator[dict[str, list[Any]]]:
    # Events come first, and what goes: what is left of one stands in the same part or a later one.
    items: list[tuple[str, Any]] = [
        *(("subjects", name) for name in erasure.subjects),
        *(("events", list(event)) for event in erasure.events),
        *(("taken", list(place)) for place in erasure.taken),
        *(("tombstones", form) for form in erasure.stones),
        *(("contexts", _recall_form(one)) for one in erasure.contexts),
        *(("trails", _recall_form(one)) for one in erasure.trails),
    ]
    part, size = _empty(), 0
    for name, item in items:
        length = len(canonical(item)) + 1
        if size + length > _PART_CHARACTERS_MAX:
            yield part
            part, size = _empty(), 0
        part[name].append(item)
        size += length
    yield part


def _empty() -> dict[str, list[Any]]:
    return {"subjects": [], "events": [], "taken": [], "tombstones": [], "contexts": [], "trails": []}


def _draft(part: dict[str, list[Any]], actor_id: str) -> EventDraft:
    text = canonical({"version": _VERSION, **part}).decode("ascii")
    actor = {"id": actor_id, "class": "operator"}
    form = {"stream": ERASURES, "kind": Kind.ERASURE.value, "actor": actor, "text": text}
    return EventDraft.model_validate(form)


def _recall_form(one: ErasedRecall) -> list[Any]:
    return [one.recall, list(one.event_ids)]


def _recall(form: Sequence[Any]) -> ErasedRecall:
    name, event_ids = form
    return ErasedRecall(recall=name, event_ids=tuple(event_ids))
