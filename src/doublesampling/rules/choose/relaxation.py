"""Information relaxation sampling with a finite horizon: what each arm would be thought to pay if it were played on.

Min, Maglaras and Moallemi (2019), IRS.FH: draw a success probability from the posterior and all further rewards of the
arm from it; the arm whose posterior mean would then be the highest is played. The further successes of a Beta arm are
beta-binomial, so with two arms the propensity is a sum.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.draws import EXPLORATION, POSTERIOR, Address, binomial_from_uniform, uniform
from doublesampling.rules.special import logistic
from doublesampling.rules.specialise import specialised

FloatArray = NDArray[np.float64]

_SAME = 1e-12  # relative: means that differ by less are equal


@inlined
def decisions_after(horizon: float, time: float) -> int:
    """How many decisions follow this one."""
    return int(max(horizon - time, 0.0))


@specialised(rule)
def fill_relaxed(parameters: FloatArray, horizon: float, address: Address, values: FloatArray) -> None:
    """The posterior mean of every Beta arm after so many more simulated rewards as decisions follow."""
    more = decisions_after(horizon, float(address[3]))
    for a in range(values.size):
        alpha, beta = parameters[a, 0], parameters[a, 1]
        theta = logistic(laws.draw(laws.BETA, alpha, beta, 0.0, address, POSTERIOR, np.uint64(a)))
        wins = binomial_from_uniform(uniform(address, EXPLORATION, np.uint64(a)), more, theta)
        values[a] = mean_after(alpha, beta, wins, more)


@inlined
def mean_after(alpha: float, beta: float, wins: int, more: int) -> float:
    """The posterior mean after so many more rewards; equal ones are equal to the last bit."""
    return round((alpha + wins) / (alpha + beta + more) / _SAME) * _SAME


@rule
def relaxed_share(alpha: float, beta: float, other_alpha: float, other_beta: float, more: int) -> float:
    """P(the first of two arms has the higher mean); ties are shared fairly. nan where numbers are too small."""
    term = _no_wins(alpha, beta, more)
    other = _no_wins(other_alpha, other_beta, more)
    if min(term, other) <= 0.0:  # too small for a number
        return math.nan
    share, below, wins = 0.0, 0.0, 0
    for k in range(more + 1):
        mean = mean_after(alpha, beta, k, more)
        while wins <= more and mean_after(other_alpha, other_beta, wins, more) < mean:
            below += other
            other *= (more - wins) * (other_alpha + wins) / ((wins + 1.0) * (other_beta + more - wins - 1.0))
            wins += 1
        equal = wins <= more and mean_after(other_alpha, other_beta, wins, more) == mean
        share += term * (below + (0.5 * other if equal else 0.0))
        term *= (more - k) * (alpha + k) / ((k + 1.0) * (beta + more - k - 1.0)) if k < more else 0.0
    return min(max(share, 0.0), 1.0)


@rule
def _no_wins(alpha: float, beta: float, more: int) -> float:
    """P(all further rewards are 0): B(alpha, beta + more) / B(alpha, beta)."""
    return math.exp(
        math.lgamma(beta + more) - math.lgamma(beta) + math.lgamma(alpha + beta) - math.lgamma(alpha + beta + more)
    )
