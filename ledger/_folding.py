"""
One fold in memory: commits applied to lines one by one, each with its net effect.

A state that is appended to a line where every claim can replace every other is decided by the
line's tail. Everything else is worked out from the claims of the connected piece of the ledger,
loaded once a fold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from contracts.claims import Claim
from contracts.events import Stance
from contracts.relations import Cardinality, RelationContract
from ledger._cells import Cells, LineRow, stored_part
from ledger._claims import NO_KEY
from ledger._court import Court
from ledger._decide import ENDED, Standing
from ledger._entries import class_of, rank_and_rule
from ledger._identity import NO_MERGES, Merges, identity_of
from ledger._lines import Incoming, Line, Tail, tail_of
from ledger._relations import IDENTITY, Contracts
from ledger._values import normal_form
from ledger._withdrawal import Replay
from ledger._world import Key, Reader, bears_elsewhere, references_of


@dataclass(slots=True, kw_only=True, eq=False)
class _World:
    """A connected piece of the ledger: its keys, its claims in order, and their replay so far."""

    keys: set[Key]
    claims: dict[str, Claim]
    replay: Replay | None = None
    waiting: list[Claim] = field(default_factory=list)


class Folding:
    """
    The state of one fold. Give it each commit in order, then read `lines` and `reach`.

    `unplaced` are claims that found nothing to act on.
    """

    def __init__(self, reader: Reader, cells: Cells, contracts: Contracts) -> None:
        self.contracts = contracts
        self.reach: dict[str, set[Key]] = {}
        self.unplaced: dict[str, Claim] = {}
        self._reader = reader
        self._cells = cells
        self._lines: dict[Key, dict[str, Line]] = {}
        self._reached_keys: set[Key] = set()
        self._claims: dict[str, Claim] = {}
        self._on_key: dict[Key, list[Claim]] = defaultdict(list)
        self._of_event: dict[str, list[Claim]] = defaultdict(list)
        self._worlds: dict[Key, _World] = {}
        self._identity_claims: list[Claim] = []
        self._merges = NO_MERGES
        self._paired: set[str] = set()

    @property
    def lines(self) -> list[Line]:
        """Every line that was looked at."""
        return [line for parts in self._lines.values() for line in parts.values()]

    async def prepare(self, claims: Sequence[Claim]) -> None:
        """Load what deciding by tails needs for all keys of the fold, and who is one with whom."""
        self._identity_claims = await self._reader.identity_claims()
        self._note_identity()
        keys = {(claim.entity, claim.relation) for claim in claims if claim.relation != NO_KEY}
        self._reached_keys = await self._keys_reached(keys)
        await self._load_lines(keys, last_only=True)

    def register(self, contract: RelationContract) -> None:
        """Take in a contract of a relation that nothing was claimed on yet."""
        self.contracts = self.contracts.with_registered([contract])
        # What was replayed so far knows the contracts of before.
        self._worlds.clear()

    async def commit(self, number: int, claims: Sequence[Claim]) -> None:
        """Apply the claims of one commit, given in the order of their positions."""
        touched: dict[Key, list[Claim]] = defaultdict(list)
        for claim in claims:
            keys = await self._keys_of(claim)
            self._take(claim, keys)
            if not keys:
                self.unplaced[claim.claim_id] = claim
            for key in keys:
                touched[key].append(claim)
        worked_out = await self._changed_by_identity(claims, touched)
        for key, own in touched.items():
            if key[1] in IDENTITY or key in worked_out:
                continue
            if not self._by_tail(key, own, number):
                worked_out.add(key)
        if worked_out:
            await self._work_out(worked_out, number)

    # --- which keys a commit touches --------------------------------------------------------

    async def _keys_of(self, claim: Claim) -> set[Key]:
        """Return the keys a claim bears on: its own, and those of the claims it names."""
        keys = {(claim.entity, claim.relation)} if claim.relation != NO_KEY else set()
        if not bears_elsewhere(claim):
            return keys
        named: set[Key] = {
            (reference.entity or NO_KEY, reference.relation or NO_KEY)
            for reference in claim.targets
            if reference.event_id is None
        }
        references = references_of(claim)
        stored = await self._reader.of_events(references)
        for target in [*stored, *(found for name in references for found in self._of_event[name])]:
            if target.relation != NO_KEY:
                named.add((target.entity, target.relation))
            if bears_elsewhere(target):
                more = self.reach.get(target.claim_id)
                if more is None:
                    more = (await self._reader.reached([target])).get(target.claim_id, set())
                named |= more
        self.reach[claim.claim_id] = named - keys
        self._reached_keys |= named
        return keys | named

    def _take(self, claim: Claim, keys: Iterable[Key]) -> None:
        self._claims[claim.claim_id] = claim
        self._of_event[claim.event_id].append(claim)
        for key in keys:
            self._on_key[key].append(claim)
            world = self._worlds.get(key)
            if world is not None and claim.claim_id not in world.claims:
                world.claims[claim.claim_id] = claim
                world.waiting.append(claim)

    async def _changed_by_identity(
        self, claims: Sequence[Claim], touched: dict[Key, list[Claim]]
    ) -> set[Key]:
        """Return the keys that a change of who is one with whom makes new; none if nothing changed."""
        about = [
            claim
            for claim in claims
            if claim.relation in IDENTITY
            or any(key[1] in IDENTITY for key in self.reach.get(claim.claim_id, ()))
        ]
        if not about:
            return set()
        before = self._merges
        self._identity_claims += about
        self._note_identity()
        if before == self._merges:
            return set()
        self._worlds.clear()
        moved = {
            entity
            for merges in (before, self._merges)
            for names in (merges.identity.root, merges.identity.self_root, merges.contested)
            for entity in names
        }
        return await self._all_keys_of(moved, touched)

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
        self._paired = {
            name
            for claim in self._identity_claims
            if claim.relation in IDENTITY
            for name in (claim.entity, claim.value)
            if isinstance(name, str)
        }

    # --- by the tail ------------------------------------------------------------------------

    def _by_tail(self, key: Key, claims: Sequence[Claim], commit: int) -> bool:
        """Append to the key's line where its tail decides; False, having changed nothing, elsewhere."""
        contract = self.contracts.of(key[1])
        if contract.cardinality != Cardinality.ONE or key in self._reached_keys or key[0] in self._paired:
            return False
        if any(claim.source.actor_id in self._paired for claim in claims):
            return False
        parts = self._lines.setdefault(key, {})
        line = parts.get("")
        if line is None:
            line = self._new_line(key, "")
        saved = (line.tail, dict(line.cells), len(line.closed), len(line.passed), line.blank)
        for claim in claims:
            source_class = class_of(
                claim.source, entity=key[0], relation=key[1], identity=self._merges.identity
            )
            rank, any_rule = rank_and_rule(
                contract, actor_id=claim.source.actor_id, source_class=source_class
            )
            value = ENDED if claim.stance == Stance.END else normal_form(claim.value, contract.normalizer)
            incoming = Incoming(
                claim=claim,
                rank=rank,
                replaces_any=any_rule and not contract.conflict_window,
                value=self._digest(value),
            )
            if not line.append(incoming, commit):
                line.tail, line.cells, closed, passed, line.blank = saved
                del line.closed[closed:], line.passed[passed:]
                return False
        parts[""] = line
        return True

    def _digest(self, text: str) -> str:
        return self._reader.keys.digest(text.encode()).hex()

    def _new_line(self, key: Key, part: str) -> Line:
        return Line(
            entity=key[0],
            relation=key[1],
            part=part,
            line_id=None,
            tail=None,
            stored_tail=None,
            cells={},
            whole=True,
            blank=True,
        )

    # --- from claims ------------------------------------------------------------------------

    async def _work_out(self, keys: set[Key], commit: int) -> None:
        for key in sorted(keys):
            await self._world_of(key)
        worlds = {id(self._worlds[key]): self._worlds[key] for key in keys}
        every = {key for world in worlds.values() for key in world.keys if key[1] not in IDENTITY}
        await self._load_lines(every, last_only=False)
        for world in worlds.values():
            replay = self._replayed(world)
            court = Court(replay)
            for key in sorted(world.keys):
                if key[1] not in IDENTITY:
                    self._settle_key(court, key, commit)
            self.unplaced.update(
                (claim.claim_id, claim) for claim in replay.unplaced if claim.claim_id in self._claims
            )

    def _settle_key(self, court: Court, key: Key, commit: int) -> None:
        """Make the key's lines what the claims say."""
        parts = self._lines.setdefault(key, {})
        standings = court.lines(*key)
        timelines = court.timelines(*key)
        named = {stored_part(part, self._reader.keys): part for part in standings}
        for stored in named:
            if stored not in parts:
                parts[stored] = self._new_line(key, stored)
        for stored, line in parts.items():
            part = named.get(stored)
            line.become([] if part is None else timelines.get(part, []), commit)
            line.tail = self._tail(court, key, [] if part is None else standings[part])

    def _tail(self, court: Court, key: Key, standings: Sequence[Standing]) -> Tail | None:
        contract = self.contracts.of(key[1])
        if contract.cardinality != Cardinality.ONE or key[0] in self._paired:
            return None
        entries = {id(standing.entry) for standing in standings}
        if any(standing.entry.actor_id in self._paired for standing in standings):
            return None
        # A key with open questions is answered from its claims, however many.
        if any(id(entry) in entries for dispute in court.replay.disputes for entry in dispute.about):
            return None
        if any((claim.entity, claim.relation) == key for claim in court.replay.unplaced):
            return None
        return tail_of(standings, self._digest, has_window=bool(contract.conflict_window))

    def _replayed(self, world: _World) -> Replay:
        if world.replay is None:
            world.replay = Replay(self.contracts, self._merges.identity)
            world.replay.extend(sorted(world.claims.values(), key=lambda claim: claim.position))
        else:
            world.replay.extend(world.waiting)
        world.waiting = []
        return world.replay

    async def _world_of(self, key: Key) -> _World:
        """Return the piece of the ledger that a key is connected with, joining pieces that now are one."""
        world = self._worlds.get(key)
        if world is not None:
            connected = self._connected(world)
            if connected <= world.keys:
                return world
        claims: dict[str, Claim] = {}
        keys = {key} | (world.keys if world is not None else set())
        loaded: set[Key] = set()
        while keys - loaded:
            stored, reached = await self._reader.world(keys - loaded, self._merges)
            loaded |= reached | keys
            claims.update((claim.claim_id, claim) for claim in stored)
            for known in loaded:
                for claim in self._on_key.get(known, ()):
                    claims[claim.claim_id] = claim
            keys = loaded | self._keys_bound(claims.values())
        joined = _World(keys=loaded, claims=claims)
        for known in loaded:
            self._worlds[known] = joined
        return joined

    def _connected(self, world: _World) -> set[Key]:
        return self._keys_bound(world.waiting)

    def _keys_bound(self, claims: Iterable[Claim]) -> set[Key]:
        """Return the keys that claims of this fold bear on, with those of entities that are one."""
        keys: set[Key] = set()
        for claim in claims:
            if claim.relation != NO_KEY:
                keys.add((claim.entity, claim.relation))
            keys |= self.reach.get(claim.claim_id, set())
        return {
            (member, relation) for entity, relation in keys for member in self._members(self._merges, entity)
        }

    def _members(self, merges: Merges, entity: str) -> tuple[str, ...]:
        return merges.members.get(merges.identity.entity(entity), (entity,))

    # --- loading ----------------------------------------------------------------------------

    async def _keys_reached(self, keys: set[Key]) -> set[Key]:
        return await self._cells.reached(keys)

    async def _load_lines(self, keys: set[Key], *, last_only: bool) -> None:
        missing = {key for key in keys if key not in self._lines}
        rows = await self._cells.lines(missing) if missing else []
        for key in missing:
            self._lines[key] = {}
        for row in rows:
            self._lines[row.entity, row.relation][row.part] = _line_of(row)
        lines = [
            line
            for key in keys
            for line in self._lines[key].values()
            if line.line_id is not None and not line.whole and (not last_only or line.tail is not None)
        ]
        if last_only:
            found = await self._cells.open_cells([_id(line) for line in lines], last_only=True)
            for line in lines:
                line.cells = {cell.segment: cell for cell in found.get(_id(line), [])}
            return
        found = await self._cells.open_cells([_id(line) for line in lines], last_only=False)
        for line in lines:
            closed = {cell for cell, _ in line.closed}
            for cell in found.get(_id(line), []):
                if cell.cell_id not in closed:
                    line.cells.setdefault(cell.segment, cell)
            line.whole = True


def _id(line: Line) -> int:
    assert line.line_id is not None
    return line.line_id


def _line_of(row: LineRow) -> Line:
    tail = None if row.tail is None else Tail.read(row.tail)
    return Line(
        entity=row.entity,
        relation=row.relation,
        part=row.part,
        line_id=row.line_id,
        tail=tail,
        stored_tail=tail,
        cells={},
        whole=False,
        blank=False,
    )
