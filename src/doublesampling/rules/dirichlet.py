"""Rewards in categories of known value: Dirichlet beliefs, whose mean value has no density of its own.

Sampling one is done as the paper writes it: M posterior samples of every arm.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.choose.information_directed import best_of_draw
from doublesampling.rules.compiled import rule
from doublesampling.rules.draws import POSTERIOR, SHARES, Address, fill_dirichlet, next_uniform, quick_gamma, stream
from doublesampling.rules.posterior import forget

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@rule
def mean_value(weights: FloatArray, values: FloatArray) -> float:
    """Return the mean value under weights or probabilities, float arrays (category)."""
    total = weighted = 0.0
    for k in range(values.size):
        total += weights[k]
        weighted += weights[k] * values[k]
    return weighted / total


@rule
def _fill_quick_draws(
    address: Address, arm: int, concentration: FloatArray, values: FloatArray, spreads: FloatArray, draws: FloatArray
) -> None:
    """Fill all draws of one arm whose concentrations are 1 or more: Gamma draws that cannot underflow, from one stream.

    concentration and spreads : float arrays (category), spreads a work space. draws : float array (sample, arm).
    """
    for k in range(values.size):
        spreads[k] = 1.0 / math.sqrt(9.0 * concentration[k] - 3.0)
    word = stream(address, SHARES, np.uint64(arm))
    for m in range(draws.shape[0]):
        total = weighted = 0.0
        for k in range(values.size):
            share = -1.0
            while share < 0.0:
                word, u = next_uniform(word)
                word, other = next_uniform(word)
                share = quick_gamma(u, other, concentration[k] - 1.0 / 3.0, spreads[k])
            total += share
            weighted += share * values[k]
        draws[m, arm] = weighted / total


@rule
def fill_reward_draws(
    concentration: FloatArray, values: FloatArray, address: Address, shares: FloatArray, draws: FloatArray
) -> None:
    """Fill posterior draws of the mean value, float array (sample, arm). shares : work space (category)."""
    samples, arms = draws.shape
    for a in range(arms):
        least = math.inf
        for k in range(values.size):
            least = min(least, concentration[a, k])
        if least >= 1.0:
            _fill_quick_draws(address, a, concentration[a], values, shares, draws)
            continue
        for m in range(samples):
            fill_dirichlet(address, POSTERIOR, np.uint64(m * arms + a), concentration[a], shares)
            draws[m, a] = mean_value(shares, values)


@rule
def count_best(draws: FloatArray, p: FloatArray, votes: IntArray) -> None:
    """Fill the paper's p_hat, the share of samples in which each arm is the best, and votes with their counts."""
    samples, arms = draws.shape
    for a in range(arms):
        votes[a] = 0
    for m in range(samples):
        votes[best_of_draw(draws, m)] += 1
    for a in range(arms):
        p[a] = votes[a] / samples


@rule
def learn(concentration: FloatArray, prior: FloatArray, discount: float, arm: int, category: int) -> None:
    """Update in place: every arm forgets by the discount, then the played one learns; float arrays (arm, category)."""
    if discount < 1.0:
        for a in range(concentration.shape[0]):
            for k in range(concentration.shape[1]):
                concentration[a, k] = forget(concentration[a, k], prior[a, k], discount)
    concentration[arm, category] += 1.0
