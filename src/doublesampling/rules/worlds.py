"""The contexts and rewards of simulated bandits, at random addresses that do not depend on the policy."""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import rule
from doublesampling.rules.draws import CONTEXT, REWARD, Address, normal, poisson_from_uniform, uniform, uniforms
from doublesampling.rules.special import normal_quantile

FloatArray = NDArray[np.float64]

# where contexts come from
UNIFORM = 0
NORMAL = 1
GIVEN = 2

# what x^T w is to the reward
GAUSSIAN = 0  # its mean
PROBABILITY = 1  # the probability of a 1
LOGIT = 2  # the log odds of a 1


@rule
def fill_context(kind: int, given: FloatArray, address: Address, context: FloatArray) -> None:
    """Fill the context at an address: uniform on [0, 1], standard normal, or the rows of a path (time, dimension)."""
    if kind == GIVEN:
        row = (int(address[3]) - 1) % given.shape[0]
        for i in range(context.size):
            context[i] = given[row, i]
        return
    four = uniforms(address, CONTEXT, np.uint64(0))
    for i in range(context.size):
        if i > 0 and i % 4 == 0:
            four = uniforms(address, CONTEXT, np.uint64(i // 4))
        context[i] = four[i % 4] if kind == UNIFORM else normal_quantile(four[i % 4])


@rule
def bernoulli_reward(probability: float, arm: int, address: Address) -> float:
    """Return 1 with the arm's probability, else 0; an arm's random numbers do not depend on the policy."""
    return 1.0 if uniform(address, REWARD, np.uint64(arm)) < probability else 0.0


@rule
def gaussian_reward(mean: float, noise: float, arm: int, address: Address) -> float:
    """Return the arm's mean plus Gaussian noise."""
    return mean + noise * normal(address, REWARD, np.uint64(arm))


@rule
def poisson_reward(mean: float, arm: int, address: Address) -> float:
    """Return a Poisson count with the arm's mean."""
    return float(poisson_from_uniform(uniform(address, REWARD, np.uint64(arm)), mean))


@rule
def exponential_reward(mean: float, arm: int, address: Address) -> float:
    """Return an exponential waiting time with the arm's mean."""
    return -mean * math.log(uniform(address, REWARD, np.uint64(arm)))


@rule
def category_of_reward(probabilities: FloatArray, arm: int, address: Address) -> int:
    """Return the category that the arm pays, drawn by its probabilities, float array (category)."""
    left = uniform(address, REWARD, np.uint64(arm))
    last = probabilities.size - 1
    for k in range(last):
        left -= probabilities[k]
        if left < 0.0:
            return k
    return last


@rule
def linear_mean(weights: FloatArray, context: FloatArray) -> float:
    """Return the expected reward x^T w."""
    total = 0.0
    for i in range(context.size):
        total += weights[i] * context[i]
    return total
