"""Random logs with erasures, and what the pure core makes of them: claims that are left, and tombstones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from contracts.claims import Claim
from ledger._burial import Burial, about, reached_from
from ledger._identity import identity_of
from ledger._relations import Contracts
from ledger._tombstones import VEIL, Erased, Tombstone, Values, named, names_in, values_in
from ledger._withdrawal import Replay
from tests.ledger.oracle_erased import Erasure
from tests.ledger.random_logs import ENTITIES, logs

ERASURES_MAX = 3


def veil(name: str) -> str:
    """Return a name as no reader knows it; real ones are keyed digests."""
    return name if not name or name.startswith(VEIL) else VEIL + "".join(reversed(name))


@st.composite
def erasing_logs(draw: st.DrawFn, **options: Any) -> tuple[Any, list[Erasure]]:
    """
    Commits of a random log and erasures between them: of events and of subjects, in any order.

    The commit of an erasure has no events.
    """
    commits: list[list[dict[str, Any]]] = draw(logs(**options))
    mixed: list[list[dict[str, Any]]] = []
    erasures: list[Erasure] = []
    said: list[str] = []
    for events in commits:
        mixed.append(events)
        said += [event["source_event_id"] for event in events]
        if draw(st.integers(0, 2)) and len(erasures) < ERASURES_MAX:
            mixed.append([])
            if draw(st.booleans()):
                subject = draw(st.sampled_from([*ENTITIES, "bob"]))
                erasures.append(Erasure(commit=len(mixed), subject=subject))
            else:
                going = draw(st.sets(st.sampled_from(said), min_size=1, max_size=2))
                erasures.append(Erasure(commit=len(mixed), events=frozenset(going)))
    return mixed, erasures


@dataclass(frozen=True, kw_only=True)
class Recall:
    """A question and its answer, stored right after a commit: whom each names, what the answer cites."""

    commit: int
    asked: str | None
    answered: str | None
    cited: frozenset[str]


@st.composite
def recalling_logs(draw: st.DrawFn, **options: Any) -> tuple[Any, list[Erasure], list[Recall]]:
    """As `erasing_logs`, with questions in between, about whom is erased or not, before or after."""
    commits, erasures = draw(erasing_logs(**options))
    said: list[str] = []
    recalls: list[Recall] = []
    names = st.sampled_from([None, *ENTITIES, "bob"])
    for number, events in enumerate(commits, start=1):
        said += [event["source_event_id"] for event in events]
        for _ in range(draw(st.integers(0, 2))):
            cited = draw(st.sets(st.sampled_from(said), max_size=2))
            one = Recall(commit=number, asked=draw(names), answered=draw(names), cited=frozenset(cited))
            recalls.append(one)
    return commits, erasures, recalls


def left_after(
    claims: Sequence[Claim], erasures: Sequence[Erasure], contracts: Contracts, asked: Sequence[str]
) -> list[Claim]:
    """
    Return the claims of a log after its erasures, tombstones among them, as they take part in decisions.

    Args:
        claims: All that were ever made.
        erasures: In the order of the log.
        contracts: Of its relations.
        asked: Names that whoever asks says.
    """
    left = list(claims)
    stones: list[Tombstone] = []
    for erasure in erasures:
        world = [claim for claim in [*left, *_clear(stones, left, asked)] if claim.commit < erasure.commit]
        world.sort(key=lambda claim: claim.position)
        merges = identity_of(world, contracts)
        replay = Replay(contracts, merges.identity)
        replay.extend(world)
        present = [claim for claim in world if not isinstance(claim, Tombstone)]
        going = set(erasure.events)
        names: frozenset[str] = frozenset()
        if erasure.subject is not None:
            names = frozenset(merges.names_of(erasure.subject))
            ids = about(present, names, replay)
            going |= {claim.event_id for claim in present if claim.claim_id in ids}
        going |= reached_from(going, _derived(world)) & {claim.event_id for claim in present}
        burial = Burial(
            replay=replay, claims=world, erased_ids=frozenset(going), subjects=names,
            erased_in=erasure.commit, veil=veil,
        )  # fmt: skip
        hidden, gone = ({stone.claim_id for stone in earlier} for earlier in burial.earlier())
        stones = [
            burial.hide(stone) if stone.claim_id in hidden else stone
            for stone in stones
            if stone.claim_id not in gone
        ] + burial.tombstones()
        left = [claim for claim in left if claim.event_id not in going or claim.commit >= erasure.commit]
    return sorted([*left, *_clear(stones, left, asked)], key=lambda claim: claim.position)


def _derived(world: Sequence[Claim]) -> dict[str, set[str]]:
    """Events by those that they are derived from, erased ones too: what goes with what."""
    derived: dict[str, set[str]] = {}
    for claim in world:
        for reference in claim.inputs:
            derived.setdefault(reference.event_id or "", set()).add(claim.event_id)
    return derived


def _clear(stones: Sequence[Tombstone], left: Sequence[Claim], asked: Sequence[str]) -> list[Tombstone]:
    names = {veil(name): name for name in asked}
    said: dict[Any, object] = {}
    for claim in left:
        names |= {veil(name): name for name in names_in(claim)}
        said |= values_in(claim)
    graves = {
        spot: value
        for stone in stones
        for spot, value in values_in(stone).items()
        if isinstance(value, Erased)
    }
    values = Values(said, graves)
    return [named(stone, names, values.of) for stone in stones]
