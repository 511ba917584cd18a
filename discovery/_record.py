"""
The typed-state route: which keys a question may be about, and which events claim something on them.

It knows names and values as they were claimed, and decides nothing: a withdrawn or superseded
claim is proposed like any other, and the ledger says what became of it.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from contracts.claims import Claim
from contracts.limits import NAME_CHARACTERS_MAX
from contracts.proposals import KeyProposal, Plan
from discovery._names import SAME_AS
from discovery._text import content_stems, terms
from discovery._units import value_text

CLAIMS_OF_KEY_MAX: Final = 32
"""Events proposed for one key, the newest: the ledger reads the whole key anyway."""
SCANNED_MAX: Final = 512
"""Claims of one value's word that are looked at, the newest first."""
KEYS_OF_ENTITY_MAX: Final = 16
"""Keys proposed for an entity that the question names without a relation."""
VALUE_TERMS_MAX: Final = 32
"""Words of one value that it is found under."""

# How much a match says: the key itself; the key under another name of the entity; relation and value
# ("who lives in Lyon?"); entity and value; the entity alone. By order, not by measurement.
NAMED: Final = 1.0
ALIAS: Final = 0.8
RELATION_AND_VALUE: Final = 0.6
ENTITY_AND_VALUE: Final = 0.5
ENTITY: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class StateMatch:
    """Events by how much typed state says for them (0 to 1), and the keys, the best first."""

    events: dict[str, float]
    keys: tuple[KeyProposal, ...]


