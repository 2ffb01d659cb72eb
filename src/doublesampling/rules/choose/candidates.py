"""How many candidate arms to draw, from how much doubt is left (the paper's second sampling, first half).

The probability of a false alarm is that of an arm turning out better than the leader. The smaller it is, the more
candidates are drawn, and the closer their mode comes to the leader: N = log(1 / p_FA) (eq. policy_n_samples).
Everything is in logarithms: p_FA reaches 1e-200 with a thousand samples.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.optimal_arm.quadrature import optimality_deviation
from doublesampling.rules.special import log_difference, log_normal_tail

FloatArray = NDArray[np.float64]

TRUNCATED_GAUSSIAN = 0
MARKOV = 1
CHEBYSHEV = 2
TRUNCATED_GAUSSIAN_IN_DOUBLE = 3  # as the authors ran it, with what rounding did to it

_SQRT_HALF = math.sqrt(0.5)
# the count by doubt alone: how much expected loss is worth a doubt, and how fast candidates grow below it
_LOSS_WORTH_A_DOUBT = 300.0
_CANDIDATES_PER_DECADE = 4.0


class Weights(NamedTuple):
    """The constants of a challenger-aware count, chosen once from exact regrets (docs/explanation/horizon.md)."""

    scale: float
    """kappa: where decisions times D^k is below it, with two arms, exploring stops to pay."""
    candidates: float
    """s: candidates per decade below that."""
    doubt: float
    """k: the power of the weighted doubt."""
    doubt_squared: float
    """q: how much faster candidates grow where the weighted doubt is small."""
    precision: float
    """g: the power of the ratio of precisions, leader to challenger, that weighs a challenger's probability."""


UNTIL_HORIZON = Weights(scale=26.0, candidates=100.0, doubt=3.0, doubt_squared=0.0, precision=0.65)
AT_ANY_TIME = Weights(scale=26.0, candidates=13.0, doubt=4.5, doubt_squared=0.55, precision=0.87)


@rule
def leader(p: FloatArray) -> int:
    """Return a_hat*, the arm that is most probably optimal; of equals the first, since N is the same for each."""
    best = 0
    for a in range(1, p.size):
        if p[a] > p[best]:
            best = a
    return best


@rule
def log_false_alarm_gaussian(p: float, p_best: float, rest: float) -> float:
    """Return log p_FA of one arm by a Gaussian truncated to [0, 1]: log of (Phi(b) - Phi(x)) / (Phi(b) - Phi(a)).

    rest is 1 - p_best, summed from the other arms so that it is right even when p_best rounds to 1.
    """
    deviation = optimality_deviation(p)
    if deviation <= 0.0:  # no sample ever favoured this arm: it raises no alarm
        return -math.inf
    x, gap = (p_best - p) / deviation, rest / deviation
    outside = math.exp(log_normal_tail(x + gap)) + math.exp(log_normal_tail(p / deviation))
    if x > 1e6:  # x + gap may round to x; so far out the tail falls like exp(-x gap - gap^2 / 2)
        log_inside = log_normal_tail(x) + math.log(-math.expm1(-gap * (x + 0.5 * gap)))
    else:
        log_inside = log_difference(log_normal_tail(x), log_normal_tail(x + gap))
    return log_inside - math.log1p(-outside)


@rule
def log_false_alarm_markov(p: float, p_best: float) -> float:
    """Return the log of Markov's bound on p_FA of one arm: p_a / p*."""
    return math.log(p / p_best) if p > 0.0 else -math.inf


@rule
def log_false_alarm_chebyshev(p: float, p_best: float) -> float:
    """Return the log of Chebyshev's one-sided bound on p_FA of one arm: sigma_a^2 / (2 (p* - p_a)^2), at most 1."""
    deviation = optimality_deviation(p)
    if deviation <= 0.0:
        return -math.inf
    gap = p_best - p
    return min(2.0 * math.log(deviation / gap) - math.log(2.0), 0.0) if gap > 0.0 else 0.0


@rule
def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x * _SQRT_HALF)


@rule
def false_alarm_in_double(p: float, p_best: float) -> float:
    """Return p_FA of one arm as published: below about 1e-16 it rounds to 0 or less, and without variance it is nan."""
    deviation = optimality_deviation(p)
    below = _normal_cdf(-p / deviation)
    inside = _normal_cdf((1.0 - p) / deviation) - below
    return 1.0 - (_normal_cdf((p_best - p) / deviation) - below) / inside


@rule
def false_alarm(false_alarm_rule: int, p: float, p_best: float, rest: float) -> float:
    """Return p_FA of one arm by the rule of a number; 0 where it is smaller than any floating-point number."""
    if false_alarm_rule == TRUNCATED_GAUSSIAN_IN_DOUBLE:
        return false_alarm_in_double(p, p_best)
    return math.exp(_log_false_alarm_of_arm(false_alarm_rule, p, p_best, rest))


