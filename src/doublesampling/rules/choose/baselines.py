"""What the other policies look at: quantiles, draws, and indices from counts. (Thompson sampling is one candidate.)"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import rule
from doublesampling.rules.draws import EXPLORATION, POSTERIOR, Address, uniform
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]

SURE = 1e-9  # of a probability: what top-two sampling leaves to the others, at least
_MOST_DIVERGENCE = 1e9  # of all observations of an arm


@rule
def bayes_ucb_log_tail(time: float) -> float:
    """Return log(1/t), the log tail probability of Bayes-UCB's quantile at time t."""
    return -math.log(max(time, 1.0))


@rule
def sample_rank(samples: int, log_tail: float) -> int:
    """Return the rank of the quantile among sorted samples: the lowest with a share of 1 - tail at or below it."""
    # 1e-9 of a sample forgives the rounding of the level, so that 0.9 of 10 samples is the ninth
    return min(max(math.ceil(-samples * math.expm1(log_tail) - 1e-9) - 1, 0), samples - 1)


@rule
def bernoulli_divergence(p: float, q: float) -> float:
    """Return KL(Bernoulli(p) || Bernoulli(q))."""
    first = p * math.log(p / q) if p > 0.0 else 0.0
    return first + ((1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if p < 1.0 else 0.0)


@rule
def ucb1_index(mean: float, count: float, time: float) -> float:
    """Return UCB1's index (Auer et al., 2002): the mean and a bonus that shrinks with the count; infinity at first.

    time is the number of this decision, counted from 1; the paper takes the plays so far, one less.
    """
    return mean + math.sqrt(2.0 * math.log(time) / count) if count > 0.0 else math.inf


@rule
def kl_ucb_index(mean: float, count: float, time: float) -> float:
    """Return the index of KL-UCB (Garivier and Cappe, 2011): the largest q with count KL(mean || q) <= log t.

    The paper allows log t + c log log t: its theorem takes c = 3, its experiments and this function c = 0. time is t,
    the number of this decision, counted from 1, as in the paper. An arm never played comes first.

    The divergence is convex in q, and two lower bounds of it (Pinsker's, and its last term) start the search above the
    root, so every step comes down towards it.
    """
    if count <= 0.0:
        return math.inf
    reach = math.log(time) / count
    if mean >= 1.0 or reach <= 0.0:
        return mean
    known = mean * math.log(mean) if mean > 0.0 else 0.0
    q = 1.0 - (1.0 - mean) * math.exp(-(reach - known) / (1.0 - mean))
    q = min(q, mean + math.sqrt(0.5 * reach))
    if q >= 1.0:
        return 1.0
    for _ in range(30):
        step = (bernoulli_divergence(mean, q) - reach) * q * (1.0 - q) / (q - mean)
        q -= step
        if step <= 1e-14:
            break
    return q


@rule
def imed_index(mean: float, count: float, best: float) -> float:
    """Return IMED's index (Honda and Takemura, 2015), negated: -(count KL(mean || best) + log count).

    best is the highest empirical mean. The paper's D_inf of rewards of 0 and 1 is this divergence. An arm never played
    comes first.
    """
    if count <= 0.0:
        return math.inf
    # a best mean of 1 makes the divergence infinite, which no whole number can round
    gap = min(bernoulli_divergence(mean, best), _MOST_DIVERGENCE / count) if mean < best else 0.0
    # indices that are equal in arithmetic may differ in their last bits: a billionth makes them tie again
    return -round((count * gap + math.log(count)) * 1e9) * 1e-9


@rule
def second_of_two(address: Address, first: int, share: float, p: FloatArray) -> int:
    """Return the arm of top-two Thompson sampling (Russo, 2016): the first with probability share, else another.

    The paper draws from the posterior again until another arm is the best: its law is p over what p leaves to the
    others, and is drawn from at once. Where less than SURE is left, the first arm is played: simulations do not know
    such small numbers well enough to draw from.
    """
    rest = 0.0
    for a in range(p.size):
        rest += p[a] if a != first else 0.0
    if rest < SURE or uniform(address, EXPLORATION, np.uint64(0)) < share:
        return first
    point = uniform(address, EXPLORATION, np.uint64(1)) * rest
    last = first
    for a in range(p.size):
        if a != first and p[a] > 0.0:
            last = a
            point -= p[a]
            if point <= 0.0:
                return a
    return last


@specialised(rule)
def fill_draws(law: Constant, parameters: FloatArray, address: Address, draws: FloatArray) -> None:
    """Fill posterior draws of every arm, float array (sample, arm), in the law's own coordinate."""
    count = parameters.shape[0]
    for m in range(draws.shape[0]):
        for a in range(count):
            index = np.uint64(m * count + a)
            first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
            draws[m, a] = laws.draw(law, first, second, third, address, POSTERIOR, index)


@specialised(rule)
def fill_reward_draws(law: Constant, parameters: FloatArray, address: Address, draws: FloatArray) -> None:
    """Fill posterior draws of every arm's expected reward, float array (sample, arm)."""
    fill_draws(law, parameters, address, draws)
    for m in range(draws.shape[0]):
        for a in range(draws.shape[1]):
            draws[m, a] = laws.reward_of_coordinate(law, draws[m, a])


@rule
def sample_quantile(draws: FloatArray, arm: int, rank: int) -> float:
    """Return the sample of a rank (0 the lowest), by a partial selection sort from the nearer end."""
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
