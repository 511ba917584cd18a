"""Who has a value, and each reason why nobody is named: by hand, without a ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from contracts.claims import Validity, ValidityKind
from contracts.histories import Rectangle
from contracts.limits import KEYS_MAX
from contracts.relations import Cardinality
from contracts.resolutions import MissingReason
from contracts.times import KnownAt, ValidAt
from realize import Derived, HolderKey, Holders, holding, standing_of_holders
from realize._task import Bounds
from tests.packing.values import claim, key, member, missing, several
from tests.realize.asked import conflict

JANUARY = datetime(2025, 1, 1, tzinfo=UTC)
YEAR = Bounds(start=JANUARY, end=datetime(2026, 1, 1, tzinfo=UTC), wording="in 2025")
AT = datetime(2025, 6, 1, tzinfo=UTC)
HOLDS = member(1, "Bergen")
ELSEWHERE = member(1, "Oslo")


def asks(**fields):
    values = {"relations": ("lives_in",), "beside": (), "words": "bergen", "period": None}
    values |= {"counts": False, "ever": False, "beside": ()}
    return Holders(**(values | fields))


def held(resolution, entity="Ann", *, pieces=(), erased=False, merged=False, cardinality=None):
    own = missing(resolution, entity=entity, cardinality=cardinality) if isinstance(resolution, str) else None
    own = own or key(resolution, entity=entity, cardinality=cardinality)
    return HolderKey(resolution=own, pieces=tuple(pieces), erased=erased, merged=merged)


def undetermined(*values):
    might = tuple(claim(place, value) for place, value in enumerate(values, start=1))
    answer = missing(MissingReason.UNDETERMINED)
    answer = replace(answer, resolution=replace(answer.resolution, superseded=might))
    return HolderKey(resolution=answer, pieces=(), erased=False, merged=False)


def piece(value, start, end=None, *, state="value", known_to=None, **fields):
    """What a key had from one day of 2025 to another, as it was known until a commit."""
    first = None if start is None else JANUARY + timedelta(days=start)
    claims = () if value is None else (claim(1, value, **fields),)
    return Rectangle(
        relation="lives_in", part="", valid_from=first,
        valid_to=None if end is None else JANUARY + timedelta(days=end),
        known_from=1, known_to=known_to, known_from_at=JANUARY, known_to_at=None, state=state, claims=claims,
    )  # fmt: skip


def began(start, *, earliest=None, timeless=False):
    kind = ValidityKind.SINCE
    first = None if start is None else JANUARY + timedelta(days=start)
    early = first if earliest is None else JANUARY + timedelta(days=earliest)
    return Validity(kind=kind, start=first, end=None, earliest=early, timeless=timeless)


def found(holders, *keys, whole=True, erased=False, at=AT, known_at=AT):
    return holding(holders, keys, whole=whole, erased=erased, at=ValidAt(at), known_at=KnownAt(known_at))


def says(holders, *keys, **more):
    """Whom it names, or why it names nobody."""
    derivation = found(holders, *keys, **more)
    if isinstance(derivation, Derived):
        assert len(derivation.groups) == (derivation.value if holders.counts else len(derivation.value))
        return derivation.value
    return derivation.reason


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (held(HOLDS, "Ben"), ["Ann", "Ben"]),
        (held(ELSEWHERE, "Ben"), ["Ann"]),
        (held("never_known", "Ben"), ["Ann"]),
        (held("ended", "Ben"), ["Ann"]),
        (held("erased", "Ben"), "erased"),
        (held(member(1, "Bergen, Norway"), "Ben"), "not_the_value"),
        (held(conflict("Bergen", "Oslo"), "Ben"), "sources_not_ordered"),
        (held(conflict("Bergen, Norway", "Oslo"), "Ben"), "sources_not_ordered"),
        (held(conflict("Rome", "Oslo"), "Ben"), ["Ann"]),
        (undetermined("Bergen", "Oslo"), "undetermined"),
        (undetermined("Rome", "Oslo"), ["Ann"]),
        # All that might have held was erased: it may have been anything.
        (undetermined(), "undetermined"),
        (held(ELSEWHERE, "Ben", cardinality=Cardinality.OCCURRENCE), "operation_not_typed"),
        (held(HOLDS, "Ben", merged=True), "not_all_listed"),
        (held(ELSEWHERE, "Ben", merged=True), ["Ann"]),
        # Of one value what stands is all; of many one that was erased leaves no trace.
        (held(ELSEWHERE, "Ben", erased=True), ["Ann"]),
        (held(several(members=(ELSEWHERE,)), "Ben", erased=True), "erased"),
        (held(several(members=(ELSEWHERE, HOLDS)), "Ben", erased=True), ["Ann", "Ben"]),
        (held(several(members=(ELSEWHERE,), members_count=2), "Ben"), "not_all_listed"),
        (held(several(members=(), disputed=(conflict("Bergen", "Oslo"),)), "Ben"), "sources_not_ordered"),
        (held(several(members=(), disputed=(conflict("Rome", "Oslo"),)), "Ben"), ["Ann"]),
    ],
)
def test_of_no_key_it_may_be_open_whether_it_has_the_value(other, expected):
    assert says(asks(), held(HOLDS), other) == expected
    assert says(asks(counts=True), held(HOLDS), other) == (
        len(expected) if isinstance(expected, list) else expected
    )


def test_whoever_is_known_under_two_relations_is_one():
    twice = held(HOLDS), held(member(2, "Bergen"))

    assert says(asks(counts=True), *twice) == 1
    assert says(asks(counts=True), *(replace(one, merged=True) for one in twice)) == 1


def test_nobody_is_named_where_nobody_has_it_or_not_all_can_be_shown():
    many = [held(HOLDS, f"P{number}") for number in range(KEYS_MAX + 1)]

    assert says(asks(), held(ELSEWHERE)) == "never_known"
    assert says(asks(), held(HOLDS), whole=False) == "not_all_listed"
    assert says(asks(), held(HOLDS), erased=True) == "erased"
    assert says(asks(beside=("lives_in",)), held(HOLDS)) == "preposition_not_told"
    assert says(asks(beside=("lives_in",)), held(ELSEWHERE)) == "never_known"
    assert len(says(asks(), *many[1:])) == KEYS_MAX
    assert says(asks(), *many) == "not_all_listed"


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([piece("Bergen", -9)], ["Ann"]),
        ([piece("Bergen", None)], ["Ann"]),
        ([piece("Bergen", 0, 365)], ["Ann"]),
        ([piece("Bergen", 1)], "changes_within"),
        ([piece("Bergen", 0, 364), piece("Oslo", 364)], "changes_within"),
        ([piece("Bergen, Norway", 300)], "changes_within"),
        ([piece("Bergen", 0, state="conflict")], "history_disputed"),
        ([piece("Bergen", 0, state="undetermined")], "time_or_scope_not_resolved"),
        ([piece("Oslo", 0, 9, state="conflict"), piece("Oslo", 9, 20)], ["Ann"]),
        ([piece(None, 0, 9, state="erased")], "erased"),
    ],
)
def test_in_a_time_that_is_named_a_key_has_it_all_through(pieces, expected):
    assert says(asks(period=YEAR), held(HOLDS, pieces=pieces)) == expected


def test_a_time_that_is_named_is_the_views_and_has_begun_to_be_known():
    whole = held(HOLDS, pieces=[piece("Bergen", -9)])

    assert says(asks(period=YEAR), whole) == ["Ann"]
    assert says(asks(period=YEAR), whole, at=YEAR.end) == "time_or_scope_not_resolved"
    assert says(asks(period=YEAR), whole, at=YEAR.start - timedelta(1)) == "time_or_scope_not_resolved"
    assert says(asks(period=YEAR), whole, known_at=YEAR.start) == ["Ann"]
    before = YEAR.start - timedelta(1)
    assert says(asks(period=YEAR), whole, known_at=before) == "time_or_scope_not_resolved"


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([piece("Bergen", 0, 9), piece("Oslo", 9)], ["Ann"]),
        ([piece("Bergen", None, 9)], ["Ann"]),
        ([], "never_known"),
        ([piece("Oslo", 0)], "never_known"),
        # Not yet, and once believed but no more.
        ([piece("Bergen", 300)], "never_known"),
        ([piece("Bergen", 0, known_to=2)], "never_known"),
        ([piece("Bergen, Norway", 0)], "not_the_value"),
        ([piece("Bergen, Norway", 0), piece("Bergen", 9)], ["Ann"]),
        ([piece("Bergen", 0, state="conflict")], "history_disputed"),
        ([piece("Bergen, Norway", 0, state="conflict")], "history_disputed"),
        ([piece("Oslo", 0, state="conflict")], "never_known"),
        ([piece("Bergen", 0, state="conflict", known_to=2)], "never_known"),
        ([piece("Bergen", 31, known_to=2, validity=began(31, earliest=0))], "time_or_scope_not_resolved"),
        ([piece("Bergen", 0, known_to=2, validity=began(0, timeless=True))], "time_or_scope_not_resolved"),
        ([piece("Oslo", 31, known_to=2, validity=began(31, earliest=0))], "never_known"),
    ],
)
def test_who_ever_had_it_is_named_where_of_nobody_else_it_is_open(pieces, expected):
    assert says(asks(ever=True), held(ELSEWHERE, pieces=pieces)) == expected


def test_what_was_erased_may_have_been_the_value_at_some_time():
    had, had_not = [piece("Bergen", 0, 9)], [piece("Oslo", 0)]

    assert says(asks(ever=True), held(ELSEWHERE, pieces=had, erased=True)) == ["Ann"]
    assert says(asks(ever=True), held(ELSEWHERE, pieces=had_not, erased=True)) == "erased"
    occurred = held(ELSEWHERE, pieces=had, cardinality=Cardinality.OCCURRENCE)
    assert says(asks(ever=True), occurred) == "operation_not_typed"


def test_an_answer_stands_on_the_keys_that_it_names_or_that_disagree():
    own, other = held(HOLDS), held(member(2, "Oslo"), "Ben")
    rivals = held(conflict("Bergen", "Oslo", positions=(3, 4)), "Cid")

    assert standing_of_holders(found(asks(), own, other), [own, other]) == [own.resolution]
    disputed = found(asks(), other, rivals)
    assert standing_of_holders(disputed, [other, rivals]) == [rivals.resolution]
    assert standing_of_holders(found(asks(), other), [other]) == []
