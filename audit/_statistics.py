"""
Intervals and tests of measured rows. Pure, and the same on every machine.

Resamples are drawn from the raw stream of a PCG64 generator, which NumPy keeps from version to
version, and not from its distributions, which it does not: a stranger recomputes the same interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from contracts.limits import RESAMPLES_DEFAULT

CONFIDENCE: Final = 0.95
_DRAWN_AT_ONCE: Final = 1_000_000
"""Places drawn before they are summed, so that memory does not grow with the resamples."""

Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds of a measure, and how sure they are."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """
    Two columns of the same rows, whose sums make one number: `numerators` over `denominators`.

    A mean is over ones, a share has zeros and ones above; micro recall has gold found over gold.
    """

    numerators: Sequence[float]
    denominators: Sequence[float]

    @classmethod
    def mean(cls, numbers: Sequence[float]) -> Sums:
        """Return the sums whose ratio is the mean."""
        return cls(numerators=numbers, denominators=[1.0] * len(numbers))

    def ratio(self) -> float | None:
        """Return what they come to; None where nothing is below."""
        below = math.fsum(self.denominators)
        return None if below == 0 else math.fsum(self.numerators) / below


def wilson(successes: int, n: int, *, confidence: float = CONFIDENCE) -> Interval:
    """
    Return Wilson's score interval of a share, without continuity correction.

    Source: Wilson 1927, equation 13 of the paper. Of no rows it is everything from 0 to 1.
    """
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n}")
    if n == 0:
        return Interval(low=0.0, high=1.0, confidence=confidence)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    share = successes / n
    centre = share + z * z / (2 * n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    # Where nothing or everything succeeded, a bound is 0 or 1 itself, and rounding must not move it.
    return Interval(
        low=0.0 if successes == 0 else (centre - half) / (1 + z * z / n),
        high=1.0 if successes == n else (centre + half) / (1 + z * z / n),
        confidence=confidence,
    )


def mcnemar_exact(b: int, c: int) -> float:
    """
    Return the exact two-sided p of McNemar's test: `b` and `c` are the two kinds of discordant pairs.

    Source: equation 14 of the paper. Integers until the last division, so no tail is lost.
    """
    if b < 0 or c < 0:
        raise ValueError(f"{b}, {c}")
    n = b + c
    tail = sum(math.comb(n, j) for j in range(min(b, c) + 1))
    return min(1.0, float(Fraction(2 * tail, 2**n)))


def bootstrap(
    ours: Sums,
    against: Sums | None = None,
    *,
    seed: int,
    strata: Sequence[str] | None = None,
    clusters: Sequence[str] | None = None,
    resamples: int = RESAMPLES_DEFAULT,
    confidence: float = CONFIDENCE,
) -> Interval | None:
    """
    Return the percentile interval of a ratio, or of the difference of two ratios over the same rows.

    Args:
        against: The other arm, row for row of the same questions: then the interval is of ours less
            theirs, and each resample takes the same rows of both (paired).
        strata: Of each row; each stratum keeps its number of rows.
        clusters: Of each row; whole clusters are drawn, so rows of one history stand or fall together.
            With `strata` they are drawn within theirs.

    Returns:
        None where a resample has nothing below the line, and so no number.
    """
    table = _table(ours, against)
    groups, table = _grouped(table, strata=strata, clusters=clusters)
    if len(table) == 0:
        return None
    totals = np.concatenate(list(_totals(table, groups, seed=seed, resamples=resamples)))
    below = totals[:, 1::2]
    if not bool((below > 0).all()):
        return None
    ratios = totals[:, 0::2] / below
    measured = ratios[:, 0] if against is None else ratios[:, 0] - ratios[:, 1]
    tail = (1 - confidence) / 2
    low, high = (float(bound) for bound in np.quantile(measured, [tail, 1 - tail]))
    return Interval(low=low, high=high, confidence=confidence)


def _table(ours: Sums, against: Sums | None) -> Numbers:
    columns = [ours.numerators, ours.denominators]
    if against is not None:
        columns += [against.numerators, against.denominators]
    if len({len(column) for column in columns}) != 1:
        raise ValueError("columns of different rows")
    return np.array(columns, dtype=np.float64).T


def _grouped(
    table: Numbers, *, strata: Sequence[str] | None, clusters: Sequence[str] | None
) -> tuple[list[NDArray[np.int64]], Numbers]:
    """Return what is drawn from, group by group, and the table with one row for each that is drawn."""
    names = list(strata) if strata is not None else [""] * len(table)
    if clusters is not None:
        # A cluster that lies in two strata is two clusters, one in each.
        whole = list(zip(names, clusters, strict=True))
        kinds = sorted(set(whole))
        place = {kind: number for number, kind in enumerate(kinds)}
        summed = np.zeros((len(kinds), table.shape[1]))
        np.add.at(summed, [place[kind] for kind in whole], table)
        table, names = summed, [stratum for stratum, _ in kinds]
    if len(names) != len(table):
        raise ValueError("strata of other rows")
    members: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        members.setdefault(name, []).append(number)
    return [np.array(members[name], dtype=np.int64) for name in sorted(members)], table


def _totals(
    table: Numbers, groups: Sequence[NDArray[np.int64]], *, seed: int, resamples: int
) -> Iterator[Numbers]:
    stream = np.random.PCG64(seed)
    at_once = max(1, _DRAWN_AT_ONCE // len(table))
    for first in range(0, resamples, at_once):
        count = min(at_once, resamples - first)
        total = np.zeros((count, table.shape[1]))
        for group in groups:
            # The upper 53 bits as a fraction, times the size: the bias is below one in 10^12.
            fractions = (stream.random_raw(count * len(group)) >> np.uint64(11)) * 2.0**-53
            places = group[(fractions * len(group)).astype(np.int64)]
            for column in range(table.shape[1]):
                total[:, column] += table[places, column].reshape(count, len(group)).sum(axis=1)
        yield total
