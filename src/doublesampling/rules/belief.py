"""What is known of an arm: how one observation changes it, and the law of its expected reward.

A marginal is the law of one arm's expected reward under the posterior. It is a family and three numbers:

    BETA     alpha, beta, unused         seen through its log odds, where its density is smooth and log-concave
    STUDENT  location, scale, freedom    infinite freedom is the normal law
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import rule
from doublesampling.rules.draws import Address, logit_beta_draw, student_draw
from doublesampling.rules.special import (
    beta_upper_quantile,
    log_beta_fall,
    log_beta_peak,
    stirling_error,
    student_upper_quantile,
)

FloatArray = NDArray[np.float64]

BETA = 0
STUDENT = 1

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_LEAST_SCALE = 1e-100  # a context of zeros leaves no doubt: a law this narrow keeps every formula finite


@rule
def beta_update(alpha: float, beta: float, reward: float) -> tuple[float, float]:
    """Sequential update of the Beta posterior: a success counts for alpha, a failure for beta."""
    return alpha + reward, beta + (1.0 - reward)


@rule
def nig_update(
    mean: FloatArray, root: FloatArray, alpha: float, beta: float, context: FloatArray, reward: float, work: FloatArray
) -> tuple[float, float]:
    """Sequential update of the Normal-Inverse-Gamma posterior, in place for u (mean) and V = root root^T.

    Carlson's form of the paper's V^-1 + x x^T keeps root upper triangular and scales its diagonal by ratios below one:
    V stays symmetric and positive definite whatever the rounding. Returns the new alpha and beta.
    """
    size = mean.size
    error = reward
    for i in range(size):
        error -= mean[i] * context[i]
        work[i] = 0.0
    total = 1.0  # grows to 1 + x^T V x
    deviation = 1.0
    for j in range(size):
        projected = 0.0
        for i in range(j + 1):
            projected += root[i, j] * context[i]
        total += projected * projected
        before, deviation = deviation, math.sqrt(total)
        keep, mix = before / deviation, projected / (before * deviation)
        for i in range(j + 1):  # work gathers V x
            old = root[i, j]
            root[i, j] = old * keep - work[i] * mix
            work[i] += old * projected
    gain = 1.0 / total
    for i in range(size):
        mean[i] += gain * error * work[i]
    return alpha + 0.5, beta + 0.5 * gain * error * error


@rule
def nig_marginal(
    mean: FloatArray, root: FloatArray, alpha: float, beta: float, noise: float, context: FloatArray
) -> tuple[float, float, float]:
    """(location, scale, freedom) of the expected reward x^T w; a noise that is known (not nan) gives a normal law."""
    location = 0.0
    spread = 0.0
    for j in range(mean.size):
        location += mean[j] * context[j]
        projected = 0.0
        for i in range(j + 1):
            projected += root[i, j] * context[i]
        spread += projected * projected
    if math.isnan(noise):
        return location, max(math.sqrt(beta / alpha * spread), _LEAST_SCALE), 2.0 * alpha
    return location, max(noise * math.sqrt(spread), _LEAST_SCALE), math.inf


@rule
def marginal_log_peak(family: int, first: float, second: float, third: float) -> float:
    """The largest log density of a marginal in its own coordinate (log odds for BETA)."""
    if family == BETA:
        return log_beta_peak(first, second)
    if math.isinf(third):
        return -_HALF_LOG_TWO_PI - math.log(second)
    half = 0.5 * third
    # Gamma(half + 1/2) / Gamma(half) through the Stirling errors: no difference of two large log gammas
    rise = stirling_error(half + 0.5) - stirling_error(half) + half * math.log1p(0.5 / half) - 0.5
    return rise - _HALF_LOG_TWO_PI - math.log(second)


@rule
def marginal_log_fall(family: int, first: float, second: float, third: float, distance: float) -> float:
    """How far the log density has fallen at a distance from its peak, in the marginal's own coordinate."""
    if family == BETA:
        return log_beta_fall(first, second, distance)
    r = distance / second
    if math.isinf(third):
        return -0.5 * r * r
    return -0.5 * (third + 1.0) * math.log1p(r * r / third)


@rule
def marginal_centre(family: int, first: float, second: float) -> float:
    """Where the density peaks, in the marginal's own coordinate."""
    return math.log(first / second) if family == BETA else first


@rule
def marginal_mean(family: int, first: float, second: float) -> float:
    """The expected reward under the posterior."""
    return first / (first + second) if family == BETA else first


@rule
def marginal_upper_quantile(
    family: int, first: float, second: float, third: float, log_tail: float, start: float
) -> tuple[float, float]:
    """The point exceeded with probability exp(log_tail), in the marginal's own coordinate, and where to start next."""
    if family == BETA:
        z = beta_upper_quantile(first, second, log_tail, start)
        return z, z
    t = student_upper_quantile(third, log_tail, start)
    return first + second * t, t


@rule
def marginal_draw(
    family: int, first: float, second: float, third: float, address: Address, purpose: np.uint64, index: np.uint64
) -> float:
    """One posterior draw of the expected reward, in the marginal's own coordinate."""
    if family == BETA:
        return logit_beta_draw(address, purpose, index, first, second)
    return first + second * student_draw(address, purpose, index, third)


@rule
def reward_of_coordinate(family: int, coordinate: float) -> float:
    """From a marginal's own coordinate back to the expected reward."""
    if family == BETA:
        return 1.0 / (1.0 + math.exp(-coordinate)) if coordinate > -700.0 else 0.0
    return coordinate