@rule
def _log_false_alarm_of_arm(false_alarm_rule: int, p: float, p_best: float, rest: float) -> float:
    if false_alarm_rule == MARKOV:
        return log_false_alarm_markov(p, p_best)
    if false_alarm_rule == CHEBYSHEV:
        return log_false_alarm_chebyshev(p, p_best)
    return log_false_alarm_gaussian(p, p_best, rest)


@rule
def log_false_alarm(false_alarm_rule: int, p: FloatArray) -> float:
    """Return log p_FA, the average of p_FA over all arms but the leader."""
    best = leader(p)
    if false_alarm_rule == TRUNCATED_GAUSSIAN_IN_DOUBLE:
        doubtful = 0.0
        for a in range(p.size):
            if a != best:
                doubtful += false_alarm_in_double(p[a], p[best])
        return math.log(doubtful / (p.size - 1)) if doubtful > 0.0 else -math.inf
    rest = 0.0
    for a in range(p.size):
        if a != best:
            rest += p[a]
    largest = -math.inf
    total = 0.0
    for a in range(p.size):
        if a == best:
            continue
        value = _log_false_alarm_of_arm(false_alarm_rule, p[a], p[best], rest)
        if value > largest:  # a running log-sum-exp, scaled by the largest term so far
            total = 1.0 + total * math.exp(largest - value)
            largest = value
        elif value > -math.inf:
            total += math.exp(value - largest)
    return largest + math.log(total) - math.log(p.size - 1.0) if total > 0.0 else -math.inf


@inlined
def log_false_alarm_of_counts(table: FloatArray, counts: NDArray[np.int64]) -> float:
    """Return log p_FA from a table of p_FA by (count of the arm, count of the leader) of the M samples."""
    best = 0
    for a in range(1, counts.size):
        if counts[a] > counts[best]:
            best = a
    total = 0.0
    for a in range(counts.size):
        if a != best:
            total += table[counts[a], counts[best]]
    return math.log(total / (counts.size - 1)) if total > 0.0 else -math.inf


@rule
def _whole(count: float, cap: int) -> int:
    """Return a count rounded down, between 1 and the cap; nan gives the cap, as published."""
    # a part in 1e12 forgives the logarithm's rounding, so that p_FA = 0.001 gives 3 and not 2
    return max(1, math.floor(count * (1.0 + 1e-12))) if count < cap else cap


@rule
def number_of_candidates(log_p_fa: float, rate: float, cap: int) -> int:
    """Return N = floor(rate ln(1 / p_FA)), at least 1 and at most the cap (the paper's N_{t+1}).

    rate is the scale over the natural logarithm of the base: 1 / ln 10 in the paper.
    """
    return _whole(-rate * log_p_fa, cap)


@rule
def number_from_false_alarm(p_fa: float, rate: float, cap: int) -> int:
    """Return N from p_FA itself; a p_FA of 0 gives the cap."""
    return number_of_candidates(math.log(p_fa) if p_fa > 0.0 else -math.inf, rate, cap)


@rule
def number_by_doubt(remaining: float, p: FloatArray, cap: int) -> int:
    """Return N from the doubt and the decisions left: the rule of the first releases."""
    best = leader(p)
    doubt = 0.0
    for a in range(p.size):
        if a != best:
            doubt += p[a]
    if doubt <= 0.0:
        return cap
    decades = math.log10(_LOSS_WORTH_A_DOUBT / (max(remaining, 1.0) * doubt))
    return _whole(1.0 + math.floor(_CANDIDATES_PER_DECADE * decades), cap)


@rule
def weighted_doubt(p: FloatArray, precisions: FloatArray, power: float) -> float:
    """Return D, the largest p_c (n_leader / n_c)^power of all challengers c, n being the precisions of the arms.

    An arm that is known worse than the leader is worth a try; one that is known better has nothing to tell.
    """
    best = leader(p)
    doubt = 0.0
    for a in range(p.size):
        if a != best and p[a] > 0.0:
            doubt = max(doubt, p[a] * math.exp(power * math.log(precisions[best] / precisions[a])))
    return doubt


@rule
def number_by_challenger(decisions: float, p: FloatArray, precisions: FloatArray, weights: Weights, cap: int) -> int:
    """Return N = 1 + floor(s (log10(kappa (A - 1)^2 / decisions) + k L + q L^2)), L = -log10 D, A arms.

    The term with q enters only where D is below 1. ``decisions`` are those left until the horizon, or those made so
    far where none is known.
    """
    doubt = weighted_doubt(p, precisions, weights.precision)
    if doubt <= 0.0:
        return cap
    sureness, challengers = -math.log10(doubt), p.size - 1.0
    decades = math.log10(weights.scale * challengers * challengers / max(decisions, 1.0)) + weights.doubt * sureness
    if sureness > 0.0:
        decades += weights.doubt_squared * sureness * sureness
    return _whole(1.0 + math.floor(weights.candidates * decades), cap)
