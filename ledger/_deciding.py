"""
Deciding keys at one view: from what was read of them, by the court where that is all there is.

Of a key that was read whole, what its cells say is held against what its claims say: a cell that
was changed, removed or added must not pass. Of a longer one the cells decide, each under its seal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from contracts.claims import Claim
from contracts.errors import IntegrityFault
from contracts.histories import Withdrawn
from contracts.relations import Cardinality
from contracts.resolutions import KeyResolution
from contracts.views import View
from ledger._alike import answers_alike
from ledger._answers import answer_of, newest
from ledger._cells import stored_part
from ledger._claims import NO_KEY, micros
from ledger._court import Court, KeyVerdict
from ledger._decide import State, Verdict
from ledger._excerpt import Excerpt, NotSureError, Read, events_named
from ledger._found import Found, found_on
from ledger._ground import Ground, ground_of
from ledger._keys import TenantKeys
from ledger._marks import Marked, Marks
from ledger._piece import Pieces, buried_of, in_order, pieces_around
from ledger._reached import tombstones_apart
from ledger._stated import states_answer
from ledger._timeline import claims_of_cell
from ledger._tombstones import Tombstone
from ledger._withdrawal import Replay
from ledger._world import Key, Reader, with_merged


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """
    Keys at one view, and all that was read to decide them.

    `court` has those that were read whole, with what they are connected with; `excerpts` the others,
    each with its verdict.
    """

    view: View
    ground: Ground
    court: Court
    marks: Marks
    excerpts: dict[Key, tuple[Excerpt, KeyVerdict, Found]]

    def answer(self, key: Key) -> KeyResolution:
        """Return a key's answer."""
        found = self.excerpts.get(key)
        if found is None:
            verdict, replay, counts = self.verdict(key), self.court.replay, None
        else:
            excerpt, verdict, read = found
            replay, counts = excerpt.court.replay, read.counts
        answer = answer_of(
            verdict,
            entity=key[0],
            relation=key[1],
            view=self.view,
            contract=self.ground.contracts.of(key[1]),
            unplaced=[
                claim
                for claim in (replay.unplaced if found is None else found[0].unplaced)
                if _is_on(claim, key, replay)
            ],
            counts=counts,
        )
        # Who the entity is may be open: that is shown with whatever is said of it.
        return replace(answer, disputes=newest([*answer.disputes, *self.ground.merges.questions(key[0])]))

    def verdict(self, key: Key) -> KeyVerdict:
        """Return what a key has at the view."""
        found = self.excerpts.get(key)
        return self.court.decide(*key, micros(self.view.valid_at)) if found is None else found[1]

    # --- marks ------------------------------------------------------------------------------

    def mark(self, claim: Claim) -> Marked:
        """Return how the ledger stands to a claim."""
        found = self.excerpts.get((claim.entity, claim.relation))
        return self.marks.of(claim) if found is None else found[0].mark(claim, found[1])

    def withdrawers(self, claim: Claim) -> Sequence[Claim]:
        """Return the claims that made a claim leave, as far as they are not erased."""
        entry = self._replay(claim).entry_of(claim.claim_id)
        return [] if entry is None else tombstones_apart(entry.left_by)[0]

    def withdrawn(self, key: Key) -> tuple[list[Withdrawn], bool]:
        """Return what was taken back on a key, be it in part, by position; and whether that is all."""
        found = self.excerpts.get(key)
        court = self.court if found is None else found[0].court
        entries = {id(one.entry): one.entry for line in court.lines(*key).values() for one in line}
        taken = [
            Withdrawn(claim=entry.claim, by=tuple(in_order(tombstones_apart(entry.left_by)[0])))
            for entry in entries.values()
            if entry.left_by and not isinstance(entry.claim, Tombstone)
        ]
        whole = found is None or found[0].has_all_acting
        return sorted(taken, key=lambda one: one.claim.position), whole

    def inputs(self, claim: Claim) -> Sequence[Claim]:
        """Return the claims that a claim was derived from."""
        entry = self._replay(claim).entry_of(claim.claim_id)
        return () if entry is None else [source.claim for source in entry.inputs]

    def replaced_by(self, claim: Claim) -> Sequence[Claim]:
        """Return what stands now where the claim does not: so a stale line never stands alone."""
        entry = self._replay(claim).entry_of(claim.claim_id)
        if entry is None:
            return ()
        key = (entry.entity, entry.relation)
        found = self.excerpts.get(key)
        standing = self.marks.standing(key) if found is None else carriers_of(found[1])
        return [other for other in standing if other.claim_id != entry.claim.claim_id]

    def _replay(self, claim: Claim) -> Replay:
        found = self.excerpts.get((claim.entity, claim.relation))
        return self.court.replay if found is None else found[0].court.replay


def carriers_of(verdict: KeyVerdict) -> list[Claim]:
    """Return the claims that carry what a key has, be it that it ended."""
    sides = (side for _, one in verdict.lines for side in one.sides)
    return [entry.claim for side in sides for entry in side.carriers]


