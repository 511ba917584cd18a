"""What a closure holds: the events that carry an answer, and those that exclude what is older."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
import sqlalchemy as sa

from contracts.contexts import Mark
from contracts.errors import IntegrityFault
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.proposals import Candidate, Operation, Plan
from contracts.views import ViewRequest
from ledger import _found, log
from ledger.closure import close
from ledger.resolve import pin, resolve_many
from ledger.write import fold
from tests.ledger.scenario_logs import PlainProjector

PLAN = Plan(
    operation=Operation.CURRENT_STATE, entities=(), relations=(), times=(), surface="value", confidence_ppm=0
)
NOW = ViewRequest(valid_at=None, known_at=None, generation=None, min_commit=None)


@pytest.fixture
def say(db, clock):
    async def say(source, claim=None, *, tenant="acme", kind="claim", text=None, **fields):
        clock.now += timedelta(days=1)
        form = {
            "stream": "s",
            "kind": kind,
            "actor": {"id": source, "class": "user"},
            "observed_at": clock.now.isoformat(),
            **fields,
        }
        if claim is not None:
            form["claims"] = [claim]
        if text is not None:
            form["text"] = text
        receipt = await log.append(db, tenant, [EventDraft.model_validate(form)], grant=LOCAL_GRANT)
        return receipt.event_ids[0]

    return say


def home(value, **fields):
    return {"entity": "ann", "relation": "home", "value": value, **fields}


def unit(*event_ids, score=500_000):
    return Candidate(unit_id=event_ids[0], event_ids=event_ids, score_ppm=score, hits=())


async def closures(db, *candidates, answer=(("ann", "home"),), request=NOW, plan=PLAN):
    await fold(db, "acme", PlainProjector(), events_max=100)
    view = await pin(db, "acme", request, wait_ms=0)
    async with db.snapshot("acme") as conn:
        keys = await log.tenant_keys(db, "acme", conn)
        resolutions = await resolve_many(conn, keys, view, list(answer))
        return await close(
            conn,
            keys,
            view,
            resolutions=resolutions,
            answer_keys=list(answer),
            candidates=candidates,
            plan=plan,
        )


def marks(found):
    return {evidence.event_id: evidence.mark for evidence in found.evidence}


async def test_answer_is_closed_over_what_it_superseded(db, say):
    old = await say("ann", home("Lyon"), text="I live in Lyon")
    new = await say("ann", home("Oslo"))

    found = await closures(db)

    (closure,) = found.closures
    assert closure.required
    assert set(closure.members) == {old, new}
    assert marks(found) == {old: Mark.SUPERSEDED, new: Mark.ACTIVE}
    by_id = {evidence.event_id: evidence for evidence in found.evidence}
    assert by_id[old].text == "I live in Lyon"
    assert by_id[new].text == "ann home = Oslo"
    assert by_id[old].marked_commit == 2


async def test_conflict_is_closed_over_one_claim_for_each_value(db, say):
    bob = await say("bob", home("Lyon"))
    cy = await say("cy", home("Oslo"))

    found = await closures(db)

    assert set(found.closures[0].members) == {bob, cy}
    assert marks(found) == {bob: Mark.DISPUTED, cy: Mark.DISPUTED}


async def test_withdrawn_answer_names_what_withdrew_it(db, say):
    said = await say("ann", home("Lyon"))
    taken_back = await say("ann", kind="retraction", claim={"targets": [{"event": said}]})

    found = await closures(db)

    assert set(found.closures[0].members) == {said, taken_back}
    assert marks(found)[said] == Mark.WITHDRAWN
    assert {e.event_id: e.marked_commit for e in found.evidence}[said] == 2


async def test_stale_candidate_brings_what_replaced_it(db, say):
    old = await say("ann", home("Lyon"))
    new = await say("ann", home("Oslo"))

    found = await closures(db, unit(old), answer=())

    (closure,) = found.closures
    assert not closure.required
    assert closure.members == (old, new)


async def test_a_set_is_closed_over_what_ended_single_members(db, say):
    """Both sides of a yes or no: who asks whether it is still so is shown what says that it is not."""
    await say("ann", {"entity": "ann", "relation": "likes", "value": "tea"})
    await say("ann", {"entity": "ann", "relation": "likes", "value": "jazz"})
    ended = await say("ann", {"entity": "ann", "relation": "likes", "value": "tea", "stance": "end"})

    found = await closures(db, answer=(("ann", "likes"),))

    assert ended in found.closures[0].members


async def test_a_summary_prefers_the_first_of_each_session_to_the_second_of_one(db, say):
    first, second = [await say("ann", text=f"Part {n}.", kind="turn", stream="one") for n in range(2)]
    other = await say("ann", text="Another day.", kind="turn", stream="two")
    units = [unit(first, score=900_000), unit(second, score=800_000), unit(other, score=780_000)]

    plain = await closures(db, *units, answer=())
    spread = await closures(db, *units, answer=(), plan=replace(PLAN, operation=Operation.SUMMARY))

    def by_utility(found):
        ranked = sorted(found.closures, key=lambda each: -each.utility_ppm)
        return [each.members[0] for each in ranked]

    assert by_utility(plain) == [first, second, other]
    assert by_utility(spread) == [first, other, second]


async def test_unknown_foreign_and_later_events_are_never_evidence(db, say):
    await log.create_tenant(db, "other")
    foreign = await say("ann", home("Lyon"), tenant="other")
    early = await say("ann", home("Lyon"))
    request = ViewRequest(valid_at=None, known_at=db.clock(), generation=None, min_commit=None)
    late = await say("ann", home("Oslo"))

    found = await closures(
        db, unit("ev_nobody"), unit(foreign), unit(late), unit(early), unit(early, late), request=request
    )

    assert {evidence.event_id for evidence in found.evidence} == {early}


@pytest.mark.parametrize(
    ("text", "value", "line"),
    [
        ("Lovely weather today.", "Acme", "Lovely weather today. [recorded: ann home = Acme]"),
        ("Ann works at Acmeville.", "Acme", "Ann works at Acmeville. [recorded: ann home = Acme]"),
        ("It is at ACME now.", "Acme", "It is at ACME now. [recorded: ann home = Acme]"),
        ("Ann is at ACME.", "Acme", "Ann is at ACME."),
        ("Ann has 3.", 3, "Ann has 3."),
        ("Ann has 13.", 3, "Ann has 13. [recorded: ann home = 3]"),
        (None, "Acme", "ann home = Acme"),
    ],
)
async def test_a_line_shows_the_value_that_it_is_evidence_of(db, say, text, value, line):
    event = await say("bob", home(value), text=text)

    found = await closures(db)

    assert [evidence.text for evidence in found.evidence if evidence.event_id == event] == [line]


async def test_all_members_of_a_set_are_required(db, say):
    pets = [
        await say("ann", {"entity": "ann", "relation": "has_pet", "value": name}) for name in ("Rex", "Tom")
    ]

    found = await closures(db, answer=(("ann", "has_pet"),))

    assert set(found.closures[0].members) == set(pets)


async def test_digests_are_keyed_with_the_events_own_key(db, say):
    first = await say("ann", home("Lyon"), text="same words")
    second = await say("bob", home("Lyon"), text="same words")

    found = await closures(db, unit(first), unit(second))

    digests = {evidence.text_digest for evidence in found.evidence}
    assert len(digests) == 2


async def test_an_answer_whose_event_lost_its_key_is_a_fault_that_says_so(db, say, owner_engine):
    await say("ann", home("Lyon"))
    await closures(db)
    async with owner_engine.begin() as conn:
        await conn.execute(sa.text("SELECT set_config('echoplane.tenant', 'acme', true)"))
        await conn.execute(sa.text("DELETE FROM event_key"))

    with pytest.raises(IntegrityFault):
        await closures(db)


async def test_of_a_long_key_what_was_superseded_is_marked_and_shown_with_what_stands(db, say, monkeypatch):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", 2)
    told = [await say("ann", home(town)) for town in ("Lyon", "Oslo", "Rome", "Bern")]

    found = await closures(db, unit(told[0]))

    assert marks(found)[told[0]] == Mark.SUPERSEDED
    assert marks(found)[told[3]] == Mark.ACTIVE
    [old] = [closure for closure in found.closures if not closure.required]
    assert old.members == (told[0], told[3])


async def test_a_repeated_state_of_a_long_key_is_not_called_superseded(db, say, monkeypatch):
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", 2)
    told = [await say("ann", home("Lyon")) for _ in range(5)]

    found = await closures(db, *map(unit, told))

    assert set(marks(found).values()) == {Mark.ACTIVE}
