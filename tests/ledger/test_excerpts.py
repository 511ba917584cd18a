"""
A key of which only a few claims are read is answered as it would be from all of them.

Each key counts as long from three claims on; what it then answers is held against the court's
decision over all claims: the same values, and no claim listed that is not listed there.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from datetime import datetime
from typing import TYPE_CHECKING, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.claims import Claim
from contracts.contexts import Mark
from contracts.resolutions import Conflict, Missing, Resolved, ResolvedSet
from contracts.times import KnownAt, ValidAt
from contracts.views import View
from ledger import _found, log
from ledger._answers import answer_of
from ledger._claims import ACTING, NO_KEY, micros
from ledger._court import Court, KeyVerdict, court_of
from ledger._decide import State
from ledger._excerpt import Excerpt, NotSureError, Read, events_named
from ledger._found import Found
from ledger._ground import Ground
from ledger._identity import identity_of
from ledger._lines import Cell
from ledger._timeline import Segment, claims_of_cell
from ledger._values import Normals
from ledger._world import Key, references_of, with_merged
from ledger.resolve import resolve_many
from tests.ledger.examples import examples
from tests.ledger.folded import Ledger
from tests.ledger.random_logs import CONTRACTS, ENTITIES, claims_in, instants_of, logs

if TYPE_CHECKING:
    from ledger._keys import TenantKeys

READ = 2


@pytest.fixture
def ledger(database):
    made = Ledger(database)
    yield made
    made.close()


@pytest.fixture
def long_from_three(monkeypatch):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", READ)


async def answers(ledger: Ledger, tenant: str, view: View, keys: list[Key]):
    async with ledger.db.snapshot(tenant) as conn:
        return await resolve_many(conn, await log.tenant_keys(ledger.db, tenant, conn), view, keys)


def ids(claims) -> set[str]:
    return {claim.claim_id for claim in claims}


def assert_within(short, full, court, relation: str) -> None:
    """What stands is the same, and nothing is listed that is not listed in full."""
    contract = CONTRACTS.of(relation)
    normals = Normals(court.replay.identity.root)

    def normal(value):
        return None if value is None else normals.of(value, contract)

    match full:
        case Resolved():
            assert isinstance(short, Resolved)
            assert normal(short.value) == normal(full.value)
            assert short.count_identity == full.count_identity
            assert short.claims
            assert ids(short.claims) <= ids(full.claims)
            assert ids(short.superseded) <= ids(full.superseded)
        case Missing():
            assert isinstance(short, Missing)
            assert short.reason == full.reason
            assert ids(short.superseded) <= ids(full.superseded)
            assert ids(short.withdrawn) <= ids(full.withdrawn)
        case Conflict():
            assert isinstance(short, Conflict)
            assert short.why == full.why or relation == "level"
            assert {(normal(one.value), one.ended) for one in short.rivals} == {
                (normal(one.value), one.ended) for one in full.rivals
            }
            assert ids(short.superseded) <= ids(full.superseded)
        case ResolvedSet():
            assert isinstance(short, ResolvedSet)
            assert (short.members_count, short.disputed_count) == (full.members_count, full.disputed_count)
            for some, every in ((short.members, full.members), (short.disputed, full.disputed)):
                assert len(some) == len(every)
                for one, other in zip(some, every, strict=True):
                    assert_within(one, other, court, relation)


def check(ledger: Ledger, commits, data, relations) -> None:
    tenant = ledger.tenant()
    ledger.append(tenant, commits)
    ledger.fold(tenant, events_max=3)
    claims = ledger.claims(tenant)
    if not claims:
        return
    keys = [(entity, relation) for entity in [*ENTITIES, "bob"] for relation in relations]
    last = max(claim.commit for claim in claims)
    for cut in {last, data.draw(st.integers(1, last)), data.draw(st.integers(1, last))}:
        known = [claim for claim in claims if claim.commit <= cut]
        court = court_of(known, CONTRACTS)
        for at in data.draw(st.lists(st.sampled_from(instants_of(claims)), min_size=3, max_size=3)):
            view = View(valid_at=ValidAt(at), known_at=KnownAt(at), cut=cut, epoch=1)
            for key, short in zip(keys, ledger.run(answers(ledger, tenant, view, keys)), strict=True):
                entity, relation = key
                found = court.decide(entity, relation, micros(at))
                full = answer_of(
                    found, entity=entity, relation=relation, view=view, contract=CONTRACTS.of(relation),
                    unplaced=court.replay.unplaced,
                )  # fmt: skip
                assert_within(short.resolution, full.resolution, court, relation)
                assert ids(short.unplaced) <= ids(full.unplaced)
                own = [claim for claim in known if (claim.entity, claim.relation) == key]
                if short.truncated and sum(claim.stance in ACTING for claim in known) > READ:
                    continue
                assert ids(full.disputes) <= ids(short.disputes)
                if not short.truncated:
                    assert short.resolution == full.resolution or len(own) <= READ


@pytest.mark.property
def test_few_claims_and_the_cells_answer_as_all_claims_do(ledger, long_from_three):
    @examples(3)
    @given(logs(events_max=10), st.data())
    def holds(commits, data):
        check(ledger, commits, data, ["home", "tags", "visit", "level"])

    @examples(3)
    @given(logs(events_max=10, relations=("home", "tags", "boss"), identity=True, derived=True), st.data())
    def merged(commits, data):
        check(ledger, commits, data, ["home", "tags", "boss"])

    holds()
    merged()


# --- the same, without a database ----------------------------------------------------------------


def reach_of(claims: list[Claim]) -> dict[str, set[Key]]:
    """The keys that each claim bears on beside its own, as a fold notes them."""
    of_event: dict[str, list[Claim]] = defaultdict(list)
    reach: dict[str, set[Key]] = {}
    for claim in claims:
        named: set[Key] = {
            (one.entity or NO_KEY, one.relation or NO_KEY) for one in claim.targets if one.event_id is None
        }
        for event_id in references_of(claim):
            for target in of_event[event_id]:
                named |= reach[target.claim_id]
                if target.relation != NO_KEY:
                    named.add((target.entity, target.relation))
        reach[claim.claim_id] = named - {(claim.entity, claim.relation)}
        of_event[claim.event_id].append(claim)
    return reach


def found_of(claims: list[Claim], key: Key, verdict: KeyVerdict, court: Court, read: int) -> Found:
    """What the database would find of a key."""
    reach = reach_of(claims)
    own = [claim for claim in claims if (claim.entity, claim.relation) == key]
    newest, older = own[-read - 1 :], own[: -read - 1]
    room = read + 1 - sum(claim.stance in ACTING for claim in newest)
    acting = [claim for claim in older if claim.stance in ACTING]
    reaching = [claim for claim in claims if claim.stance in ACTING and key in reach[claim.claim_id]]
    found = Found(
        own=newest,
        acting=acting[max(0, len(acting) - room) :] if room > 0 else [],
        reach=reaching[-read - 1 :],
        named=[],
    )
    for part, line in verdict.lines:
        if line.state == State.ABSENT:
            continue
        found.counts[line.state.value] = found.counts.get(line.state.value, 0) + 1
        segment = Segment(start=0, end=1, state=line.state.value, claims=claims_of_cell(line))
        found.cells[part] = Cell(cell_id=None, segment=segment, known_from=1, known_to=None)
        found.named.extend(claim for claim in claims if claim.claim_id in segment.claims)
    return found


def compare(claims: list[Claim], key: Key, at: datetime, read: int) -> None:
    court = court_of(claims, CONTRACTS)
    verdict = court.decide(*key, micros(at))
    merges = identity_of(claims, CONTRACTS)
    ground = Ground(contracts=CONTRACTS, merges=merges, has_tombstones=False)
    names = with_merged([key], merges)
    founds = {name: found_of(claims, name, verdict, court, read) for name in names}
    others = [founds[name] for name in names - {key}]
    wanted = set(events_named(founds.values()))
    further = [claim for claim in claims if claim.event_id in wanted]
    excerpt = Excerpt(
        Read(
            key=key, names=frozenset(names), at=micros(at), found=founds[key], others=others, further=further
        ),
        ground,
        cast("TenantKeys", None),
    )
    try:
        short = excerpt.verdict()
    except NotSureError:
        return
    view = View(valid_at=ValidAt(at), known_at=KnownAt(at), cut=1, epoch=1)
    contract = CONTRACTS.of(key[1])
    one, other = (
        answer_of(
            found,
            entity=key[0],
            relation=key[1],
            view=view,
            contract=contract,
            unplaced=unplaced,
            counts=counts,
        )
        for found, unplaced, counts in (
            (short, excerpt.unplaced, founds[key].counts),
            (verdict, court.replay.unplaced, None),
        )
    )
    assert_within(one.resolution, other.resolution, court, key[1])
    assert ids(one.unplaced) <= ids(other.unplaced)
    if not any(found.acting_from for found in founds.values()):
        assert ids(other.disputes) <= ids(one.disputes)
    for claim in claims:
        if (claim.entity, claim.relation) == key:
            assert_mark(excerpt, short, verdict, claim)


def assert_mark(excerpt: Excerpt, short: KeyVerdict, full: KeyVerdict, claim: Claim) -> None:
    """Only what carries the answer, or took something back, may look current."""
    mark, _ = excerpt.mark(claim, short)
    carrying = {
        entry.claim.claim_id for _, one in full.lines for side in one.sides for entry in side.carriers
    }
    if mark == Mark.ACTIVE and claim.stance not in ACTING:
        assert claim.claim_id in carrying


@pytest.mark.property
@pytest.mark.parametrize("read", [1, 2])
@pytest.mark.parametrize(
    ("relations", "more"),
    [
        (("home",), {}),
        (("level",), {}),
        (("tags",), {}),
        (("home", "visit"), {"derived": True}),
        (("home", "boss"), {"identity": True}),
    ],
    ids=str,
)
def test_an_excerpt_never_lists_what_all_claims_would_not(monkeypatch, relations, more, read):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", read)

    @examples(30, many=300)
    @given(logs(events_max=14, relations=relations, **more), st.data())
    def holds(commits, data):
        claims = claims_in(commits)
        for key in itertools.product(ENTITIES, relations):
            if sum((claim.entity, claim.relation) == key for claim in claims) > read:
                for at in data.draw(st.lists(st.sampled_from(instants_of(claims)), min_size=3, max_size=3)):
                    compare(claims, key, at, read)

    holds()
