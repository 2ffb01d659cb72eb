"""Where the best arm's reward can lie, and how fine the panels must be there: one row of a survey per arm."""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import rule
from doublesampling.rules.special import log_beta_fall, log_gamma_fall
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]

# how fine the panels are: a tail below e^-fall is left out; a panel is so many deviations of the narrowest law wide
Fineness = tuple[float, float]
EXACT = (28.0, 1.2)  # right to 1e-10, for decisions that are kept
# right to 1e-6, for simulations, whose samples blur it ten thousand times more
QUICK_BETA = (16.0, 3.0)
QUICK_STUDENT = (13.0, 4.5)

_MOST_EXPONENT = 560.0  # heavier tails reach beyond the range of floating-point numbers

# columns of the surveyed arms
CENTRE, LOWER, UPPER, STEP_DOWN, STEP_UP, LOG_PEAK, TAIL = range(7)
SURVEY_COLUMNS = 7


@rule
def _gamma_edge(shape: float, side: float, fall: float) -> float:
    """Return what edge returns for the logarithm of a Gamma variable: a long tail below, a short one above."""
    # start outside: e^u = 1 + u + far, where u <= sqrt(2 far) above; below it is at least -1 - far
    far = fall / shape
    u = math.log(1.0 + math.sqrt(2.0 * far) + far) if side > 0.0 else -1.0 - far
    for _ in range(100):
        step = (log_gamma_fall(shape, u) + fall) / (-shape * math.expm1(u))
        u -= step
        if abs(step) < 0.01 * abs(u):
            break
    return abs(u)


@specialised(rule)
def edge(law: Constant, first: float, second: float, third: float, side: float, fall: float) -> float:
    """Return how far from its peak a marginal's mass reaches on one side (+1 up, -1 down), but for e^-fall of it."""
    if law == laws.GAMMA:
        return _gamma_edge(first, side, fall)
    if law == laws.INVERSE_GAMMA:
        return _gamma_edge(first, -side, fall)
    if law != laws.BETA:
        if math.isinf(third):
            return second * math.sqrt(2.0 * fall)
        return second * math.sqrt(third * math.expm1(min(2.0 * fall / third, _MOST_EXPONENT)))
    # Newton's method on a concave log density: one overshoot at most, then from the outside inwards
    total = first + second
    u = side * math.sqrt(2.0 * fall * total / (first * second))
    for _ in range(100):
        z = math.log(first / second) + u
        x = 1.0 / (1.0 + math.exp(-z)) if z > -700.0 else 0.0
        slope = first - total * x if x < 0.5 else total / (1.0 + math.exp(z)) - second
        step = (log_beta_fall(first, second, u) + fall) / slope
        u -= step
        if abs(step) < 0.01 * abs(u):
            break
    return abs(u)


@specialised(rule)
def survey_arms(law: Constant, parameters: FloatArray, fineness: Fineness, survey: FloatArray) -> float:
    """Fill one row per arm (centre, edges, steps, peak); return the reward below which some arm is surely better."""
    fall, width = fineness
    steps = math.sqrt(2.0 * fall) / width
    surest = 0
    for a in range(parameters.shape[0]):
        first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
        centre = laws.centre(law, first, second)
        below = edge(law, first, second, third, -1.0, fall)
        above = edge(law, first, second, third, 1.0, fall)
        survey[a, CENTRE] = centre
        survey[a, LOWER] = centre - below
        survey[a, UPPER] = centre + above
        survey[a, STEP_DOWN] = below / steps
        survey[a, STEP_UP] = above / steps
        survey[a, LOG_PEAK] = laws.log_peak(law, first, second, third)
        survey[a, TAIL] = 0.0
        if survey[a, LOWER] > survey[surest, LOWER]:
            surest = a
    if law == laws.STUDENT or law == laws.LOGISTIC:
        # count from the surest arm, so that large locations do not round small scales away
        origin = parameters[surest, 0]
        for a in range(parameters.shape[0]):
            above = survey[a, STEP_UP] * steps
            survey[a, CENTRE] = parameters[a, 0] - origin
            survey[a, LOWER] = survey[a, CENTRE] - above
            survey[a, UPPER] = survey[a, CENTRE] + above
    return survey[surest, LOWER]


@rule
def _clear_of(distance: float, near: float) -> float:
    """Return the widest panel below a point that avoids a singularity near the real line, a signed distance below."""
    return max(near, 0.6 * distance if distance > 0.0 else -1.2 * distance)


@specialised(rule)
def panel_step(law: Constant, parameters: FloatArray, width: float, survey: FloatArray, a: int, x: float) -> float:
    """Return the panel width that resolves one arm's density just below x."""
    distance = x - survey[a, CENTRE]
    if law == laws.BETA or law == laws.GAMMA or law == laws.INVERSE_GAMMA:
        up, down = survey[a, STEP_UP], survey[a, STEP_DOWN]
        # towards the centre step by step: a long tail may end in a cliff on its other side
        step = min(up, max(down, 0.6 * distance)) if distance > 0.0 else min(down, max(up, -1.5 * distance))
        # log odds bend at 0, within pi: only laws wider than that need to know
        return min(step, _clear_of(x, 3.0)) if law == laws.BETA else step
    scale, freedom = parameters[a, 1], parameters[a, 2]
    r = distance / scale
    near = min(width, 1.2 * math.sqrt(freedom))
    return scale * min(width * math.sqrt(1.0 + r * r / freedom), _clear_of(r, near))


@specialised(rule)
def panel_bottom(
    law: Constant, parameters: FloatArray, width: float, survey: FloatArray, top: float, floor: float
) -> float:
    """Return where the panel below top ends, so that every density inside it is resolved."""
    bottom = floor
    for a in range(parameters.shape[0]):
        if survey[a, UPPER] >= top:
            bottom = max(bottom, top - panel_step(law, parameters, width, survey, a, top))
    for a in range(parameters.shape[0]):  # an arm that begins further down and is too narrow for this panel
        upper = survey[a, UPPER]
        if bottom < upper < top and panel_step(law, parameters, width, survey, a, upper) < top - bottom:
            bottom = max(bottom, upper)
    return bottom
