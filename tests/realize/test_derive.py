"""From what was known of a key to one value, or the reason why there is none."""

import re
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.claims import Source
from contracts.histories import KeyHistory, Rectangle
from contracts.relations import Cardinality
from contracts.resolutions import Conflict, Missing, MissingReason, Resolved, Rival
from realize import Derived, Found, claims_of, derive
from realize._arithmetic import elapsed, months_between
from realize._task import STAYS, Bounds, Form, Subject, Task
from tests.packing.values import claim, closure, evidence, key, member, packed, several
from tests.realize.asked import show

DAY = timedelta(days=1)
FIRST = datetime(2009, 1, 1, tzinfo=UTC)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PERIOD = Bounds(start=datetime(2008, 10, 1, tzinfo=UTC), end=FIRST, wording="Q4 2008")
VALUES = (7.3, 7.1, 7.6, 7.6, 7.2)
"""Published on five days a hundred days apart; the fourth repeats the third."""


def on(number):
    return FIRST + number * 100 * DAY


def rectangles(values=VALUES, **fields):
    found = []
    for place, value in enumerate(values):
        is_last = place == len(values) - 1
        own = {
            "relation": "lives_in",
            "part": "",
            "valid_from": PERIOD.start,
            "valid_to": PERIOD.end,
            "known_from": place + 1,
            "known_to": None if is_last else place + 2,
            "known_from_at": on(place),
            "known_to_at": None if is_last else on(place + 1),
            "state": "value",
            "claims": (claim(place + 1, value),),
        }
        found.append(Rectangle(**(own | fields)))
    return found


def found(pieces=None, *, resolution=None, entity="Ann", whole=True, cardinality=None):
    pieces = rectangles() if pieces is None else pieces
    if resolution is None:
        last = pieces[-1].claims[0]
        resolution = member(last.position.event, last.value)
    answer = key(resolution, entity=entity, cardinality=cardinality)
    return Found(
        subject=Subject(entity=entity, relation="lives_in", period=PERIOD),
        resolution=answer,
        history=KeyHistory(
            entity=entity, relation="lives_in", contract=answer.contract,
            start=PERIOD.start, end=PERIOD.end, rectangles=pieces, whole=whole,
        ),
        erased_from=None,
    )  # fmt: skip


def task(form, **fields):
    own = {
        "known": None,
        "between": None,
        "value": None,
        "words": None,
        "unit": None,
        "on": None,
        "first": False,
        "number": False,
        "revised": False,
        "past": False,
    }
    subject = Subject(entity="Ann", relation="lives_in", period=PERIOD)
    return Task(form=Form(form), subjects=(subject,), **(own | fields))


def derived(form, *each, **fields):
    return derive(task(form, **fields), each or (found(),), at=PERIOD.start, known_at=NOW)


def day(moment):
    return Bounds(start=moment, end=moment + DAY, wording="a day")


SURFACES = {
    "value": (7.2, {5}, {}),
    "yes_no": (True, {5}, {"value": "7.2"}),
    "who_said": (["Ann"], {5}, {}),
    "first_known": ("2009-01-01T00:00:00Z", {1}, {}),
    "known_since": ("2010-02-05T00:00:00Z", {3, 4, 5}, {}),
    "known_as": ("2009-04-11T00:00:00Z", {2}, {"value": "7.1"}),
    "times_revised": (3, {1, 2, 3, 4, 5}, {}),
    "largest_revision": (
        {"change": 0.5, "from": 7.1, "to": 7.6, "known_at": "2009-07-20T00:00:00Z"},
        {1, 2, 3, 4, 5},
        {},
    ),
    "total_revision": (-0.1, {1, 5}, {}),
    "elapsed": (400, {1, 5}, {"unit": "days"}),
    "values": ([7.3, 7.1, 7.6, 7.2], {1, 2, 3, 4, 5}, {}),
    "values_count": (4, {1, 2, 3, 4, 5}, {}),
    "changes": (
        [{"known_at": "2009-07-20T00:00:00Z", "from": 7.1, "to": 7.6}],
        {2, 3, 4},
        {"between": (day(on(1)), day(on(2)))},
    ),
}


@pytest.mark.parametrize("form", SURFACES)
def test_what_is_shown_and_what_must_be_complete_inside(form):
    shown, stands_on, fields = SURFACES[form]

    z = derived(form, **fields)

    assert isinstance(z, Derived)
    assert z.value == shown
    assert {one.position.event for one in claims_of(z)} == stands_on


def other(place=2, value=3.5):
    pieces = rectangles([value], known_from=9, known_from_at=on(place), claims=(claim(9, value),))
    return found(pieces, entity="Bob")


def test_a_difference_is_of_both_ends_and_exact():
    z = derived("difference", found(rectangles([0.3])), other(value=0.1))

    assert isinstance(z, Derived)
    assert z.value == 0.2
    assert {one.position.event for one in claims_of(z)} == {1, 9}


