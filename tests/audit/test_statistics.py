"""Intervals and tests, held against published values and against SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from audit._statistics import Sums, bootstrap, mcnemar_exact, wilson

# The paper's 91 questions: both right, ours alone, theirs alone, neither. 38 and 59 are right.
OURS = [1.0] * 29 + [1.0] * 9 + [0.0] * 30 + [0.0] * 23
THEIRS = [1.0] * 29 + [0.0] * 9 + [1.0] * 30 + [0.0] * 23


def test_mcnemar_is_the_published_one():
    assert round(mcnemar_exact(9, 30), 5) == 0.00107


@pytest.mark.parametrize(("b", "c"), [(0, 0), (0, 1), (1, 1), (5, 5), (9, 30), (30, 9), (200, 260), (0, 60)])
def test_mcnemar_is_the_binomial_test_of_scipy(b, c):
    expected = stats.binomtest(b, b + c, 0.5).pvalue if b + c else 1.0

    assert mcnemar_exact(b, c) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("successes", "percent", "low", "high"), [(38, 41.76, 32.16, 52.03), (59, 64.84, 54.61, 73.86)]
)
def test_wilson_of_the_papers_two_arms(successes, percent, low, high):
    found = wilson(successes, 91)

    assert round(100 * successes / 91, 2) == percent
    assert [round(100 * found.low, 1), round(100 * found.high, 1)] == pytest.approx([low, high], abs=0.06)


@pytest.mark.parametrize(("successes", "n"), [(38, 91), (59, 91), (0, 7), (7, 7), (1, 1_536), (1_535, 1_536)])
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_wilson_is_scipys(successes, n, confidence):
    expected = stats.binomtest(successes, n).proportion_ci(confidence_level=confidence, method="wilson")

    found = wilson(successes, n, confidence=confidence)

    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert 0.0 <= found.low <= successes / n <= found.high <= 1.0


def test_nothing_asked_leaves_every_share_open():
    assert (wilson(0, 0).low, wilson(0, 0).high) == (0.0, 1.0)


def test_the_paired_bootstrap_of_the_papers_counts_is_the_published_interval():
    """To one question of the 91: the paper's is stratified, by strata that it does not tell."""
    found = bootstrap(Sums.mean(OURS), Sums.mean(THEIRS), seed=1)

    assert [100 * found.low, 100 * found.high] == pytest.approx([-35.16, -10.99], abs=100 / 91 + 0.01)


def test_the_bootstrap_of_a_mean_and_of_a_ratio_is_scipys():
    chance = np.random.default_rng(3)
    gold = chance.integers(1, 6, 200).astype(float)
    recalled = np.floor(gold * chance.random(200))

    def micro(found, of, axis=-1):
        return found.sum(axis=axis) / of.sum(axis=axis)

    for ours, data, statistic in (
        (Sums.mean(list(recalled)), (recalled,), np.mean),
        (Sums(numerators=list(recalled), denominators=list(gold)), (recalled, gold), micro),
    ):
        expected = stats.bootstrap(
            data, statistic, paired=True, vectorized=True, method="percentile", n_resamples=20_000, rng=5
        ).confidence_interval
        found = bootstrap(ours, seed=7, resamples=20_000)

        spread = expected.high - expected.low
        assert found.low == pytest.approx(expected.low, abs=0.03 * spread)
        assert found.high == pytest.approx(expected.high, abs=0.03 * spread)


def test_the_same_seed_is_the_same_interval_and_another_seed_is_another():
    # Written down, so that a stream that changes between versions is noticed.
    numbers = Sums.mean([1.0, 0.25, 0.5, 0.125, 0.0, 0.7, 0.3])

    found = bootstrap(numbers, seed=11)

    assert (round(found.low, 12), round(found.high, 12)) == (0.185714285714, 0.671428571429)
    assert bootstrap(numbers, seed=12, resamples=99) != bootstrap(numbers, seed=11, resamples=99)


def test_a_stratum_keeps_its_number_of_rows():
    """Within a stratum all rows are alike, so no resample can differ from the sample."""
    numbers, strata = [1.0] * 5 + [0.0] * 20, ["easy"] * 5 + ["hard"] * 20

    stratified = bootstrap(Sums.mean(numbers), seed=1, strata=strata)
    plain = bootstrap(Sums.mean(numbers), seed=1)

    assert (stratified.low, stratified.high) == (0.2, 0.2)
    assert plain.low < 0.2 < plain.high


def test_rows_of_one_history_stand_or_fall_together():
    """Eight histories of ten equal rows know as much as eight rows."""
    histories = [str(number) for number in range(8) for _ in range(10)]
    numbers = [float(number % 2) for number in range(8) for _ in range(10)]

    clustered = bootstrap(Sums.mean(numbers), seed=4, clusters=histories)
    eight = bootstrap(Sums.mean([float(number % 2) for number in range(8)]), seed=4)

    assert (clustered.low, clustered.high) == (eight.low, eight.high)
    plain = bootstrap(Sums.mean(numbers), seed=4)
    assert clustered.high - clustered.low > 2 * (plain.high - plain.low)


def test_a_resample_without_anything_below_the_line_gives_no_interval():
    assert bootstrap(Sums(numerators=[1.0, 0.0], denominators=[1.0, 0.0]), seed=1) is None
    assert bootstrap(Sums.mean([]), seed=1) is None
    assert Sums.mean([]).ratio() is None
    assert math.isclose(Sums.mean([1.0, 0.0]).ratio(), 0.5)
