"""The statistical checks can fail: each rejects a law that is off by little."""

import numpy as np
import pytest
from scipy import stats

from tests.chance import assert_counts, assert_law, assert_mean
from tests.test_draws import MANY, many, multinomials


@pytest.mark.parametrize(
    ("drawn", "wrong"),
    [
        (lambda: many("uniform") ** 1.1, stats.uniform),
        (lambda: many("normal") * 1.08, stats.norm),
        (lambda: many("log gamma", 2.6), stats.loggamma(2.5)),
        (lambda: 1 / (1 + np.exp(-many("logit beta", 2.0, 2.1))), stats.beta(2.0, 2.0)),
        (lambda: many("student", 1.0), stats.t(1.5)),
    ],
    ids=["uniform", "normal", "gamma", "beta", "student"],
)
def test_a_wrong_law_is_rejected(drawn, wrong):
    with pytest.raises(AssertionError, match="do not follow"):
        assert_law(drawn(), wrong.cdf)


def test_a_binomial_that_starts_beside_the_mode_is_rejected():
    counts = np.bincount(many("binomial", 20, 0.31).astype(int), minlength=21)
    with pytest.raises(AssertionError, match="do not follow"):
        assert_counts(counts, stats.binom(20, 0.3).pmf(np.arange(21)))


def test_an_impossible_outcome_is_rejected():
    with pytest.raises(AssertionError, match="cannot"):
        assert_counts([1, 99], [0.0, 1.0])


def test_a_wrong_mean_is_rejected():
    drawn = multinomials(np.array([0.2, 0.8]), 1000)
    with pytest.raises(AssertionError, match="expected"):
        assert_mean(drawn[:, 0], 202.0)


def test_dependence_between_neighbours_is_rejected():
    u = np.repeat(many("uniform")[: MANY // 2], 2)
    cells = np.floor(u[:-1] * 8) * 8 + np.floor(u[1:] * 8)
    with pytest.raises(AssertionError, match="do not follow"):
        assert_counts(np.bincount(cells.astype(int), minlength=64), np.full(64, 1 / 64))
