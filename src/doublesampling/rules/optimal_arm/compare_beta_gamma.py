"""Two Beta or two Gamma arms whose counts are any numbers: how probably each is the better one, and their overlap.

Gamma: G / (G + G') of two Gamma variables is a Beta variable, so its distribution function says it all.

Beta: p = integral of f(z) F(z) dz over the log odds z, with f of the narrower arm and F of the wider one. Both
densities share log(1 + e^z), and a sum over equal steps converges faster than any power of the step. F is summed along
the way: a sum of equal steps that ends at z is off by terms in the derivatives at z (Euler and Maclaurin), which are
known. Nothing large is taken off again, so that a small probability keeps its digits.

The overlap is the integral of the product of both densities, over the log odds or the logarithm of the reward. It tells
by how much one more success would change p (recurrence.py), and so what an arm pays where it is the best (tally_two).
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.special import log_beta_fall, log_beta_peak, log_beta_tails_and_density, logistic
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]

_STEP, _LONGEST = 0.65, 0.5  # in deviations of the narrower arm; in log odds, which bend within pi
_FALL = 24.0  # a density below e^-24 of its peak is left out
_MOST_SHAPE = 1e9  # of Gamma arms: beyond it the continued fraction of the incomplete beta function stops too soon
_LEAST, _MOST = 0.3, 1e6  # of counts: smaller ones reach too far, larger ones round the logarithm away


@specialised(rule)
def resolved(law: Constant, parameters: FloatArray) -> bool:
    """Tell whether there are two arms, of a law and of counts that these rules are made for."""
    if parameters.shape[0] != 2:
        return False
    if law == laws.GAMMA or law == laws.INVERSE_GAMMA:
        return parameters[0, 0] <= _MOST_SHAPE and parameters[1, 0] <= _MOST_SHAPE
    if law != laws.BETA:
        return False
    least = min(parameters[0, 0], parameters[0, 1], parameters[1, 0], parameters[1, 1])
    most = max(parameters[0, 0], parameters[0, 1], parameters[1, 0], parameters[1, 1])
    return least >= _LEAST and most <= _MOST


@inlined
def _curvature(alpha: float, beta: float) -> float:
    """Return the curvature of the log density of the log odds at its peak."""
    return alpha * beta / (alpha + beta)


@rule
def _reach(inner: float, outer: float) -> float:
    """Return how far below the peak less than e^-fall is left; inner : alpha, outer : beta (above: swapped).

    The curvature grows towards even odds, and nowhere falls faster than e^-distance; far out only e^(-inner distance)
    is left.
    """
    ratio = _FALL / _curvature(inner, outer)
    near = math.sqrt(2.0 * ratio)
    if near < 2.0 * math.log(inner / outer):
        return near
    far = (_FALL + (inner + outer) * math.log1p(inner / outer)) / inner
    return min(0.5 * (ratio + math.sqrt(ratio * (ratio + 8.0))), far)


@inlined
def _third_slope(slope: float, bend: float, x: float) -> float:
    """Return a density's third derivative over the density; slope and -bend : of its logarithm, at a probability x."""
    return slope * (slope * slope - 3.0 * bend) - bend * (1.0 - 2.0 * x)


