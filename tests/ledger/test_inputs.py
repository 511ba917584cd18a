"""What was derived goes by what it was derived from, in the cells of a real ledger too."""

from __future__ import annotations

import pytest

from contracts.grants import LOCAL_GRANT
from ledger._claims import micros
from ledger._court import court_of
from ledger._decide import State
from ledger.write import begin_epoch, fold
from tests.ledger.projectors import Newer
from tests.ledger.random_logs import CONTRACTS, instant, instants_of
from tests.ledger.test_invariants import told_all
from tests.ledger.test_semantics import say

PAIR = {"entity": "ann", "relation": "same_as", "value": "bob"}


def derived(number, *, relation="home", entity="ann", **of):
    claim = {
        "entity": entity, "relation": relation, "value": "c", "valid": {"since": instant(1)}, "inputs": [of],
    }  # fmt: skip
    form = say(number, "worker", claim)
    return form | {"kind": "derivation", "actor": {"id": "worker", "class": "derived"}}


def compare(told, relation) -> None:
    """Hold every answer against the oracle's, and every cell against the court over all claims."""
    told.compare()
    claims, cells = told.ledger.claims(told.tenant), told.ledger.cells(told.tenant)
    for cut in told.cuts:
        court = court_of([claim for claim in claims if claim.commit <= cut], CONTRACTS)
        for entity in ("ann", "bob", "box"):
            for at in instants_of(claims):
                decided = court.decide(entity, relation, micros(at)).lines
                kept = {part: state for part, (state, _) in cells.at(entity, relation, at, cut).items()}
                assert kept == {
                    cells.part(part): line.state.value for part, line in decided if line.state != State.ABSENT
                }


def standing(told, key, *, cut, epoch=1) -> bool:
    """Whether anything stands on a key at a cut, and at the newest time."""
    claims = [claim for claim in told.ledger.claims(told.tenant, epoch=epoch) if claim.commit <= cut]
    return court_of(claims, CONTRACTS).decide(*key, micros(told.recorded[-1])).reason is None


@pytest.mark.parametrize(
    ("entity", "relation", "apart"),
    [
        ("ann", "home", PAIR | {"relation": "not_same_as"}),
        ("box", "tags", {"entity": "bob", "relation": "not_same_as", "value": "ann"}),
        ("box", "home", {"stance": "retract", "targets": [{"event": "e1"}]}),
    ],
)
@pytest.mark.parametrize("size", [1, 10])
def test_what_was_derived_from_who_is_one_with_whom_goes_when_they_are_not(
    many_tenants, size, entity, relation, apart
):
    """Be it on the key of another, and said of the other name."""
    commits = [
        [say(1, "ann", PAIR)],
        [derived(2, event="e1", entity=entity, relation=relation)],
        [derived(3, event="e2", entity="box", relation="level")],
        [say(4, "ann", apart)],
    ]
    told = told_all(many_tenants, commits)

    many_tenants.fold(told.tenant, events_max=size)

    compare(told, relation)
    before, after = (standing(told, (entity, relation), cut=cut) for cut in told.cuts[-2:])
    assert (before, after) == (True, False)


def test_a_circle_of_identity_and_derivation_is_folded_as_the_oracle_says(many_tenants):
    """Her home makes her one with the box, and as the box she takes it back."""
    commits = [
        [say(1, "ann", {"entity": "ann", "relation": "home", "value": "a"})],
        [say(2, "ann", PAIR | {"value": "box", "inputs": [{"event": "e1"}]}) | {"kind": "derivation"}],
        [say(3, "ann", {"stance": "correct", "targets": [{"entity": "box", "relation": "home"}]})],
    ]
    told = told_all(many_tenants, commits)

    many_tenants.fold(told.tenant, events_max=1)

    compare(told, "home")


def test_an_input_that_only_a_newer_reader_finds_bears_what_was_derived_in_its_epoch_alone(many_tenants):
    ledger = many_tenants
    commits = [[say(1, "ann", {"entity": "ann", "relation": "tags", "value": "a"})]]
    commits.append([derived(2, event="e1", ordinal=9)])
    told = told_all(ledger, commits)
    ledger.fold(told.tenant, events_max=10)
    told.compare()
    assert not standing(told, ("ann", "home"), cut=told.cuts[-1])

    ledger.run(
        begin_epoch(
            ledger.db, told.tenant, projector_version="plain-2", stream="c", actor_id="op", grant=LOCAL_GRANT
        )
    )

    async def rebuild():
        while not (await fold(ledger.db, told.tenant, Newer(), events_max=10)).is_at_head:
            pass

    ledger.run(rebuild())
    told.compare(Newer())
    assert standing(told, ("ann", "home"), cut=told.cuts[-1], epoch=2)
