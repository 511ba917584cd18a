"""Values to pack and to realize from, with everything a test does not care about filled in."""

import hashlib
import hmac
import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from contracts.claims import Claim, Position, Source, Validity, ValidityKind
from contracts.contexts import Closure, ClosureSet, Evidence, Mark
from contracts.errors import IntegrityFault
from contracts.events import Stance
from contracts.proposals import Candidate, KeyProposal, Operation, Plan, Proposal, RouteHit
from contracts.relations import Cardinality, default_contract
from contracts.resolutions import KeyResolution, Missing, MissingReason, Resolved, ResolvedSet
from contracts.trails import Question
from contracts.views import View
from packing import ApproximateCounter, pack

START = datetime(2024, 3, 1, 9, 30, tzinfo=UTC)
VIEW = View(valid_at=START + timedelta(days=300), known_at=START + timedelta(days=301), cut=40, epoch=1)


@dataclass(frozen=True)
class HmacDigests:
    """Keys made from names: right for a test, where nothing has to be secret."""

    secret: bytes = b"tenant"
    lost: frozenset[str] = frozenset()

    def of_event(self, event_id, data):
        if event_id in self.lost:
            raise IntegrityFault(what=f"key of {event_id}")
        return hmac.digest(self.secret + event_id.encode(), data, "sha256").hex()

    def of_tenant(self, data):
        return hmac.digest(self.secret, data, "sha256").hex()


def evidence(position, text="I live in Lyon.", **fields):
    event_id = fields.pop("event_id", f"event-{position:03d}")
    values = {
        "stream": "chat-1",
        "actor_id": "Ann",
        "actor_class": "user",
        "observed_at": START + timedelta(hours=position),
        "offset_minutes": 120,
        "recorded_at": START + timedelta(hours=position, seconds=2),
        "text": text,
        "text_digest": hashlib.sha256(f"{event_id}:{text}".encode()).hexdigest(),
        "claim_digests": (),
        "mark": Mark.PLAIN,
        "marked_commit": None,
    }
    return Evidence(event_id=event_id, position=position, **(values | fields))


def closure(closure_id, *positions, utility_ppm=500_000, required=False):
    members = tuple(f"event-{position:03d}" for position in positions)
    return Closure(closure_id=closure_id, members=members, utility_ppm=utility_ppm, required=required)


def claim(position, value="Lyon", **fields):
    start = START + timedelta(hours=position)
    values = {
        "claim_id": hashlib.sha256(f"{position}".encode()).hexdigest(),
        "epoch": 1,
        "entity": "Ann",
        "relation": "lives_in",
        "value": value,
        "stance": Stance.ASSERT,
        "validity": Validity(kind=ValidityKind.SINCE, start=start, end=None, earliest=start, timeless=False),
        "source": Source(actor_id="Ann", actor_class="user"),
        "position": Position(event=position, ordinal=0),
        "commit": position,
        "event_id": f"event-{position:03d}",
        "recorded_at": start + timedelta(seconds=2),
        "observed_at": start,
        "spans": (),
        "occurrence_id": None,
        "targets": (),
        "winner": None,
        "inputs": (),
    }
    return Claim(**(values | fields))


def member(position, value="Lyon", *, superseded=(), identity=None, form=None, **fields):
    return Resolved(
        value=value,
        form=json.dumps(value) if form is None else form,
        claims=(claim(position, value, **fields),),
        superseded=tuple(superseded),
        count_identity=identity,
    )


def several(*, members, disputed=(), members_count=None):
    return ResolvedSet(
        members=tuple(members),
        disputed=tuple(disputed),
        members_count=len(members) if members_count is None else members_count,
        disputed_count=len(disputed),
    )


def key(resolution, *, entity="Ann", relation="lives_in", disputes=(), cardinality=None):
    if cardinality is None:
        cardinality = Cardinality.MANY if isinstance(resolution, ResolvedSet) else Cardinality.ONE
    return KeyResolution(
        entity=entity,
        relation=relation,
        view=VIEW,
        contract=default_contract(relation, cardinality=cardinality),
        resolution=resolution,
        disputes=tuple(disputes),
        unplaced=(),
        truncated=False,
    )


def missing(reason=MissingReason.NEVER_KNOWN, **fields):
    return key(Missing(reason=reason, superseded=(), withdrawn=()), **fields)


def plan(
    operation=Operation.CURRENT_STATE,
    *,
    relations=("lives_in",),
    entities=("Ann",),
    times=(),
    surface="value",
):
    return Plan(
        operation=operation,
        entities=tuple(entities),
        relations=tuple(relations),
        times=tuple(times),
        surface=surface,
        confidence_ppm=900_000,
    )


def proposal(*keys, the_plan=None, events=(1, 2, 3)):
    candidates = tuple(
        Candidate(
            unit_id=f"event-{position:03d}",
            event_ids=(f"event-{position:03d}",),
            score_ppm=900_000 - position,
            hits=(RouteHit(route="lexical", rank=place, score_ppm=900_000 - position),),
        )
        for place, position in enumerate(events, start=1)
    )
    return Proposal(
        plan=the_plan or plan(), candidates=candidates, keys=tuple(keys), routes=(), degraded=False
    )


def named(entity="Ann", relation="lives_in", *, score_ppm=900_000, is_named=True):
    return KeyProposal(entity=entity, relation=relation, score_ppm=score_ppm, named=is_named)


def question(text="Where does Ann live?", *, budget_tokens=2_048, disclose_conflicts=False):
    return Question(text=text, budget_tokens=budget_tokens, disclose_conflicts=disclose_conflicts)


def packed(closures, lines, *, resolutions=(), **fields):
    values = {
        "question": question(budget_tokens=fields.pop("budget_tokens", 2_048)),
        "plan": plan(),
        "view": VIEW,
        "proposal": proposal(named()),
        "digests": HmacDigests(),
        "counter": ApproximateCounter(),
        "configuration_hash": "0" * 64,
    }
    return pack(
        closures=ClosureSet(closures=tuple(closures), evidence=tuple(lines)),
        resolutions=tuple(resolutions),
        **(values | fields),
    )