def test_an_order_is_of_first_times_each_shown():
    z = derived("order", other(place=-1), found())
    before = derived("before", found(), other(place=-1))

    assert isinstance(z, Derived)
    assert [(item["entity"], item["known_at"]) for item in z.value] == [
        ("Bob", "2008-09-23T00:00:00Z"),
        ("Ann", "2009-01-01T00:00:00Z"),
    ]
    assert isinstance(before, Derived)
    assert before.value is False


@pytest.mark.parametrize("form", SURFACES)
def test_nothing_is_shown_without_a_line_for_each_value_that_it_stands_on(form):
    _, stands_on, fields = SURFACES[form]
    z = derived(form, **fields)
    whole = packed([closure("all", *stands_on, required=True)], [evidence(place) for place in stands_on])
    less = packed([], [])
    deferred = packed(
        [closure("all", *stands_on, required=True)], [evidence(place) for place in stands_on], budget_tokens=1
    )

    assert show(z, whole).status == "answered"
    assert show(z, whole).cites == tuple(f"e{place}" for place in sorted(stands_on))
    assert (show(z, less).status, show(z, less).reason) == ("insufficient_evidence", "not_in_context")
    assert show(z, deferred).reason == "required_evidence_deferred"


HISTORY_FORMS = [form for form in SURFACES if form not in {"value", "yes_no", "who_said"}]


@pytest.mark.parametrize("form", SURFACES)
@pytest.mark.parametrize(
    ("each", "reason"),
    [
        (found(whole=False), "not_all_listed"),
        (found(rectangles(valid_from=PERIOD.start + DAY)), "changes_within"),
    ],
)
def test_what_is_not_one_whole_thing_is_left_to_the_reader(form, each, reason):
    z = derived(form, each, **SURFACES[form][2])

    assert (type(z).__name__, z.reason, z.is_missing) == ("Withheld", reason, False)


@pytest.mark.parametrize("form", sorted(set(SURFACES) - {"yes_no"}))
def test_of_many_values_at_once_no_history_is_one(form):
    z = derived(form, found(cardinality=Cardinality.MANY), **SURFACES[form][2])

    assert z.reason == "operation_not_typed"


@pytest.mark.parametrize("form", HISTORY_FORMS)
@pytest.mark.parametrize(
    ("state", "reason"),
    [
        ("conflict", "history_disputed"), ("withdrawn", "history_interrupted"),
        ("ended", "history_interrupted"), ("undetermined", "history_interrupted"), ("erased", "erased"),
    ],
)  # fmt: skip
def test_a_history_with_a_hole_in_it_is_not_counted_over(form, state, reason):
    pieces = rectangles()
    hole = rectangles(state=state)[1]

    z = derived(form, found([pieces[0], hole, *pieces[2:]]), **SURFACES[form][2])

    assert (type(z).__name__, z.reason) == ("Withheld", reason)


@pytest.mark.parametrize("form", HISTORY_FORMS)
def test_a_gap_in_known_time_is_a_hole_too(form):
    pieces = rectangles()

    z = derived(form, found([pieces[0], *pieces[2:]]), **SURFACES[form][2])

    assert z.reason == "history_interrupted"


@pytest.mark.parametrize("form", ["value", "yes_no", "who_said", "difference"])
def test_what_the_resolver_says_is_said(form):
    gone = Missing(reason=MissingReason.WITHDRAWN, superseded=(), withdrawn=(claim(3),))
    rivals = tuple(
        Rival(value=value, ended=False, claim=claim(place, value)) for place, value in ((1, 1), (2, 2))
    )
    disputed = Conflict(rivals=rivals, why="sources_not_ordered", superseded=())
    more = (other(),) if form == "difference" else ()

    missing = derived(form, found(resolution=gone), *more, value="7")
    conflict = derived(form, found(resolution=disputed), *more, value="7")

    assert (missing.reason, missing.is_missing) == ("withdrawn", True)
    assert (conflict.reason, conflict.conflict) == ("sources_not_ordered", disputed)
    shown = packed([closure("all", 1, 2, required=True)], [evidence(1), evidence(2)])
    assert show(conflict, shown).status == "conflict"
    assert show(conflict, shown).value is None
    assert show(conflict, shown, disclose=True).value == {
        "rivals": [{"value": 1, "ended": False}, {"value": 2, "ended": False}]
    }


def test_a_time_within_which_something_changed_names_no_one_state():
    within = Bounds(start=on(1) - 5 * DAY, end=on(1) + 5 * DAY, wording="April 2009")

    assert derived("value", known=within).reason == "changes_within"
    assert derived("changes", between=(within, day(on(3)))).reason == "changes_within"
    assert isinstance(derived("value", known=day(on(1))), Derived)


def test_a_period_other_than_the_view_s_is_not_answered():
    z = derive(task("value"), (found(),), at=PERIOD.end, known_at=NOW)

    assert z.reason == "time_or_scope_not_resolved"


def test_a_value_believed_twice_has_no_one_time_unless_the_first_is_asked_for():
    twice = found(rectangles([1, 2, 1]))

    assert derived("known_as", twice, value="1").reason == "several_times"
    assert derived("known_as", twice, value="1", first=True).value == "2009-01-01T00:00:00Z"
    assert derived("known_as", twice, value="3").reason == "never_known"


