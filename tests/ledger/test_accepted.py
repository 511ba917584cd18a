"""Whatever the border accepts can be folded: an accepted event must never stop its tenant."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from contracts.events import Event, EventDraft
from contracts.times import KnownAt, Precision, parse_term
from ledger._claims import canonical, claim_of, micros, row_of
from ledger._court import court_of
from ledger._reading import claims_of
from ledger._relations import Contracts
from projection import RuleProjector

RECORDED = KnownAt(datetime(2024, 1, 1, tzinfo=UTC))

ASTRAL = "\U0001d400" * 400 + " lives in Lyon."
"""A subject of fewer characters than a name may have, and of more bytes."""

years = st.sampled_from(["0001", "0002", "2023", "9997", "9998", "9999"])
months = st.sampled_from(["", "-01", "-12"])
offsets = st.sampled_from(["", "Z", "+05:00", "-14:00"])
terms = st.one_of(
    st.builds(lambda year, month, offset: year + month + offset, years, months, offsets),
    st.builds(
        lambda year, day, offset: f"{year}-{day}{offset}",
        years,
        st.sampled_from(["01-01T00:00:00", "01-01T05:00", "06-01T12:00:00.5", "12-31T23:59:59.999999"]),
        st.sampled_from(["Z", "+05:00", "-14:00"]),
    ),
)
bounds = st.none() | terms
intervals = st.fixed_dictionaries({"from": bounds, "to": bounds})
valids = st.one_of(
    st.fixed_dictionaries({"since": terms}),
    st.fixed_dictionaries({"at": terms}, optional={"precision": st.sampled_from([*Precision])}),
    intervals,
)
keys = {
    "entity": st.sampled_from(["a", "b"]),
    "relation": st.sampled_from(["r", "s", "same_as", "not_same_as"]),
}
values = st.sampled_from(["a", "b", " b ", "", "x" * 600, 5, 1.5, True, ["a"], {"a": None}])
targets = st.one_of(
    st.fixed_dictionaries({"event": st.just("e1")}, optional={"interval": intervals, "value": values}),
    st.fixed_dictionaries(keys, optional={"interval": intervals, "value": values}),
)
claims = st.builds(
    lambda key, rest: {**key, **rest},
    st.one_of(st.fixed_dictionaries(keys), st.just({})),
    st.fixed_dictionaries(
        {},
        optional={
            "value": values,
            "valid": valids,
            "stance": st.sampled_from(["assert", "end", "correct", "retract", "settle", "dispute"]),
            "targets": st.lists(targets, max_size=2),
            "inputs": st.lists(targets, min_size=1, max_size=2),
            "winner": targets,
        },
    ),
)
events = st.fixed_dictionaries(
    {
        "stream": st.just("s"),
        "kind": st.sampled_from(["turn", "claim", "correction", "retraction", "settlement", "derivation"]),
        "actor": st.sampled_from([{"id": "a", "class": "user"}, {"id": "op", "class": "operator"}]),
    },
    optional={
        "observed_at": terms,
        "text": st.sampled_from(
            ["I moved to Lyon yesterday.", "I lived in Rome until today.", "\U0001d400" * 400]
        ),
        "claims": st.lists(claims, max_size=2),
        "targets": st.lists(targets, max_size=2),
        "winner": targets,
    },
)

FIRST = {
    "stream": "s",
    "kind": "claim",
    "actor": {"id": "a", "class": "user"},
    "claims": [
        {"entity": "a", "relation": "r", "value": "v"},
        {"entity": "a", "relation": "same_as", "value": "b"},
    ],
}
EARLY = {**FIRST, "claims": [], "text": "I moved to Lyon today.", "observed_at": "0001-01-01T05:00:00+05:00"}
INVERTED = {"event": "e1", "interval": {"from": "2024", "to": "2023"}}


class Plain:
    """A digester; which one plays no part."""

    def digest(self, data: bytes) -> bytes:
        return data[:32]


def claim(**changes):
    return {**FIRST, "claims": [{"entity": "a", "relation": "r", "value": "v", **changes}]}


POISON = [
    {**FIRST, "kind": "settlement", "claims": [], "targets": [{"event": "e1"}], "winner": INVERTED},
    {**claim(inputs=[INVERTED]), "kind": "derivation"},
    claim(valid={"since": "0001"}) | {"observed_at": "2023-01-01T00:00:00+05:00"},
    claim(valid={"from": "0001", "to": None}) | {"observed_at": "2023-01-01T00:00:00+05:00"},
    claim(valid={"at": "9999-06-01T00:00:00Z", "precision": "year"}),
    claim(valid={"at": "9998-06-01T00:00:00Z", "precision": "year"}),
    claim(valid={"since": "9999-07-01T00:00:00Z"}),
    claim(relation="same_as", value=5),
    claim(relation="same_as", value="x" * 600),
    {**FIRST, "claims": [{"entity": "a", "relation": "same_as", "stance": "end"}]},
]


@pytest.mark.parametrize("form", POISON)
def test_what_cannot_be_folded_is_refused_when_it_is_emitted(form):
    with pytest.raises(ValidationError):
        EventDraft.model_validate(form)


@settings(max_examples=200)
@given(events)
@example(
    {**FIRST, "claims": [], "text": "I moved to Lyon today.", "observed_at": "0001-01-01T05:00:00+05:00"}
)
@example({**FIRST, "claims": [], "text": "\U0001d400" * 400 + " lives in Lyon."})
@example(claim(valid={"at": "9998"}))
def test_whatever_is_accepted_can_be_folded(form):
    try:
        draft = EventDraft.model_validate(form)
    except ValidationError:
        return
    found = []
    for number, said in enumerate([EventDraft.model_validate(FIRST), draft], start=1):
        observed = None if said.observed_at is None else parse_term(said.observed_at, field="observed_at")
        event = Event(
            backfilled=False,
            sent_at=None,
            event_id=f"e{number}", position=number, commit=number, recorded_at=RECORDED, observed=observed,
            draft=said,
        )  # fmt: skip
        found += claims_of(
            event, RuleProjector().project(event), epoch=1, contracts=Contracts(registered={}),
            claim_id=lambda ordinal, number=number: f"{number:02d}{ordinal:02d}", event_id_of=lambda _: None,
        )  # fmt: skip
    last = micros(parse_term("9998-12-31T00:00:00Z", field="last").first)
    court = court_of(found, Contracts(registered={}))
    for one in found:
        row = row_of(one, tenant="t", keys=Plain())
        assert row["body"] == canonical(json.loads(row["body"]))
        assert claim_of(row, keys=Plain()) == one
        for edge in (one.validity.start, one.validity.end, one.validity.earliest):
            assert edge is None or edge <= datetime(9999, 1, 2, tzinfo=UTC)
    for entity, relation in [("a", "r"), ("b", "r"), ("a", "same_as"), ("a", "lives_in")]:
        court.decide(entity, relation, last)
        court.timelines(entity, relation)
