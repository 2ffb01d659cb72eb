"""The probability with which each arm is played: P(arm is the mode of N draws from Cat(p)), exactly.

Two arms: a binomial sum. More: the counts of a multinomial are independent Poisson counts given their sum, so

    P(a is the mode) = sum_k [z^N] g_a(z) prod_{b != a} (G_b(z) + u g_b(z)) / [z^N] e^{N (z - 1)}

where g is the Poisson term of order k, G the sum of those below, and u runs over (0, 1) to share ties fairly. The
coefficient of z^N comes from a discrete Fourier transform over a few hundred roots of unity: the sum of the Poisson
counts lies within nine deviations of N. Runs on the CPU only: simulations do not need it, records do.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import allocating, rule
from doublesampling.rules.special import log_binomial_pmf

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_NEGLIGIBLE = 1e-16
_LARGEST_RULE = 32


def _rules_on_unit_interval() -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre rules on (0, 1) with 1 to 32 nodes, one per row."""
    nodes, weights = np.zeros((2, _LARGEST_RULE + 1, _LARGEST_RULE))
    for count in range(1, _LARGEST_RULE + 1):
        x, w = np.polynomial.legendre.leggauss(count)
        nodes[count, :count] = 0.5 * (x + 1.0)
        weights[count, :count] = 0.5 * w
    return nodes, weights


_SHARE, _SHARE_WEIGHT = _rules_on_unit_interval()


@rule
def _propensity_of_two(number: int, p: float, first_of_ties: bool) -> float:
    """P(the first of two arms is the mode of N draws), p being its share."""
    odds = p / (1.0 - p)
    middle = min(int((number + 1) * p), number)
    up = down = math.exp(log_binomial_pmf(middle, number, p))
    tie = 1.0 if first_of_ties else 0.5
    win = 0.0
    if 2 * middle >= number:
        win += up * (tie if 2 * middle == number else 1.0)
    for k in range(middle + 1, number + 1):
        up *= odds * (number - k + 1) / k
        if 2 * k >= number:
            win += up * (tie if 2 * k == number else 1.0)
    for k in range(middle - 1, -1, -1):
        if 2 * k < number:
            break
        down *= (k + 1) / (odds * (number - k))
        win += down * (tie if 2 * k == number else 1.0)
    return min(win, 1.0)


@rule
def _reach(
    number: int, log_mass: float, k: int, p: FloatArray, term: FloatArray, below: FloatArray
) -> tuple[bool, int, float]:
    """Poisson terms of order k; whether any arm can be the mode with k votes, how many arms may tie there, and the
    probability that no arm has more.
    """
    ties = 0
    everything = 1.0
    largest = 0.0
    for a in range(p.size):
        rate = number * p[a]
        term[a] = math.exp(k * math.log(rate) - rate - math.lgamma(k + 1.0))
        everything *= below[a] + term[a]
        largest = max(largest, term[a] / (below[a] + term[a]))
        if term[a] > _NEGLIGIBLE * below[a]:
            ties += 1
    return everything * largest > _NEGLIGIBLE * math.exp(log_mass), ties, everything


@rule
def _add_modes(
    earlier: float, later: float, weight: float, term: FloatArray, lower: ComplexArray, phase: ComplexArray,
    turn: ComplexArray, running: ComplexArray, before: ComplexArray, out: FloatArray,
) -> None:  # fmt: skip
    """Add, for one order k, the weight of each arm being the mode.

    earlier and later are the shares of a tie that an arm wins against those before and after it: (u, u) under the
    integral over u is a fair draw, (0, 1) gives every tie to the first.
    """
    count, points = lower.shape
    for m in range(points):
        running[m] = weight * turn[m]
    for a in range(count):
        for m in range(points):
            before[a, m] = running[m]
            running[m] *= lower[a, m] + earlier * term[a] * phase[m]
    for m in range(points):
        running[m] = phase[m]
    for a in range(count - 1, -1, -1):
        total = 0.0
        for m in range(points):
            total += (before[a, m] * running[m]).real
            running[m] *= lower[a, m] + later * term[a] * phase[m]
        out[a] += term[a] * total


@allocating
def _propensities_of_many(number: int, p: FloatArray, first_of_ties: bool, out: FloatArray) -> None:
    """Propensities of three or more arms that all can be drawn."""
    count = p.size
    size = 2 * int(4.5 * math.sqrt(number) + 8.0) + 1  # odd: half the circle, doubled by symmetry
    points = size // 2 + 1
    root = np.empty(size, dtype=np.complex128)
    for m in range(size):
        angle = 2.0 * math.pi * m / size
        root[m] = complex(math.cos(angle), math.sin(angle))
    log_mass = number * math.log(float(number)) - number - math.lgamma(number + 1.0)
    turn = np.empty(points, dtype=np.complex128)
    for m in range(points):
        turn[m] = root[(size - (number * m) % size) % size] * ((1.0 if m == 0 else 2.0) / size * math.exp(-log_mass))
    phase, running = np.empty_like(turn), np.empty_like(turn)
    lower = np.zeros((count, points), dtype=np.complex128)
    before = np.empty_like(lower)
    term, below = np.empty(count), np.zeros(count)
    for k in range(number + 1):
        possible, ties, everything = _reach(number, log_mass, k, p, term, below)
        for m in range(points):
            phase[m] = root[(k * m) % size]
        if possible and k * count >= number:
            if first_of_ties:
                _add_modes(0.0, 1.0, 1.0, term, lower, phase, turn, running, before, out)
            else:
                nodes = min((ties + 1) // 2, _LARGEST_RULE)
                for i in range(nodes):
                    u, weight = _SHARE[nodes, i], _SHARE_WEIGHT[nodes, i]
                    _add_modes(u, u, weight, term, lower, phase, turn, running, before, out)
        elif k * count >= number and everything > 0.5:  # past every arm's reach
            break
        for a in range(count):
            below[a] += term[a]
            for m in range(points):
                lower[a, m] += term[a] * phase[m]


@allocating
def mode_propensities(number: int, p: FloatArray, first_of_ties: bool) -> FloatArray:
    """P(arm is the mode of N draws from Cat(p)), float array (arm). Arms with p = 0 are never played."""
    total = 0.0
    possible = 0
    for a in range(p.size):
        total += p[a]
        possible += p[a] > 0.0
    share, found = np.empty(possible), np.zeros(possible)
    i = 0
    for a in range(p.size):
        if p[a] > 0.0:
            share[i] = p[a] / total
            i += 1
    if number == 1 or possible == 1:
        found = share
    elif possible == 2:
        found[0] = _propensity_of_two(number, share[0], first_of_ties)
        found[1] = 1.0 - found[0]
    else:
        _propensities_of_many(number, share, first_of_ties, found)
    out = np.zeros(p.size)
    i = 0
    for a in range(p.size):
        if p[a] > 0.0:
            out[a] = max(found[i], 0.0)  # a difference of nearly equal numbers may end just below zero
            i += 1
    return out
