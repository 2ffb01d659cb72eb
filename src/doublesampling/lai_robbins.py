"""The bound of Lai and Robbins on the regret of any policy that learns on every problem."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from doublesampling.bandits import (
    BernoulliBandit,
    CategoricalBandit,
    ExponentialBandit,
    GaussianBandit,
    PoissonBandit,
)
from doublesampling.rules.choose import baselines
from doublesampling.rules.compiled import plain


def _gaussian_divergence(mean: float, best: float, noise: float) -> float:
    """The least divergence from an arm of this mean and noise to one of the best mean and any noise."""
    return 0.5 * math.log1p(((best - mean) / noise) ** 2)


# KL(arm || an arm that is as good as the best), by the kind of reward
DIVERGENCES: dict[type, Callable[[Any, float, float], float]] = {
    BernoulliBandit: lambda _, p, best: plain(baselines.bernoulli_divergence)(p, best),
    GaussianBandit: lambda bandit, m, best: _gaussian_divergence(m, best, bandit.noise),
    PoissonBandit: lambda _, m, best: best - m + (m * math.log(m / best) if m > 0.0 else 0.0),
    ExponentialBandit: lambda _, m, best: math.log(best / m) + m / best - 1.0,
}


def means_of(bandit: Any) -> tuple[float, ...] | None:
    """What each arm pays on average; None where that depends on a context or on the time."""
    if isinstance(bandit, BernoulliBandit):
        return tuple(bandit.probabilities)
    if isinstance(bandit, CategoricalBandit):
        return tuple(float(np.dot(p, bandit.values)) for p in bandit.probabilities)
    return getattr(bandit, "means", None)


def lai_robbins(bandit: Any, horizon: int) -> float:
    """The sum of gap / KL over the arms but the best, times log T: what no good policy stays below for ever."""
    means, divergence = means_of(bandit), DIVERGENCES[type(bandit)]
    assert means is not None
    best = max(means)
    return sum((best - m) / divergence(bandit, m, best) for m in means if m < best) * math.log(horizon)
