"""The learner of route weights: one minimum, found again, and worth what it says."""

from __future__ import annotations

import numpy as np

from tests.fit.examples import Example
from tests.fit.learner import fit

UNITS = 30


def example(seed: int, *, data_set: str) -> Example:
    """Gold is the unit of which the first column says most; the second says nothing."""
    features = np.random.default_rng(seed).random((UNITS, 2))
    gold = np.zeros(UNITS, dtype=np.bool_)
    gold[int(features[:, 0].argmax())] = True
    return Example(
        data_set=data_set,
        history=f"{data_set}-{seed}",
        features=features,
        by_hand=features[:, 1],
        gold=gold,
        gold_count=1,
    )


def test_the_column_that_tells_gold_gets_the_weight_and_a_repeat_the_same():
    known = [example(seed, data_set="a") for seed in range(40)]

    weights = fit(known)

    assert weights[0] > 5 * abs(weights[1])
    assert np.array_equal(weights, fit(known))


def test_a_set_weighs_alike_however_many_questions_it_has():
    once = [example(seed, data_set="a") for seed in range(30)]
    many = [one for one in once for _ in range(4)]
    other = [example(seed, data_set="b") for seed in range(30, 60)]

    # Of the small set each question counts for more: the balance of the two is that of equal halves.
    assert np.allclose(_direction(fit([*many, *other])), _direction(fit([*once, *other])), atol=0.05)


def _direction(weights):
    return weights / np.linalg.norm(weights)
