"""The probability of being optimal and the logistic posterior a second time, sharing no code with the package.

Exact fractions, mpmath with 40 digits, and brute force on grids. tests/test_independent.py compares the package with
them in its quick form, benchmarks/audit.py in its long form; docs/explanation/numerics.md lists the largest errors.
"""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import mpmath
import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_DIGITS = 40


def best_of_whole_betas(arms: Sequence[tuple[int, int]]) -> list[Fraction]:
    """P(arm is the best) of Beta(alpha, beta) arms with whole parameters, as exact fractions.

    F of Beta(a, b) is a sum of x^j (1 - x)^(n - j) with whole coefficients, n = a + b - 1, so the integral of
    f_a prod F_b is a finite sum of beta functions of whole numbers: every term is positive and nothing is rounded.
    """
    below = [[math.comb(a + b - 1, j) if j >= a else 0 for j in range(a + b)] for a, b in arms]
    found = []
    for best, (a, b) in enumerate(arms):
        product = [1]
        for other, coefficients in enumerate(below):
            if other != best:
                product = _convolve(product, coefficients)
        size = len(product) - 1 + a + b - 2  # of x^k (1 - x)^(size - k)
        total = Fraction(0)
        for j, coefficient in enumerate(product):
            if coefficient:
                k = j + a - 1
                total += Fraction(coefficient, (size + 1) * math.comb(size, k))
        found.append(total * (a + b - 1) * math.comb(a + b - 2, a - 1))
    return found


def _convolve(first: list[int], second: list[int]) -> list[int]:
    out = [0] * (len(first) + len(second) - 1)
    for i, x in enumerate(first):
        if x:
            for j, y in enumerate(second):
                out[i + j] += x * y
    return out


class Law:
    """A law on the real line by its log density: in doubles to place panels, in 40 digits to integrate."""

    def __init__(
        self, peak: float, scale: float, rough: Callable[[float], float], fine: Callable[[mpmath.mpf], mpmath.mpf],
        bends: Sequence[float],
    ) -> None:  # fmt: skip
        self.peak, self.scale, self.rough, self.fine, self.bends = peak, scale, rough, fine, bends

    def distance(self, level: float, side: float) -> float:
        """How far from the peak the log density has fallen by a level, to a few digits."""
        top, high = self.rough(self.peak), self.scale
        while top - self.rough(self.peak + side * high) < level:
            high *= 2.0
        low = 0.0
        for _ in range(25):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if top - self.rough(self.peak + side * middle) < level else (low, middle)
        return high

    def breaks(self, deepest: float, step: float) -> list[mpmath.mpf]:
        """Points between which a polynomial follows the density."""
        levels = [0.0, 0.25, 0.5, 1.0, 2.0, 3.0, *np.arange(3.0 + step, deepest + step, step).tolist()]
        below = [self.distance(level, -1.0) for level in levels]
        above = [self.distance(level, 1.0) for level in levels]
        points = [self.peak - mpmath.mpf(d) for d in below] + [self.peak + mpmath.mpf(d) for d in above]
        low, high = min(points), max(points)
        for bend in self.bends:  # where the density is smooth over a short length only
            reach = min(self.scale, 1.0)
            while reach < below[-1] + above[-1]:
                points += [bend - mpmath.mpf(reach), bend + mpmath.mpf(reach)]
                reach *= 2.0
            points.append(mpmath.mpf(bend))
        return [x for x in points if low <= x <= high]


def beta_law(alpha: float, beta: float) -> Law:
    """The log odds of a Beta(alpha, beta) variable."""
    with mpmath.workdps(_DIGITS):
        a, b = mpmath.mpf(alpha), mpmath.mpf(beta)
        constant = mpmath.loggamma(a + b) - mpmath.loggamma(a) - mpmath.loggamma(b)

    def fine(z: mpmath.mpf) -> mpmath.mpf:
        grown = mpmath.log(1 + mpmath.exp(z))
        return constant + a * z - (a + b) * grown

    def rough(z: float) -> float:
        return alpha * min(z, 0.0) - beta * max(z, 0.0) - (alpha + beta) * math.log1p(math.exp(-abs(z)))

    spread = math.sqrt(1.0 / alpha + 1.0 / beta)
    return Law(math.log(alpha) - math.log(beta), spread, rough, fine, [0.0] if spread > 0.3 else [])


def gamma_law(shape: float, rate: float, *, inverse: bool = False) -> Law:
    """The logarithm of a Gamma(shape, rate) variable, or of one over it."""
    sign = -1.0 if inverse else 1.0
    with mpmath.workdps(_DIGITS):
        k, r = mpmath.mpf(shape), mpmath.mpf(rate)
        constant = k * mpmath.log(r) - mpmath.loggamma(k)
    centre = math.log(shape) - math.log(rate)

    def fine(z: mpmath.mpf) -> mpmath.mpf:
        return constant + k * (sign * z) - r * mpmath.exp(sign * z)

    def rough(z: float) -> float:
        u = min(sign * z - centre, 700.0)
        return shape * (u - math.expm1(u))

    spread = math.sqrt(1.0 / shape)
    bends = [-sign * math.log(rate), sign * centre] if spread > 0.3 else []
    return Law(sign * centre, spread, rough, fine, bends)


