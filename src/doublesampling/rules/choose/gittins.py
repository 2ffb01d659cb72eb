"""The finite-horizon Gittins index of a Beta arm: the known reward per play that is worth as much as the arm.

Of a problem with this arm and an arm of known reward c, h decisions before the end, it is the c at which both first
decisions are equally good. With D the advantage of playing the arm once and then the best, over the known arm,

    D(alpha, beta, h) = m - c + m D(alpha + 1, beta, h - 1)^+ + (1 - m) D(alpha, beta + 1, h - 1)^+,   m the mean,

it is the root of D in c (Bradt, Johnson and Karlin, 1956; Kaufmann, 2018). D is convex, falls, and consists of straight
pieces, so Newton's method from the left ends at the root.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.bundles import PolicySettings
from doublesampling.rules.compiled import inlined, rule

FloatArray = NDArray[np.float64]

_MOST_STEPS = 60
_CLOSE = 1e-14


@inlined
def table_place(total: int, count: int, wins: int) -> int:
    """Where a table of indices holds an arm with so many observations, of which some were wins.

    total : the observations of the arm and the decisions left, together.
    """
    return (total - 1) * total * (total + 1) // 6 + count * (count + 1) // 2 + wins


@rule
def gittins_index(alpha: float, beta: float, left: int, ahead: FloatArray, plays: FloatArray) -> float:
    """The index with so many decisions left. Work space: ahead and plays, of left + 1 numbers."""
    index = alpha / (alpha + beta)
    for _ in range(_MOST_STEPS):
        for wins in range(left + 1):
            ahead[wins] = plays[wins] = 0.0
        for count in range(left - 1, -1, -1):
            size = alpha + beta + count
            for wins in range(count + 1):
                mean = (alpha + wins) / size
                gain = mean - index + mean * ahead[wins + 1] + (1.0 - mean) * ahead[wins]
                length = 1.0 + mean * plays[wins + 1] + (1.0 - mean) * plays[wins]
                better = gain > 0.0 or count == 0
                ahead[wins] = gain if better else 0.0
                plays[wins] = length if better else 0.0
        step = ahead[0] / plays[0]
        index += step
        if step <= _CLOSE:
            break
    return index


@rule
def fill_indices_of_total(
    alpha: float, beta: float, total: int, points: int, table: FloatArray, before: FloatArray, ahead: FloatArray
) -> None:
    """Fill the indices of every arm whose observations and decisions left add up to ``total``.

    D is computed at so many equally spaced rewards; the root lies on a parabola through the last three around it.
    before : work space (2, total (total + 1) / 2), D at the two rewards before. ahead : work space (total + 1)
    """
    step = 1.0 / points
    for point in range(points + 1):
        reward = point * step
        for wins in range(total + 1):
            ahead[wins] = 0.0
        for count in range(total - 1, -1, -1):
            size = alpha + beta + count
            first, row = table_place(total, count, 0), count * (count + 1) // 2
            for wins in range(count + 1):
                mean = (alpha + wins) / size
                gain = mean - reward + mean * ahead[wins + 1] + (1.0 - mean) * ahead[wins]
                ahead[wins] = max(gain, 0.0)
                last, second = before[0, row + wins], before[1, row + wins]
                if point > 0 and gain < 0.0 and last >= 0.0:
                    table[first + wins] = reward - step + step * _root(last, gain, second, point > 1)
                before[1, row + wins], before[0, row + wins] = last, gain
    for wins in range(total):  # one decision is left: the mean
        table[table_place(total, total - 1, wins)] = (alpha + wins) / (alpha + beta + total - 1.0)


@inlined
def _root(here: float, after: float, earlier: float, known: bool) -> float:
    """Where a convex function of values at 0 (here), 1 (after) and -1 (earlier, if known) is zero, between 0 and 1."""
    bend = 0.5 * (after + earlier) - here if known else 0.0
    slope = after - here - bend
    inside = max(slope * slope - 4.0 * bend * here, 0.0)
    # the smaller root of bend x^2 + slope x + here, in the form that does not cancel
    found = 2.0 * here / (-slope + math.sqrt(inside))
    return min(max(found, 0.0), 1.0)


@rule
def fill_gittins(
    parameters: FloatArray, priors: FloatArray, policy: PolicySettings, time: float, values: FloatArray
) -> None:
    """The index of every arm from the policy's table (prior, place), whose last row stands for all further arms."""
    left = int(max(policy.horizon - time + 1.0, 1.0))  # a horizon that has passed: the last decision, again and again
    for a in range(values.size):
        alpha, beta = parameters[a, 0], parameters[a, 1]
        wins = int(alpha - priors[a, 0] + 0.5)  # not math.floor, which gives a float on a GPU
        count = wins + int(beta - priors[a, 1] + 0.5)
        if left == 1:
            values[a] = alpha / (alpha + beta)
        else:
            values[a] = policy.table[min(a, policy.table.shape[0] - 1), table_place(count + left, count, wins)]
