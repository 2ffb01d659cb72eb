"""Posterior updates by a whole history, one observation after another, as Python calls them."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import dirichlet, posterior, two_parameter_laws
from doublesampling.rules.cached import kept, kept_for

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kept
def _nig_follow(
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray, arms: IntArray, contexts: FloatArray,
    rewards: FloatArray, forgets: bool, anchors: FloatArray, work: FloatArray,
) -> None:  # fmt: skip
    for i in range(arms.size):
        if forgets:
            for a in range(alpha.size):
                alpha[a], beta[a] = posterior.nig_forget(mean[a], root[a], alpha[a], beta[a], anchors[a], work)
        a = arms[i]
        alpha[a], beta[a] = posterior.nig_update(mean[a], root[a], alpha[a], beta[a], contexts[i], rewards[i], work)


def nig_follow(
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray, arms: IntArray, contexts: FloatArray,
    rewards: FloatArray, forgets: bool, anchors: FloatArray,
) -> None:  # fmt: skip
    """Update weights by a history, in place; before each observation every arm may forget."""
    work = np.empty(mean.shape[1])
    _nig_follow(mean, root, alpha, beta, arms, contexts, rewards, forgets, anchors, work)


@kept
def _logistic_follow(
    mean: FloatArray, root: FloatArray, arms: IntArray, contexts: FloatArray, rewards: FloatArray, work: FloatArray,
    scaled: FloatArray,
) -> None:  # fmt: skip
    for i in range(arms.size):
        posterior.logistic_update(mean[arms[i]], root[arms[i]], contexts[i], rewards[i], scaled, work)


def logistic_follow(
    mean: FloatArray, root: FloatArray, arms: IntArray, contexts: FloatArray, rewards: FloatArray
) -> None:
    """Update the weights of log odds by a history, in place."""
    size = mean.shape[1]
    _logistic_follow(mean, root, arms, contexts, rewards, np.empty(size), np.empty(size))


@functools.cache
def _pairs_follow(law: int) -> Callable[..., None]:
    @kept_for(law)
    def follow(
        first: FloatArray, second: FloatArray, arms: IntArray, rewards: FloatArray, prior_first: FloatArray,
        prior_second: FloatArray, discount: float,
    ) -> None:  # fmt: skip
        for i in range(arms.size):
            two_parameter_laws.learn(law, first, second, prior_first, prior_second, discount, arms[i], rewards[i])

    return follow


@functools.cache
def learn_one(law: int) -> Callable[..., bool]:
    """Return the update of two numbers per arm by one observation, in place; it tells whether they are in bounds."""

    @kept_for(law)
    def learn(
        first: FloatArray, second: FloatArray, arm: int, reward: float, prior_first: FloatArray,
        prior_second: FloatArray, discount: float, bounds: FloatArray,
    ) -> bool:  # fmt: skip
        two_parameter_laws.learn(law, first, second, prior_first, prior_second, discount, arm, reward)
        inside = True
        for a in range(first.size):
            inside = inside and bounds[0] <= first[a] <= bounds[1] and bounds[2] <= second[a] <= bounds[3]
        return inside

    return learn


def pairs_follow(
    law: int, first: FloatArray, second: FloatArray, arms: IntArray, rewards: FloatArray,
    prior_first: FloatArray, prior_second: FloatArray, discount: float,
) -> None:  # fmt: skip
    """Update two numbers per arm (Beta or Gamma) by a history, in place."""
    _pairs_follow(law)(first, second, arms, rewards, prior_first, prior_second, discount)


@kept
def categories_follow(
    concentration: FloatArray, prior: FloatArray, discount: float, arms: IntArray, found: IntArray
) -> None:
    """Update categories by a history, in place."""
    for i in range(arms.size):
        dirichlet.learn(concentration, prior, discount, arms[i], found[i])


@kept
def _fill_marginals(
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray, noise: FloatArray, context: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    for a in range(mean.shape[0]):
        location, scale, freedom = posterior.nig_marginal(mean[a], root[a], alpha[a], beta[a], noise[a], context)
        out[a, 0], out[a, 1], out[a, 2] = location, scale, freedom


def nig_marginals(
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray, noise: FloatArray, context: FloatArray
) -> FloatArray:
    """Return the marginals of every arm at a context, float array (arm, 3)."""
    out = np.empty((mean.shape[0], 3))
    _fill_marginals(mean, root, alpha, beta, noise, context, out)
    return out
