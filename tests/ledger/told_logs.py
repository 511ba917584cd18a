"""A random log as a real ledger has it, told commit by commit, and what the oracle makes of the same."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from contracts.erasures import ErasureRequest
from contracts.events import EventDraft
from contracts.grants import LOCAL_GRANT
from contracts.ports import Projector
from contracts.resolutions import Conflict, KeyResolution, Missing, Resolved, ResolvedSet
from contracts.times import KnownAt, ValidAt
from contracts.views import View
from ledger import log
from ledger._court import Court
from ledger._identity import identity_of
from ledger._withdrawal import Replay
from ledger._world import Reader
from ledger.erase import erase
from ledger.resolve import resolve_many
from tests.ledger.folded import Ledger, by_source
from tests.ledger.oracle import Oracle
from tests.ledger.oracle_erased import Erasure, Shared, shared_after
from tests.ledger.random_logs import CONTRACTS, ENTITIES, claims_in, instants_of
from tests.ledger.scenario_logs import PlainProjector
from tests.ledger.test_semantics import plain

NAMES = [*ENTITIES, "bob"]


class Told:
    """
    A tenant that is told commits and erasures; the oracle is told the same.

    `cuts` are the ledger's commits by those of the log, `recorded` when each was.
    """

    def __init__(self, ledger: Ledger, relations: list[str]) -> None:
        self.ledger = ledger
        self.tenant = ledger.tenant()
        self.wanted = [(entity, relation) for entity in NAMES for relation in relations]
        self.commits: list[list[dict[str, Any]]] = []
        self.recorded: list[datetime] = []
        self.erasures: list[Erasure] = []
        self.cuts: list[int] = []
        self.ids: dict[str, str] = {}

    def say(self, events: list[dict[str, Any]]) -> None:
        drafts = [EventDraft.model_validate(by_source(event)) for event in events]
        receipt = self.ledger.run(log.append(self.ledger.db, self.tenant, drafts, grant=LOCAL_GRANT))
        self.commits.append(events)
        self.recorded.append(receipt.recorded_at)
        self.cuts.append(receipt.commit)
        for event_id, form in zip(receipt.event_ids, events, strict=True):
            self.ids[event_id] = form["source_event_id"]

    def erase(self, *, events: frozenset[str] = frozenset(), subject: str | None = None) -> None:
        names = {name: event_id for event_id, name in self.ids.items()}
        request = ErasureRequest(subject=subject, event_ids=tuple(names[event] for event in sorted(events)))
        report = self.ledger.run(
            erase(self.ledger.db, self.tenant, PlainProjector(), request, grant=LOCAL_GRANT)
        )
        self.commits.append([])
        self.recorded.append(self.ledger.clock.now if report.recorded_at is None else report.recorded_at)
        self.erasures.append(Erasure(commit=len(self.commits), events=events, subject=subject))
        self.cuts.append((self.cuts[-1] if self.cuts else 0) if report.commit is None else report.commit)

    # --- what it says -----------------------------------------------------------------------

    def compare(self, projector: Projector | None = None) -> None:
        """
        Hold every answer at every cut and instant, and those of the door at some, against the oracle's.

        The oracle has the claims that the epoch's projector reads: what names one that only this one
        reads finds it.
        """
        claims = claims_in(self.commits, recorded=self.recorded, projector=projector)
        if not claims:
            return
        instants = instants_of(claims)

        def oracle_of(some: list[Any], known: Shared) -> Oracle:
            return Oracle(some, CONTRACTS.of, instants, known)

        shared = shared_after(oracle_of, claims, self.erasures, {})
        epoch = self.ledger.run(self.epoch())
        known_as = {
            claim.claim_id: f"{self.ids[claim.event_id]}#{claim.position.ordinal}"
            for claim in self.ledger.claims(self.tenant, epoch=epoch)
        }
        for number, cut in enumerate(self.cuts, start=1):
            asked = instants[number % len(instants) :: 5]
            court, answers = self.ledger.run(self._read(cut, epoch, asked))
            oracle = oracle_of([claim for claim in claims if claim.commit <= number], shared)
            for key in self.wanted:
                for at in instants:
                    expected = in_order(oracle.decide(*key, at))
                    assert in_order(named(plain(court, *key, at), known_as)) == expected, (number, key, at)
                    if at in answers:
                        answer = in_order(named(said_by(answers[at][key]), known_as))
                        expected["conflicts"] = [
                            sorted(name for _, name in one) for one in expected["conflicts"]
                        ]
                        expected = in_order(expected)
                        assert answer == {name: expected[name] for name in answer}, (number, key, at)

    async def epoch(self) -> int:
        async with self.ledger.db.snapshot(self.tenant) as conn:
            return (await log.serving(conn)).epoch

    async def _read(
        self, cut: int, epoch: int, asked: list[datetime]
    ) -> tuple[Court, dict[datetime, dict[tuple[str, str], KeyResolution]]]:
        """Return a court over what the ledger has at a cut, and its own answers at some instants."""
        async with self.ledger.db.snapshot(self.tenant) as conn:
            keys = await log.tenant_keys(self.ledger.db, self.tenant, conn)
            reader = Reader(conn=conn, keys=keys, epoch=epoch, cut=cut)
            contracts = await reader.contracts()
            merges = identity_of(await reader.identity_claims(), contracts)
            claims, _ = await reader.world(self.wanted, merges)
            replay = Replay(contracts, merges.identity)
            replay.extend(claims)
            answers = {}
            for at in asked:
                view = View(valid_at=ValidAt(at), known_at=KnownAt(at), cut=cut, epoch=epoch)
                found = await resolve_many(conn, keys, view, self.wanted)
                answers[at] = dict(zip(self.wanted, found, strict=True))
        return Court(replay), answers


def named(answer: dict[str, Any], known_as: dict[str, str]) -> dict[str, Any]:
    """An answer with claims called as the oracle calls them."""

    def call(value: Any) -> Any:
        match value:
            case str():
                return known_as.get(value, value)
            case list() | tuple():
                return type(value)(call(item) for item in value)
            case _:
                return value

    return {name: call(value) for name, value in answer.items()}


def in_order(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with its lists in one order."""
    found = {name: sorted(value) if isinstance(value, list) else value for name, value in answer.items()}
    found["resolved"] = sorted((value, sorted(claims)) for value, claims in answer["resolved"])
    found["conflicts"] = sorted(sorted(one) for one in answer["conflicts"])
    return found


def said_by(key: KeyResolution) -> dict[str, Any]:
    """What the door answers, in the oracle's words, as far as it lists them."""
    match key.resolution:
        case Missing(reason=reason, superseded=superseded):
            return {"reason": reason.value, "resolved": [], "conflicts": [], **_claims(superseded)}
        case Resolved() as one:
            return {"reason": None, "resolved": _values([one]), "conflicts": [], **_claims(one.superseded)}
        case ResolvedSet(members=members, disputed=disputed):
            return {"reason": None, "resolved": _values(members), "conflicts": _rivals(disputed)}
        case Conflict(superseded=superseded) as one:
            return {"reason": None, "resolved": [], "conflicts": _rivals([one]), **_claims(superseded)}


def _claims(superseded) -> dict[str, Any]:
    return {"superseded": [claim.claim_id for claim in superseded]}


def _values(members) -> list[Any]:
    return [(str(json.loads(one.form)), [claim.claim_id for claim in one.claims]) for one in members]


def _rivals(conflicts) -> list[Any]:
    return [[rival.claim.claim_id for rival in one.rivals] for one in conflicts]
