"""Random small logs for Hypothesis: every stance, several sources and classes, times out of order."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from contracts.claims import Claim
from contracts.events import Event, EventDraft
from contracts.ports import Projector
from contracts.relations import Cardinality, RelationContract
from contracts.times import KnownAt, parse_term
from ledger._reading import claims_of
from ledger._relations import Contracts, unregistered
from tests.ledger.scenario_logs import PlainProjector

START = datetime(2026, 1, 1, tzinfo=UTC)
ACTORS = [
    ("ann", "user"),
    ("bob", "user"),
    ("r1", "sensor"),
    ("r2", "sensor"),
    ("bot", "assistant"),
    ("op", "operator"),
]
ENTITIES = ["ann", "box"]
VALUES = ["a", "b", "c"]


def _contract(relation: str, **fields: Any) -> RelationContract:
    from dataclasses import replace  # noqa: PLC0415

    return replace(unregistered(relation), **fields)


CONTRACTS = Contracts(
    registered={
        "tags": _contract("tags", cardinality=Cardinality.MANY),
        "visit": _contract("visit", cardinality=Cardinality.OCCURRENCE),
        "boss": _contract("boss", value_type="entity", normalizer="casefold"),
        "level": _contract("level", conflict_window=timedelta(hours=36)),
    }
)


def values_of(relation: str | None) -> list[str]:
    """Values a relation is claimed to have: names of entities, in two spellings, where it takes those."""
    return ["ann", "Ann", "box", "bob", "BOB"] if relation == "boss" else VALUES


days = st.integers(min_value=0, max_value=9)


def instant(day: int, hour: int = 0) -> str:
    return (START + timedelta(days=day, hours=hour)).isoformat()


@st.composite
def validities(draw: st.DrawFn) -> dict[str, Any] | None:
    match draw(st.integers(0, 7)):
        case 0 | 1:
            return None
        case 2 | 3:
            return {"since": instant(draw(days), draw(st.sampled_from([0, 12])))}
        case 4:
            return {"since": draw(st.sampled_from(["2026-01-03", "2026-01-07", "2026-01", "2025"]))}
        case 5:
            start, length = draw(days), draw(st.integers(1, 5))
            return {"from": instant(start), "to": instant(start + length)}
        case 6:
            start = draw(days)
            return draw(
                st.sampled_from([{"from": instant(start), "to": None}, {"from": None, "to": instant(start)}])
            )
        case _:
            return {"at": draw(st.sampled_from(["2026-01-04", "2026-01", instant(3, 6)]))}


@st.composite
def keys(draw: st.DrawFn, relations: list[str]) -> dict[str, str]:
    return {"entity": draw(st.sampled_from(ENTITIES)), "relation": draw(st.sampled_from(relations))}


@st.composite
def references(draw: st.DrawFn, known: list[dict[str, Any]]) -> dict[str, Any]:
    number = draw(st.integers(0, len(known) - 1))
    reference: dict[str, Any] = {"event": f"e{number + 1}"}
    claims = known[number]["claims"]
    if len(claims) > 1 and draw(st.booleans()):
        reference["ordinal"] = draw(st.integers(0, len(claims) - 1))
    if draw(st.integers(0, 4)) == 0:
        # Of the event, what is on a key; be it under another name than the one that it was said of.
        claim = draw(st.sampled_from(claims))
        if "entity" in claim:
            reference |= {"entity": draw(st.sampled_from([*ENTITIES, "bob"])), "relation": claim["relation"]}
    return reference


@st.composite
def targets(draw: st.DrawFn, known: list[dict[str, Any]], relations: list[str]) -> dict[str, Any]:
    """An event, or a claim's own source on a key."""
    if draw(st.integers(0, 5)):
        return draw(references(known))
    target = draw(keys(relations))
    if draw(st.booleans()):
        target["value"] = draw(st.sampled_from(values_of(target["relation"])))
    return target


@st.composite
def stated_claims(draw: st.DrawFn, known: list[dict[str, Any]], relations: list[str]) -> dict[str, Any]:
    """One claim of any stance but derived ones."""
    stances = ["assert"] * 5 + ["end", "dispute"]
    if known:
        stances += ["correct"] * 3 + ["retract"] * 2 + ["settle"]
    stance = draw(st.sampled_from(stances))
    claim: dict[str, Any] = {"stance": stance}
    valid = draw(validities())
    if valid is not None:
        claim["valid"] = valid
    if stance in {"assert", "end"} or draw(st.integers(0, 2)) == 0:
        claim |= draw(keys(relations))
    if stance == "assert" or (stance in {"end", "correct"} and draw(st.booleans())):
        claim["value"] = draw(st.sampled_from(values_of(claim.get("relation"))))
    if claim.get("relation") == "visit" and stance in {"assert", "end"} and draw(st.booleans()):
        # Few ids and few sources: the same occurrence is told again and again.
        claim["occurrence_id"] = draw(st.sampled_from(["x", "x", "y"]))
    if stance in {"correct", "retract", "settle"}:
        untargeted = stance == "settle" or (stance == "retract" and "entity" in claim)
        if not (untargeted and draw(st.booleans())):
            claim["targets"] = draw(st.lists(targets(known, relations), min_size=1, max_size=2))
        if stance == "settle":
            claim["winner"] = draw(references(known))
            # A settlement that names neither losers nor a key has to name its key by its losers.
            if "targets" not in claim and "entity" not in claim:
                claim |= draw(keys(relations))
    if stance == "dispute" and "entity" not in claim:
        if known:
            claim["targets"] = draw(st.lists(targets(known, relations), min_size=1, max_size=2))
        else:
            claim |= draw(keys(relations))
    return claim


