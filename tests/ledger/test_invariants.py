"""The ten invariants of the semantics (docs/proofs.md), each a property of random logs."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from contracts.contexts import Mark
from contracts.errors import Poisoned
from contracts.events import Stance
from contracts.grants import LOCAL_GRANT
from contracts.limits import LISTED_CLAIMS_MAX
from contracts.proposals import Candidate, Operation, Plan
from contracts.relations import OTHERS
from contracts.times import KnownAt, ValidAt
from contracts.views import View
from ledger import _found, log
from ledger._claims import micros
from ledger._court import court_of
from ledger._decide import State, judge
from ledger._relations import Contracts
from ledger.closure import close
from ledger.resolve import resolve_many
from ledger.write import begin_epoch, fold
from tests.ledger.examples import examples
from tests.ledger.projectors import Dies, Newer
from tests.ledger.random_logs import CONTRACTS, ENTITIES, START, claims_in, instant, instants_of, logs
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.told_logs import NAMES, Told

pytestmark = pytest.mark.property
RELATIONS = ["home", "tags", "visit", "level"]
ANYTHING = logs(relations=("home", "tags", "visit", "level"), derived=True, identity=True)
PLAN = Plan(
    operation=Operation.CURRENT_STATE, entities=(), relations=(), times=(), surface="value", confidence_ppm=0
)


def told_all(ledger, commits, *, hours=12) -> Told:
    told = Told(ledger, RELATIONS)
    ledger.clock.now = START + timedelta(days=3)
    for events in commits:
        ledger.clock.now += timedelta(hours=hours)
        told.say(events)
    return told


PEOPLE = [("ann", "user"), ("bob", "user"), ("r1", "sensor"), ("r2", "sensor")]


@examples(3)
@given(ANYTHING, st.sampled_from([1, 2, 5]))
def test_1_delivery_batches_workers_crashes_and_rebuilds_change_nothing(many_tenants, commits, size):
    ledger = many_tenants
    told = told_all(ledger, commits)
    ledger.fold(told.tenant, events_max=100)
    once = ledger.digest(told.tenant)

    # Everything is delivered again, folded by two at a time, one of which dies on and on.
    ledger.append(told.tenant, commits)
    ledger.unfold(told.tenant)

    async def work(projector):
        while True:
            try:
                report = await fold(ledger.db, told.tenant, projector, events_max=size)
            except Poisoned:
                # A dying worker's, be it found by the other: the next attempt goes on.
                continue
            if report.is_at_head:
                return

    async def workers():
        await asyncio.gather(work(PlainProjector()), work(Dies()))

    ledger.run(workers())
    assert ledger.digest(told.tenant) == once

    ledger.run(
        begin_epoch(
            ledger.db, told.tenant, projector_version="plain-2", stream="c", actor_id="op", grant=LOCAL_GRANT
        )
    )

    async def rebuild():
        while not (await fold(ledger.db, told.tenant, Newer(), events_max=size)).is_at_head:
            pass

    ledger.run(rebuild())
    assert ledger.run(told.epoch()) == 2
    told.compare(Newer())


@pytest.mark.parametrize("listed", [1, LISTED_CLAIMS_MAX])
@examples(3)
@given(ANYTHING, st.integers(1, 6))
def test_2_what_is_appended_changes_no_answer_at_an_older_cut(many_tenants, monkeypatch, listed, commits, at):
    # Of a long key not every claim is read: what is listed of it must not change either.
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", listed)
    ledger = many_tenants
    told = told_all(ledger, commits[:at])
    ledger.fold(told.tenant, events_max=100)
    instants = instants_of(claims_in(commits))[::3]
    cuts = list(told.cuts)

    def answers():
        return [ledger.run(_answers(told, cut, instants)) for cut in cuts]

    before = answers()
    for events in commits[at:]:
        ledger.clock.now += timedelta(hours=12)
        told.say(events)
    ledger.fold(told.tenant, events_max=100)

    assert answers() == before


@examples(3)
@given(ANYTHING, st.integers(1, 5))
def test_3_cells_of_one_line_never_overlap_and_say_what_the_oracle_says(many_tenants, commits, size):
    ledger = many_tenants
    told = told_all(ledger, commits)
    ledger.fold(told.tenant, events_max=size)

    for cells in ledger.cells(told.tenant).by_key().values():
        for one, other in itertools.combinations(cells, 2):
            assert one[0] != other[0] or not _overlap(one, other), "two rectangles of one line overlap"
    told.compare()


@examples(3)
@given(ANYTHING)
def test_4_nothing_stands_without_provenance_that_exists_in_its_own_tenant(many_tenants, commits):
    ledger = many_tenants
    told_all(ledger, commits)
    told = told_all(ledger, commits)
    ledger.fold(told.tenant, events_max=100)

    async def unfounded():
        async with ledger.db.snapshot(told.tenant) as conn:
            claims = await conn.scalar(
                sa.text(
                    "SELECT count(*) FROM claim c WHERE NOT EXISTS (SELECT FROM event e WHERE "
                    "e.tenant = c.tenant AND e.event_id = c.event_id AND e.commit = c.commit)"
                )
            )
            cells = await conn.scalar(
                sa.text(
                    "SELECT count(*) FROM cell c, unnest(c.claims) AS n(id) WHERE NOT EXISTS (SELECT FROM "
                    "claim m WHERE m.tenant = c.tenant AND m.claim_id = n.id AND m.commit <= lower(c.known))"
                )
            )
            empty = await conn.scalar(
                sa.text("SELECT count(*) FROM cell WHERE state IN ('value', 'conflict') AND claims = '{}'")
            )
        return claims, cells, empty

    assert ledger.run(unfounded()) == (0, 0, 0)
    for cut in told.cuts:
        for answer in ledger.run(_answers(told, cut, [START + timedelta(days=5)])):
            for claim in _claims_of(answer.resolution):
                assert claim.event_id in told.ids
                assert claim.commit <= cut


@examples(3)
@given(ANYTHING, st.data())
def test_5_a_stale_index_proposes_and_never_decides(many_tenants, commits, data):
    ledger = many_tenants
    told = told_all(ledger, commits)
    erased = data.draw(st.sampled_from(sorted(told.ids)))
    told.erase(events=frozenset({told.ids[erased]}))
    ledger.fold(told.tenant, events_max=100)
    at = START + timedelta(days=6)

    for cut in told.cuts[:-1]:
        visible = {claim.event_id for claim in ledger.claims(told.tenant) if claim.commit <= cut}
        answers = ledger.run(_answers(told, cut, [at]))
        carrying = {claim.event_id for answer in answers for claim in _carriers(answer.resolution)}
        acting = {
            claim.event_id for claim in ledger.claims(told.tenant)
            if claim.stance in {Stance.RETRACT, Stance.SETTLE, Stance.CORRECT, Stance.END, Stance.DISPUTE}
            or claim.relation in {"same_as", "not_same_as"}
        }  # fmt: skip
        # The index knows every event of the log: those to come, what was erased, what was withdrawn.
        found = ledger.run(_closed(told, cut, at, sorted(told.ids), [500_000] * len(told.ids)))
        for evidence in found.evidence:
            assert evidence.event_id in visible
            assert evidence.event_id != erased
            if evidence.mark == Mark.ACTIVE:
                assert evidence.event_id in carrying | acting


@examples(3)
@given(ANYTHING, st.data())
def test_6_order_and_score_of_candidates_change_nothing_that_is_current(many_tenants, commits, data):
    ledger = many_tenants
    told = told_all(ledger, commits)
    ledger.fold(told.tenant, events_max=100)
    at = START + timedelta(days=6)
    ids = sorted(told.ids)
    one = ledger.run(_closed(told, told.cuts[-1], at, ids, [1_000] * len(ids)))

    shuffled = data.draw(st.permutations(ids))
    scores = data.draw(st.lists(st.integers(0, 1_000_000), min_size=len(ids), max_size=len(ids)))
    other = ledger.run(_closed(told, told.cuts[-1], at, shuffled, scores))

    assert {e.event_id: e.mark for e in one.evidence} == {e.event_id: e.mark for e in other.evidence}
    required = [{c.members for c in found.closures if c.required} for found in (one, other)]
    assert required[0] == required[1]


@examples(15, many=1_000)
@given(logs(relations=("home", "level")), st.booleans())
def test_7_conflicts_are_minimal_and_complete_and_need_two_sources(commits, is_any):
    contracts = CONTRACTS
    if is_any:
        anyone = {
            name: replace(CONTRACTS.of(name), supersession=((OTHERS, "any"),), conflict_window=timedelta(0))
            for name in ("home", "level")
        }
        contracts = Contracts(registered={**CONTRACTS.registered, **anyone})
    claims = claims_in(commits, contracts)
    court = court_of(claims, contracts)
    for entity, relation, at in itertools.product(ENTITIES, ("home", "level"), instants_of(claims)):
        window_us = court.window_us(relation)
        for part, verdict in court.decide(entity, relation, micros(at)).lines:
            line = court.lines(entity, relation)[part]
            covering = [s.entry for s in line if any(a <= micros(at) < b for a, b in s.cover)]
            assert not covering or verdict.sides, "of what covers nothing is left"
            if verdict.state != State.CONFLICT:
                continue
            assert not is_any, "any with window 0 has no conflict"
            latest = [side.latest for side in verdict.sides]
            assert len({entry.actor_id for entry in latest}) == len(latest), "a source conflicts with itself"
            assert len(judge(latest, window_us=window_us).sides) == len(latest)
            for gone in latest:
                fewer = judge([entry for entry in latest if entry is not gone], window_us=window_us)
                assert len(fewer.sides) == len(latest) - 1


INERT = {"entity": "zz", "relation": "other", "value": "z"}


def one_event(number: int, claim: dict[str, Any], *, actor=("ann", "user")) -> dict[str, Any]:
    return {
        "stream": "s", "kind": "claim", "actor": {"id": actor[0], "class": actor[1]},
        "source_event_id": f"e{number}", "observed_at": instant(4), "claims": [claim],
    }  # fmt: skip


def same_answers(one, other, relations) -> None:
    """The same values at each instant, whoever carries them."""
    claims = [claims_in(one), claims_in(other)]
    courts = [court_of(some, CONTRACTS) for some in claims]
    for entity, relation in itertools.product(ENTITIES, relations):
        for at in instants_of([*claims[0], *claims[1]]):
            found = [
                sorted(
                    tuple(side.normal for side in verdict.sides)
                    for _, verdict in court.decide(entity, relation, micros(at)).lines
                    if verdict.state in {State.VALUE, State.CONFLICT}
                )
                for court in courts
            ]
            assert found[0] == found[1], (entity, relation, at)


@examples(15, many=1_000)
@given(logs(relations=("home", "tags")), st.sampled_from(["home", "tags"]), st.sampled_from("ab"))
def test_8_to_say_again_is_to_say_and_the_last_correction_counts(commits, relation, value):
    number = sum(map(len, commits))
    claim = {"entity": "box", "relation": relation, "value": value, "valid": {"since": instant(4)}}
    target = {"targets": [{"event": f"e{number + 1}"}]}

    def after(*claims):
        new = [[one_event(number + n, claim)] for n, claim in enumerate(claims, start=1)]
        return [*commits, *new]

    same_answers(
        after(claim, {"stance": "retract", **target}, claim), after(INERT, INERT, claim), [relation]
    )  # fmt: skip
    first, last = ({"stance": "correct", "value": corrected, **target} for corrected in ("y", "c"))
    same_answers(after(claim, first, last), after(claim, INERT, last), [relation])


@examples(15, many=1_000)
@given(st.data(), st.lists(st.tuples(st.integers(0, 8), st.integers(2, 6)), min_size=1, max_size=6))
def test_9_an_interval_split_into_two_of_one_value_changes_no_answer(data, spans):
    def spelt(start, end, value):
        bounds = {"from": instant(start), "to": instant(end)}
        return {"entity": "box", "relation": "home", "value": value, "valid": bounds}

    whole, split = [], []
    halved = data.draw(st.integers(0, len(spans) - 1))
    for number, (start, length) in enumerate(spans):
        actor = data.draw(st.sampled_from(PEOPLE))
        value = data.draw(st.sampled_from("abc"))
        event = one_event(number + 1, spelt(start, start + length, value), actor=actor)
        whole.append([event])
        if number == halved:
            middle = start + data.draw(st.integers(1, length - 1))
            halves = [spelt(start, middle, value), spelt(middle, start + length, value)]
            event = {**event, "claims": halves}
        split.append([event])

    same_answers(whole, split, ["home"])


@examples(7)
@given(
    logs(relations=("home", "tags"), events_max=9),
    st.lists(st.sampled_from([-9_000, -30, 0, 0, 5]), min_size=8, max_size=8),
    st.data(),
)
def test_10_all_holds_under_clocks_that_jump_back_late_sources_and_equal_times(
    many_tenants, commits, steps, data
):
    ledger = many_tenants
    told = Told(ledger, RELATIONS)
    ledger.clock.now = START + timedelta(days=3)
    for events, hours in zip(commits, itertools.cycle(steps)):
        ledger.clock.now += timedelta(hours=hours)
        # Mostly the same time: two states that begin at once are told apart by their position alone.
        late = data.draw(
            st.sampled_from([instant(3), instant(3), None, "2016-01-01T00:00:00Z", instant(9_000)])
        )
        told.say(events if late is None else [{**event, "observed_at": late} for event in events])
        ledger.fold(told.tenant, events_max=1)

    told.compare()
    now = ledger.digest(told.tenant)
    ledger.unfold(told.tenant)
    ledger.fold(told.tenant, events_max=100)
    assert ledger.digest(told.tenant) == now


# --- what they ask -------------------------------------------------------------------------------


async def _answers(told, cut, instants):
    epoch = await told.epoch()
    found = []
    async with told.ledger.db.snapshot(told.tenant) as conn:
        keys = await log.tenant_keys(told.ledger.db, told.tenant, conn)
        for at in instants:
            view = View(valid_at=ValidAt(at), known_at=KnownAt(at), cut=cut, epoch=epoch)
            found += await resolve_many(conn, keys, view, told.wanted)
    return found


async def _closed(told, cut, at, ids, scores):
    """Return what a context holds of these candidates, and of the keys of one entity as its answer."""
    epoch = await told.epoch()
    async with told.ledger.db.snapshot(told.tenant) as conn:
        keys = await log.tenant_keys(told.ledger.db, told.tenant, conn)
        view = View(valid_at=ValidAt(at), known_at=KnownAt(at), cut=cut, epoch=epoch)
        answer = [(NAMES[0], relation) for relation in RELATIONS]
        candidates = [
            Candidate(unit_id=event_id, event_ids=(event_id,), score_ppm=score, hits=())
            for event_id, score in zip(ids, scores, strict=True)
        ]
        return await close(
            conn, keys, view, resolutions=await resolve_many(conn, keys, view, answer), answer_keys=answer,
            candidates=candidates, plan=PLAN,
        )  # fmt: skip


def _carriers(resolution):
    members = getattr(resolution, "members", (resolution,))
    return [claim for one in members for claim in getattr(one, "claims", ())]


def _claims_of(resolution):
    rivals = [
        rival.claim
        for one in (*getattr(resolution, "disputed", ()), resolution)
        for rival in getattr(one, "rivals", ())
    ]
    return [*_carriers(resolution), *rivals, *getattr(resolution, "superseded", ())]


def _overlap(one, other) -> bool:
    _, start, end, known, until, *_ = one
    _, other_start, other_end, other_known, other_until, *_ = other
    in_time = start < other_end and other_start < end
    return in_time and (other_until is None or known < other_until) and (until is None or other_known < until)
