"""What is read off the stretches of a key, and each reason why it is not: by hand, without a ledger."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from contracts.claims import Validity, ValidityKind
from contracts.histories import KeyHistory, Rectangle
from contracts.relations import Cardinality
from contracts.times import ValidAt
from realize import Derived, Found, _stays
from realize._found import Cannot
from realize._task import Subject
from tests.packing.values import claim, key, member
from tests.realize.test_derive import task

JANUARY = datetime(2025, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SUBJECT = Subject(entity="Ann", relation="lives_in", period=None)


def on(number):
    """A day of 2025, from 0."""
    return JANUARY + timedelta(days=number)


def told(place, value, start, *, earliest=None, end=None, is_told=True):
    """A claim heard at the end of the year, or when its state began."""
    kind = ValidityKind.SINCE if end is None else ValidityKind.SPAN
    validity = Validity(kind=kind, start=start, end=end, earliest=earliest or start, timeless=False)
    heard = on(300) if is_told else start
    return claim(place, value, validity=validity, recorded_at=heard, observed_at=heard)


def piece(one, start, end, *, state="value", known_to=None, part=""):
    return Rectangle(
        relation="lives_in", part=part, valid_from=start, valid_to=end, known_from=1, known_to=known_to,
        known_from_at=on(300), known_to_at=None if known_to is None else on(301), state=state,
        claims=() if one is None else one,
    )  # fmt: skip


def lived(*stays, more=(), erased_from=None, cardinality=None, at=NOW):
    """A key that had these values from day to day, each told with its start."""
    pieces = []
    for place, (value, start, end) in enumerate(stays, start=1):
        pieces.append(piece((told(place, value, on(start)),), on(start), None if end is None else on(end)))
    answer = key(member(1, "Lyon"), cardinality=cardinality)
    answer = replace(answer, view=replace(answer.view, valid_at=ValidAt(at)))
    rectangles = [*pieces, *more]
    return Found(
        subject=SUBJECT,
        resolution=answer,
        history=KeyHistory(
            entity="Ann", relation="lives_in", contract=answer.contract,
            start=None, end=None, rectangles=rectangles, whole=True,
        ),
        erased_from=erased_from,
    )  # fmt: skip


def says(form, found, **fields):
    """What a form comes to, or why it does not."""
    wanted = replace(task(form, **fields), subjects=(SUBJECT,))
    try:
        derivation = getattr(_stays, form)(wanted, [found])
    except Cannot as cannot:
        return f"withheld: {cannot.withheld.reason}"
    assert isinstance(derivation, Derived)
    assert derivation.groups
    return derivation.value


LYON = {"words": "lyon"}
TWICE = (("Lyon", 0, 10), ("Oslo", 10, 20), ("Lyon", 20, 25), ("Rome", 25, None))


@pytest.mark.parametrize(
    ("form", "stays", "fields", "expected"),
    [
        ("held_total", TWICE, LYON, {"days": 15}),
        ("held_total", TWICE, LYON | {"unit": "days"}, 15),
        # What is left of each, short of a whole week, may add up to one.
        ("held_total", TWICE, LYON | {"unit": "weeks"}, {"at_least": 1, "at_most": 2}),
        ("held_total", TWICE[:1] + TWICE[1:2], LYON | {"unit": "weeks"}, 1),
        ("held_total", TWICE, {"words": "rome", "past": True}, "withheld: not_over"),
        ("held_total", TWICE, {"words": "paris"}, "withheld: not_the_value"),
        ("held_until", TWICE, {"words": "oslo"}, "2025-01-21T00:00:00Z"),
        ("held_until", TWICE, LYON, "withheld: several_times"),
        ("held_until", TWICE, {"words": "rome"}, "withheld: not_over"),
        ("held_ever", TWICE, LYON, True),
        ("held_ever", TWICE, {"words": "paris"}, "withheld: not_the_value"),
        ("held_beside", TWICE, {"words": "oslo", "first": True}, "Lyon"),
        ("held_beside", TWICE, {"words": "oslo"}, "Lyon"),
        ("held_beside", TWICE, {"first": True}, "Lyon"),
        ("held_beside", TWICE, LYON, "withheld: several_times"),
        ("held_beside", TWICE, {"words": "rome"}, "withheld: never_known"),
        ("held_beside", TWICE[:1], LYON | {"first": True}, "withheld: never_known"),
        ("held_values", TWICE, {}, ["Lyon", "Oslo", "Rome"]),
        ("held_values", TWICE, {"number": True}, 3),
        ("held_values", (), {}, "withheld: never_known"),
        # Another that shares a word may be meant.
        ("held_total", (*TWICE[:3], ("Lyon, France", 25, None)), LYON, "withheld: not_the_value"),
        ("held_beside", (*TWICE[:2], ("Lyon, France", 20, None)), LYON, "withheld: not_the_value"),
    ],
)
def test_stretches_come_to_what_they_are_together(form, stays, fields, expected):
    assert says(form, lived(*stays), **fields) == expected


def test_a_stretch_of_which_more_was_told_is_one():
    more = [
        piece((told(7, "Oslo", on(20)),), on(20), on(30)),
        piece((told(8, "Rome", on(30)),), on(30), None),
    ]
    found = lived(*TWICE[:2], more=more)

    assert says("held_beside", found, words="rome", first=True) == "Oslo"
    assert says("held_until", found, words="oslo") == "2025-01-31T00:00:00Z"


def test_an_end_is_said_only_as_exactly_as_it_was_told():
    heard = piece((told(2, "Oslo", on(10), is_told=False),), on(10), None)
    coarse = piece((told(2, "Oslo", on(31), earliest=on(0)),), on(31), None)

    assert says("held_until", lived(("Lyon", 0, 10), more=[heard]), **LYON) == "withheld: end_not_told"
    assert says("held_until", lived(("Lyon", 0, 31), more=[coarse]), **LYON) == {
        "earliest": "2025-01-01T00:00:00Z", "latest": "2025-02-01T00:00:00Z",
    }  # fmt: skip
    begun = piece((told(1, "Lyon", on(0), is_told=False),), on(0), on(10))
    after = piece((told(2, "Oslo", on(10)),), on(10), None)
    assert says("held_total", lived(more=[begun, after]), **LYON) == "withheld: start_not_told"


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ([piece((told(8, "Nice", on(50)), told(9, "Rome", on(50))), on(50), on(60), state="conflict")],
         "history_disputed"),
        ([piece(None, on(50), on(60), state="erased")], "erased"),
        ([piece(None, on(50), on(60), state="undetermined")], "time_or_scope_not_resolved"),
        # Told with a coarse start, and it stands nowhere now.
        ([piece((told(9, "Nice", on(59), earliest=on(31)),), on(59), on(60), known_to=2)],
         "time_or_scope_not_resolved"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["held_total", "held_beside", "held_values"])
def test_what_may_have_been_in_between_withholds_it(form, more, reason):
    fields = {} if form == "held_values" else {"words": "oslo"}

    assert says(form, lived(*TWICE[:3], more=more), **fields) == f"withheld: {reason}"


def test_what_comes_before_a_coarse_start_is_no_doubt():
    before = piece(None, on(0), on(31), state="undetermined")
    coarse = piece((told(2, "Oslo", on(31), earliest=on(0)),), on(31), on(40))
    after = piece((told(3, "Rome", on(40)),), on(40), None)
    found = lived(more=[before, coarse, after])

    # Days are those of the calendar: it began on the 31st of January at the latest.
    assert says("held_total", found, words="oslo") == {"at_least": {"days": 10}, "at_most": {"days": 40}}


def test_a_conflict_is_no_yes_and_what_is_to_come_is_none():
    rivals = (told(1, "Lyon", on(0)), told(2, "Oslo", on(0)))
    disputed = lived(more=[piece(rivals, on(0), None, state="conflict")])

    assert says("held_ever", disputed, **LYON) == "withheld: not_the_value"
    assert says("held_ever", lived(*TWICE, at=on(-1)), **LYON) == "withheld: not_the_value"
    assert says("held_values", lived(*TWICE, at=on(12))) == ["Lyon", "Oslo"]


def test_what_was_erased_what_occurred_and_what_is_more_than_one_reads_are_withheld(monkeypatch):
    assert says("held_total", lived(*TWICE, erased_from=3), words="oslo") == "withheld: erased"
    occurred = lived(*TWICE, cardinality=Cardinality.OCCURRENCE)
    assert says("held_total", occurred, words="oslo") == "withheld: operation_not_typed"
    several = lived(*TWICE, cardinality=Cardinality.MANY)
    assert says("held_beside", several, words="oslo") == "withheld: operation_not_typed"
    assert says("held_values", several) == f"withheld: {_stays.NOT_OF_KIND}"
    monkeypatch.setattr(_stays, "STRETCHES_MAX", 3)
    assert says("held_total", lived(*TWICE), words="oslo") == "withheld: not_all_listed"


def test_one_stretch_that_two_lines_tell_is_not_counted_twice():
    def line(value, start, end):
        claims = (told(8 if value == "Lyon" else 9, value, on(start), end=on(end)),)
        return piece(claims, on(start), on(end), part=value)

    def total(*beside):
        found = lived(more=[line("Lyon", 1, 11), line("lyon", *beside)], cardinality=Cardinality.MANY)
        return says("held_total", found, **LYON)

    assert [total(1, 11), total(10, 13), total(0, 2)] == ["withheld: several_times"] * 3
    assert [total(11, 13), total(0, 1)] == [{"days": 12}, {"days": 11}]