async def decide(
    reader: Reader, view: View, wanted: Sequence[Key], *, claims: Sequence[Claim] = ()
) -> Decided:
    """
    Decide keys at a view.

    Args:
        reader: In a snapshot, at the view's epoch and cut.
        view: The view.
        wanted: The keys.
        claims: Further claims on them, which are to be marked.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    keys = list(dict.fromkeys(wanted))
    stand, read = await found_on(reader, keys, at=view.valid_at)
    ground = await ground_of(reader, stand)
    return await _decided(reader, view, dict(zip(keys, read, strict=True)), ground, claims)


async def answers(
    reader: Reader, view: View, wanted: Sequence[Key]
) -> tuple[dict[Key, KeyResolution], Ground]:
    """
    Answer keys at a view: those on which states alone were said in one pass, any other as `decide` does.

    Raises:
        IntegrityFault: A claim, contract or cell that was read is not what was written.
    """
    keys = list(dict.fromkeys(wanted))
    if not keys:
        stand, _ = await found_on(reader, keys, at=None)
        return {}, await ground_of(reader, stand)
    found, ground = await answers_alike(reader, view, keys)
    waiting = [key for key in keys if key not in found]
    if not waiting:
        return found, ground
    _, read = await found_on(reader, waiting, at=view.valid_at)
    buried = await buried_of(reader, waiting, ground)
    others: dict[Key, Found] = {}
    for key, one in zip(waiting, read, strict=True):
        answer = None if key in buried else states_answer(one, key, view, ground)
        if answer is None:
            others[key] = one
        else:
            found[key] = answer
    if others:
        decided = await _decided(reader, view, others, ground, ())
        found |= {key: decided.answer(key) for key in others}
    return found, ground


async def _decided(
    reader: Reader, view: View, read: Mapping[Key, Found], ground: Ground, claims: Sequence[Claim]
) -> Decided:
    pieces = await pieces_around(reader, read, ground)
    whole: set[Key] = set()
    excerpts: dict[Key, tuple[Excerpt, KeyVerdict, Found]] = {}
    unsure: list[Key] = []
    for key in read:
        piece = pieces.whole(key)
        if piece is not None:
            whole |= piece
            continue
        try:
            excerpts[key] = await _excerpt(reader, view, key, pieces, claims)
        except NotSureError:
            unsure.append(key)
    claims_read = [claim for key in whole for claim in pieces.found[key].claims]
    if unsure:
        claims_read += (await reader.world(unsure, pieces.ground.merges))[0]
    court = court_over(claims_read, pieces.ground)
    for key in read:
        if key not in excerpts:
            _check(court.decide(*key, micros(view.valid_at)), reader.keys, pieces.found[key])
    return Decided(
        view=view,
        ground=pieces.ground,
        court=court,
        marks=Marks(court, micros(view.valid_at)),
        excerpts=excerpts,
    )


async def _excerpt(
    reader: Reader, view: View, key: Key, pieces: Pieces, claims: Sequence[Claim]
) -> tuple[Excerpt, KeyVerdict, Found]:
    if pieces.is_buried(key) and not await _is_plainly_buried(reader, pieces, key):
        # Its cells say enough, but not what each of its claims came to.
        raise NotSureError
    names = with_merged([key], pieces.ground.merges)
    found = pieces.found[key]
    others = [pieces.found[name] for name in sorted(names - {key}) if name in pieces.found]
    if len(others) + 1 < len(names):
        raise NotSureError
    further = [claim for claim in claims if (claim.entity, claim.relation) in names]
    named = await reader.of_events(events_named([found, *others]))
    if tombstones_apart(named)[1]:
        raise NotSureError
    read = Read(
        key=key,
        names=frozenset(names),
        at=micros(view.valid_at),
        found=found,
        others=others,
        further=[*further, *named],
    )
    excerpt = Excerpt(read, pieces.ground, reader.keys)
    return excerpt, excerpt.verdict(), found


async def _is_plainly_buried(reader: Reader, pieces: Pieces, key: Key) -> bool:
    """
    Return whether what was erased on a key only ever said a value, as most claims do.

    Then it is struck from the cells, and of the claims that are left each came to what it says.
    """
    return (
        pieces.found[key].is_long
        and pieces.ground.contracts.of(key[1]).cardinality == Cardinality.ONE
        and with_merged([key], pieces.ground.merges) == {key}
        and pieces.touched[key] <= {key}
        and await reader.graves.say_only(key)
    )


def court_over(claims: Iterable[Claim], ground: Ground) -> Court:
    """Return a court over claims that are everything the keys it is asked about hang on."""
    replay = Replay(ground.contracts, ground.merges.identity)
    replay.extend(in_order(claims))
    return Court(replay)


def _check(verdict: KeyVerdict, keys: TenantKeys, found: Found) -> None:
    """Hold the cells of a key against what follows from its claims."""
    expected = {
        stored_part(part, keys): _form(one)
        for part, one in verdict.lines
        if one.state != State.ABSENT and part not in verdict.unheld
    }
    stored = {part: (cell.segment.state, cell.segment.claims) for part, cell in found.cells.items()}
    if sum(found.counts.values()) > len(stored):
        expected = {part: form for part, form in expected.items() if part in stored}
    if expected != stored:
        raise IntegrityFault(what="the cells of a key do not follow from its claims")


def _form(verdict: Verdict) -> tuple[str, tuple[str, ...]]:
    return verdict.state.value, claims_of_cell(verdict)


def _is_on(claim: Claim, key: Key, replay: Replay) -> bool:
    """Return whether a claim is on a key, or names no key and acts on a claim of this one."""
    register = replay.register
    keys = register.keys_meant(claim) if claim.relation == NO_KEY else {(claim.entity, claim.relation)}
    return any(register.key(*one) == register.key(*key) for one in keys)
