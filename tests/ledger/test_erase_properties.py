"""
Random logs with erasures on a real ledger: what is erased piece by piece is what a new fold comes to.

Every answer at every cut is the oracle's, and every cell follows from what is left.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import log
from ledger.resolve import verify_cells
from ledger.write import verify_claims
from tests.ledger.erased_logs import erasing_logs
from tests.ledger.examples import examples
from tests.ledger.random_logs import START
from tests.ledger.scenario_logs import PlainProjector
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


@examples(5)
@given(erasing_logs(relations=("home",)), batches)
def test_one_valued_keys_are_folded_anew_as_they_were_erased(many_tenants, drawn, batch):
    check(many_tenants, drawn, batch, ["home"])


@examples(5)
@given(erasing_logs(relations=("tags", "visit")), batches)
def test_keys_of_many_lines_are_folded_anew_as_they_were_erased(many_tenants, drawn, batch):
    check(many_tenants, drawn, batch, ["tags", "visit"])


@examples(5)
@given(erasing_logs(relations=("home", "tags"), derived=True), batches)
def test_derived_claims_are_folded_anew_as_they_were_erased(many_tenants, drawn, batch):
    check(many_tenants, drawn, batch, ["home", "tags"])


@examples(5)
@given(erasing_logs(relations=("home", "tags", "boss"), identity=True), batches)
def test_merged_entities_are_folded_anew_as_they_were_erased(many_tenants, drawn, batch):
    check(many_tenants, drawn, batch, ["home", "tags", "boss"])
