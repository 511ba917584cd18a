"""Keys on which states alone were said are answered in one pass as they are by the court and by excerpts."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.claims import SENSOR
from contracts.relations import OTHERS, Supersession, ValueType
from contracts.times import KnownAt, ValidAt
from contracts.views import View
from ledger import _answers, _deciding, _found, _stated
from ledger._claims import COLUMNS, micros, row_of, state_start, told_of
from ledger._court import court_of
from ledger._deciding import Decided, carriers_of, court_over
from ledger._excerpt import Excerpt, NotSureError, Read
from ledger._found import Found
from ledger._ground import Ground
from ledger._identity import NO_MERGES
from ledger._keys import TenantKeys
from ledger._lines import Cell
from ledger._marks import Marks
from ledger._relations import Contracts, unregistered
from ledger._stated import states_answer
from ledger._timeline import Segment, claims_of_cell
from ledger._told import Claims
from tests.ledger.examples import examples
from tests.ledger.random_logs import START, VALUES, claims_in, days, instant, instants_of
from tests.ledger.told_logs import Told

KEY = ("ann", "home")
KEYS = TenantKeys(tenant="acme", _wrapping_key=b"w" * 32, _digest_key=b"d" * 32)
ANY = ((SENSOR, Supersession.ANY), (OTHERS, Supersession.ANY))
CONTRACTS = [
    unregistered("home"),
    replace(unregistered("home"), supersession=ANY),
    replace(unregistered("home"), supersession=ANY, conflict_window=timedelta(days=3)),
    replace(unregistered("home"), authority=((OTHERS,),), normalizer="casefold"),
    replace(unregistered("home"), value_type=ValueType.TEXT, supersession=ANY),
]
ACTORS = [("ann", "user"), ("bob", "user"), ("bob", "sensor"), ("eve", "sensor")]


LONGEST = 8
KINDS = st.sampled_from([*[0] * 30, *range(21, 28), 25, 25, 25])
"""What a claim is beside an assert of a state, in `logs`."""


@st.composite
def logs(draw: st.DrawFn) -> list[list[dict]]:
    """Commits of one claim each: states nearly all, by one source most of the time."""
    actors = draw(st.sampled_from([ACTORS, ACTORS[:2], ACTORS[2:], *([actor] for actor in ACTORS)]))
    commits = []
    for number in range(draw(st.integers(1, LONGEST))):
        kind = draw(KINDS)
        claim = {"entity": KEY[0], "relation": KEY[1], "value": draw(st.sampled_from(["a", " a ", "b", "B"]))}
        claim["stance"] = {21: "end", 22: "end", 23: "dispute"}.get(kind, "assert")
        if kind == 22:
            del claim["value"]
        if kind == 25:
            claim["value"] = 5
        event_kind = "claim"
        if kind in {26, 27} and number:
            event_kind, claim["inputs"] = "derivation", [{"source_event_id": f"e{number}"}]
        if kind == 24:
            claim["valid"] = {"from": instant(draw(days)), "to": instant(40)}
        elif draw(st.integers(0, 3)):
            claim["valid"] = {"since": draw(st.sampled_from([instant(draw(days)), "2026-01", "2025"]))}
        actor, actor_class = draw(st.sampled_from(actors))
        commits.append([{
            "stream": "s", "kind": event_kind, "actor": {"id": actor, "class": actor_class},
            "source_event_id": f"e{number + 1}", "claims": [claim],
        }])  # fmt: skip
    return commits


def claimed(commits, contracts):
    """Return their claims, with ids that a row can have."""
    claims = claims_in(commits, contracts)
    return [replace(claim, claim_id=claim.claim_id.encode().hex()) for claim in claims]


def told(claims) -> Claims:
    rows = (row_of(claim, tenant=KEYS.tenant, keys=KEYS) for claim in claims)
    return Claims([told_of([row[name] for name in COLUMNS]) for row in rows], epoch=1)


def found_of(claims, court, at, read) -> Found:
    """What the database would find of the key, on which nothing else acts."""
    own = claims[-read - 1 :]
    found = Found(own=told(own))
    for part, line in court.decide(*KEY, micros(at)).lines:
        segment = Segment(start=0, end=1, state=line.state.value, claims=claims_of_cell(line))
        if line.state != "absent":
            found.cells[part] = Cell(cell_id=None, segment=segment, known_from=1, known_to=None)
            found.counts[line.state.value] = 1
            found.named = told(one for one in claims if one.claim_id in segment.claims and one not in own)
    return found


def begun_of(found: Found, own, at) -> Found:
    """The same without the states that begin after the instant."""
    begun = [claim for claim in own if (state_start(claim) or 0) <= micros(at)]
    return replace(found, own=told(begun), newest=(len(own), own[0].position.event))


def decided_of(found: Found, view: View, ground: Ground):
    """Decide it as any other key; None where that cannot be told."""
    at = micros(view.valid_at)
    excerpts = {}
    try:
        if found.is_long:
            read = Read(key=KEY, names=frozenset({KEY}), at=at, found=found, others=[], further=[])
            excerpt = Excerpt(read, ground, KEYS)
            excerpts[KEY] = excerpt, excerpt.verdict(), found
        court = court_over([] if found.is_long else found.claims, ground)
    except NotSureError:
        return None
    if not found.is_long:
        _deciding._check(court.decide(*KEY, at), KEYS, found)
    marks = Marks(court, at)
    return Decided(view=view, ground=ground, court=court, marks=marks, excerpts=excerpts).answer(KEY)


@pytest.mark.property
@pytest.mark.parametrize("read", [2, 32])
def test_states_are_answered_in_one_pass_as_they_are_decided(monkeypatch, read):
    for module in (_found, _stated, _answers):
        monkeypatch.setattr(module, "LISTED_CLAIMS_MAX", read)
    answered = {False: 0, True: 0}
    begun_count = 0

    @examples(150, many=2_000)
    @given(logs(), st.data())
    def holds(commits, data):
        nonlocal begun_count
        contracts = Contracts(registered={"home": data.draw(st.sampled_from(CONTRACTS))})
        ground = Ground(contracts=contracts, merges=NO_MERGES, has_tombstones=False)
        claims = claimed(commits, contracts)
        court = court_of(claims, contracts)
        for at in data.draw(st.lists(st.sampled_from(instants_of(claims)), min_size=6, max_size=6)):
            view = View(valid_at=ValidAt(at), known_at=KnownAt(at), cut=len(commits), epoch=1)
            found = found_of(claims, court, at, read)
            quick = states_answer(found, KEY, view, ground)
            begun = states_answer(begun_of(found, claims[-read - 1 :], at), KEY, view, ground)
            if begun is not None:
                # What begins after the instant has no part in it, also where it makes a key another one.
                assert quick == begun or (quick is None and decided_of(found, view, ground) in {begun, None})
                begun_count += 1
            if quick is None:
                continue
            carriers = {one.claim_id for one in carriers_of(court.decide(*KEY, micros(at)))}
            assert {one.claim_id for one in quick.resolution.claims} <= carriers
            assert carriers.isdisjoint(one.claim_id for one in quick.resolution.superseded)
            decided = decided_of(found, view, ground)
            if decided is None:
                continue
            answered[found.is_long] += 1
            assert quick == decided
            assert repr(quick) == repr(decided)

    holds()
    assert begun_count > 40
    assert answered[False] > 40
    assert answered[True] > (40 if read < LONGEST else -1)


def test_claims_made_when_looked_at_are_equal_hashed_and_kept_like_the_tuple_of_them():
    event = {
        "stream": "s", "kind": "claim", "actor": {"id": "ann", "class": "user"}, "source_event_id": "e",
        "claims": [{"entity": KEY[0], "relation": KEY[1], "value": value} for value in VALUES],
    }  # fmt: skip
    made = tuple(claimed([[event]], Contracts(registered={})))

    lazy = told(made)

    assert lazy == made
    assert made == lazy
    assert lazy == told(made)
    assert lazy != made[1:]
    assert hash(lazy) == hash(made)
    assert (len(lazy), lazy[0], lazy[1:], [*lazy]) == (len(made), made[0], made[1:], [*made])
    assert copy.deepcopy(lazy) == made
    assert all(one.position < other.position for one, other in pairwise(lazy))
    assert [dataclasses.asdict(one) for one in lazy] == [dataclasses.asdict(one) for one in made]


@pytest.mark.parametrize("above", [("ann", "user"), ("op", "operator")])
def test_what_a_higher_class_upholds_is_read_though_it_is_not_among_the_newest(
    many_tenants, monkeypatch, above
):
    """The cell names the sensor's first word, which its later ones would replace were it alone."""
    monkeypatch.setattr(_found, "LISTED_CLAIMS_MAX", 1)
    told = Told(many_tenants, ["home"])
    sensor = ("r1", "sensor")
    for day, (actor, value) in enumerate([(sensor, "a"), (above, "a"), *[(sensor, "b")] * 8]):
        many_tenants.clock.now = START + timedelta(days=8, hours=day)
        claim = {"entity": "ann", "relation": "home", "value": value, "valid": {"since": instant(0)}}
        told.say([event(claim, actor, number=day)])
    many_tenants.fold(told.tenant, events_max=100)

    _, answers = many_tenants.run(told._read(10, 1, [START + timedelta(days=9)]))

    [answer] = [one for found in answers.values() for key, one in found.items() if key == ("ann", "home")]
    assert answer.resolution.value == "a"


def event(claim: dict, actor: tuple[str, str], *, number: int) -> dict:
    return {
        "stream": "s", "kind": "claim", "actor": {"id": actor[0], "class": actor[1]},
        "source_event_id": f"e{number}", "claims": [claim],
    }  # fmt: skip
