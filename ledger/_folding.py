"""
One fold in memory: commits applied to lines one by one, each with its net effect.

A state that is appended to a line where every claim can replace every other is decided by the
line's tail. Everything else is worked out from the claims of the connected piece of the ledger,
loaded once a fold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from contracts.claims import Claim, ValidityKind
from contracts.events import Stance
from contracts.relations import Cardinality, RelationContract
from ledger._ahead import Place
from ledger._cells import Cells
from ledger._claims import NO_KEY
from ledger._hearing import Hearing
from ledger._identity import NO_MERGES, Merges, identity_of, moved_between, names_paired
from ledger._kept import World
from ledger._lines import Line
from ledger._nearby import Late, Nearby, OnLine
from ledger._occurrences import WHOLE
from ledger._placing import place
from ledger._reached import Reached, tombstones_apart
from ledger._register import place_of
from ledger._relations import IDENTITY, Contracts
from ledger._settling import Settler
from ledger._shelf import Shelf
from ledger._tails import only_says
from ledger._tombstones import Tombstone
from ledger._withdrawal import Replay
from ledger._world import Key, Reader, bears_elsewhere, keys_of, with_merged
from ledger._worlds import Left, Worlds


class Folding:
    """
    The state of one fold. Give it each commit in order, then read `lines` and `reached`.

    `unplaced` are claims that found nothing to act on, `read_whole` the keys of which every claim was read.
    """

    def __init__(
        self, reader: Reader, cells: Cells, contracts: Contracts, *, left: Left | None = None
    ) -> None:
        self.contracts = contracts
        self.reached = Reached(reader)
        self.unplaced: dict[str, Claim] = {}
        self.read_whole: set[Key] = set()
        self._reader = reader
        self._cells = cells
        self._shelf = Shelf(cells)
        self._clouded: set[Key] = set()
        self._buried: set[Key] = set()
        self._claims: dict[str, Claim] = {}
        self._on_key: dict[Key, list[Claim]] = defaultdict(list)
        self._nearby = Nearby(reader, cells, claims=self._claims, on_key=self._on_key)
        self._left = left
        self._worlds = Worlds()
        self._identity_claims: list[Claim] = []
        self._merges = NO_MERGES
        self._hearing = self._heard_now()
        self._settler = Settler(self._shelf, reader.keys, self._hearing.digest)
        self._around: dict[int, OnLine] = {}
        self._paired: set[str] = set()
        self._beneath: set[Key] = set()
        # Whether anything but identity was derived from who is one with whom: it goes by what pairs have.
        self._is_built_on = False

    @property
    def lines(self) -> list[Line]:
        """Every line that was looked at and is there."""
        return [line for line in self._shelf.all if not line.blank]

    async def prepare(self, claims: Sequence[Claim]) -> None:
        """Load what deciding by tails needs for all keys of the fold, and who is one with whom."""
        self._identity_claims = await self._reader.identity_claims()
        self._note_identity()
        graves = self._reader.graves
        if await graves.are_there():
            # A tail knows nothing of what was erased.
            keys = {(claim.entity, claim.relation) for claim in claims if claim.relation != NO_KEY}
            self._buried = await graves.touched(keys)
        elif self._left is not None:
            self._worlds = await self._left.caught_up(self._reader, self.contracts, self._merges)
        await self._look_up(tombstones_apart(claims)[0])

    async def leaves(self, place: Place, epoch: int) -> Left | None:
        """Return what the next fold may go on with, once this one is written and stands at a place."""
        if await self._reader.graves.are_there():
            # What they know by digest is told in clear as this fold read it.
            return None
        return Left(
            place=place, epoch=epoch, contracts=self.contracts, merges=self._merges, worlds=self._worlds
        )

    def register(self, contract: RelationContract) -> None:
        """Take in a contract of a relation that nothing was claimed on yet."""
        self.contracts = self.contracts.with_registered([contract])
        self._hear_anew()
        # What was replayed so far knows the contracts of before.
        self._worlds.clear()

    async def commit(self, number: int, claims: Sequence[Claim]) -> None:
        """Apply the claims of one commit, given in the order of their positions."""
        touched: dict[Key, list[Claim]] = defaultdict(list)
        # By now more of what tombstones know by digest may have been read in clear.
        claims = await self._reader.graves.named(claims)
        for claim in claims:
            own = (claim.entity, claim.relation)
            if claim.relation != NO_KEY and not bears_elsewhere(claim):
                self.reached.note_alone(claim)
                self._take(claim, (own,))
                touched[own].append(claim)
                continue
            keys = await self.reached.note(claim)
            self._take(claim, keys)
            if not keys:
                self.unplaced[claim.claim_id] = claim
            for key in keys:
                touched[key].append(claim)
        worked_out = await self._changed_by_identity(claims, touched)
        plainly: set[Key] = set()
        for key, said in touched.items():
            if key in worked_out or (key[1] in IDENTITY and not self._is_built_on):
                continue
            if key[1] in IDENTITY or not self._by_tail(key, said, number):
                plainly.add(key)
        if worked_out or plainly:
            await self._work_out(worked_out | plainly, number, whole=worked_out)

    # --- which keys a commit touches --------------------------------------------------------

    def _take(self, claim: Claim, keys: Collection[Key]) -> None:
        self._claims[claim.claim_id] = claim
        if isinstance(claim, Tombstone):
            self._buried |= set(keys)
        if claim.stance == Stance.CORRECT or (claim.stance == Stance.END and claim.value is None):
            self._clouded |= set(keys)
        for key in keys:
            self._on_key[key].append(claim)
        self._worlds.take(claim, keys)

    async def _changed_by_identity(
        self, claims: Sequence[Claim], touched: dict[Key, list[Claim]]
    ) -> set[Key]:
        """Return the keys that a change of who is one with whom makes new; none if nothing changed."""
        if not any(key[1] in IDENTITY or key in self._beneath for key in touched):
            return set()
        about = [claim for claim in claims if self._is_about_identity(claim)]
        if not about:
            return set()
        before = self._merges
        known = {claim.claim_id: claim for claim in [*self._identity_claims, *about]}
        if any(bears_elsewhere(claim) for claim in about):
            known |= (await self._piece(self._keys_bound(about, NO_MERGES), NO_MERGES, among=Worlds()))[0]
        self._identity_claims = sorted(known.values(), key=lambda claim: claim.position)
        self._note_identity()
        moved = moved_between(before, self._merges)
        if not moved:
            return set()
        self._worlds.clear()
        return await self._all_keys_of(moved, touched)

    def _is_about_identity(self, claim: Claim) -> bool:
        own = (claim.entity, claim.relation)
        if claim.relation in IDENTITY or (claim.relation != NO_KEY and own in self._beneath):
            return True
        return any(key[1] in IDENTITY or key in self._beneath for key in self.reached.get(claim))

    async def _all_keys_of(self, entities: set[str], touched: dict[Key, list[Claim]]) -> set[Key]:
        """Return every key of these entities, and of any entity on relations whose values are entities."""
        by_entity = await self._cells.relations_of(entities)
        relations = set(by_entity) | {relation for entity, relation in self._on_key if entity in entities}
        relations -= IDENTITY | {NO_KEY}
        keys = {(entity, relation) for entity in entities for relation in relations}
        valued = [
            name for name, contract in self.contracts.registered.items() if contract.value_type == "entity"
        ]
        keys |= set(await self._cells.keys_on(valued))
        keys |= {key for key in [*self._on_key, *touched] if key[1] in valued}
        return keys

    def _note_identity(self) -> None:
        self._merges = identity_of(self._identity_claims, self.contracts)
        self._hear_anew()
        self._paired = names_paired(self._identity_claims)
        self._beneath = {(claim.entity, claim.relation) for claim in self._identity_claims}
        self._is_built_on = any(
            claim.inputs and claim.relation not in IDENTITY for claim in self._identity_claims
        )

    def _hear_anew(self) -> None:
        self._hearing = self._heard_now()
        self._around.clear()

    def _heard_now(self) -> Hearing:
        return Hearing(self.contracts, self._merges.identity, self._reader.keys)

    # --- by the tail ------------------------------------------------------------------------

    def _by_tail(self, key: Key, claims: Sequence[Claim], commit: int) -> bool:
        """Place claims on the key's lines where their tails decide; False elsewhere: work the commit out."""
        contract = self._hearing.contract(key[1])
        if contract.cardinality == Cardinality.OCCURRENCE:
            return False
        if key in self._buried or key[0] in self._paired:
            return False
        if self._paired and any(claim.source.actor_id in self._paired for claim in claims):
            return False
        # All of a commit or none: what is placed and then withdrawn would leave its doubt behind.
        may_end_value = contract.cardinality == Cardinality.MANY
        if not all(only_says(claim, may_end_value=may_end_value) for claim in claims):
            return False
        return all(self._place(key, contract, claim, commit) for claim in claims)

    def _place(self, key: Key, contract: RelationContract, claim: Claim, commit: int) -> bool:
        heard = self._hearing.heard(key, claim)
        if heard.part is None:
            return False
        line = self._shelf.get(key, heard.part)
        if line is None:
            is_many = contract.cardinality == Cardinality.MANY
            if not self._shelf.is_known(key, heard.part) or (is_many and key in self._clouded):
                return False
            line = self._shelf.line(key, heard.part)
        around = self._around.get(id(line))
        if around is None:
            around = self._around[id(line)] = self._on_line(line, contract)
        return place(line, self._hearing.incoming(claim, heard), commit, around)

    def _on_line(self, line: Line, contract: RelationContract) -> OnLine:
        return OnLine(
            nearby=self._nearby,
            line=line,
            normal=lambda other: self._hearing.normal(other, contract),
            part_of=self._hearing.stored_part if contract.cardinality == Cardinality.MANY else None,
            digest=self._hearing.digest,
        )

    # --- from claims ------------------------------------------------------------------------

    async def _work_out(self, keys: set[Key], commit: int, *, whole: set[Key]) -> None:
        """Make the lines of these keys, and of what depends on them, what the claims say."""
        for key in sorted(keys):
            await self._world_of(key)
        worlds = {id(world): world for key in sorted(keys) if (world := self._worlds.get(key))}
        for world in worlds.values():
            world.catch_up(commit)
            moved = world.advance()
            roots = {world.root(key) for key in keys & world.keys} | moved.keys() | world.derived
            members = {root: names for root in sorted(roots) if (names := world.names(root))}
            await self._shelf.load_whole({key for names in members.values() for key in names})
            for root, names in members.items():
                self._settler.settle(
                    world, names, moved.get(root, []), commit,
                    is_whole=not whole.isdisjoint(names), paired=self._paired,
                )  # fmt: skip
            self.unplaced.update(
                (claim.claim_id, claim) for claim in world.new_unplaced() if claim.claim_id in self._claims
            )

    async def _world_of(self, key: Key) -> None:
        """See to the piece of the ledger that a key is connected with, joining pieces that now are one."""
        world = self._worlds.get(key)
        if world is not None and self._keys_bound(world.waiting, self._merges) <= world.keys:
            return
        # Where tombstones decide with them, all is read anew: what they know by digest may be known by now.
        among = Worlds() if await self._reader.graves.are_there() else self._worlds
        claims, loaded = await self._piece({key}, self._merges, among=among)
        # A pair is read by the name it is said of: what was found may be a part of what another name found.
        while beside := self._worlds.keys_beside(loaded):
            claims, loaded = await self._piece(loaded | beside, self._merges, among=among)
        self._worlds.put(
            World(
                keys=loaded,
                claims=claims,
                replay=Replay(self.contracts, self._merges.identity),
                waiting=sorted(claims.values(), key=place_of),
            )
        )

    async def _piece(
        self, keys: set[Key], merges: Merges, *, among: Worlds
    ) -> tuple[dict[str, Claim], set[Key]]:
        """
        Return the claims that these keys are connected with, stored or of this fold, and their keys.

        Args:
            keys: Some keys of the piece.
            merges: Who is one with whom.
            among: Pieces of the same merges that need not be read again.
        """
        claims: dict[str, Claim] = {}
        loaded: set[Key] = set()
        while left := keys - loaded:
            known = {id(world): world for key in left if (world := among.get(key))}
            for world in known.values():
                claims |= world.claims
                loaded |= world.keys
            left -= loaded
            if left:
                stored, reached = await self._reader.world(left, merges)
                loaded |= reached | left
                self.read_whole |= reached
                claims.update((claim.claim_id, claim) for claim in stored)
            for key in loaded:
                claims.update((claim.claim_id, claim) for claim in self._on_key.get(key, ()))
            keys = loaded | self._keys_bound(claims.values(), merges)
        named = await self._reader.graves.named(claims.values())
        return {claim.claim_id: claim for claim in named}, loaded

    def _keys_bound(self, claims: Iterable[Claim], merges: Merges) -> set[Key]:
        """Return the keys that claims of this fold bear on, with those of entities that are one."""
        keys: set[Key] = set()
        for claim in claims:
            keys |= keys_of(claim) | self.reached.get(claim)
        return with_merged(keys, merges)

    # --- loading ----------------------------------------------------------------------------

    async def _look_up(self, claims: Sequence[Claim]) -> None:
        """Load, with its last cell, each line that a claim of the fold may be appended to."""
        wanted: set[tuple[Key, str]] = set()
        places: list[tuple[Key, str, Claim]] = []
        many: set[Key] = set()
        for claim in claims:
            key = (claim.entity, claim.relation)
            contract = self._hearing.contract(claim.relation)
            if claim.relation == NO_KEY or contract.cardinality == Cardinality.OCCURRENCE:
                continue
            part = self._hearing.part_of(claim, contract)
            if part is not None:
                wanted.add((key, part))
                places.append((key, part, claim))
                if part != WHOLE:
                    many.add(key)
        await self._shelf.look_up(wanted)
        await self._nearby.read(list(self._late(places)))
        fresh = {key for key, part in wanted if key in many and self._shelf.get(key, part) is None}
        # What ends every value, or may, counts on lines that are yet to come.
        for claim in await self._reader.ends_on(fresh):
            if claim.stance == Stance.CORRECT or claim.value is None:
                self._clouded.add((claim.entity, claim.relation))

    def _late(self, places: Iterable[tuple[Key, str, Claim]]) -> Iterator[Late]:
        """Yield the claims that the last cells of their lines may not be enough for."""
        for key, part, claim in places:
            line = self._shelf.get(key, part)
            if line is None or line.tail is None or not only_says(claim, may_end_value=part != WHOLE):
                continue
            start, _, earliest = self._hearing.extent(claim.validity)
            is_state = claim.validity.kind == ValidityKind.SINCE
            if is_state and start >= line.tail.latest and earliest >= line.tail.first:
                continue
            incoming = self._hearing.incoming(claim, self._hearing.heard(key, claim))
            if line.tail.takes(incoming) and (line.tail.is_open if is_state else line.tail.is_even):
                yield Late(line=line, incoming=incoming)