class ClaimBook:
    """Claims of one epoch by key, by event and by the words of their values."""

    def __init__(self) -> None:
        self._commits = array("q")
        self._events: list[str] = []
        self._keys: list[tuple[str, str]] = []
        self._of_key: dict[tuple[str, str], array[int]] = {}
        self._of_entity: dict[str, dict[str, None]] = {}
        self._of_event: dict[str, array[int]] = {}
        self._of_term: dict[str, array[int]] = {}
        self._aliases: dict[str, dict[str, int]] = {}
        # What connects entities: a value that may be a name, and the first commit that claims on each.
        self._values: list[str] = []
        self._of_value: dict[str, array[int]] = {}
        self._since: dict[str, int] = {}
        self.position = 0
        """Claims of events up to here were added."""
        self.complete_commit = 0
        """Every claim of commits up to here was added."""

    def __len__(self) -> int:
        return len(self._events)

    @property
    def bytes_held(self) -> int:
        """Memory held, in bytes; an estimate."""
        return 300 * len(self._events) + 400 * len(self._of_term) + 200 * len(self._of_value)

    def add(self, claim: Claim) -> None:
        """Add the next claim in order of position."""
        self.position = claim.position.event
        if not claim.entity:
            # It names targets only, and has no key of its own.
            return
        row, key = len(self._events), (claim.entity, claim.relation)
        self._commits.append(claim.commit)
        self._events.append(claim.event_id)
        self._keys.append(key)
        self._of_key.setdefault(key, array("i")).append(row)
        self._of_entity.setdefault(claim.entity, {})[claim.relation] = None
        self._since.setdefault(claim.entity, claim.commit)
        self._add_edge(row, claim.value)
        self._of_event.setdefault(claim.event_id, array("i")).append(row)
        for term in dict.fromkeys(terms(value_text(claim.value))[:VALUE_TERMS_MAX]):
            self._of_term.setdefault(term, array("i")).append(row)
        if claim.relation == SAME_AS:
            self._add_alias(claim.entity, claim.value, claim.commit)

    def _add_edge(self, row: int, value: Any) -> None:  # noqa: ANN401 - any JSON
        name = value if isinstance(value, str) and len(value) <= NAME_CHARACTERS_MAX else ""
        self._values.append(name)
        if name:
            self._of_value.setdefault(name, array("i")).append(row)

    def _add_alias(self, entity: str, value: Any, commit: int) -> None:  # noqa: ANN401 - any JSON
        if isinstance(value, str):
            for name, other in ((entity, value), (value, entity)):
                self._aliases.setdefault(name, {}).setdefault(other, commit)

    def keys_of_event(self, event_id: str, *, cut: int) -> list[tuple[str, str]]:
        """Return the keys that an event claims something on, as known at a cut."""
        rows = self._of_event.get(event_id, array("i"))
        return list(dict.fromkeys(self._keys[row] for row in rows if self._commits[row] <= cut))

    def events_of(self, entity: str, *, cut: int, limit: int) -> Iterator[tuple[str, str]]:
        """Yield events that claim something on an entity, with the relation, the newest of each key."""
        for relation in itertools.islice(sorted(self._of_entity.get(entity, ())), KEYS_OF_ENTITY_MAX):
            for row in self._newest(self._of_key[entity, relation], cut, limit):
                yield self._events[row], relation

    def neighbours(self, entity: str, *, cut: int, limit: int) -> list[str]:
        """Return the entities that claims known at a cut connect with one, by name."""
        found: set[str] = set()
        for relation in itertools.islice(sorted(self._of_entity.get(entity, ())), KEYS_OF_ENTITY_MAX):
            rows = self._newest(self._of_key[entity, relation], cut, limit)
            found.update(self._values[row] for row in rows)
        said_of = self._newest(self._of_value.get(entity, array("i")), cut, limit)
        found.update(self._keys[row][0] for row in said_of)
        found.discard(entity)
        return [name for name in sorted(found) if self._since.get(name, cut + 1) <= cut][:limit]

    def match(self, plan: Plan, question: str, *, cut: int) -> StateMatch:
        """Return what the claims known at a cut have to say to a question."""
        events: dict[str, float] = {}
        keys: dict[tuple[str, str], KeyProposal] = {}
        for entity in plan.entities:
            for match in (self._by_name(entity, plan.relations, cut), self._by_entity(entity, cut)):
                for key, rows, score, named in match:
                    _raise(events, (self._events[row] for row in rows), score)
                    known = keys.get(key)
                    if known is None or known.score_ppm < _ppm(score):
                        keys[key] = KeyProposal(
                            entity=key[0], relation=key[1], score_ppm=_ppm(score), named=named
                        )
        self._by_value(plan, question, cut, events)
        order = sorted(keys.values(), key=lambda key: (-key.score_ppm, key.entity, key.relation))
        return StateMatch(events=events, keys=tuple(order))

    def _newest(self, rows: Sequence[int], cut: int, limit: int) -> list[int]:
        newest: list[int] = []
        for row in reversed(rows):
            if self._commits[row] <= cut:
                newest.append(row)
                if len(newest) == limit:
                    break
        return newest

    def _by_name(self, entity: str, relations: Iterable[str], cut: int) -> Iterator[_Match]:
        aliases = sorted(name for name, commit in self._aliases.get(entity, {}).items() if commit <= cut)
        for relation in relations:
            own = self._newest(self._of_key.get((entity, relation), array("i")), cut, CLAIMS_OF_KEY_MAX)
            others = {
                name: self._newest(self._of_key.get((name, relation), array("i")), cut, CLAIMS_OF_KEY_MAX)
                for name in aliases
            }
            # The ledger resolves merged entities as one: the key is asked under the name in the question.
            if own or any(others.values()):
                yield (entity, relation), own, NAMED, True
            for name, rows in others.items():
                if rows:
                    yield (name, relation), rows, ALIAS, False

    def _by_entity(self, entity: str, cut: int) -> Iterator[_Match]:
        for relation in sorted(self._of_entity.get(entity, {}))[:KEYS_OF_ENTITY_MAX]:
            rows = self._newest(self._of_key[entity, relation], cut, CLAIMS_OF_KEY_MAX)
            if rows:
                yield (entity, relation), rows, ENTITY, False

    def _by_value(self, plan: Plan, question: str, cut: int, events: dict[str, float]) -> None:
        spoken = {stem for entity in plan.entities for stem in content_stems(entity)}
        for term in dict.fromkeys(terms(question)):
            if term in spoken:
                continue
            for row in self._newest(self._of_term.get(term, array("i")), cut, SCANNED_MAX):
                entity, relation = self._keys[row]
                if relation in plan.relations:
                    _raise(events, [self._events[row]], RELATION_AND_VALUE)
                elif entity in plan.entities:
                    _raise(events, [self._events[row]], ENTITY_AND_VALUE)


_Match = tuple[tuple[str, str], list[int], float, bool]


def _raise(events: dict[str, float], event_ids: Iterable[str], score: float) -> None:
    for event_id in event_ids:
        events[event_id] = max(score, events.get(event_id, 0.0))


def _ppm(score: float) -> int:
    return round(score * 1_000_000)
