import itertools
import random

from hypothesis import given
from hypothesis import strategies as st

from contracts.contexts import Closure
from packing._choose import choose

EVENTS = [f"event-{number}" for number in range(8)]

costs = st.fixed_dictionaries({event: st.integers(min_value=1, max_value=40) for event in EVENTS})


@st.composite
def closure_lists(draw):
    count = draw(st.integers(min_value=0, max_value=8))
    return [
        Closure(
            closure_id=f"unit-{number}",
            members=tuple(draw(st.lists(st.sampled_from(EVENTS), min_size=1, max_size=3, unique=True))),
            utility_ppm=draw(st.integers(min_value=0, max_value=1_000_000)),
            required=draw(st.booleans()) and draw(st.booleans()),
        )
        for number in range(count)
    ]


def spent(closures, choice, cost):
    members = {member for each in closures if each.closure_id in choice.admitted for member in each.members}
    return members, sum(cost[member] for member in members)


@given(closure_lists(), costs, st.integers(min_value=0, max_value=200))
def test_the_budget_holds_and_shared_members_are_paid_once(closures, cost, budget_tokens):
    choice = choose(closures, cost, budget_tokens=budget_tokens)

    members, tokens = spent(closures, choice, cost)
    assert choice.members == members
    assert choice.tokens == tokens <= budget_tokens


@given(closure_lists(), costs, st.integers(min_value=0, max_value=200))
def test_required_closures_come_all_or_not_at_all_and_before_any_other(closures, cost, budget_tokens):
    choice = choose(closures, cost, budget_tokens=budget_tokens)

    required = {each.closure_id for each in closures if each.required}
    needed = {member for each in closures if each.required for member in each.members}
    fits = sum(cost[member] for member in needed) <= budget_tokens
    assert required & set(choice.admitted) == (required if fits else set())


@given(closure_lists(), costs, st.integers(min_value=0, max_value=200), st.randoms(use_true_random=False))
def test_the_order_of_closures_changes_nothing(closures, cost, budget_tokens, chance):
    shuffled = list(closures)
    chance.shuffle(shuffled)

    assert choose(shuffled, cost, budget_tokens=budget_tokens) == choose(
        closures, cost, budget_tokens=budget_tokens
    )


@given(closure_lists(), costs, st.integers(min_value=0, max_value=200))
def test_nothing_that_would_still_fit_is_left_out(closures, cost, budget_tokens):
    choice = choose(closures, cost, budget_tokens=budget_tokens)

    for each in closures:
        extra = sum(cost[member] for member in set(each.members) - choice.members)
        if not each.required and each.closure_id not in choice.admitted:
            assert choice.tokens + extra > budget_tokens


def test_equal_closures_are_chosen_by_id():
    closures = [
        Closure(closure_id=name, members=(event,), utility_ppm=7, required=False)
        for name, event in (("b", "event-1"), ("a", "event-2"), ("c", "event-0"))
    ]

    choice = choose(closures, dict.fromkeys(EVENTS, 10), budget_tokens=20)

    assert choice.admitted == ("a", "b")


def test_a_large_useful_closure_is_not_lost_to_a_small_one_of_better_density():
    closures = [
        Closure(closure_id="large", members=("event-0",), utility_ppm=900_000, required=False),
        Closure(closure_id="small", members=("event-1",), utility_ppm=20_000, required=False),
    ]

    choice = choose(closures, {"event-0": 100, "event-1": 1}, budget_tokens=100)

    assert choice.admitted == ("large",)


def test_a_shared_member_makes_its_other_closures_cheaper():
    closures = [
        Closure(closure_id="first", members=("event-0",), utility_ppm=900_000, required=False),
        Closure(closure_id="shares", members=("event-0", "event-1"), utility_ppm=300_000, required=False),
        Closure(closure_id="alone", members=("event-2",), utility_ppm=290_000, required=False),
    ]

    choice = choose(closures, {"event-0": 50, "event-1": 10, "event-2": 10}, budget_tokens=60)

    assert choice.admitted == ("first", "shares")


def test_the_utility_reached_is_near_the_best_possible():
    """Against every subset, on small hard instances: the median gap, and the worst, stay bounded."""
    chance = random.Random(20_240_301)  # noqa: S311 -- instances, not secrets
    gaps = []
    for _ in range(150):
        cost = {event: chance.randint(10, 80) for event in EVENTS}
        closures = [
            Closure(
                closure_id=f"unit-{number}",
                members=tuple(chance.sample(EVENTS, chance.choice([1, 1, 1, 2, 3]))),
                utility_ppm=chance.randint(1_000, 1_000_000),
                required=False,
            )
            for number in range(9)
        ]
        budget_tokens = chance.randint(40, 250)
        best = max(
            sum(each.utility_ppm for each in subset)
            for size in range(len(closures) + 1)
            for subset in itertools.combinations(closures, size)
            if sum(cost[member] for member in {m for each in subset for m in each.members}) <= budget_tokens
        )
        admitted = choose(closures, cost, budget_tokens=budget_tokens).admitted
        reached = sum(each.utility_ppm for each in closures if each.closure_id in admitted)
        gaps.append(1 - reached / best if best else 0.0)

    gaps.sort()
    assert gaps[len(gaps) // 2] <= 0.01
    assert gaps[-1] <= 0.5
