"""Beliefs of two numbers per arm, Beta and Gamma: what is paid, what is learned, and one step of a realization.

The quick ways of lane.beta_step (recurrences, carried densities) need counts that grow by one. Here counts may fade
and the truth may move: every decision finds its probabilities anew.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import belief, optimality, play, reward, two_pairs
from doublesampling.rules.compiled import inlined, rule, spliced
from doublesampling.rules.draws import Address

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@rule
def learn(
    family: int, first: FloatArray, second: FloatArray, prior_first: FloatArray, prior_second: FloatArray,
    discount: float, arm: int, paid: float,
) -> None:  # fmt: skip
    """Every arm forgets by the discount, then the played one learns, in place; float arrays (arm)."""
    if discount < 1.0:
        for a in range(first.size):
            first[a] = belief.forget(first[a], prior_first[a], discount)
            second[a] = belief.forget(second[a], prior_second[a], discount)
    if family == belief.BETA:
        first[arm], second[arm] = belief.beta_update(first[arm], second[arm], paid)
    elif family == belief.GAMMA:
        first[arm], second[arm] = belief.gamma_poisson_update(first[arm], second[arm], paid)
    else:
        first[arm], second[arm] = belief.gamma_exponential_update(first[arm], second[arm], paid)


@inlined
def pay(family: int, mean: float, arm: int, address: Address) -> float:
    """What the world pays whose belief is of this family."""
    if family == belief.BETA:
        return reward.bernoulli_reward(mean, arm, address)
    if family == belief.GAMMA:
        return reward.poisson_reward(mean, arm, address)
    return reward.exponential_reward(mean, arm, address)


@rule
def optimality_of_pairs(
    family: int, parameters: FloatArray, p: FloatArray, survey: FloatArray, panel: FloatArray
) -> None:
    """Sampling one, right to 1e-6."""
    if two_pairs.resolved(family, parameters):
        p[0], p[1], _ = two_pairs.first_above_second(family, parameters)
        return
    optimality.probability_optimal(family, parameters, optimality.QUICK_BETA, p, survey, panel)


@spliced
def pairs_step(
    family: int, address: Address, time: float, truth: FloatArray, prior_first: FloatArray, prior_second: FloatArray,
    discount: float, whole: IntArray, real: FloatArray, alarms: FloatArray, parameters: FloatArray,
    first: FloatArray, second: FloatArray, p: FloatArray, votes: IntArray, values: FloatArray, starts: FloatArray,
    survey: FloatArray, panel: FloatArray, sample: Any, priors: Any,
) -> tuple[int, int, float]:  # fmt: skip
    """The arm, N and the reward; first and second are columns of parameters. priors : see play.choose_by_value."""
    kind = whole[play.KIND]
    number = 1
    if play.sees_optimality(kind):
        optimality_of_pairs(family, parameters, p, survey, panel)
    if kind == play.DOUBLE_SAMPLING:
        arm, number = play.double_sampling(whole, real, alarms, time, address, p, votes)
    elif kind == play.TOP_TWO:
        arm = play.top_two(whole, real, address, p, votes)
    else:
        arm = play.choose_by_value(
            whole, real, family, parameters, priors, truth, time, address, values, starts, sample
        )  # fmt: skip
    paid = pay(family, truth[arm], arm, address)
    learn(family, first, second, prior_first, prior_second, discount, arm, paid)
    return arm, number, paid
