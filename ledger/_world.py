"""
Loading the claims that the decision of some keys needs: no more than those, and none left out.

Needed are the claims on a key and on those it is one with, the claims that act on these, and the
keys that any of them bears on: a connected piece of the ledger, nearly always a single key.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias

from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.errors import IntegrityFault
from contracts.identity import IDENTITY
from contracts.relations import RelationContract
from ledger._aside import aside
from ledger._claims import COLUMNS, NO_KEY
from ledger._direct import fetched
from ledger._graves import Graves
from ledger._identity import NO_MERGES, Merges, names_paired
from ledger._keys import TenantKeys
from ledger._relations import Contracts, contract_of, relation_seal
from ledger._told import claims_of
from ledger._tombstones import Tombstone

Key: TypeAlias = tuple[str, str]
"""(entity, relation)."""

_COLUMNS: Final = ", ".join(f"c.{column}" for column in (*COLUMNS, "seal"))
# Each key is looked up by itself, by index: `OFFSET 0` keeps the planner from joining the whole
# table to the keys, which it does as soon as its statistics are old.
_ON_KEYS: Final = (
    "SELECT c.* FROM unnest(CAST(%(entities)s AS text[]), CAST(%(relations)s AS text[])) "  # noqa: S608
    f"AS k(entity, relation) CROSS JOIN LATERAL (SELECT {_COLUMNS} FROM claim c WHERE c.tenant = %(tenant)s "
    "AND c.epoch = %(epoch)s AND c.entity = k.entity AND c.relation = k.relation AND c.commit <= %(cut)s "
    "OFFSET 0) AS c"
)
_ENDS_ON_KEYS: Final = (
    "SELECT c.* FROM unnest(CAST(%(entities)s AS text[]), CAST(%(relations)s AS text[])) "  # noqa: S608
    f"AS k(entity, relation) CROSS JOIN LATERAL (SELECT {_COLUMNS} FROM claim c WHERE c.tenant = %(tenant)s "
    "AND c.epoch = %(epoch)s AND c.entity = k.entity AND c.relation = k.relation AND c.commit <= %(cut)s "
    "AND c.stance IN ('end', 'correct') OFFSET 0) AS c"
)
_REACHING_KEYS: Final = (
    # One claim may bear on many of the keys: it is read once, with all that it names.
    "SELECT c.* FROM (SELECT DISTINCT r.claim_id FROM "  # noqa: S608
    "unnest(CAST(%(entities)s AS text[]), CAST(%(relations)s AS text[])) "
    "AS k(entity, relation) CROSS JOIN LATERAL (SELECT r.claim_id FROM reach r WHERE r.tenant = %(tenant)s "
    "AND r.epoch = %(epoch)s AND r.entity = k.entity AND r.relation = k.relation OFFSET 0) AS r) AS r "
    f"CROSS JOIN LATERAL (SELECT {_COLUMNS} FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s "
    "AND c.claim_id = r.claim_id AND c.commit <= %(cut)s OFFSET 0) AS c"
)
_REACHED: Final = (
    "SELECT k.claim_id, r.entity, r.relation FROM unnest(CAST(%(claim_ids)s AS bytea[])) AS k(claim_id) "
    "CROSS JOIN LATERAL (SELECT r.entity, r.relation FROM reach r WHERE r.tenant = %(tenant)s "
    "AND r.epoch = %(epoch)s AND r.claim_id = k.claim_id OFFSET 0) AS r"
)
_OF_EVENTS: Final = (
    "SELECT c.* FROM unnest(CAST(%(event_ids)s AS text[])) AS k(event_id) CROSS JOIN LATERAL ("  # noqa: S608
    "SELECT e.position FROM event e WHERE e.tenant = %(tenant)s AND e.event_id = k.event_id OFFSET 0) AS e "
    f"CROSS JOIN LATERAL (SELECT {_COLUMNS} FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s "
    "AND c.position = e.position AND c.commit <= %(cut)s OFFSET 0) AS c"
)
_BY_ID: Final = (
    "SELECT c.* FROM unnest(CAST(%(claim_ids)s AS bytea[])) AS k(claim_id) "  # noqa: S608
    f"CROSS JOIN LATERAL (SELECT {_COLUMNS} FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s "
    "AND c.claim_id = k.claim_id OFFSET 0) AS c"
)
_AFTER: Final = (
    f"SELECT {_COLUMNS} FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s "  # noqa: S608
    "AND c.position > %(after)s AND c.commit <= %(cut)s"
)
_STATES_AFTER: Final = (
    "SELECT k.place, c.* FROM unnest(CAST(%(entities)s AS text[]), CAST(%(relations)s AS text[]), "  # noqa: S608
    "CAST(%(starts)s AS bigint[]), CAST(%(most)s AS bigint[])) WITH ORDINALITY "
    "AS k(entity, relation, after, most, place) CROSS JOIN LATERAL ("
    f"SELECT {_COLUMNS} FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s "
    "AND c.entity = k.entity AND c.relation = k.relation AND c.starts > k.after AND c.commit <= %(cut)s "
    "ORDER BY c.starts, c.position, c.ordinal LIMIT k.most) AS c"
)
_UNSURE: Final = (
    "SELECT c.* FROM unnest(CAST(%(entities)s AS text[]), CAST(%(relations)s AS text[])) "  # noqa: S608
    f"AS k(entity, relation) CROSS JOIN LATERAL ((SELECT {_COLUMNS} FROM claim c "
    "WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s AND c.entity = k.entity AND c.relation = k.relation "
    "AND c.unsure_to > %(after)s AND c.unsure_to < %(last)s AND c.unsure_from < %(before)s "
    "AND c.commit <= %(cut)s ORDER BY c.unsure_to LIMIT %(most)s) UNION ALL ("
    f"SELECT {_COLUMNS} FROM reach r JOIN claim c ON c.tenant = r.tenant AND c.epoch = r.epoch "
    "AND c.claim_id = r.claim_id WHERE r.tenant = %(tenant)s AND r.epoch = %(epoch)s "
    "AND r.entity = k.entity AND r.relation = k.relation AND r.unsure AND c.unsure_to > %(after)s "
    "AND c.unsure_from < %(before)s AND c.commit <= %(cut)s ORDER BY c.unsure_to LIMIT %(most)s)) AS c"
)
# A year, and what the offsets of two places can add to it.
_UNSURE_LONGEST: Final = 368 * 86_400 * 1_000_000
_IDENTITY: Final = (
    f"SELECT {_COLUMNS} FROM claim c WHERE c.tenant = %(tenant)s AND c.epoch = %(epoch)s "  # noqa: S608
    "AND c.relation IN ('same_as', 'not_same_as') AND c.commit <= %(cut)s"
)
_RELATIONS: Final = (
    "SELECT relation, commit, contract, seal FROM relation "
    "WHERE tenant = %(tenant)s AND epoch = %(epoch)s AND commit <= %(cut)s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Reads verified claims of one tenant and epoch, up to a cut, in the caller's transaction."""

    conn: AsyncConnection
    keys: TenantKeys
    epoch: int
    cut: int
    graves: Graves = field(init=False)

    def __post_init__(self) -> None:
        graves = Graves(self.conn, self.keys, epoch=self.epoch, cut=self.cut)
        object.__setattr__(self, "graves", graves)

    async def rows(self, statement: str, parameters: Mapping[str, object]) -> Sequence[Any]:
        """Return what a query returns, past SQLAlchemy's own execution: see `Database.rows`."""
        driver: Any = (await self.conn.get_raw_connection()).driver_connection
        return await fetched(driver, statement, parameters)

    async def streamed(self, statement: str, parameters: Mapping[str, object]) -> AsyncGenerator[Any, None]:
        """Yield each row of a query when it comes; nothing else can be asked for before all have."""
        driver: Any = (await self.conn.get_raw_connection()).driver_connection
        async with aclosing(driver.held.streamed(statement, parameters)) as rows:
            async for row in rows:
                yield row

    async def on_keys(self, keys: Iterable[Key]) -> list[Claim]:
        """Return the claims that name these keys as their own, and what is left of erased ones."""
        wanted = set(keys)
        claims = await self._claims(_ON_KEYS, **_arrays(wanted))
        return claims + await self.graves.on_keys(wanted) if await self.graves.are_there() else claims

    async def ends_on(self, keys: Iterable[Key]) -> list[Claim]:
        """Return those that end or correct of the claims that name these keys as their own."""
        wanted = set(keys)
        return await self._claims(_ENDS_ON_KEYS, **_arrays(wanted)) if wanted else []

    async def reaching(self, keys: Iterable[Key]) -> list[Claim]:
        """Return the claims that bear on these keys beside their own, be it by way of erased ones."""
        wanted = set(keys)
        if not await self.graves.are_there():
            return await self._claims(_REACHING_KEYS, **_arrays(wanted))
        veils = {self.graves.veil(key) for key in wanted}
        claims = await self._claims(_REACHING_KEYS, **_arrays(wanted | veils))
        return claims + await self.graves.reaching(wanted)

    async def of_events(self, event_ids: Iterable[str]) -> list[Claim]:
        """Return the claims of these events, or what is left of them."""
        wanted = sorted(set(event_ids))
        if not wanted:
            return []
        claims = await self._claims(_OF_EVENTS, event_ids=wanted)
        return claims + await self.graves.of_events(wanted) if await self.graves.are_there() else claims

    async def by_id(self, claim_ids: Iterable[str]) -> dict[str, Claim]:
        """Return claims by id, whatever their commit."""
        wanted = [bytes.fromhex(claim_id) for claim_id in sorted(set(claim_ids))]
        if not wanted:
            return {}
        rows = await self.rows(_BY_ID, self._bound(claim_ids=wanted))
        # Histories and differences name thousands.
        found = await aside(partial(claims_of, rows, self.keys, epoch=self.epoch), items=len(rows))
        self.graves.learn_claims(found)
        return {claim.claim_id: claim for claim in found}

    async def after(self, position: int) -> list[Claim]:
        """Return the claims of events after a position, in order."""
        return await self._claims(_AFTER, after=position)

    async def states_after(self, wanted: Sequence[tuple[Key, int, int]]) -> list[list[Claim]]:
        """
        Return states of keys that begin after an instant, in order: the first ones.

        Args:
            wanted: A key, an instant in microseconds, and how many at most, each time.
        """
        parameters = self._bound(
            entities=[key[0] for key, _, _ in wanted],
            relations=[key[1] for key, _, _ in wanted],
            starts=[start for _, start, _ in wanted],
            most=[most for _, _, most in wanted],
        )
        found: list[list[Sequence[Any]]] = [[] for _ in wanted]
        for place, *row in await self.rows(_STATES_AFTER, parameters):
            found[place - 1].append(row)
        return [
            sorted(
                claims_of(rows, self.keys, epoch=self.epoch),
                key=lambda claim: (claim.validity.start, claim.position),
            )
            for rows in found
        ]

    async def unsure_on(self, keys: Iterable[Key], *, after: int, before: int, most: int) -> list[Claim]:
        """
        Return states of keys with a coarse start: after an instant, though it may be before another.

        At most `most` of each key, and as many corrections that bear on it and name none. Found by an index
        of such states alone, whatever else the key has.

        Args:
            keys: The keys.
            after: An instant in microseconds.
            before: Another, likewise.
            most: How many are read.
        """
        bounds = {"after": after, "before": before, "last": before + _UNSURE_LONGEST, "most": most}
        return await self._claims(_UNSURE, **_arrays(keys), **bounds)

    async def reached(self, claims: Iterable[Claim]) -> dict[str, set[Key]]:
        """
        Return, by claim id, the keys that these claims bear on beside their own.

        Those that they bear on by way of erased claims are veiled.
        """
        acting = [claim for claim in claims if bears_elsewhere(claim)]
        found = await self.graves.reached(acting)
        wanted = [bytes.fromhex(claim.claim_id) for claim in acting if claim.claim_id not in found]
        if wanted:
            for claim_id, entity, relation in await self.rows(_REACHED, self._bound(claim_ids=wanted)):
                found.setdefault(claim_id.hex(), set()).add((entity, relation))
        return found

    async def identity_claims(self) -> list[Claim]:
        """Return all claims about who is one with whom, and all that those hang on, in order."""
        claims = await self._claims(_IDENTITY)
        if await self.graves.are_there():
            self.graves.learn_claims(claims)
            claims += await self.graves.of_identity()
        if not claims:
            return []
        keys = {(claim.entity, claim.relation) for claim in claims}
        keys |= {(claim.value, claim.relation) for claim in claims if isinstance(claim.value, str)}
        claims += await self.reaching(keys)
        if any(bears_elsewhere(claim) for claim in claims):
            # What they were derived from, act on or were moved from decides with them.
            claims += (await self.world(keys, NO_MERGES))[0]
        by_id = {claim.claim_id: claim for claim in claims}
        return sorted(by_id.values(), key=lambda claim: claim.position)

    async def contracts(self) -> Contracts:
        """
        Return the contracts registered up to the cut.

        Raises:
            IntegrityFault: A row does not match its seal.
        """
        registered: dict[str, RelationContract] = {}
        for relation, commit, form, seal in await self.rows(_RELATIONS, self._bound()):
            if relation_seal(self.keys, self.epoch, relation, commit, form) != seal:
                raise IntegrityFault(what=f"the seal of a contract, commit {commit}")
            registered[relation] = contract_of(form)
        contracts = Contracts(registered=registered)
        if await self.graves.are_there():
            self.graves.learn_contracts(contracts)
        return contracts

    async def world(self, keys: Iterable[Key], merges: Merges) -> tuple[list[Claim], set[Key]]:
        """Return all claims that the decision of these keys needs, in order, and the keys they are on."""
        waiting = with_merged(keys, merges)
        loaded: set[Key] = set()
        every: set[Key] = set()
        claims: dict[str, Claim] = {}
        self.graves.learn_merges(merges)
        while waiting:
            loaded |= waiting
            found = [*await self.on_keys(waiting), *await self.reaching(waiting)]
            new = [claim for claim in found if claim.claim_id not in claims]
            claims.update((claim.claim_id, claim) for claim in new)
            touched = set().union(*map(keys_of, new))
            for more in (await self.reached(new)).values():
                touched |= more
            # A name may be learned only later, by a claim that another key brought.
            every |= touched
            waiting = with_merged(await self.graves.clear(every), merges) - loaded
        named = await self.graves.named(claims.values())
        return sorted(named, key=lambda claim: claim.position), loaded

    async def _claims(self, statement: str, **parameters: object) -> list[Claim]:
        rows = await self.rows(statement, self._bound(**parameters))
        once = {row[0]: row for row in rows}
        found = claims_of(list(once.values()), self.keys, epoch=self.epoch)
        self.graves.learn_claims(found)
        return found

    def _bound(self, **parameters: object) -> dict[str, Any]:
        return {"tenant": self.keys.tenant, "epoch": self.epoch, "cut": self.cut, **parameters}