def student_law(location: float, scale: float, freedom: float) -> Law:
    """A Student t variable; infinite freedom gives the normal."""
    with mpmath.workdps(_DIGITS):
        m, s, v = mpmath.mpf(location), mpmath.mpf(scale), mpmath.mpf(freedom)
        if math.isinf(freedom):
            constant = -mpmath.log(s * mpmath.sqrt(2 * mpmath.pi))
        else:
            constant = mpmath.loggamma((v + 1) / 2) - mpmath.loggamma(v / 2) - mpmath.log(v * mpmath.pi) / 2
            constant -= mpmath.log(s)

    def fine(x: mpmath.mpf) -> mpmath.mpf:
        square = ((x - m) / s) ** 2
        return constant - (square / 2 if math.isinf(freedom) else (v + 1) / 2 * mpmath.log(1 + square / v))

    def rough(x: float) -> float:
        r = (x - location) / scale
        if math.isinf(freedom):
            return -0.5 * r * r
        return -(freedom + 1.0) * (math.log(math.hypot(1.0, r / math.sqrt(freedom))))

    bent = freedom < 10.0
    return Law(location, scale * min(1.0, math.sqrt(freedom)), rough, fine, [location] if bent else [])


@functools.cache
def _gauss(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes and weights on [-1, 1], and the matrix that integrates from -1 up to each node."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    upto = np.empty((count, count))
    for j in range(count):  # the integral of the polynomial that is 1 at node j and 0 at the others
        lagrange = np.polynomial.Polynomial.fromroots(np.delete(nodes, j))
        upto[:, j] = (lagrange.integ(lbnd=-1.0) / lagrange(nodes[j]))(nodes)
    return nodes, weights, upto


def best_of_laws(laws: Sequence[Law], *, deepest: float = 160.0, step: float = 4.0) -> FloatArray:
    """P(arm is the best), p_a = integral of f_a prod F_b, every F gathered from below: right in its own tail.

    deepest : a density below e^-deepest of its peak is left out.
    """
    nodes, weights, upto = _gauss(16)
    with mpmath.workdps(_DIGITS):
        points = sorted(set(itertools.chain.from_iterable(law.breaks(deepest, step) for law in laws)))
        half = np.array([float(high - low) / 2.0 for low, high in itertools.pairwise(points)])
        at = [[low + d for d in (h * (1.0 + nodes)).tolist()] for low, h in zip(points, half.tolist(), strict=False)]
        density = np.array([[[float(mpmath.exp(law.fine(x))) for x in row] for row in at] for law in laws])
    density *= half[:, None]
    masses = density @ weights
    start = np.cumsum(masses, axis=1) - masses
    below = start[:, :, None] + density @ upto.T
    found = []
    for a in range(len(laws)):
        others = np.prod(np.delete(below, a, axis=0), axis=0)
        found.append(math.fsum((density[a] * weights * others).ravel()))
    return np.array(found)


def logistic_posterior(
    contexts: FloatArray, rewards: FloatArray, context: FloatArray, *, deviation: float = 1.0, points: int = 401
) -> tuple[FloatArray, FloatArray]:
    """The exact posterior of the log odds x^T w at a context: a grid and the density on it, float arrays (point).

    Weights are N(0, deviation^2 I) before the rewards of 0 and 1. One or two weights, by the trapezoid rule: along the
    context, and across it.
    """
    size = float(np.linalg.norm(context))
    along = context / size
    reach = 9.0 * deviation
    s = np.linspace(-reach, reach, points)
    r = np.zeros(1) if context.size == 1 else s
    weights = s[:, None, None] * along
    if context.size == 2:
        weights = weights + r[None, :, None] * np.array([-along[1], along[0]])
    log_density = -0.5 * (weights**2).sum(axis=2) / deviation**2
    for x, y in zip(contexts, rewards, strict=True):
        log_density -= np.logaddexp(0.0, -(2.0 * y - 1.0) * (weights @ x))
    density = np.exp(log_density - log_density.max()).sum(axis=1)
    z = size * s
    return z, density / (density.sum() * (z[1] - z[0]))


def logistic_best_of_two(first: tuple[FloatArray, FloatArray], second: tuple[FloatArray, FloatArray]) -> float:
    """P(the first log odds are the higher ones), from two densities on one grid."""
    z, f = first
    g = second[1]
    step = z[1] - z[0]
    below = (np.cumsum(g) - 0.5 * g) * step  # the trapezoid rule up to each point
    return float((f * below).sum() * step)
