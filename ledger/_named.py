"""What targets name, as far as it can be told before an event is appended: relations and values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import sqlalchemy as sa

from contracts.events import ClaimDraft, Event, EventDraft, TargetDraft
from contracts.limits import NAMED_CLAIMS_MAX
from ledger._database import Database
from ledger._keys import TenantKeys
from ledger._read import read_events_by_id

_EVENTS_AT_ONCE: Final = 64
"""Events that are opened together: of each, what is not needed is let go before the next ones."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What some targets name: each relation once, and what was claimed where it is one claim alone."""

    relations: tuple[str, ...]
    only: Claimed | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """What is needed of an event, so that a long text is not kept: its claims and its own targets."""

    claims: Sequence[ClaimDraft]
    targets: Sequence[TargetDraft]


_Named: TypeAlias = tuple[TargetDraft, Mapping[str, str]]
"""A target, and the event ids by the `source_event_id` that the targets of its event name."""
_Place: TypeAlias = tuple[str, int | None]
"""A claim by event and ordinal; of no ordinal is what was read out of the event's text."""

_OWN_TARGETS: Final = -1
"""In place of an ordinal: the targets of an event that its claims share."""


class Named:
    """
    Looks up what the targets of an append's events name, in the append itself and in the log.

    A claim is looked at once for each list of targets that leads to it, and `NAMED_CLAIMS_MAX` of
    targets and claims in all; what lies beyond, the fold finds out.

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
        self._drafts = drafts
        self._event_ids = event_ids
        # Of the append's own events, and then of those that are loaded: most appends ask for none.
        self._known: dict[str, _Said | None] = {}
        self._index: dict[str, int] = {}
        # By identity: the drafts live as long as this does, and many claims share their event's targets.
        self._found: dict[tuple[int, ...], Found] = {}
        self._left = NAMED_CLAIMS_MAX

    async def by(self, targets: Sequence[TargetDraft], index: int) -> Found:
        """
        Return what these targets of an event name; no relation where that cannot be told.

        Raises:
            IntegrityFault: Bytes of an event were changed.
        """
        if not self._index:
            self._known.update(zip(self._event_ids, map(_said, self._drafts), strict=True))
            self._index.update((event_id, index) for index, event_id in enumerate(self._event_ids))
        asked = tuple(map(id, targets))
        if asked not in self._found:
            claimed = await self._look_up(targets, self._references[index])
            self._found[asked] = Found(
                relations=tuple(dict.fromkeys(one.relation for one in claimed)),
                only=claimed[0] if len(claimed) == 1 else None,
            )
        return self._found[asked]

    async def _look_up(self, targets: Sequence[TargetDraft], references: Mapping[str, str]) -> list[Claimed]:
        found: list[Claimed] = []
        seen: set[_Place] = set()
        waiting: list[_Named] = [(target, references) for target in targets]
        while waiting:
            waiting = waiting[: max(self._left, 0)]
            self._left -= len(waiting)
            await self._load(self._event_of(target, named) for target, named in waiting)
            further: list[_Named] = []
            for target, named in waiting:
                if target.relation is not None:
                    found.append(Claimed(relation=target.relation, value=target.value))
                elif len(further) < self._left:
                    further += await self._follow(target, self._event_of(target, named), seen, found)
            waiting = further
        return found

    async def _follow(
        self, target: TargetDraft, event_id: str, seen: set[_Place], found: list[Claimed]
    ) -> list[_Named]:
        """Add what a target means in an event, and return what that names in its turn."""
        said = self._known.get(event_id)
        if said is None:
            return []
        ordinals = _ordinals(target, said)
        if not ordinals and _is_new((event_id, None), seen):
            self._left -= 1
            found += await self._read_out(event_id)
        further: list[_Named] = []
        own = self._references[self._index[event_id]] if event_id in self._index else {}
        for ordinal in ordinals:
            if not _is_new((event_id, ordinal), seen):
                continue
            self._left -= 1
            claim = said.claims[ordinal]
            if claim.relation is not None:
                found.append(Claimed(relation=claim.relation, value=claim.value))
            elif claim.targets:
                further += [(each, own) for each in claim.targets]
            elif _is_new((event_id, _OWN_TARGETS), seen):
                further += [(each, own) for each in said.targets]
        return further

    def _event_of(self, target: TargetDraft, references: Mapping[str, str]) -> str:
        if target.source_event_id is not None:
            return references.get(target.source_event_id, "")
        return target.event or ""

    async def _load(self, event_ids: Iterable[str]) -> None:
        wanted = [name for name in dict.fromkeys(event_ids) if name and name not in self._known]
        for start in range(0, len(wanted), _EVENTS_AT_ONCE):
            some = wanted[start : start + _EVENTS_AT_ONCE]
            async with self._db.snapshot(self._keys.tenant) as conn:
                events = await read_events_by_id(conn, self._keys, some)
            for event_id in some:
                event = events.get(event_id)
                self._known[event_id] = _said(event.draft) if isinstance(event, Event) else None

    async def _read_out(self, event_id: str) -> list[Claimed]:
        """Return what was read out of an event's text, once it is folded."""
        async with self._db.tenant(self._keys.tenant) as conn:
            bound = {"tenant": self._keys.tenant, "event_ids": [event_id]}
            relations = await conn.scalars(_READ_OUT, bound)
            return [Claimed(relation=relation, value=None) for relation in dict.fromkeys(relations)]


def _said(draft: EventDraft) -> _Said:
    return _Said(claims=draft.claims, targets=draft.targets)


def _ordinals(target: TargetDraft, said: _Said) -> range:
    """Return the structured claims that a target means; none where it means something in the text."""
    every = range(len(said.claims))
    if target.span is not None:
        return range(0)
    return every if target.ordinal is None else every[target.ordinal : target.ordinal + 1]


def _is_new(place: _Place, seen: set[_Place]) -> bool:
    if place in seen:
        return False
    seen.add(place)
    return True
