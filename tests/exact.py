"""Exact truth: the expected regret of a policy on a two-armed Bernoulli bandit, by dynamic programming."""

import functools
import math
from collections.abc import Callable

import numpy as np
from scipy import optimize, special, stats

from doublesampling.policies import DoubleSampling
from doublesampling.rules import entry_points
from doublesampling.rules.laws import BETA


def expected_regret(
    theta: tuple[float, float], prior: tuple[float, float], horizon: int, chance: Callable[..., float]
) -> float:
    """The sum over steps of (best mean - played mean), over every posterior state that can be reached.

    chance(a0, b0, a1, b1, time) is the probability that the policy plays arm 1 in that state.
    """
    gap = [max(theta) - mean for mean in theta]

    @functools.cache
    def ahead(wins0: int, losses0: int, wins1: int, losses1: int) -> float:
        time = wins0 + losses0 + wins1 + losses1 + 1
        if time > horizon:
            return 0.0
        a, b = prior
        second = chance(a + wins0, b + losses0, a + wins1, b + losses1, time)
        total = 0.0
        if second < 1.0:
            total += (1 - second) * (
                gap[0]
                + theta[0] * ahead(wins0 + 1, losses0, wins1, losses1)
                + (1 - theta[0]) * ahead(wins0, losses0 + 1, wins1, losses1)
            )
        if second > 0.0:
            total += second * (
                gap[1]
                + theta[1] * ahead(wins0, losses0, wins1 + 1, losses1)
                + (1 - theta[1]) * ahead(wins0, losses0, wins1, losses1 + 1)
            )
        return total

    return ahead(0, 0, 0, 0)


def _probability(a0: float, b0: float, a1: float, b1: float) -> float:
    """P(arm 1 is the best)."""
    return float(entry_points.exact_optimality(BETA, np.array([[a0, b0, 0.0], [a1, b1, 0.0]]))[1])


def _better(first: float, second: float, ties: str) -> float:
    """The chance of the second of two values being played."""
    if math.isclose(first, second, rel_tol=1e-9, abs_tol=1e-12):
        return 0.5 if ties == "random" else 0.0
    return float(second > first)


def thompson(a0: float, b0: float, a1: float, b1: float, time: int) -> float:
    """Thompson sampling plays an arm with the probability that it is the best."""
    return _probability(a0, b0, a1, b1)


def second_is_the_mode(number: int, share: float, ties: str) -> float:
    """P(arm 1 is the mode of N candidates of two arms): more than half of them, by SciPy's binomial law."""
    above = float(stats.binom.sf(number // 2, number, share))
    even = float(stats.binom.pmf(number // 2, number, share)) if number % 2 == 0 and ties == "random" else 0.0
    return above + even / 2


def double_sampling(policy: DoubleSampling) -> Callable[..., float]:
    """Double sampling: over every count of M, the chance of the mode of N candidates."""
    samples = policy.samples
    assert samples is not None
    each = np.arange(samples + 1)
    ways = special.comb(samples, each)

    @functools.cache
    def mode(count: int, number: int) -> float:
        p = np.array([1 - count / samples, count / samples])
        return second_is_the_mode(number or policy.number_of_candidates(p), count / samples, policy.ties)

    def chance(a0: float, b0: float, a1: float, b1: float, time: int) -> float:
        best = _probability(a0, b0, a1, b1)
        counts = ways * best**each * (1 - best) ** (samples - each)
        if policy.count == "doubt":
            numbers = [
                policy.number_of_candidates(np.array([1 - k / samples, k / samples]), time) for k in range(samples + 1)
            ]
        elif policy.horizon is not None or policy.count == "anytime":  # N from the exact probabilities
            known = np.array([a0 + b0, a1 + b1])
            numbers = [policy.number_of_candidates(np.array([1 - best, best]), time, known)] * (samples + 1)
        else:
            numbers = [0] * (samples + 1)
        return float(sum(c * mode(k, numbers[k]) for k, c in enumerate(counts) if c > 0))

    return chance


def bayes_ucb(ties: str) -> Callable[..., float]:
    """Bayes-UCB: the higher quantile of level 1 - 1/t."""

    def chance(a0: float, b0: float, a1: float, b1: float, time: int) -> float:
        level = 1 - 1 / time
        return _better(float(special.betaincinv(a0, b0, level)), float(special.betaincinv(a1, b1, level)), ties)

    return chance


def greedy(ties: str, epsilon: float = 0.0) -> Callable[..., float]:
    """Greedy, with a share epsilon of uniform play."""

    def chance(a0: float, b0: float, a1: float, b1: float, time: int) -> float:
        return epsilon / 2 + (1 - epsilon) * _better(a0 / (a0 + b0), a1 / (a1 + b1), ties)

    return chance


def top_two(share: float) -> Callable[..., float]:
    """Top-two Thompson sampling of two arms: the one that is not drawn is played with probability 1 - share."""

    def chance(a0: float, b0: float, a1: float, b1: float, time: int) -> float:
        p = _probability(a0, b0, a1, b1)
        return share * p + (1 - share) * (1 - p)

    return chance


def _divergence(p: float, q: float) -> float:
    return float(special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q))


def ucb1_value(mean: float, count: float, best: float, time: int) -> float:
    """UCB1's index."""
    return mean + math.sqrt(2 * math.log(time) / count)


@functools.cache
def kl_ucb_value(mean: float, count: float, best: float, time: int) -> float:
    """KL-UCB's index by SciPy's root finder."""
    if mean == 1.0 or time == 1:
        return mean
    top = 1 - 1e-15
    if count * _divergence(mean, top) <= math.log(time):
        return 1.0
    return float(optimize.brentq(lambda q: count * _divergence(mean, q) - math.log(time), mean, top, xtol=1e-14))


def imed_value(mean: float, count: float, best: float, time: int) -> float:
    """IMED's index, negated."""
    return -count * (_divergence(mean, best) if mean < best else 0.0) - math.log(count)


def by_index(value: Callable[..., float], ties: str, prior: tuple[float, float]) -> Callable[..., float]:
    """The arm of the largest index of what was seen; arms that were never played come first."""

    def chance(a0: float, b0: float, a1: float, b1: float, time: int) -> float:
        wins, losses = np.array([a0, a1]) - prior[0], np.array([b0, b1]) - prior[1]
        counts = np.round(wins + losses)
        if (counts == 0).any():
            return _better(float(counts[0] == 0), float(counts[1] == 0), ties)
        means = np.round(wins) / counts
        first, second = (
            value(float(m), float(c), float(means.max()), time) for m, c in zip(means, counts, strict=True)
        )
        return _better(first, second, ties)

    return chance
