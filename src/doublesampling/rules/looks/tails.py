"""Distribution functions of marginals, and rewards shifted by a margin, in the coordinate of each law (laws.py)."""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.optimal_arm.regions import CENTRE, LOG_PEAK
from doublesampling.rules.special import (
    log_beta_peak,
    log_beta_tails_and_density,
    log_gamma_tails_and_density,
    log_normal_tail,
)
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]


@rule
def student_below(r: float, freedom: float) -> float:
    """P(T < r) of a Student t variable; infinite freedom gives the normal."""
    if math.isinf(freedom):
        tail = math.exp(log_normal_tail(abs(r)))
    elif r == 0.0:
        tail = 0.5
    else:  # T^2 / (freedom + T^2) is a beta variable
        z, half = math.log(r * r / freedom), 0.5 * freedom
        _, upper, _ = log_beta_tails_and_density(0.5, half, log_beta_peak(0.5, half), z)
        tail = 0.5 * math.exp(upper)
    return tail if r < 0.0 else 1.0 - tail


@specialised(rule)
def below(law: Constant, parameters: FloatArray, arms: FloatArray, a: int, z: float) -> float:
    """P(arm a lies below coordinate z); arms : the survey of all arms, see optimal_arm/regions.py."""
    if z == math.inf:
        return 1.0
    if z == -math.inf:
        return 0.0
    first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
    if law == laws.BETA:
        return math.exp(log_beta_tails_and_density(first, second, arms[a, LOG_PEAK], z)[0])
    if law == laws.GAMMA:
        return math.exp(log_gamma_tails_and_density(first, z - arms[a, CENTRE] + math.log(first))[0])
    if law == laws.INVERSE_GAMMA:
        return math.exp(log_gamma_tails_and_density(first, arms[a, CENTRE] - z + math.log(first))[1])
    return student_below((z - arms[a, CENTRE]) / second, third)


@specialised(inlined)
def shifted(law: Constant, z: float, margin: float) -> float:
    """The coordinate of a reward that is higher by a margin (lower, where it is negative); infinite past the end."""
    if law == laws.BETA:
        hit = (1.0 / (1.0 + math.exp(-z)) if z > -700.0 else 0.0) + margin
        miss = (1.0 / (1.0 + math.exp(z)) if z < 700.0 else 0.0) - margin
        if hit <= 0.0:
            return -math.inf
        return math.inf if miss <= 0.0 else math.log(hit / miss)
    if law in (laws.GAMMA, laws.INVERSE_GAMMA):
        reward = math.exp(min(z, 700.0)) + margin
        return math.log(reward) if reward > 0.0 else -math.inf
    return z + margin
