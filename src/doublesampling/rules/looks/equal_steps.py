"""The probabilities of panels.py at equal steps of the reward: right to 1e-6 and many times quicker, for simulations.

The margin is a whole number of steps, so F(x + d) is F some points further on. F is added up by the six-point rule;
the outer integral is a plain sum, which is as good as exact for a smooth function that vanishes at both ends.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.looks.tails import below
from doublesampling.rules.optimal_arm.regions import CENTRE, LOG_PEAK, LOWER, UPPER, Fineness, survey_arms
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]

MOST_POINTS = 1024
_PER_DEVIATION = 6.0
_FEWEST_COUNTS = 12.0  # of successes and of failures: below, a density does not vanish smoothly at 0 and 1
_FEWEST_SHAPE, _FEWEST_FREEDOM = 25.0, 10.0
_MARGIN_POINTS = 3  # on both sides, for the six-point rule


@specialised(rule)
def _resolved(law: Constant, parameters: FloatArray) -> bool:
    """Whether every density is smooth in the reward itself."""
    for a in range(parameters.shape[0]):
        if law == laws.BETA:
            if min(parameters[a, 0], parameters[a, 1]) < _FEWEST_COUNTS:
                return False
        elif law in (laws.GAMMA, laws.INVERSE_GAMMA):
            if parameters[a, 0] < _FEWEST_SHAPE:
                return False
        elif parameters[a, 2] < _FEWEST_FREEDOM:
            return False
    return True


@specialised(inlined)
def _coordinate(law: Constant, reward: float) -> float:
    """From an expected reward to the law's own coordinate."""
    if law == laws.BETA:
        if reward <= 0.0:
            return -math.inf
        return math.log(reward / (1.0 - reward)) if reward < 1.0 else math.inf
    if law in (laws.GAMMA, laws.INVERSE_GAMMA):
        return math.log(reward) if reward > 0.0 else -math.inf
    return reward


@specialised(rule)
def _fill_densities(
    law: Constant, parameters: FloatArray, arms: FloatArray, start: float, step: float, density: FloatArray
) -> None:
    """The density of every arm's reward, float array (arm, point)."""
    arms_count, points = density.shape
    if law == laws.BETA:
        for a in range(arms_count):  # the last point of each row holds its constant until it is used
            alpha, beta = parameters[a, 0], parameters[a, 1]
            mean, rest = alpha / (alpha + beta), beta / (alpha + beta)
            density[a, points - 1] = arms[a, LOG_PEAK] - alpha * math.log(mean) - beta * math.log(rest)
    for i in range(points):
        x = start + i * step
        if law == laws.BETA:
            inside = 0.0 < x < 1.0
            log_hit, log_miss = (math.log(x), math.log1p(-x)) if inside else (0.0, 0.0)
            for a in range(arms_count):
                alpha, beta = parameters[a, 0], parameters[a, 1]
                log_density = density[a, points - 1] + (alpha - 1.0) * log_hit + (beta - 1.0) * log_miss
                density[a, i] = math.exp(log_density) if inside else 0.0
        elif law in (laws.GAMMA, laws.INVERSE_GAMMA):
            log_x = math.log(x) if x > 0.0 else 0.0
            for a in range(arms_count):
                first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
                fall = laws.log_fall(law, first, second, third, log_x - arms[a, CENTRE])
                density[a, i] = math.exp(arms[a, LOG_PEAK] + fall) / x if x > 0.0 else 0.0
        else:
            for a in range(arms_count):
                first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
                fall = laws.log_fall(law, first, second, third, x - arms[a, CENTRE])
                density[a, i] = math.exp(arms[a, LOG_PEAK] + fall)


@rule
def _add_up(step: float, density: FloatArray, lower: FloatArray) -> None:
    """F at every point from F at the first usable one, by the six-point rule; float arrays (point)."""
    scale = step / 1440.0
    for i in range(_MARGIN_POINTS, density.size - _MARGIN_POINTS):
        outer, middle = density[i - 2] + density[i + 3], density[i - 1] + density[i + 2]
        lower[i + 1] = lower[i] + scale * (11.0 * outer - 93.0 * middle + 802.0 * (density[i] + density[i + 1]))


@rule
def _sum_all_within(shift: int, density: FloatArray, lower: FloatArray) -> float:
    arms, points = density.shape
    total = 0.0
    for i in range(_MARGIN_POINTS, points - _MARGIN_POINTS - shift):
        for k in range(arms):
            term = density[k, i]
            for j in range(arms):
                if j != k:
                    term *= lower[j, i + shift] - lower[j, i]
            total += term
    return total


@rule
def _sum_none_above(control: int, shift: int, density: FloatArray, lower: FloatArray) -> float:
    arms, points = density.shape
    total = 0.0
    for i in range(_MARGIN_POINTS, points - _MARGIN_POINTS - shift):
        term = density[control, i]
        for j in range(arms):
            if j != control:
                term *= lower[j, i + shift]
        total += term
    return total


@specialised(rule)
def margin_by_equal_steps(
    law: Constant, parameters: FloatArray, control: int, margin: float, fineness: Fineness, arms: FloatArray,
    density: FloatArray, lower: FloatArray,
) -> float:  # fmt: skip
    """The same as in panels.py; nan where equal steps cannot resolve it. Work space: density, lower (arm, points)."""
    if not _resolved(law, parameters) or margin <= 0.0:
        return math.nan
    survey_arms(law, parameters, fineness, arms)
    deviations = 2.0 * math.sqrt(2.0 * fineness[0])
    finest, low, high = math.inf, -math.inf, math.inf
    for a in range(parameters.shape[0]):
        bottom = laws.reward_of_coordinate(law, arms[a, LOWER])
        top = laws.reward_of_coordinate(law, arms[a, UPPER])
        finest = min(finest, (top - bottom) / deviations)
        if control < 0:
            low, high = max(low, bottom - margin), min(high, top)
        elif a == control:
            low, high = bottom, top
    if not low < high:
        return 0.0
    shift = math.ceil(margin / finest * _PER_DEVIATION) if margin < 1e6 * finest else MOST_POINTS
    step = margin / shift
    points = (high - low) / step + shift + 2.0 * _MARGIN_POINTS + 2.0
    if points > density.shape[1]:
        return math.nan
    count = int(points)
    start = low - _MARGIN_POINTS * step
    _fill_densities(law, parameters, arms, start, step, density[:, :count])
    for a in range(parameters.shape[0]):
        lower[a, _MARGIN_POINTS] = below(law, parameters, arms, a, _coordinate(law, low))
        _add_up(step, density[a, :count], lower[a, :count])
    if control >= 0:
        found = _sum_none_above(control, shift, density[:, :count], lower[:, :count])
    else:
        found = _sum_all_within(shift, density[:, :count], lower[:, :count])
    return min(max(found * step, 0.0), 1.0)