@st.composite
def logs(
    draw: st.DrawFn, *, events_max: int = 7, relations: tuple[str, ...] = ("home", "tags", "visit", "level"),
    identity: bool = False, derived: bool = False,
) -> list[list[dict[str, Any]]]:  # fmt: skip
    """Commits of event forms; targets name events by `e1`, `e2` … in the order of the log."""
    known: list[dict[str, Any]] = []
    commits: list[list[dict[str, Any]]] = []
    for _ in range(draw(st.integers(1, events_max))):
        # A target stands in an earlier commit or earlier in the same one.
        event = draw(an_event(known, list(relations), identity=identity, derived=derived))
        if commits and draw(st.integers(0, 3)) == 0:
            commits[-1].append(event)
        else:
            commits.append([event])
        known.append(event)
    return commits


@st.composite
def an_event(
    draw: st.DrawFn, known: list[dict[str, Any]], relations: list[str], *, identity: bool, derived: bool
) -> dict[str, Any]:
    actor, actor_class = draw(st.sampled_from(ACTORS))
    event: dict[str, Any] = {
        "stream": "s", "kind": "claim", "actor": {"id": actor, "class": actor_class},
        "source_event_id": f"e{len(known) + 1}",
    }  # fmt: skip
    if draw(st.integers(0, 3)):
        event["observed_at"] = instant(draw(days), draw(st.sampled_from([0, 6])))
    if derived and known and draw(st.integers(0, 3)) == 0:
        event |= {"kind": "derivation", "actor": {"id": "worker", "class": "derived"}}
        claim = draw(keys(relations)) | {"value": draw(st.sampled_from(VALUES))}
        valid = draw(validities())
        if valid is not None:
            claim["valid"] = valid
        claim["inputs"] = draw(st.lists(references(known), min_size=1, max_size=2))
        if draw(st.integers(0, 5)) == 0:
            # No claim of its event has this number: the epoch does not have the input.
            claim["inputs"][0]["ordinal"] = 9
        event["claims"] = [claim]
    elif identity and draw(st.integers(0, 2)) == 0:
        one, other = draw(st.sampled_from([("ann", "box"), ("ann", "bob"), ("bob", "box"), ("bob", "ann")]))
        relation = draw(st.sampled_from(["same_as", "same_as", "not_same_as"]))
        stance = draw(st.sampled_from(["assert", "assert", "assert", "end", "retract"]))
        claim = {"entity": one, "relation": relation, "value": other, "stance": stance}
        if derived and known and draw(st.booleans()):
            # Whoever derives counts as `derived`, whatever class he was granted.
            actor, actor_class = draw(st.sampled_from([*ACTORS, ("worker", "derived")]))
            event |= {"kind": "derivation", "actor": {"id": actor, "class": actor_class}}
            claim |= {"stance": "assert", "inputs": draw(st.lists(references(known), min_size=1, max_size=2))}
        event["claims"] = [claim]
    else:
        event["claims"] = draw(st.lists(stated_claims(known, relations), min_size=1, max_size=2))
    return event


def claims_in(
    commits: list[list[dict[str, Any]]],
    contracts: Contracts = CONTRACTS,
    *,
    recorded: Sequence[datetime] | None = None,
    projector: Projector | None = None,
) -> list[Claim]:
    """The claims of a random log, recorded commit by commit at these times, else half a day apart."""
    projector = projector or PlainProjector()
    claims: list[Claim] = []
    position = 0
    for number, events in enumerate(commits, start=1):
        at = START + timedelta(days=3, hours=12 * number) if recorded is None else recorded[number - 1]
        for form in events:
            position += 1
            draft = EventDraft.model_validate(form)
            event = Event(
                backfilled=False,
                sent_at=None,
                event_id=draft.source_event_id or "",
                position=position,
                commit=number,
                recorded_at=KnownAt(at),
                observed=None
                if draft.observed_at is None
                else parse_term(draft.observed_at, field="observed_at"),
                draft=draft,
            )
            claims += claims_of(
                event, projector.project(event), epoch=1, contracts=contracts,
                claim_id=lambda ordinal, draft=draft: f"{draft.source_event_id}#{ordinal}",
                event_id_of=lambda name: name,
            )  # fmt: skip
    return claims


def instants_of(claims: list[Claim]) -> list[datetime]:
    """Every bound that occurs, between any two of them, and beyond the outermost."""
    edges: set[datetime] = set()
    for claim in claims:
        validity = claim.validity
        edges |= {edge for edge in (validity.start, validity.end, validity.earliest) if edge is not None}
        edges |= {claim.recorded_at, claim.recorded_at + timedelta(microseconds=1)}
        if claim.observed_at is not None:
            edges |= {claim.observed_at, claim.observed_at + timedelta(microseconds=1)}
    ordered = sorted(edges)
    between = [one + (other - one) / 2 for one, other in itertools.pairwise(ordered)]
    outer = [ordered[0] - timedelta(days=1), ordered[-1] + timedelta(days=1)]
    return sorted({*ordered, *between, *outer})
