"""What targets name, as far as it can be told before an event is appended: relations and values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa

from contracts.events import ClaimDraft, Event, EventDraft, TargetDraft
from ledger._database import Database
from ledger._keys import TenantKeys
from ledger._read import read_events_by_id

STEPS_MAX: Final = 16
"""Corrections of corrections that are followed; beyond, the fold finds out."""

_READ_OUT: Final = sa.text(
    "SELECT c.relation FROM claim c JOIN epoch e ON e.tenant = c.tenant AND e.epoch = c.epoch "
    "WHERE c.tenant = :tenant AND e.state = 'serving' AND c.event_id = ANY(CAST(:event_ids AS text[])) "
    "AND c.relation <> '' ORDER BY c.position, c.ordinal"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A relation that something was claimed on, and its value where that can be told."""

    relation: str
    value: Any


class Named:
    """
    Looks up what the targets of an append's events name, in the append itself and in the log.

    Args:
        db: The database; asked only when something is looked up.
        keys: The tenant's.
        drafts: The events of the append, in order.
        event_ids: The ids that they are about to get.
        references: For each of them, event ids by the `source_event_id` that its targets name.
    """

    def __init__(
        self,
        db: Database,
        keys: TenantKeys,
        drafts: Sequence[EventDraft],
        event_ids: Sequence[str],
        references: Sequence[Mapping[str, str]],
    ) -> None:
        self._db = db
        self._keys = keys
        self._references = references
        self._known: dict[str, EventDraft | None] = dict(zip(event_ids, drafts, strict=True))
        self._index = {event_id: index for index, event_id in enumerate(event_ids)}

    async def by(self, targets: Sequence[TargetDraft], index: int) -> list[Claimed]:
        """
        Return what these targets of an event name; nothing where that cannot be told.

        Raises:
            IntegrityFault: Bytes of an event were changed.
        """
        found: list[Claimed] = []
        waiting = [(target, self._references[index]) for target in targets]
        for _ in range(STEPS_MAX):
            await self._load([self._event_of(target, references) for target, references in waiting])
            further: list[tuple[TargetDraft, Mapping[str, str]]] = []
            for target, references in waiting:
                if target.relation is not None:
                    found.append(Claimed(relation=target.relation, value=target.value))
                    continue
                event_id = self._event_of(target, references)
                draft = self._known.get(event_id)
                if draft is None:
                    continue
                own = self._references[self._index[event_id]] if event_id in self._index else {}
                claims = _meant(target, draft)
                if not claims:
                    found += await self._read_out(event_id)
                for claim in claims:
                    if claim.relation is not None:
                        found.append(Claimed(relation=claim.relation, value=claim.value))
                    else:
                        further += [(each, own) for each in claim.targets or draft.targets]
            waiting = further
            if not waiting:
                break
        return found

    def _event_of(self, target: TargetDraft, references: Mapping[str, str]) -> str:
        if target.source_event_id is not None:
            return references.get(target.source_event_id, "")
        return target.event or ""

    async def _load(self, event_ids: Sequence[str]) -> None:
        wanted = [name for name in dict.fromkeys(event_ids) if name and name not in self._known]
        if not wanted:
            return
        async with self._db.snapshot(self._keys.tenant) as conn:
            events = await read_events_by_id(conn, self._keys, wanted)
        for event_id in wanted:
            event = events.get(event_id)
            self._known[event_id] = event.draft if isinstance(event, Event) else None

    async def _read_out(self, event_id: str) -> list[Claimed]:
        """Return what was read out of an event's text, once it is folded."""
        async with self._db.tenant(self._keys.tenant) as conn:
            bound = {"tenant": self._keys.tenant, "event_ids": [event_id]}
            relations = await conn.scalars(_READ_OUT, bound)
            return [Claimed(relation=relation, value=None) for relation in dict.fromkeys(relations)]


def _meant(target: TargetDraft, draft: EventDraft) -> Sequence[ClaimDraft]:
    """Return the structured claims that a target means; none where it means something in the text."""
    if target.span is not None:
        return ()
    if target.ordinal is None:
        return draft.claims
    return draft.claims[target.ordinal : target.ordinal + 1]
