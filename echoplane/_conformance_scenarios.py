"""Worked scenarios: small logs with questions and the answers that the ledger's rules give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import groupby
from typing import Any, Final

from pydantic import TypeAdapter

from contracts.claims import Claim
from contracts.erasures import ErasureRequest
from contracts.errors import BadRequest
from contracts.events import EventDraft
from contracts.identity import IDENTITY, NOT_SAME_AS, SAME_AS
from contracts.relation_wire import ContractRequest
from contracts.relations import RelationContract
from contracts.resolutions import Conflict, KeyResolution, Missing, Resolved, ResolvedSet, Rival
from contracts.views import View
from echoplane._conformance_forms import (
    REFUSALS,
    Fields,
    Sides,
    bound,
    in_order,
    instant,
    need,
    only,
    sides,
    written,
)
from echoplane._conformance_ledger import CaseLedger, Step
from ledger.resolve import members_of, occurrences, resolve, usual_contract

STREAM: Final = "scenario"
_DURATION: Final = TypeAdapter(timedelta)
_PAIRS: Final = {"same": SAME_AS, "not_same": NOT_SAME_AS}
_ENDED: Final = "<ended>"
_COMMIT_FIELDS: Final = frozenset({"recorded_at", "events", "refused"})
_EVENT_FIELDS: Final = frozenset({"source", "class", "observed_at", "claims", "erase"})
_CLAIM_FIELDS: Final = frozenset(
    {"stance", "key", "value", "since", "span", "at", "targets", "winner", "inputs", *_PAIRS}
)
_TARGET_FIELDS: Final = frozenset({"event", "ordinal", "key"})
_ASKED: Final = ("state", "many", "occurrences", "entity")
_QUERY_FIELDS: Final = frozenset({*_ASKED, "valid_at", "commit", "known_at", "window", "expect"})
_EXPECTED: Final = frozenset(
    {
        "resolved", "missing", "conflict", "values", "disputed", "count", "members", "claims", "superseded",
        "disputes",
    }
)  # fmt: skip


def contracts_of(scenario: Fields) -> list[RelationContract]:
    """
    Return the contracts to register, so that each relation is decided as the scenario says.

    What it leaves out is as the rules have it, also for a relation that this plane knows otherwise.

    Raises:
        BadRequest: A field is unknown.
        ValidationError: A value is none that a contract can have.
    """
    given: Mapping[str, Fields] = scenario.get("relations", {})
    events = [event for commit in scenario["commits"] for event in need(commit, "events")]
    used = {claim["key"][1] for event in events for claim in event.get("claims", ()) if "key" in claim}
    contracts = [_contract(name, given.get(name, {})) for name in sorted((used | given.keys()) - IDENTITY)]
    return [one for one in contracts if one.relation in given or one != usual_contract(one.relation)]


def _contract(name: str, given: Fields) -> RelationContract:
    fields: dict[str, Any] = {"cardinality": "one", "validity": "since", **given}
    window = fields.pop("conflict_window", None)
    if "authority" in fields:
        fields["authority"] = [
            [place] if isinstance(place, str) else list(place) for place in fields["authority"]
        ]
    contract = ContractRequest.model_validate({"relation": name, **fields}).contract()
    return (
        contract if window is None else replace(contract, conflict_window=_DURATION.validate_python(window))
    )


def draft_of(event: Fields) -> EventDraft:
    """
    Return a scenario's event as one that can be emitted.

    Raises:
        BadRequest: A field is unknown.
        ValidationError: No event can be so.
    """
    only(event, _EVENT_FIELDS)
    claims = [_claim_form(claim) for claim in need(event, "claims")]
    form: dict[str, Any] = {
        "stream": STREAM,
        "kind": "derivation" if any("inputs" in claim for claim in claims) else "claim",
        "actor": {"id": need(event, "source"), "class": need(event, "class")},
        "source_event_id": need(event, "id"),
        "claims": claims,
    }
    if "observed_at" in event:
        form["observed_at"] = event["observed_at"]
    return EventDraft.model_validate(form)


def _claim_form(claim: Fields) -> dict[str, Any]:
    only(claim, _CLAIM_FIELDS)
    form: dict[str, Any] = {name: claim[name] for name in ("value", "stance") if name in claim}
    if "key" in claim:
        form["entity"], form["relation"] = claim["key"]
    for name, relation in _PAIRS.items():
        if name in claim:
            form["entity"], form["value"] = claim[name]
            form["relation"] = relation
    if "since" in claim:
        form["valid"] = {"since": claim["since"]}
    elif "span" in claim:
        form["valid"] = {"from": claim["span"][0], "to": claim["span"][1]}
    elif "at" in claim:
        form["valid"] = {"at": claim["at"]}
    if "id" in claim:
        form["occurrence_id"] = claim["id"]
    for name in ("targets", "inputs"):
        if name in claim:
            form[name] = [_target_form(target) for target in claim[name]]
    if "winner" in claim:
        form["winner"] = _target_form(claim["winner"])
    return form


def _target_form(target: Fields) -> dict[str, Any]:
    only(target, _TARGET_FIELDS)
    form: dict[str, Any] = {"source_event_id": need(target, "event")}
    if "ordinal" in target:
        form["ordinal"] = target["ordinal"]
    if "key" in target:
        form["entity"], form["relation"] = target["key"]
    return form


class Scenario:
    """One scenario."""

    def __init__(self, form: Fields) -> None:
        self.name = str(need(form, "id"))
        self.form = form
        self.commits: Sequence[Fields] = need(form, "commits")
        self.queries: Sequence[Fields] = need(form, "queries")
        self.is_applicable = True

    async def tell(self, ledger: CaseLedger) -> list[tuple[str, Sides]]:
        """See `Case`."""
        wrong: list[tuple[str, Sides]] = []
        for number, commit in enumerate(self.commits):
            _check_commit(commit, f"commits[{number}]")
        readings = [instant(need(commit, "recorded_at"), field="recorded_at") for commit in self.commits]
        await ledger.register(contracts_of(self.form), before=min(readings, default=ledger.clock.now))
        for number, (commit, reading) in enumerate(zip(self.commits, readings, strict=True)):
            expected = "refused" if commit.get("refused", False) else "accepted"
            head = await ledger.head()
            try:
                steps, names = _steps(ledger, need(commit, "events"))
                await ledger.tell(steps, names=names, reading=reading)
                found, why = "accepted", ""
            except REFUSALS as error:
                found, why = "refused", f" ({error})"
                if await ledger.head() != head:
                    why = " in part" + why
            if found != expected or why.startswith(" in part"):
                wrong.append((f"commit {number + 1}", sides(expected, found + why)))
        await ledger.fold()
        return wrong

    def kind(self, query: Fields) -> str:
        """See `Case`."""
        return next((name for name in _ASKED if name in query), "of no kind")

    async def ask(self, ledger: CaseLedger, query: Fields) -> Sides:
        """See `Case`."""
        only(query, _QUERY_FIELDS)
        expected: Fields = need(query, "expect")
        only(expected, _EXPECTED)
        asked = [name for name in _ASKED if name in query]
        if len(asked) != 1:
            raise BadRequest(field="query", reason=f"asks for one of {', '.join(_ASKED)}")
        view = await _view(ledger, query)
        match asked[0]:
            case "entity":
                found = await _members(ledger, view, query)
            case "occurrences":
                found = await _occurrences(ledger, view, query)
            case _:
                found = await _key(ledger, view, query)
        return sides(
            {name: _in_order(value) for name, value in expected.items()},
            {name: _in_order(found.get(name)) for name in expected},
            whole=found,
        )


def _check_commit(commit: Fields, where: str) -> None:
    """
    Refuse a commit of another shape.

    Raises:
        BadRequest: A field is unknown or missing.
    """
    try:
        only(commit, _COMMIT_FIELDS)
        need(commit, "events")
    except BadRequest as error:
        raise BadRequest(field=f"{where}.{error.field}", reason=error.reason) from error


def _steps(ledger: CaseLedger, events: Iterable[Fields]) -> tuple[list[Step], list[list[str]]]:
    steps: list[Step] = []
    names: list[list[str]] = []
    for erases, group in groupby(events, key=lambda event: "erase" in event):
        own = list(group)
        if not erases:
            steps.append([draft_of(event) for event in own])
            names.append([need(event, "id") for event in own])
            continue
        for event in own:
            only(event, _EVENT_FIELDS)
            steps.append(_erasure(ledger, event["erase"]))
            names.append([need(event, "id")])
    return steps, names


def _erasure(ledger: CaseLedger, erase: Fields) -> ErasureRequest:
    only(erase, frozenset({"events", "subject"}))
    event_ids = tuple(ledger.event_id(name) for name in erase.get("events", ()))
    return ErasureRequest(subject=erase.get("subject"), event_ids=event_ids)


async def _view(ledger: CaseLedger, query: Fields) -> View:
    if "commit" in query and "known_at" in query:
        raise BadRequest(field="query", reason="is as of a commit or an instant, not both")
    if "commit" in query and not 0 <= query["commit"] <= len(ledger.commits):
        raise BadRequest(field="commit", reason=f"{len(ledger.commits)} were accepted")
    return await ledger.view(
        valid_at=bound(query.get("valid_at"), field="valid_at"),
        known_at=bound(query.get("known_at"), field="known_at"),
        told=query.get("commit"),
    )


async def _members(ledger: CaseLedger, view: View, query: Fields) -> dict[str, Any]:
    async with ledger.snapshot() as conn:
        names = await members_of(conn, await ledger.keys(conn), view, query["entity"])
    return {"members": list(names)}


async def _occurrences(ledger: CaseLedger, view: View, query: Fields) -> dict[str, Any]:
    start, end = (bound(at, field="window") for at in query.get("window", (None, None)))
    async with ledger.snapshot() as conn:
        found = await occurrences(
            conn, await ledger.keys(conn), view, *query["occurrences"], start=start, end=end
        )
    return {
        **_set(ledger, found),
        "count": len(found.members) + len(found.disputed),
        "claims": [_names(ledger, member.claims) for member in found.members],
    }


async def _key(ledger: CaseLedger, view: View, query: Fields) -> dict[str, Any]:
    entity, relation = query["state"] if "state" in query else query["many"]
    async with ledger.snapshot() as conn:
        found = await resolve(conn, await ledger.keys(conn), view, entity, relation)
    answer = _resolution(ledger, found) | {"disputes": _names(ledger, found.disputes)}
    return {"values": [], "disputed": []} | answer if "many" in query else answer


def _resolution(ledger: CaseLedger, found: KeyResolution) -> dict[str, Any]:
    match found.resolution:
        case Resolved() as one:
            return {"resolved": one.value, **_claims(ledger, one.claims, one.superseded)}
        case ResolvedSet() as several:
            return _set(ledger, several)
        case Missing() as missing:
            return {"missing": missing.reason.value, **_claims(ledger, (), missing.superseded)}
        case Conflict() as conflict:
            rivals = {_rival(rival): _name(ledger, rival.claim) for rival in conflict.rivals}
            claims = [rival.claim for rival in conflict.rivals]
            return {"conflict": rivals, **_claims(ledger, claims, conflict.superseded)}


def _set(ledger: CaseLedger, several: ResolvedSet) -> dict[str, Any]:
    superseded = [claim for member in several.members for claim in member.superseded]
    superseded += [claim for conflict in several.disputed for claim in conflict.superseded]
    return {
        "values": [member.value for member in several.members],
        "disputed": [rival.value for one in several.disputed for rival in one.rivals if not rival.ended],
        **_claims(ledger, [claim for member in several.members for claim in member.claims], superseded),
    }


def _claims(ledger: CaseLedger, claims: Iterable[Claim], superseded: Iterable[Claim]) -> dict[str, Any]:
    return {"claims": _names(ledger, claims), "superseded": _names(ledger, superseded)}


def _rival(rival: Rival) -> str:
    if rival.ended:
        return _ENDED
    return rival.value if isinstance(rival.value, str) else written(rival.value)


def _names(ledger: CaseLedger, claims: Iterable[Claim]) -> list[str]:
    return sorted({_name(ledger, claim) for claim in claims})


def _name(ledger: CaseLedger, claim: Claim) -> str:
    return f"{ledger.sources.get(claim.event_id)}#{claim.position.ordinal}"


def _in_order(value: object) -> object:
    """Return a list in the one order it is compared in, whatever its depth: order says nothing here."""
    if isinstance(value, list):
        return in_order([_in_order(item) for item in value])
    return value