def test_what_was_never_revised_has_no_last_revision():
    once = found(rectangles([7.3, 7.3]))

    for form, value in (("known_since", "2009-01-01T00:00:00Z"), ("elapsed", {"days": 0})):
        z = derived(form, once, revised=True)

        assert (z.reason, z.is_missing) == ("never_revised", True)
        assert {one.position.event for one in claims_of(z)} == {1, 2}
        assert derived(form, once).value == value
        assert isinstance(derived(form, revised=True), Derived)


def test_what_was_known_at_once_has_no_order():
    assert derived("order", found(), other(place=0)).reason == "several_times"
    assert derived("before", found(), other(place=0)).value is False


def test_of_revisions_as_large_as_each_other_none_is_the_largest():
    z = derived("largest_revision", found(rectangles([0.3, 0.1, 0.2, 0.4])))

    assert z.value == [
        {"change": -0.2, "from": 0.3, "to": 0.1, "known_at": "2009-04-11T00:00:00Z"},
        {"change": 0.2, "from": 0.2, "to": 0.4, "known_at": "2009-10-28T00:00:00Z"},
    ]


def test_who_says_it_is_everybody_whose_claim_carries_it():
    claims = [
        claim(place, 7, source=Source(actor_id=who, actor_class="user"))
        for place, who in ((4, "Bob"), (2, "Ann"))
    ]
    carried = Resolved(value=7, form="7", claims=claims, superseded=(), count_identity=None)

    assert derived("who_said", found(rectangles([7]), resolution=carried)).value == ["Ann", "Bob"]


def test_a_state_that_is_a_yes_or_a_no_is_shown_as_it_stands():
    assert derived("is_so", found(rectangles([True, False]))).value is False
    assert derived("is_so", found(rectangles([1, 0]))).reason == "not_a_truth"


def test_a_state_that_is_a_time_is_when_it_is():
    assert derived("is_when", found(rectangles(["2024-07-13T13:12:56Z"]))).value == "2024-07-13T13:12:56Z"
    assert derived("is_when", found(rectangles([2008]))).reason == "not_a_time"


@pytest.mark.parametrize(
    ("words", "value", "reason"),
    [
        ("lyon france", True, None),
        ("boston", False, None),
        ("lyon", None, "not_the_value"),
        ("near lyon", None, "not_the_value"),
        ("porto", None, "not_the_value"),
    ],
)
def test_yes_is_said_of_what_stands_exactly_and_no_of_what_it_replaced(words, value, reason):
    standing = member(3, "Lyon, France", superseded=[claim(1, "Boston"), claim(2, "Lyon")])

    z = derived("yes_no", found(rectangles(["Lyon, France"]), resolution=standing), words=words)

    assert getattr(z, "value", None) is value
    assert getattr(z, "reason", None) == reason


def test_no_is_said_of_one_of_many_that_ended_and_nothing_of_one_that_was_never_told():
    ended = rectangles(["rye bread"], state="ended")
    some = several(members=[member(2, "tea")])

    def asked(words):
        return derived("yes_no", found(ended, resolution=some), words=words)

    assert (asked("tea").value, asked("rye bread").value) == (True, False)
    assert asked("coffee").reason == "not_the_value"


@pytest.mark.parametrize("form", ["largest_revision", "total_revision", "difference", "yes_no", "known_as"])
def test_words_are_not_subtracted(form):
    words = found(rectangles(["Lyon", "Graz"]))
    more = (words,) if form == "difference" else ()

    assert derived(form, words, *more, value="7").reason == "not_a_number"


@given(
    st.dates(min_value=date(1990, 1, 1), max_value=date(2030, 1, 1)),
    st.integers(min_value=0, max_value=9_000),
)
def test_a_month_is_over_on_the_same_day_of_the_next(start, days):
    start = datetime.combine(start, time(), tzinfo=UTC)
    end = start + timedelta(days=days)
    months = months_between(start, end)

    def later(count):
        place = start.month - 1 + count
        return start.year + place // 12, place % 12 + 1, start.day

    ended = (end.year, end.month, end.day)
    assert later(months) <= ended < later(months + 1)
    assert elapsed(start, end, unit="days") == elapsed(start, end, unit=None)["days"]


def test_every_form_stands_in_the_table_of_surfaces():
    page = (Path(__file__).parents[2] / "docs" / "answers.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)

    assert set(listed) >= {form.value for form in Form}
    through_time = {"held_since", "held_for", "first_told", "age", "apart"}
    # Those of what happened stand in the tests of the path, which read the whole of it.
    happened = {"occurred_when", "occurred_what", "occurred_beside", "first_of_times"}
    others = {"difference", "order", "before", "is_so", "is_when", *happened}
    # Those of stretches are held against lives made up by chance.
    stays = {form.value for form in STAYS}
    assert {*SURFACES} | through_time | stays | others == {form.value for form in Form}


def test_nobody_says_what_will_be_known():
    assert derived("value", known=day(NOW + DAY)).reason == "time_or_scope_not_resolved"
    assert derived("changes", between=(day(on(3)), day(NOW + DAY))).reason == "time_or_scope_not_resolved"
