"""The probability with which each arm is played: P(arm is the mode of N draws from Cat(p)), exactly.

Two arms: a binomial sum. More: the counts of a multinomial are independent Poisson counts given their sum, so

    P(a is the mode) = sum_k [z^N] g_a(z) prod_{b != a} (G_b(z) + u g_b(z)) / [z^N] e^{N (z - 1)}

where g is the Poisson term of order k, G the sum of those below, and u runs over (0, 1) to share ties fairly. The
coefficient of z^N comes from a discrete Fourier transform over a few hundred roots of unity: the sum of the Poisson
counts lies within nine deviations of N. Arms that cannot win need no term of their own: together they are one more
Poisson count, e^{N rest (z - 1)}.
"""

import cmath
import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import inlined, plain, rule
from doublesampling.rules.special import log_binomial_pmf

FloatArray = NDArray[np.float64]
ComplexArray = NDArray[np.complex128]

_NEGLIGIBLE = 1e-16
_ROUNDING = 1e-12  # of a sum of shares
_LARGEST_RULE = 32


def _rules_on_unit_interval() -> tuple[FloatArray, FloatArray]:
    """Return Gauss-Legendre rules on (0, 1) with 1 to 32 nodes, one per row."""
    nodes, weights = np.zeros((2, _LARGEST_RULE + 1, _LARGEST_RULE))
    for count in range(1, _LARGEST_RULE + 1):
        x, w = np.polynomial.legendre.leggauss(count)
        nodes[count, :count] = 0.5 * (x + 1.0)
        weights[count, :count] = 0.5 * w
    return nodes, weights


_SHARE, _SHARE_WEIGHT = _rules_on_unit_interval()


class ModeScratch(NamedTuple):
    """Work space for the propensities of three or more arms: roots of unity, and sums over the orders so far."""

    root: ComplexArray
    turn: ComplexArray
    phase: ComplexArray
    running: ComplexArray
    lower: ComplexArray
    before: ComplexArray
    term: FloatArray
    below: FloatArray
    share: FloatArray
    """(arm): the shares of the arms that can be drawn."""
    found: FloatArray


@inlined
def transform_size(number: int) -> int:
    """Return how many roots of unity the transform for N draws takes: an odd number, half of which symmetry gives."""
    return 2 * int(4.5 * math.sqrt(number) + 8.0) + 1


def mode_scratch(number: int, arms: int) -> ModeScratch:
    """Return the work space for N draws of so many arms."""
    size = plain(transform_size)(number)
    points = size // 2 + 1
    root, turn, phase, running = (np.empty(length, dtype=np.complex128) for length in (size, points, points, points))
    lower, before = np.zeros((2, arms, points), dtype=np.complex128)
    return ModeScratch(root, turn, phase, running, lower, before, *np.zeros((4, arms)))


@rule
def propensity_of_two(number: int, p: float, first_of_ties: bool) -> float:
    """Return P(the first of two arms is the mode of N draws), p being its share."""
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
def fill_propensities_of_two(number: int, p: FloatArray, first_of_ties: bool, out: FloatArray) -> None:
    """Fill the propensities of two arms, of which one may be impossible (p = 0)."""
    total = p[0] + p[1]
    share = p[0] / total
    if number == 1 or p[0] <= 0.0 or p[1] <= 0.0:
        out[0], out[1] = share, p[1] / total
    else:
        first = propensity_of_two(number, share, first_of_ties)
        out[0], out[1] = first, 1.0 - first


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


@rule
def fill_propensities_of_many(
    number: int, p: FloatArray, first_of_ties: bool, scratch: ModeScratch, out: FloatArray
) -> None:
    """Fill the propensities of the arms that can win; out is zero before.

    p : float array (arm), all positive. Where it adds up to less than 1, the rest belongs to arms that cannot win.
    """
    count, size, points = p.size, scratch.root.size, scratch.turn.size
    rest = 1.0
    for a in range(count):
        rest -= p[a]
    least = number if rest < _ROUNDING else 0  # where nobody else is drawn, the mode has at least N / count votes
    root, turn, phase, lower = scratch.root, scratch.turn, scratch.phase, scratch.lower
    for m in range(size):
        angle = 2.0 * math.pi * m / size
        root[m] = complex(math.cos(angle), math.sin(angle))
    log_mass = number * math.log(float(number)) - number - math.lgamma(number + 1.0)
    for m in range(points):
        turn[m] = root[(size - (number * m) % size) % size] * ((1.0 if m == 0 else 2.0) / size * math.exp(-log_mass))
        if rest >= _ROUNDING:
            turn[m] *= cmath.exp(number * rest * (root[m] - 1.0))
    for k in range(number + 1):
        possible, ties, everything = _reach(number, log_mass, k, p, scratch.term, scratch.below)
        for m in range(points):
            phase[m] = root[(k * m) % size]
        if possible and k * count >= least:
            # a polynomial in u whose degree is how many others tie: of N votes at most N / k arms have k
            tied = min(ties, number // k) if k > 0 else ties
            nodes = 1 if first_of_ties else min((tied + 1) // 2, _LARGEST_RULE)
            for i in range(nodes):
                earlier, later, weight = _SHARE[nodes, i], _SHARE[nodes, i], _SHARE_WEIGHT[nodes, i]
                if first_of_ties:
                    earlier, later, weight = 0.0, 1.0, 1.0
                _add_modes(
                    earlier, later, weight, scratch.term, lower, phase, turn, scratch.running, scratch.before, out
                )
        elif k * count >= least and everything > 0.5:  # past every arm's reach
            break
        for a in range(count):
            scratch.below[a] += scratch.term[a]
            for m in range(points):
                lower[a, m] += scratch.term[a] * phase[m]
