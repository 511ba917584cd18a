"""
A linear ranker: which unit is gold, by what routes say of it. Convex, so that no seed is needed.

The loss of a question is the mean over its gold units of the negative log share that a softmax over
all its units gives to them, with a square penalty; Newton's method finds the one minimum.

Source: Cao et al., "Learning to rank: from pairwise approach to listwise approach" (2007), top one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tests.fit.examples import Example

PENALTY = 2.0
STEPS_MAX = 30
CLOSE = 1e-6

Numbers = npt.NDArray[np.float64]


def fit(examples: Sequence[Example]) -> Numbers:
    """Return a weight a column. Each set weighs alike, however many questions it has."""
    useful = [example for example in examples if example.gold.any()]
    sets = [example.data_set for example in useful]
    shares = [len(useful) / (len(set(sets)) * sets.count(one)) for one in sets]
    weights = np.zeros(useful[0].features.shape[1])
    loss, slope, bend = _loss(weights, useful, shares)
    for _ in range(STEPS_MAX):
        step, size = np.linalg.solve(bend, slope), 1.0
        while (found := _loss(weights - size * step, useful, shares))[0] > loss and size > CLOSE:
            size /= 2
        done = loss - found[0] < CLOSE
        weights, (loss, slope, bend) = weights - size * step, found
        if done:
            break
    return weights


def _loss(
    weights: Numbers, examples: Sequence[Example], shares: Sequence[float]
) -> tuple[float, Numbers, Numbers]:
    """Return the loss with its first and second derivatives."""
    loss = PENALTY / 2 * float(weights @ weights)
    slope, bend = PENALTY * weights, PENALTY * np.eye(len(weights))
    for example, share in zip(examples, shares, strict=True):
        scores = example.features @ weights
        scores -= scores.max()
        chances = np.exp(scores)
        total = chances.sum()
        chances /= total
        mean = chances @ example.features
        loss -= share * float((scores[example.gold] - np.log(total)).mean())
        slope = slope - share * (example.features[example.gold].mean(axis=0) - mean)
        bend += share * ((example.features.T * chances) @ example.features - np.outer(mean, mean))
    return loss, slope, bend
