"""What is known of an arm: how one observation changes it, and the law of its expected reward.

A marginal is the law of one arm's expected reward under the posterior. It is a family and three numbers:

    BETA           alpha, beta, unused         seen through its log odds, where its density is smooth and log-concave
    STUDENT        location, scale, freedom    infinite freedom is the normal law
    GAMMA          shape, rate, unused         seen through its logarithm
    INVERSE_GAMMA  shape, rate, unused         one over a Gamma variable: likewise
    LOGISTIC       as STUDENT                  the law of the log odds of an expected reward
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import rule
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

FloatArray = NDArray[np.float64]

BETA = 0
STUDENT = 1
GAMMA = 2
INVERSE_GAMMA = 3
LOGISTIC = 4

_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
_LEAST_SCALE = 1e-100  # a context of zeros leaves no doubt: a law this narrow keeps every formula finite


@rule
def beta_update(alpha: float, beta: float, reward: float) -> tuple[float, float]:
    """Sequential update of the Beta posterior: a success counts for alpha, a failure for beta."""
    return alpha + reward, beta + (1.0 - reward)


@rule
def gamma_poisson_update(shape: float, rate: float, reward: float) -> tuple[float, float]:
    """A count drawn from Poisson(lambda), lambda ~ Gamma(shape, rate)."""
    return shape + reward, rate + 1.0


@rule
def gamma_exponential_update(shape: float, rate: float, reward: float) -> tuple[float, float]:
    """A waiting time of mean 1 / lambda, lambda ~ Gamma(shape, rate)."""
    return shape + 1.0, rate + reward


@rule
def forget(value: float, prior: float, discount: float) -> float:
    """A statistic that fades back to its prior by a factor per step."""
    return prior + discount * (value - prior)


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
def nig_forget(
    mean: FloatArray, root: FloatArray, alpha: float, beta: float, anchors: FloatArray, work: FloatArray
) -> tuple[float, float]:
    """Fade a Normal-Inverse-Gamma posterior back to its prior: its natural parameters, by a factor per step.

    The precision becomes discount V^-1 + (1 - discount) V_0^-1. Its second half is taught like data: one observation
    per dimension, a row of anchors (dimension + 1, dimension + 2) each: a context and its reward. The last row holds
    the discount and the prior's alpha and beta. Returns the new alpha and beta.
    """
    size = mean.size
    discount, prior_alpha, prior_beta = anchors[size, 0], anchors[size, 1], anchors[size, 2]
    if alpha == prior_alpha:  # nothing was observed: the prior stays itself to the last bit, however often it fades
        return alpha, beta
    widen = 1.0 / math.sqrt(discount)
    for i in range(size):
        for j in range(i, size):
            root[i, j] *= widen
    beta = forget(beta, prior_beta, discount)
    for k in range(size):
        _, beta = nig_update(mean, root, alpha, beta, anchors[k, :size], anchors[k, size], work)
    return forget(alpha, prior_alpha, discount), beta


@rule
def logistic_update(
    mean: FloatArray, root: FloatArray, context: FloatArray, reward: float, scaled: FloatArray, work: FloatArray
) -> None:
    """One reward of 0 or 1 with log odds x^T w, w ~ N(mean, root root^T): Laplace's method, in place.

    The new mode lies at mean + V x (y - s(eta)), so one number, the log odds eta at the mode, is sought; the curvature
    s (1 - s) there acts like a Gaussian observation of that precision. scaled, work : float arrays (dimension).
    """
    before, spread = 0.0, 0.0
    for j in range(mean.size):
        before += mean[j] * context[j]
        projected = 0.0
        for i in range(j + 1):
            projected += root[i, j] * context[i]
        spread += projected * projected
    low, high = before - (1.0 - reward) * spread - 1e-12, before + reward * spread + 1e-12
    eta = before + (2.0 * reward - 1.0) * math.log1p(spread)  # about there where the spread is large
    surprise = 0.0
    for _ in range(200):  # Newton's steps on a rising function, kept inside their bracket
        surprise = logistic(-eta) if reward > 0.5 else -logistic(eta)  # reward - chance, without rounding
        off = eta - before - spread * surprise
        if off > 0.0:
            high = eta
        else:
            low = eta
        step = off / (1.0 + spread * logistic(eta) * logistic(-eta))
        after = eta - step if low < eta - step < high else 0.5 * (low + high)
        if abs(after - eta) <= 1e-14 * max(1.0, abs(eta)):
            break
        eta = after
    precision = max(logistic(eta) * logistic(-eta), 1e-300)
    weight = math.sqrt(precision)
    for i in range(mean.size):
        scaled[i] = weight * context[i]
    response = weight * before + surprise * (1.0 + precision * spread) / weight
    nig_update(mean, root, 1.0, 1.0, scaled, response, work)


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
    if family in (GAMMA, INVERSE_GAMMA):
        return log_gamma_peak(first)
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
    if family == GAMMA:
        return log_gamma_fall(first, distance)
    if family == INVERSE_GAMMA:
        return log_gamma_fall(first, -distance)
    r = distance / second
    if math.isinf(third):
        return -0.5 * r * r
    return -0.5 * (third + 1.0) * math.log1p(r * r / third)


@rule
def marginal_centre(family: int, first: float, second: float) -> float:
    """Where the density peaks, in the marginal's own coordinate."""
    if family in (BETA, GAMMA):
        return math.log(first / second)
    return math.log(second / first) if family == INVERSE_GAMMA else first


