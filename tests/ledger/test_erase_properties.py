"""
Random logs with erasures on a real ledger: what is erased piece by piece is what a new fold comes to.

Every answer at every cut is the oracle's, and every cell follows from what is left.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import ErasedMeanwhile
from contracts.trails import Question
from ledger import _tables, log
from ledger.resolve import verify_cells
from ledger.write import verify_claims
from tests.ledger.erased_logs import erasing_logs, recalling_logs
from tests.ledger.examples import examples
from tests.ledger.oracle_erased import Erasure
from tests.ledger.random_logs import START
from tests.ledger.recalls import PROPOSAL, store
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.test_semantics import say
from tests.ledger.told_logs import Told

pytestmark = pytest.mark.property


def check(ledger, drawn, events_max, relations):
    commits, erasures = drawn
    told = Told(ledger, relations)
    erased = {erasure.commit: erasure for erasure in erasures}
    for number, events in enumerate(commits, start=1):
        ledger.clock.now = START + timedelta(days=3, hours=12 * number)
        if number in erased:
            told.erase(events=erased[number].events, subject=erased[number].subject)
        else:
            told.say(events)
    ledger.fold(told.tenant, events_max=100)
    now = ledger.digest(told.tenant)
    assert ledger.run(verify_claims(ledger.db, told.tenant, PlainProjector())).problems == ()
    assert ledger.run(verify_cells(ledger.db, told.tenant)).problems == ()
    assert ledger.run(log.verify(ledger.db, told.tenant)).problems == ()
    told.compare()
    ledger.unfold(told.tenant)
    ledger.fold(told.tenant, events_max=events_max)
    assert ledger.digest(told.tenant) == now


batches = st.sampled_from([1, 2, 5, 100])


@examples(3)
@given(erasing_logs(relations=("home",)), batches)
def test_one_valued_keys_are_folded_anew_as_they_were_erased(many_tenants, drawn, batch):
    check(many_tenants, drawn, batch, ["home"])


@examples(3)
@given(erasing_logs(relations=("tags", "visit")), batches)
def test_keys_of_many_lines_are_folded_anew_as_they_were_erased(many_tenants, drawn, batch):
    check(many_tenants, drawn, batch, ["tags", "visit"])


@examples(3)
@given(erasing_logs(relations=("home", "tags"), derived=True), batches)
def test_derived_claims_are_folded_anew_as_they_were_erased(many_tenants, drawn, batch):
    check(many_tenants, drawn, batch, ["home", "tags"])


@examples(3)
@given(erasing_logs(relations=("home", "tags", "boss"), identity=True), batches)
def test_merged_entities_are_folded_anew_as_they_were_erased(many_tenants, drawn, batch):
    check(many_tenants, drawn, batch, ["home", "tags", "boss"])


BOX, ANN = ({"entity": entity, "relation": "home"} for entity in ("box", "ann"))
BOB = BOX | {"entity": "bob"}
TAKEN = {"stance": "correct", "targets": [{"event": "e1"}]}
# What is told by nothing that is left of a claim: by which name it was meant, where its value was taken.
LOGS = {
    "meant": [
        [say(1, "bob", BOX | {"value": "a"})],
        [
            say(2, "bob", ANN | TAKEN | {"value": "b", "targets": [{"event": "e1"} | BOB]}),
            say(3, "bob", ANN | TAKEN | {"value": "b", "targets": [{"event": "e1"} | BOX]}),
        ],
        "box",
    ],
    "called": [
        [say(1, "bob", BOX | {"value": "a"})],
        [say(2, "bob", ANN | TAKEN | {"value": "b", "targets": [BOX]})],
        "box",
    ],
    "acting": [
        [say(1, "bob", BOX | {"value": "a"})],
        [say(2, "bob", {"stance": "retract", "targets": [BOX]})],
        "e2",
    ],
    "moved": [
        [say(1, "bob", BOX | {"value": "a"})],
        [say(2, "op", ANN | TAKEN)],
        "e2",
        [say(3, "cy", ANN | {"value": "a"})],
    ],
    "moved and known": [
        [say(1, "bob", BOX | {"value": "a"})],
        [say(2, "op", ANN | TAKEN), say(3, "cy", ANN | {"value": "a"})],
        "e3",
        "e1",
    ],
}


@pytest.mark.parametrize("name", LOGS)
def test_what_nothing_that_is_left_tells_is_kept_with_a_tombstone(many_tenants, name):
    erasures = [
        Erasure(commit=number, events=frozenset({step})) if step[0] == "e" else Erasure(number, subject=step)
        for number, step in enumerate(LOGS[name], start=1)
        if isinstance(step, str)
    ]
    commits = [[] if isinstance(step, str) else step for step in LOGS[name]]
    check(many_tenants, (commits, erasures), 1, ["home"])


async def recall_of(told, recall, gone, number):
    """Store a recall; None where it cites what is gone, which is refused."""
    lines = [event_id for event_id, name in told.ids.items() if name in recall.cited]
    form = {"lines": lines, "about": recall.answered, "number": number}
    question = Question(text=f"Where is {recall.asked}?", budget_tokens=100, disclose_conflicts=False)
    proposal = replace(PROPOSAL, plan=replace(PROPOSAL.plan, entities=()), keys=())
    made = store(
        told.ledger.db, json.dumps(form).encode(), tenant=told.tenant, question=question, proposal=proposal
    )
    if gone.isdisjoint(lines):
        return await made
    with pytest.raises(ErasedMeanwhile):
        await made
    return None


async def erased_in(told):
    async with told.ledger.db.snapshot(told.tenant) as conn:
        return set(await conn.scalars(sa.select(_tables.erased.c.event_id)))


async def is_gone(told, trail):
    """Whether a recall's trail and its context are erased."""
    read = await log.read_trail(told.ledger.db, told.tenant, trail.trail_id)
    built = await log.read_context(told.ledger.db, told.tenant, trail.context_hash)
    return isinstance(read, log.ErasedTrail), isinstance(built, log.ErasedContext)


@examples(3)
@given(recalling_logs(relations=("home",)))
def test_recalls_go_that_cite_what_goes_later_or_name_who_does_and_no_others(many_tenants, drawn):
    commits, erasures, recalls = drawn
    told = Told(many_tenants, ["home"])
    erased = {erasure.commit: erasure for erasure in erasures}
    gone, stored, expected = set(), [], []
    for number, events in enumerate(commits, start=1):
        many_tenants.clock.now = START + timedelta(days=3, hours=12 * number)
        if number in erased:
            told.erase(events=erased[number].events, subject=erased[number].subject)
            gone = many_tenants.run(erased_in(told))
            names = {told.ids[event_id] for event_id in gone}
            for one, (recall, _) in zip(expected, stored, strict=True):
                subject = erased[number].subject
                one[0] |= subject is not None and recall.asked == subject
                one[1] |= not names.isdisjoint(recall.cited) or (
                    subject is not None and recall.answered == subject
                )
        else:
            told.say(events)
        for recall in recalls:
            if recall.commit == number:
                trail = many_tenants.run(recall_of(told, recall, gone, len(stored)))
                if trail is not None:
                    stored.append((recall, trail))
                    expected.append([False, False])

    assert [list(many_tenants.run(is_gone(told, trail))) for _, trail in stored] == expected
    assert many_tenants.run(log.verify(many_tenants.db, told.tenant)).problems == ()
