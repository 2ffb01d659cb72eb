"""Rewards in categories of known value: Dirichlet beliefs, whose mean value has no density of its own.

Sampling one is done as the paper writes it: M posterior samples of every arm.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import belief, play, reward
from doublesampling.rules.choice import explore, mode
from doublesampling.rules.compiled import rule, spliced
from doublesampling.rules.directed import best_of_draw, directed_choice, tally_draws
from doublesampling.rules.draws import POSTERIOR, SHARES, Address, fill_dirichlet, next_uniform, quick_gamma, stream
from doublesampling.rules.rivals import bayes_ucb_log_tail, sample_rank

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@rule
def mean_value(weights: FloatArray, values: FloatArray) -> float:
    """The mean value, of weights or probabilities, float arrays (category)."""
    total = weighted = 0.0
    for k in range(values.size):
        total += weights[k]
        weighted += weights[k] * values[k]
    return weighted / total


@rule
def _fill_quick_draws(
    address: Address, arm: int, concentration: FloatArray, values: FloatArray, spreads: FloatArray, draws: FloatArray
) -> None:
    """All draws of one arm whose concentrations are 1 or more: Gamma draws that cannot underflow, from one stream.

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
    """Posterior draws of the mean value, float array (sample, arm). shares : work space (category)."""
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
    """The paper's p_hat: the share of samples in which each arm is the best; votes holds their counts."""
    samples, arms = draws.shape
    for a in range(arms):
        votes[a] = 0
    for m in range(samples):
        votes[best_of_draw(draws, m)] += 1
    for a in range(arms):
        p[a] = votes[a] / samples


@rule
def _quantile(draws: FloatArray, arm: int, rank: int) -> float:
    """The sample of a rank (0 the lowest): as many heads of a partial selection as lie on the nearer side."""
    samples = draws.shape[0]
    from_top = samples - 1 - rank < rank
    steps = samples - rank if from_top else rank + 1
    for i in range(steps):
        best = i
        for m in range(i + 1, samples):
            if (draws[m, arm] > draws[best, arm]) == from_top:
                best = m
        draws[i, arm], draws[best, arm] = draws[best, arm], draws[i, arm]
    return draws[steps - 1, arm]


@rule
def learn(concentration: FloatArray, prior: FloatArray, discount: float, arm: int, category: int) -> None:
    """Every arm forgets by the discount, then the played one learns, in place; float arrays (arm, category)."""
    if discount < 1.0:
        for a in range(concentration.shape[0]):
            for k in range(concentration.shape[1]):
                concentration[a, k] = belief.forget(concentration[a, k], prior[a, k], discount)
    concentration[arm, category] += 1.0


@spliced
def categories_step(
    address: Address, time: float, truth: FloatArray, chances: FloatArray, outcomes: FloatArray, prior: FloatArray,
    discount: float, whole: IntArray, real: FloatArray, alarms: FloatArray, concentration: FloatArray,
    shares: FloatArray, draws: FloatArray, work: FloatArray, p: FloatArray, votes: IntArray, values: FloatArray,
) -> tuple[int, int, float]:  # fmt: skip
    """The arm, N and the reward. chances : the world's (arm, category); outcomes : the value of each category."""
    kind = whole[play.KIND]
    arms, number = truth.size, 1
    if kind not in (play.GREEDY, play.EPSILON_GREEDY, play.ORACLE):
        sample = draws[:1] if kind == play.THOMPSON else draws
        fill_reward_draws(concentration, outcomes, address, shares, sample)
    if play.sees_optimality(kind):
        count_best(draws, p, votes)
    if kind == play.DOUBLE_SAMPLING:
        arm, number = play.elect(whole, real, alarms, time, address, p, votes)
    elif kind == play.TOP_TWO:
        arm = play.top_two(whole, real, address, p, votes)
    elif kind == play.INFORMATION_DIRECTED:
        tally_draws(draws, work)
        arm = directed_choice(address, work)
    else:
        for a in range(arms):
            if kind == play.ORACLE:
                values[a] = truth[a]
            elif kind == play.THOMPSON:
                values[a] = draws[0, a]
            elif kind == play.BAYES_UCB:
                values[a] = _quantile(draws, a, sample_rank(draws.shape[0], bayes_ucb_log_tail(time)))
            else:
                values[a] = mean_value(concentration[a], outcomes)
        arm = mode(values, whole[play.FIRST_OF_TIES] == 1, address)
        if kind == play.EPSILON_GREEDY:
            arm = explore(arm, arms, real[play.EPSILON], address)
    category = reward.category_of_reward(chances[arm], arm, address)
    learn(concentration, prior, discount, arm, category)
    return arm, number, outcomes[category]