@rule
def logistic_mean(location: float, scale: float) -> float:
    """The mean of 1 / (1 + e^-Z), Z ~ N(location, scale^2), right to 1e-4: by the trapezoid rule up to a scale of 10.

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


@rule
def marginal_mean(family: int, first: float, second: float) -> float:
    """The expected reward under the posterior."""
    if family == BETA:
        return first / (first + second)
    if family == GAMMA:
        return first / second
    if family == INVERSE_GAMMA:
        return second / (first - 1.0) if first > 1.0 else math.inf
    return logistic_mean(first, second) if family == LOGISTIC else first


@rule
def marginal_upper_quantile(
    family: int, first: float, second: float, third: float, log_tail: float, start: float
) -> tuple[float, float]:
    """The point exceeded with probability exp(log_tail), in the marginal's own coordinate, and where to start next."""
    if family == BETA:
        z = beta_upper_quantile(first, second, log_tail, start)
        return z, z
    if family == GAMMA:
        z = log_gamma_quantile(first, log_tail, start, 1.0)
        return z - math.log(second), z
    if family == INVERSE_GAMMA:  # its upper tail is the Gamma variable's lower one
        z = log_gamma_quantile(first, log_tail, start, -1.0)
        return math.log(second) - z, z
    t = student_upper_quantile(third, log_tail, start)
    return first + second * t, t


@rule
def marginal_draw(
    family: int, first: float, second: float, third: float, address: Address, purpose: np.uint64, index: np.uint64
) -> float:
    """One posterior draw of the expected reward, in the marginal's own coordinate."""
    if family == BETA:
        return logit_beta_draw(address, purpose, index, first, second)
    if family == GAMMA:
        return log_gamma_draw(address, purpose, index, first) - math.log(second)
    if family == INVERSE_GAMMA:
        return math.log(second) - log_gamma_draw(address, purpose, index, first)
    return first + second * student_draw(address, purpose, index, third)


@rule
def reward_of_coordinate(family: int, coordinate: float) -> float:
    """From a marginal's own coordinate back to the expected reward."""
    if family in (BETA, LOGISTIC):
        return logistic(coordinate)
    if family in (GAMMA, INVERSE_GAMMA):
        return math.exp(min(coordinate, 700.0))
    return coordinate
