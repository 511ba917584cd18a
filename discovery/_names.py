"""The tenant's own names, as the planner knows them: entities, relations, and who "I" is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from contracts.claims import Claim
from discovery._relations import content_roots
from discovery._text import words

SAME_AS: Final = "same_as"
"""The relation whose value is another name of its entity."""
NAME_WORDS_MAX: Final = 8
"""Words of a name that a question can be matched with; a longer one is an id, not a name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantNames:
    """
    Names to read a question with.

    `entities` maps the folded words of a name to the names spelled so; `relations` maps a
    relation to the roots of its own name's words; `user` is the tenant's single actor of class `user`,
    whom the first person means, or None where there is none or more than one. `agent` is whom the
    second person means: the only one that is no person and speaks of itself.
    """

    entities: Mapping[tuple[str, ...], tuple[str, ...]]
    relations: Mapping[str, frozenset[str]]
    user: str | None
    agent: str | None = None


def tenant_names(*, entities: Iterable[str], relations: Iterable[str], users: Iterable[str]) -> TenantNames:
    """Return names as the planner wants them. Order and repetitions of the input do not matter."""
    book = NameBook()
    for entity in entities:
        book.add_entity(entity, commit=0)
    for relation in relations:
        book.add_relation(relation, commit=0)
    for user in users:
        book.add_user(user, commit=0)
    return book.at(0)


class NameBook:
    """
    Names as they become known, commit by commit, so that a question sees those of its cut only.

    Adding is O(1); reading at the newest commit is O(1), at an older one O(names).
    """

    def __init__(self) -> None:
        self._entities: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._relations: dict[str, frozenset[str]] = {}
        self._users: dict[str, int] = {}
        self._since: dict[tuple[str, str], int] = {}
        self._newest = 0

    def __len__(self) -> int:
        """Return how many names are known."""
        return len(self._since)

    def add_entity(self, name: str, *, commit: int) -> None:
        """Make an entity known from a commit on."""
        if not self._is_new("entity", name, commit):
            return
        spelled = words(name)
        if spelled and len(spelled) <= NAME_WORDS_MAX:
            self._entities[spelled] = tuple(sorted({*self._entities.get(spelled, ()), name}))

    def add_relation(self, name: str, *, commit: int) -> None:
        """Make a relation known from a commit on."""
        if self._is_new("relation", name, commit):
            self._relations[name] = content_roots(name)

    def add_user(self, actor: str, *, commit: int) -> None:
        """Make an actor of class `user` known from a commit on."""
        if self._is_new("user", actor, commit):
            self._users[actor] = commit

    def add_claim(self, claim: Claim) -> None:
        """Make known what a claim names: its entity and relation, and another name for the entity."""
        if not claim.entity:
            # It names targets only, and has no key of its own.
            return
        self.add_entity(claim.entity, commit=claim.commit)
        self.add_relation(claim.relation, commit=claim.commit)
        if claim.relation == SAME_AS and isinstance(claim.value, str):
            self.add_entity(claim.value, commit=claim.commit)

    def at(self, cut: int) -> TenantNames:
        """Return the names known at a cut; at the newest one a live view, valid until the next addition."""
        users = [actor for actor, commit in self._users.items() if commit <= cut]
        user = users[0] if len(users) == 1 else None
        if cut >= self._newest:
            return TenantNames(entities=self._entities, relations=self._relations, user=user)
        entities = {
            spelled: kept
            for spelled, spellings in self._entities.items()
            if (kept := tuple(name for name in spellings if self._since["entity", name] <= cut))
        }
        relations = {
            name: stems for name, stems in self._relations.items() if self._since["relation", name] <= cut
        }
        return TenantNames(entities=entities, relations=relations, user=user)

    def _is_new(self, sort: str, name: str, commit: int) -> bool:
        # Events and claims are read one after the other: a name may come again with an earlier commit.
        known = self._since.get((sort, name))
        self._newest = max(self._newest, commit)
        if known is not None:
            self._since[sort, name] = min(known, commit)
            if sort == "user":
                self._users[name] = self._since[sort, name]
            return False
        self._since[sort, name] = commit
        return True
