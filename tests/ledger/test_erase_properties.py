"""
Random logs with erasures on a real ledger: what is erased piece by piece is what a new fold comes to.

Every answer at every cut is the oracle's, and every cell follows from what is left.
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.erasures import ErasureRequest
from contracts.grants import LOCAL_GRANT
from contracts.times import KnownAt, ValidAt
from contracts.views import View
from ledger import log
from ledger._court import Court
from ledger._identity import identity_of
from ledger._withdrawal import Replay
from ledger._world import Reader
from ledger.erase import erase
from ledger.resolve import resolve_many, verify_cells
from ledger.write import verify_claims
from tests.ledger.erased_logs import erasing_logs
from tests.ledger.folded import Ledger
from tests.ledger.oracle import Oracle
from tests.ledger.oracle_erased import shared_after
from tests.ledger.random_logs import CONTRACTS, ENTITIES, START, claims_in, instants_of
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.test_semantics import plain

FEW = settings(
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
    max_examples=25,
)


@pytest.fixture(scope="module")
def ledger(postgres, template, database_numbers):
    import asyncio  # noqa: PLC0415

    import psycopg  # noqa: PLC0415

    from echoplane._embedded import ensure_database  # noqa: PLC0415
    from echoplane._postgres import SUPERUSER  # noqa: PLC0415

    name = f"test_{next(database_numbers)}"
    made = Ledger(asyncio.run(ensure_database(postgres, name, template=template)))
    yield made
    made.close()
    with psycopg.connect(
        postgres.conninfo(role=SUPERUSER, database="postgres"), autocommit=True
    ) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


class Told:
    """A random log as a real ledger has it; `cuts` are its commits by those of the log."""

    def __init__(self, ledger, commits, erasures):
        self.ledger = ledger
        ledger.clock.now = START
        self.tenant = ledger.tenant()
        self.ids: dict[str, str] = {}
        self.cuts: list[int] = []
        erased = {erasure.commit: erasure for erasure in erasures}
        head = len(CONTRACTS.registered)
        for number, events in enumerate(commits, start=1):
            ledger.clock.now = START + timedelta(days=3, hours=12 * number)
            if number in erased:
                report = ledger.run(self._erase(erased[number]))
                head = head if report.commit is None else report.commit
            else:
                ledger.append(self.tenant, [events])
                ledger.run(self._note(events))
                head += 1
            self.cuts.append(head)
        ledger.fold(self.tenant, events_max=100)
        self.claims = ledger.claims(self.tenant)

    async def _note(self, events):
        async with self.ledger.db.snapshot(self.tenant) as conn:
            keys = await log.tenant_keys(self.ledger.db, self.tenant, conn)
            head = await log.head(conn)
            last = await log.read_events(
                conn, keys, after_position=head.position - len(events), limit=len(events)
            )
        for event, form in zip(last, events, strict=True):
            self.ids[event.event_id] = form["source_event_id"]

    async def _erase(self, erasure):
        names = {name: event_id for event_id, name in self.ids.items()}
        request = ErasureRequest(
            subject=erasure.subject, event_ids=tuple(names[event] for event in sorted(erasure.events))
        )
        return await erase(self.ledger.db, self.tenant, PlainProjector(), request, grant=LOCAL_GRANT)

    async def court(self, cut, wanted):
        """A court over what the ledger has at a cut; every answer at one instant through the door, too."""
        async with self.ledger.db.snapshot(self.tenant) as conn:
            keys = await log.tenant_keys(self.ledger.db, self.tenant, conn)
            reader = Reader(conn=conn, keys=keys, epoch=1, cut=cut)
            contracts = await reader.contracts()
            merges = identity_of(await reader.identity_claims(), contracts)
            claims, _ = await reader.world(wanted, merges)
            replay = Replay(contracts, merges.identity)
            replay.extend(claims)
            at = START + timedelta(days=4)
            view = View(valid_at=ValidAt(at), known_at=KnownAt(at), cut=cut, epoch=1)
            await resolve_many(conn, keys, view, wanted)
        return Court(replay)

    def named(self, answer):
        """An answer with claims called as the oracle calls them."""
        of_claim = {
            claim.claim_id: f"{self.ids[claim.event_id]}#{claim.position.ordinal}" for claim in self.claims
        }

        def named(value):
            match value:
                case str():
                    return of_claim.get(value, value)
                case list() | tuple():
                    return type(value)(named(item) for item in value)
                case _:
                    return value

        answer = {name: named(value) for name, value in answer.items()}
        for name in ("superseded", "disputes"):
            answer[name] = sorted(answer[name])
        answer["resolved"] = sorted((value, sorted(claims)) for value, claims in answer["resolved"])
        answer["conflicts"] = sorted(sorted(one) for one in answer["conflicts"])
        return answer


def check(ledger, drawn, events_max, relations):
    commits, erasures = drawn
    told = Told(ledger, commits, erasures)
    now = ledger.digest(told.tenant)
    assert ledger.run(verify_claims(ledger.db, told.tenant, PlainProjector())).problems == ()
    assert ledger.run(verify_cells(ledger.db, told.tenant)).problems == ()
    assert ledger.run(log.verify(ledger.db, told.tenant)).problems == ()
    compare(ledger, told, commits, erasures, relations)
    ledger.unfold(told.tenant)
    ledger.fold(told.tenant, events_max=events_max)
    assert ledger.digest(told.tenant) == now


def compare(ledger, told, commits, erasures, relations):
    claims = claims_in(commits)
    instants = instants_of(claims)
    shared = shared_after(
        lambda some, known: Oracle(some, CONTRACTS.of, instants, known), claims, erasures, {}
    )
    wanted = [(entity, relation) for entity in [*ENTITIES, "bob"] for relation in relations]
    for number, cut in enumerate(told.cuts, start=1):
        court = ledger.run(told.court(cut, wanted))
        oracle = Oracle([c for c in claims if c.commit <= number], CONTRACTS.of, instants, shared)
        for key in wanted:
            for at in instants:
                expected = oracle.decide(*key, at)
                expected["disputes"] = sorted(expected["disputes"])
                assert told.named(plain(court, *key, at)) == expected, (number, key, at)


batches = st.sampled_from([1, 2, 5, 100])


@FEW
@given(erasing_logs(relations=("home",)), batches)
def test_one_valued_keys_are_folded_anew_as_they_were_erased(ledger, drawn, batch):
    check(ledger, drawn, batch, ["home"])


@FEW
@given(erasing_logs(relations=("tags", "visit")), batches)
def test_keys_of_many_lines_are_folded_anew_as_they_were_erased(ledger, drawn, batch):
    check(ledger, drawn, batch, ["tags", "visit"])


@FEW
@given(erasing_logs(relations=("home", "tags"), derived=True), batches)
def test_derived_claims_are_folded_anew_as_they_were_erased(ledger, drawn, batch):
    check(ledger, drawn, batch, ["home", "tags"])


@FEW
@given(erasing_logs(relations=("home", "tags", "boss"), identity=True), batches)
def test_merged_entities_are_folded_anew_as_they_were_erased(ledger, drawn, batch):
    check(ledger, drawn, batch, ["home", "tags", "boss"])
