"""
Tombstones in their tables, read beside the claims that they decide with.

They are found by the digests of the names that are asked for, and come with the names that anything
which is left says. A tenant that erased nothing pays one look for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from contracts.claims import Claim
from contracts.events import Stance
from contracts.identity import IDENTITY, SAME_AS
from contracts.lexicon import CARDINALITY_OF
from contracts.relations import ACTOR
from ledger._claims import claim_of
from ledger._identity import Merges
from ledger._keys import TenantKeys
from ledger._relations import Contracts
from ledger._tombstone_rows import form_in, stone_of
from ledger._tombstones import (
    Erased,
    Spot,
    Tombstone,
    Values,
    is_veiled,
    named,
    names_in,
    values_in,
    veiled,
)

Key: TypeAlias = tuple[str, str]

_ANY: Final = sa.text("SELECT EXISTS (SELECT FROM tombstone WHERE tenant = :tenant)")
_STONES: Final = "SELECT t.* FROM tombstone t WHERE t.tenant = :tenant AND t.commit <= :cut AND "
_ON_KEYS: Final = sa.text(
    _STONES + "(t.entity, t.relation) IN (SELECT * FROM unnest(CAST(:entities AS text[]), "  # noqa: S608
    "CAST(:relations AS text[])))"
)
_OF_EVENTS: Final = sa.text(_STONES + "t.event_id = ANY(CAST(:event_ids AS text[]))")
_OF_RELATION: Final = sa.text(_STONES + "t.relation = :relation")
_ARE_BESIDE: Final = sa.text(
    "SELECT EXISTS (SELECT FROM tombstone t WHERE t.tenant = :tenant AND t.commit <= :cut "
    "AND t.relation = :relation AND t.entity <> ALL (CAST(:entities AS text[]))) "
    "OR EXISTS (SELECT FROM tombstone_reach r JOIN tombstone t USING (tenant, position, ordinal) "
    "WHERE r.tenant = :tenant AND r.epoch = :epoch AND t.commit <= :cut "
    "AND r.relation = :relation AND r.entity <> ALL (CAST(:entities AS text[])))"
)
_KEYS_ABOUT: Final = sa.text(
    "SELECT DISTINCT t.entity, t.relation FROM tombstone t WHERE t.tenant = :tenant "
    "AND t.entity = ANY(CAST(:entities AS text[]))"
)
_AT: Final = sa.text(
    "SELECT t.* FROM tombstone t WHERE t.tenant = :tenant AND (t.position, t.ordinal) IN "
    "(SELECT * FROM unnest(CAST(:positions AS bigint[]), CAST(:ordinals AS integer[])))"
)
_REACHING: Final = sa.text(
    "SELECT DISTINCT t.* FROM tombstone_reach r JOIN tombstone t USING (tenant, position, ordinal) "
    "WHERE r.tenant = :tenant AND r.epoch = :epoch AND t.commit <= :cut AND (r.entity, r.relation) IN "
    "(SELECT * FROM unnest(CAST(:entities AS text[]), CAST(:relations AS text[])))"
)
_REACHED: Final = sa.text(
    "SELECT r.position, r.ordinal, r.entity, r.relation FROM tombstone_reach r "
    "WHERE r.tenant = :tenant AND r.epoch = :epoch AND (r.position, r.ordinal) IN "
    "(SELECT * FROM unnest(CAST(:positions AS bigint[]), CAST(:ordinals AS integer[])))"
)
_TOUCHED: Final = sa.text(
    "SELECT k.entity, k.relation FROM unnest(CAST(:entities AS text[]), CAST(:relations AS text[])) "
    "AS k(entity, relation) WHERE EXISTS (SELECT FROM tombstone t WHERE t.tenant = :tenant "
    "AND t.entity = k.entity AND t.relation = k.relation) OR EXISTS (SELECT FROM tombstone_reach r "
    "WHERE r.tenant = :tenant AND r.epoch = :epoch AND r.entity = k.entity AND r.relation = k.relation) "
    "OR EXISTS (SELECT FROM reach r WHERE r.tenant = :tenant AND r.epoch = :epoch "
    "AND r.entity = k.entity AND r.relation = k.relation)"
)
_IS_REACHED: Final = sa.text(
    "SELECT EXISTS (SELECT FROM tombstone_reach r WHERE r.tenant = :tenant AND r.epoch = :epoch "
    "AND r.entity = :entity AND r.relation = :relation) OR EXISTS (SELECT FROM reach r "
    "WHERE r.tenant = :tenant AND r.epoch = :epoch AND r.entity = :entity AND r.relation = :relation)"
)
_NAMES: Final = sa.text(
    "SELECT veil, name FROM veiled_name WHERE tenant = :tenant AND epoch = :epoch "
    "AND veil = ANY(CAST(:veils AS text[]))"
)
_OF_BATCH: Final = sa.text(
    "SELECT t.* FROM tombstone t WHERE t.tenant = :tenant AND t.event_id = ANY(CAST(:event_ids AS text[]))"
)
_NOTE_NAMES: Final = sa.text(
    "INSERT INTO veiled_name (tenant, epoch, veil, name) SELECT :tenant, :epoch, n.veil, n.name "
    "FROM unnest(CAST(:veils AS text[]), CAST(:names AS text[])) AS n(veil, name) ON CONFLICT DO NOTHING"
)
_WRITE_REACH: Final = sa.text(
    "INSERT INTO tombstone_reach (tenant, epoch, entity, relation, position, ordinal) "
    "SELECT :tenant, :epoch, * FROM unnest(CAST(:entities AS text[]), CAST(:relations AS text[]), "
    "CAST(:positions AS bigint[]), CAST(:ordinals AS integer[]))"
)
_CLAIMS_AT: Final = sa.text(
    "SELECT c.* FROM claim c WHERE c.tenant = :tenant AND c.epoch = :epoch AND (c.position, c.ordinal) IN "
    "(SELECT * FROM unnest(CAST(:positions AS bigint[]), CAST(:ordinals AS integer[])))"
)


_SAYING: Final = frozenset({Stance.ASSERT, Stance.END})


class Graves:
    """The tombstones of one tenant up to a cut, in the caller's transaction and in an epoch's names."""

    def __init__(self, conn: AsyncConnection, keys: TenantKeys, *, epoch: int, cut: int) -> None:
        self._conn = conn
        self._keys = keys
        self._epoch = epoch
        self._cut = cut
        self._are_there: bool | None = None
        self._names: dict[str, str] = {}
        self._veils: dict[str, str] = {}
        self._asked: set[str] = set()
        self._stored: dict[str, Tombstone] = {}
        self._said: dict[Spot, object] = {}
        self._erased: dict[Spot, Erased] = {}

    async def are_there(self) -> bool:
        """Return whether the tenant has tombstones at all; only then is anything else here asked."""
        if self._are_there is None:
            found = bool(await self._conn.scalar(_ANY, {"tenant": self._keys.tenant}))
            self.know(are_there=found)
            return found
        return self._are_there

    def know(self, *, are_there: bool) -> None:
        """Take in whether there are any."""
        if are_there and not self._are_there:
            self.learn([*IDENTITY, *CARDINALITY_OF])
        self._are_there = are_there

    def learn(self, names: Iterable[str]) -> None:
        """Take in names that something says: tombstones that know their digests come with them."""
        for name in names:
            if name and not is_veiled(name):
                self._names[self._veil(name)] = name

    def learn_claims(self, claims: Iterable[Claim]) -> None:
        """Take in what claims say, be their rows written or not."""
        if self._are_there:
            for claim in claims:
                if not isinstance(claim, Tombstone):
                    self.learn(names_in(claim))
                    self._said |= values_in(claim)

    def learn_merges(self, merges: Merges) -> None:
        """Take in the names that are one with others."""
        if self._are_there:
            self.learn(merges.identity.root)

    def learn_contracts(self, contracts: Contracts) -> None:
        """Take in the names that contracts say: of relations, and of actors that they rank."""
        if self._are_there:
            for contract in contracts.registered.values():
                ranked = (name.removeprefix(ACTOR) for names in contract.authority for name in names)
                self.learn([contract.relation, *ranked])

    def veil(self, key: Key) -> Key:
        """Return a key as tombstones know it."""
        return self._veil(key[0]), self._veil(key[1])

    async def on_keys(self, keys: Iterable[Key]) -> list[Claim]:
        """Return the tombstones on these keys; whatever names them is told here."""
        ordered = set(keys)
        self.learn(name for key in ordered for name in key)
        return await self._stones(_ON_KEYS, **self._arrays(ordered))

    async def reaching(self, keys: Iterable[Key]) -> list[Claim]:
        """Return the tombstones that bear on these keys beside their own."""
        return await self._stones(_REACHING, **self._arrays(keys))

    async def of_events(self, event_ids: Iterable[str]) -> list[Claim]:
        """Return the tombstones of these events."""
        return await self._stones(_OF_EVENTS, event_ids=sorted(set(event_ids)))

    async def are_beside(self, relation: str, entities: Iterable[str]) -> bool:
        """Return whether any is on a key of a relation, or bears on one, whose entity is none of these."""
        own = sorted(map(self._veil, set(entities)))
        bound = self._bound(relation=self._veil(relation), entities=own)
        return bool(await self._conn.scalar(_ARE_BESIDE, bound))

    async def of_identity(self) -> list[Claim]:
        """Return the tombstones about who is one with whom."""
        found = await self._stones(_OF_RELATION, relation=self._veil(SAME_AS))
        return [claim for claim in found if isinstance(claim, Tombstone) and claim.pair is not None]

    async def reached(self, claims: Iterable[Claim]) -> dict[str, set[Key]]:
        """Return, by claim id, the keys that these tombstones bear on beside their own."""
        of_place = {
            (claim.position.event, claim.position.ordinal): claim.claim_id
            for claim in claims
            if isinstance(claim, Tombstone)
        }
        found: dict[str, set[Key]] = {}
        if of_place:
            for row in await self._conn.execute(_REACHED, self._bound(**_places(of_place))):
                key = (row.entity, row.relation)
                found.setdefault(of_place[row.position, row.ordinal], set()).add(key)
        return found

    async def touched(self, keys: Iterable[Key]) -> set[Key]:
        """Return those of the keys that a tombstone is on, or that anything bears on by way of one."""
        of_veil = {self.veil(key): key for key in keys}
        if not of_veil:
            return set()
        rows = await self._conn.execute(_TOUCHED, self._bound(**_pairs(of_veil)))
        return {of_veil[row.entity, row.relation] for row in rows}

    async def say_only(self, key: Key) -> bool:
        """Return whether the tombstones on a key act on nothing, and nothing acts by way of them."""
        if await self._conn.scalar(_IS_REACHED, self._bound(**_pair(self.veil(key)))):
            return False
        stones = await self.on_keys([key])
        return all(stone.stance in _SAYING and not stone.inputs for stone in stones)

    async def clear(self, keys: Iterable[Key]) -> set[Key]:
        """Return the keys with their names in clear, as far as anything says them."""
        wanted = set(keys)
        await self._find_names({name for key in wanted for name in key})
        return {(self._names.get(key[0], key[0]), self._names.get(key[1], key[1])) for key in wanted}

    async def named(self, claims: Iterable[Claim]) -> list[Claim]:
        """Return the claims, tombstones among them with every name and value that is known by now."""
        known = list(claims)
        if not self._stored:
            return known
        stones = [self._stored[claim.claim_id] for claim in known if claim.claim_id in self._stored]
        if not stones:
            return known
        await self._find_values(stones)
        values = Values(self._said, self._erased)
        clear = {stone.claim_id: named(stone, self._names, values.of) for stone in stones}
        return [clear.get(claim.claim_id, claim) for claim in known]

    def stored(self, stone: Claim) -> Tombstone:
        """Return a tombstone that was read as it is stored."""
        return self._stored[stone.claim_id]

    async def keys_about(self, names: Iterable[str]) -> set[Key]:
        """Return the keys of these entities that tombstones are on, in clear as far as anything says them."""
        wanted = set(names)
        self.learn(wanted)
        bound = self._bound(entities=sorted(map(self._veil, wanted)))
        rows = await self._conn.execute(_KEYS_ABOUT, bound)
        return await self.clear((row.entity, row.relation) for row in rows)

    async def of_batch(self, event_ids: Iterable[str]) -> list[Claim]:
        """Return the tombstones of events that are being folded, after whatever else is has been learned."""
        stones = await self._stones(_OF_BATCH, event_ids=sorted(set(event_ids)))
        await self._find_names({name for stone in stones for name in names_in(stone)})
        return await self.named(stones)

    async def note_names(self, names: Iterable[str]) -> None:
        """
        Keep names that something which is written says, by digest.

        All of them: a tombstone that is folded only later may know one.
        """
        if await self.are_there():
            of_veil = {self._veil(name): name for name in names if name and not is_veiled(name)}
            ordered = sorted(of_veil)
            bound = self._bound(veils=ordered, names=[of_veil[veil] for veil in ordered])
            await self._conn.execute(_NOTE_NAMES, bound)

    async def write_reach(self, stones: Iterable[Tombstone], reached: Mapping[str, set[Key]]) -> None:
        """Write which keys tombstones bear on beside their own, by claim id."""
        rows = [(key, stone.position) for stone in stones for key in sorted(reached.get(stone.claim_id, ()))]
        if rows:
            bound = self._bound(
                entities=[key[0] for key, _ in rows],
                relations=[key[1] for key, _ in rows],
                positions=[position.event for _, position in rows],
                ordinals=[position.ordinal for _, position in rows],
            )
            await self._conn.execute(_WRITE_REACH, bound)

    def take(self, stones: Iterable[Tombstone]) -> None:
        """Take in tombstones as they are stored, whose rows may not be written yet."""
        for stone in stones:
            self._are_there = True
            self._stored[stone.claim_id] = stone
            self._erased |= {
                spot: value for spot, value in values_in(stone).items() if isinstance(value, Erased)
            }

    # --- reading ----------------------------------------------------------------------------

    async def _stones(self, statement: sa.TextClause, **parameters: object) -> list[Claim]:
        rows = (await self._conn.execute(statement, self._bound(**parameters))).mappings().all()
        return await self.named(self._read(rows))

    def _read(self, rows: Iterable[sa.RowMapping]) -> list[Claim]:
        found = [
            stone_of(form_in(dict(row), keys=self._keys), keys=self._keys, epoch=self._epoch) for row in rows
        ]
        self.take(stone for stone in found if stone.claim_id not in self._stored)
        return sorted(found, key=lambda stone: stone.position)

    async def _find_names(self, names: Iterable[str]) -> None:
        """Read which of these names something that is left says."""
        unknown = {name for name in names if is_veiled(name)} - self._names.keys() - self._asked
        if unknown:
            self._asked |= unknown
            for row in await self._conn.execute(_NAMES, self._bound(veils=sorted(unknown))):
                self._names[row.veil] = row.name

    async def _find_values(self, stones: Iterable[Tombstone]) -> None:
        """Read what the values of tombstones are known by, and what that is known by."""
        waiting = [value for stone in stones for value in values_in(stone).values()]
        seen: set[Spot] = set()
        while waiting:
            likes = {spot for value in waiting if isinstance(value, Erased) for spot in value.like}
            await self._read_at(likes - self._said.keys() - self._erased.keys())
            waiting = [self._erased[spot] for spot in likes - seen if spot in self._erased]
            seen |= likes

    async def _read_at(self, spots: Iterable[Spot]) -> None:
        places = _places({spot[:2] for spot in spots})
        if not places["positions"]:
            return
        rows = (await self._conn.execute(_CLAIMS_AT, self._bound(**places))).mappings()
        for row in rows:
            self._said |= values_in(claim_of(dict(row), keys=self._keys))
        self._read((await self._conn.execute(_AT, self._bound(**places))).mappings())

    def _veil(self, name: str) -> str:
        found = self._veils.get(name)
        if found is None:
            found = self._veils[name] = veiled(self._keys, name)
        return found

    def _arrays(self, keys: Iterable[Key]) -> dict[str, list[str]]:
        return _pairs({self.veil(key) for key in keys})

    def _bound(self, **parameters: object) -> dict[str, Any]:
        bound = {"tenant": self._keys.tenant, "epoch": self._epoch, "cut": self._cut}
        return {**bound, **parameters}


def _pair(key: Key) -> dict[str, str]:
    return {"entity": key[0], "relation": key[1]}


def _pairs(keys: Iterable[Key]) -> dict[str, list[str]]:
    ordered = sorted(set(keys))
    return {"entities": [key[0] for key in ordered], "relations": [key[1] for key in ordered]}


def _places(places: Iterable[tuple[int, int]]) -> dict[str, list[int]]:
    ordered = sorted(set(places))
    return {"positions": [place[0] for place in ordered], "ordinals": [place[1] for place in ordered]}
