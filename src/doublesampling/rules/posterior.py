"""Posterior updates: how one observation changes the parameters of an arm's law, and the marginal at a context.

Each rule takes the statistics of one arm and returns them, or changes them in place; true on CPUs and GPUs alike.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import rule
from doublesampling.rules.special import logistic

FloatArray = NDArray[np.float64]

_LEAST_SCALE = 1e-100  # a context of zeros leaves no doubt: a law this narrow keeps every formula finite


@rule
def beta_update(alpha: float, beta: float, reward: float) -> tuple[float, float]:
    """Return alpha and beta after one reward: a success counts for alpha, a failure for beta."""
    return alpha + reward, beta + (1.0 - reward)


@rule
def gamma_poisson_update(shape: float, rate: float, reward: float) -> tuple[float, float]:
    """Return shape and rate after a count drawn from Poisson(lambda), lambda ~ Gamma(shape, rate)."""
    return shape + reward, rate + 1.0


@rule
def gamma_exponential_update(shape: float, rate: float, reward: float) -> tuple[float, float]:
    """Return shape and rate after a waiting time of mean 1 / lambda, lambda ~ Gamma(shape, rate)."""
    return shape + 1.0, rate + reward


@rule
def forget(value: float, prior: float, discount: float) -> float:
    """Return a statistic that has decayed towards its prior by a factor, as at every step."""
    return prior + discount * (value - prior)


@rule
def nig_update(
    mean: FloatArray, root: FloatArray, alpha: float, beta: float, context: FloatArray, reward: float, work: FloatArray
) -> tuple[float, float]:
    """Update a Normal-Inverse-Gamma posterior by one observation: in place for u (mean) and V = root root^T.

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
    """Discount a Normal-Inverse-Gamma posterior towards its prior: its natural parameters, by a factor per step.

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
    """Update N(mean, root root^T), the law of w, by a reward of 0 or 1 with log odds x^T w: Laplace's method, in place.

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
    """Return (location, scale, freedom) of the expected reward x^T w; a known noise (not nan) gives a normal law."""
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