def keys_of(claim: Claim) -> set[Key]:
    """
    Return the keys that a claim is on: its own, or none.

    One about who is one with whom is on every key by which its pair is called: what was derived from
    `same_as`, said of the one name, goes by a `not_same_as` said of the other.
    """
    if claim.relation in IDENTITY:
        return {(name, relation) for name in names_paired([claim]) for relation in IDENTITY}
    return set() if claim.relation == NO_KEY else {(claim.entity, claim.relation)}


def bears_elsewhere(claim: Claim) -> bool:
    """Return whether a claim may bear on keys beside its own."""
    is_called = isinstance(claim, Tombstone) and bool(claim.called)
    return bool(claim.targets or claim.inputs or claim.winner is not None) or is_called


def references_of(claim: Claim) -> Sequence[str]:
    """Return the ids of the events that the claim names."""
    named = [*claim.targets, *claim.inputs, *([] if claim.winner is None else [claim.winner])]
    return [reference.event_id for reference in named if reference.event_id]


def with_merged(keys: Iterable[Key], merges: Merges) -> set[Key]:
    """Return the keys, under every name of their entities."""
    return {
        (member, relation)
        for entity, relation in keys
        for member in merges.members.get(merges.identity.entity(entity), (entity,))
    }


def _arrays(keys: Iterable[Key]) -> dict[str, list[str]]:
    ordered = sorted(set(keys))
    return {
        "entities": [entity for entity, _ in ordered],
        "relations": [relation for _, relation in ordered],
    }
