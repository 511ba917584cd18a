"""Contexts in plain order stand in the same lines as the plane's, and days cost them as little."""

from audit import History
from audit._histories import HistoryTurn
from echoplane._evaluation_arms import Costs
from packing import ApproximateCounter, parse

DAYS = ["2023-05-08T10:00:00-00:00", "2023-05-08T10:00:00-00:00", None, "2023-05-09T10:00:00-00:00"]
TURNS = tuple(
    HistoryTurn(session=1, speaker="Ann", speaker_class="user", observed_at=day, text=f"Turn {number}")
    for number, day in enumerate(DAYS)
)
COSTS = Costs.of(History(turns=TURNS, questions=()), ApproximateCounter())
BARE, TIME = (
    ApproximateCounter().count('[e1] Ann: "Turn 0"\n'),
    ApproximateCounter().count("8 May 2023 10:00Z"),
)


def test_turns_come_in_order_of_rank_while_they_fit_and_stand_in_order_of_the_history():
    shown = COSTS.packed((3, 1, 0, 2), budget_tokens=3 * BARE + 2 * TIME)

    assert shown.turns == (0, 1, 3)
    assert [line.text for line in parse("".join(f"{line}\n" for line in shown.lines))] == [
        "Turn 0", "Turn 1", "Turn 3",
    ]  # fmt: skip


def test_a_day_is_paid_once_and_the_context_is_counted_as_it_stands():
    one, two = (
        COSTS.packed((0, 1), budget_tokens=2 * BARE + TIME - 1),
        COSTS.packed((0, 1), budget_tokens=200),
    )

    assert (one.turns, two.turns) == ((0,), (0, 1))
    assert two.tokens == 2 * BARE + TIME
    assert two.bytes_count == sum(len(line.encode()) + 1 for line in two.lines)


def test_the_whole_history_fits_where_its_lines_do():
    whole = 4 * BARE + 3 * TIME

    assert COSTS.fits(budget_tokens=whole)
    assert not COSTS.fits(budget_tokens=whole - 1)
