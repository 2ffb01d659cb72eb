"""How long one decision takes, and its parts: run by ``make bench``."""

from typing import Any

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.rules.entry_points import mode_propensities


def history(arms: int, dimension: int | None = None) -> tuple[Any, Any, Any]:
    """A belief, its state after 30 observations per arm, and a context."""
    rng = np.random.default_rng(arms)
    played = np.repeat(np.arange(arms), 30)
    if dimension is None:
        bernoulli = ds.BetaBernoulli(arms=arms)
        return bernoulli, bernoulli.update_batch(bernoulli.prior(), played, rng.integers(0, 2, played.size)), None
    linear = ds.LinearGaussian(arms=arms, dimension=dimension)
    contexts = rng.uniform(size=(played.size, dimension))
    state = linear.update_batch(linear.prior(), played, rng.normal(size=played.size), contexts)
    return linear, state, contexts[0]


@pytest.mark.parametrize("policy", [ds.DoubleSampling(), ds.ThompsonSampling(), ds.BayesUCB(), ds.Greedy()], ids=repr)
def test_decide_two_beta_arms(benchmark: Any, policy: Any) -> None:
    belief, state, _ = history(2)
    benchmark(ds.decide, policy, belief, state, seed=1)


@pytest.mark.parametrize("dimension", [2, 20])
def test_decide_two_linear_arms(benchmark: Any, dimension: int) -> None:
    belief, state, context = history(2, dimension)
    benchmark(ds.decide, ds.DoubleSampling(), belief, state, context, seed=1)


@pytest.mark.parametrize("arms", [2, 10, 50])
@pytest.mark.parametrize("dimension", [None, 2], ids=["beta", "student"])
def test_probability_optimal(benchmark: Any, arms: int, dimension: int | None) -> None:
    belief, state, context = history(arms, dimension)
    benchmark(ds.probability_optimal, belief, state, context)


@pytest.mark.parametrize("arms", [2, 3, 20])
def test_propensities_of_a_thousand_candidates(benchmark: Any, arms: int) -> None:
    benchmark(mode_propensities, 1000, np.full(arms, 1 / arms), False)


@pytest.mark.parametrize("dimension", [None, 20], ids=["beta", "linear"])
def test_update(benchmark: Any, dimension: int | None) -> None:
    belief, state, context = history(2, dimension)
    benchmark(belief.update, state, 0, 1.0, context)