@rule
def _narrow_above_wide(alpha: float, beta: float, wide_alpha: float, wide_beta: float) -> tuple[float, float]:
    """Return P(the narrower arm is above) and the overlap, where the narrower arm's centre is the lower one."""
    centre, wide_centre = math.log(alpha / beta), math.log(wide_alpha / wide_beta)
    low, wide_low = centre - _reach(alpha, beta), wide_centre - _reach(wide_alpha, wide_beta)
    start, end = max(low, wide_low), centre + _reach(beta, alpha)
    if start >= end:
        return 0.0, 0.0
    steps = int((end - start) / min(_STEP / math.sqrt(_curvature(alpha, beta)), _LONGEST)) + 1
    h = (end - start) / steps
    first, third, fifth = h * h / 12.0, h**4 / 720.0, h**6 / 30240.0  # Euler and Maclaurin's
    base = log_beta_peak(alpha, beta) + log_beta_fall(alpha, beta, start - centre)
    log_peak = log_beta_peak(wide_alpha, wide_beta)
    below = 0.0
    if low > wide_low:
        log_below, _, wide_base = log_beta_tails_and_density(wide_alpha, wide_beta, log_peak, start)
        below = math.exp(log_below)
    else:
        wide_base = log_peak + log_beta_fall(wide_alpha, wide_beta, start - wide_centre)
    hit, total, wide_total = logistic(start), alpha + beta, wide_alpha + wide_beta
    wide = math.exp(wide_base)
    wide_slope, wide_bend = wide_alpha - wide_total * hit, wide_total * hit * (1.0 - hit)
    below += wide * (0.5 * h + first * wide_slope - third * _third_slope(wide_slope, wide_bend, hit))
    p = overlap = 0.0
    grow, rise, u = math.exp(h), 1.0, 0.0
    for _ in range(steps):
        rise *= grow
        u += h
        growth = 1.0 + hit * (rise - 1.0)  # of 1 + e^z
        log_growth = math.log(growth)
        narrow = math.exp(base + alpha * u - total * log_growth)
        wide = math.exp(wide_base + wide_alpha * u - wide_total * log_growth)
        x = hit * rise / growth
        slope, bend = alpha - total * x, total * x * (1.0 - x)
        wide_slope, wide_bend = wide_alpha - wide_total * x, wide_total * x * (1.0 - x)
        # the fifth derivative of one density is left to the other's second and its own third: by parts, twice
        bent = _third_slope(wide_slope, wide_bend, x) * (third - fifth * (slope * slope - bend))
        below += h * wide
        p += narrow * (below - wide * (0.5 * h + first * wide_slope - bent))
        overlap += narrow * wide
    return h * p, h * overlap


@rule
def _first_beta_above_second(
    alpha: float, beta: float, other_alpha: float, other_beta: float
) -> tuple[float, float, float]:
    swapped = _curvature(alpha, beta) < _curvature(other_alpha, other_beta)
    if swapped:
        alpha, beta, other_alpha, other_beta = other_alpha, other_beta, alpha, beta
    mirrored = alpha * other_beta > beta * other_alpha  # failures for successes: the narrower arm is the lower one
    if mirrored:
        alpha, beta, other_alpha, other_beta = beta, alpha, other_beta, other_alpha
    p, overlap = _narrow_above_wide(alpha, beta, other_alpha, other_beta)
    p = min(max(p, 0.0), 1.0)
    if swapped != mirrored:
        return 1.0 - p, p, overlap
    return p, 1.0 - p, overlap


@specialised(rule)
def first_above_second(law: Constant, parameters: FloatArray) -> tuple[float, float, float]:
    """Return P(first above second) and P(second above first), to 1e-6, and the overlap; only where resolved."""
    first, second, other_first, other_second = parameters[0, 0], parameters[0, 1], parameters[1, 0], parameters[1, 1]
    if law == laws.BETA:
        return _first_beta_above_second(first, second, other_first, other_second)
    odds, log_peak = math.log(second / other_second), log_beta_peak(first, other_first)
    lower, upper, log_density = log_beta_tails_and_density(first, other_first, log_peak, odds)
    if law == laws.INVERSE_GAMMA:
        lower, upper = upper, lower
    return math.exp(upper), math.exp(lower), math.exp(log_density)


@specialised(rule)
def _lift(law: Constant, parameters: FloatArray, arm: int, overlap: float) -> float:
    """Return by how much P(arm is the best) rises when its density is weighted by its reward."""
    if law == laws.INVERSE_GAMMA:  # one observation less, instead of one success more
        others = parameters[0, 0] + parameters[1, 0] - 1.0
        return overlap * (parameters[0, 1] + parameters[1, 1]) / (others * parameters[arm, 1])
    return overlap / parameters[arm, 0]


@specialised(rule)
def tally_two(law: Constant, parameters: FloatArray, work: FloatArray) -> None:
    """Fill what information_directed.tally_exactly fills, in closed form but for p."""
    p, rest, overlap = first_above_second(law, parameters)
    work[2, 0], work[2, 1] = p, rest
    for a in range(2):
        mean = laws.mean(law, parameters[a, 0], parameters[a, 1])
        lift = _lift(law, parameters, a, overlap)
        work[a, a] = mean * (work[2, a] + lift)
        work[1 - a, a] = mean * max(work[2, 1 - a] - lift, 0.0)
