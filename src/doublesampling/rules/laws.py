"""The laws that an arm's expected reward may have under the posterior: density, mean, variance, quantile, draw.

A marginal is a law and three numbers:

    BETA           alpha, beta, unused         seen through its log odds, where its density is smooth and log-concave
    STUDENT        location, scale, freedom    infinite freedom is the normal law
    GAMMA          shape, rate, unused         seen through its logarithm
    INVERSE_GAMMA  shape, rate, unused         one over a Gamma variable: likewise
    LOGISTIC       as STUDENT                  the law of the log odds of an expected reward
    SAMPLED        mean, precision, unused     known by samples alone (Dirichlet means, anybody's posterior draws)

Rules take the law as their first argument. Where a caller is compiled for one law, only that law's branch is compiled.
"""

import math

import numpy as np

from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.draws import Address, log_gamma_draw, logit_beta_draw, student_draw
from doublesampling.rules.special import (
    beta_upper_quantile,
    log_beta_fall,
    log_beta_peak,
    log_gamma_fall,
    log_gamma_peak,
    log_gamma_quantile,
    logistic,
    stirling_error,
    student_upper_quantile,
)
from doublesampling.rules.specialise import Constant, specialised

BETA = 0
STUDENT = 1
GAMMA = 2
INVERSE_GAMMA = 3
LOGISTIC = 4
SAMPLED = 5

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@specialised(inlined)
def log_peak(law: Constant, first: float, second: float, third: float) -> float:
    """Return the largest log density of a marginal in its own coordinate (log odds for BETA)."""
    if law == BETA:
        return log_beta_peak(first, second)
    if law in (GAMMA, INVERSE_GAMMA):
        return log_gamma_peak(first)
    if math.isinf(third):
        return -_HALF_LOG_TWO_PI - math.log(second)
    half = 0.5 * third
    # Gamma(half + 1/2) / Gamma(half) through the Stirling errors: no difference of two large log gammas
    rise = stirling_error(half + 0.5) - stirling_error(half) + half * math.log1p(0.5 / half) - 0.5
    return rise - _HALF_LOG_TWO_PI - math.log(second)


@specialised(inlined)
def log_fall(law: Constant, first: float, second: float, third: float, distance: float) -> float:
    """Return the log density at a distance from its peak less that at the peak, in the marginal's own coordinate."""
    if law == BETA:
        return log_beta_fall(first, second, distance)
    if law == GAMMA:
        return log_gamma_fall(first, distance)
    if law == INVERSE_GAMMA:
        return log_gamma_fall(first, -distance)
    r = distance / second
    if math.isinf(third):
        return -0.5 * r * r
    return -0.5 * (third + 1.0) * math.log1p(r * r / third)


@specialised(inlined)
def centre(law: Constant, first: float, second: float) -> float:
    """Return where the density peaks, in the marginal's own coordinate."""
    if law in (BETA, GAMMA):
        return math.log(first / second)
    return math.log(second / first) if law == INVERSE_GAMMA else first


@rule
def logistic_mean(location: float, scale: float) -> float:
    """Return the mean of 1 / (1 + e^-Z), Z ~ N(location, scale^2), to 1e-4: by the trapezoid rule up to a scale of 10.

    Beyond, a logistic variable of variance pi^2 / 3 is as good as a normal one beside Z.
    """
    if scale > 10.0:
        return 0.5 * math.erfc(-location / math.sqrt(2.0 * (scale * scale + math.pi**2 / 3.0)))
    total = weights = 0.0
    for k in range(-50, 51):
        r = 0.16 * k
        weight = math.exp(-0.5 * r * r)
        weights += weight
        total += weight * logistic(location + scale * r)
    return total / weights


@specialised(inlined)
def mean(law: Constant, first: float, second: float) -> float:
    """Return the expected reward under the posterior."""
    if law == BETA:
        return first / (first + second)
    if law == GAMMA:
        return first / second
    if law == INVERSE_GAMMA:
        return second / (first - 1.0) if first > 1.0 else math.inf
    return logistic_mean(first, second) if law == LOGISTIC else first


@specialised(inlined)
def precision(law: Constant, first: float, second: float) -> float:
    """Return how well an arm is known, up to a factor that all arms share.

    The number of observations that a Beta, Gamma or inverse Gamma law is worth; one over the variance of others, in
    their own coordinate and but for the freedom.
    """
    if law == BETA:
        return first + second
    if law == GAMMA:
        return second
    if law == INVERSE_GAMMA:
        return first
    if law == SAMPLED:
        return second
    return 1.0 / (second * second)


@specialised(inlined)
def upper_quantile(
    law: Constant, first: float, second: float, third: float, log_tail: float, start: float
) -> tuple[float, float]:
    """Return the point exceeded with probability exp(log_tail), in the marginal's coordinate, and the next start."""
    if law == BETA:
        z = beta_upper_quantile(first, second, log_tail, start)
        return z, z
    if law == GAMMA:
        z = log_gamma_quantile(first, log_tail, start, 1.0)
        return z - math.log(second), z
    if law == INVERSE_GAMMA:  # its upper tail is the Gamma variable's lower one
        z = log_gamma_quantile(first, log_tail, start, -1.0)
        return math.log(second) - z, z
    t = student_upper_quantile(third, log_tail, start)
    return first + second * t, t


@specialised(inlined)
def draw(
    law: Constant, first: float, second: float, third: float, address: Address, purpose: np.uint64, index: np.uint64
) -> float:
    """Return one posterior draw of the expected reward, in the marginal's own coordinate."""
    if law == BETA:
        return logit_beta_draw(address, purpose, index, first, second)
    if law == GAMMA:
        return log_gamma_draw(address, purpose, index, first) - math.log(second)
    if law == INVERSE_GAMMA:
        return math.log(second) - log_gamma_draw(address, purpose, index, first)
    return first + second * student_draw(address, purpose, index, third)


@specialised(inlined)
def reward_of_coordinate(law: Constant, coordinate: float) -> float:
    """Return the expected reward at a point of a marginal's own coordinate."""
    if law in (BETA, LOGISTIC):
        return logistic(coordinate)
    if law in (GAMMA, INVERSE_GAMMA):
        return math.exp(min(coordinate, 700.0))
    return coordinate
