"""Probabilities of being optimal that keep their digits when they are tiny; for single decisions, on CPUs.

rules/optimality.py takes F as one minus the tail above: right to 1e-12, and no more than that is left of a probability
of 1e-12. Here F of every arm that may be small is gathered from below instead, and the densities are followed further
out: a probability of 1e-12 is right to 1e-8 of itself. That takes about twice as long, and is done only where some
probability will be small.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.belief import BETA, GAMMA, INVERSE_GAMMA, marginal_log_fall
from doublesampling.rules.compiled import allocating, rule
from doublesampling.rules.optimality import (
    CENTRE,
    EXACT,
    LOWER,
    TAIL,
    UPPER,
    Fineness,
    complete,
    gather_from_below,
    panel_bottom,
    panel_densities,
    panel_masses,
    panel_share,
    panel_step,
    survey,
)

FloatArray = NDArray[np.float64]

FINENESS: Fineness = (45.0, 1.2)
SMALL = 1e-6
_FAR = -28.0  # a log density over its peak: of two arms that see each other's centre so far out, one is hardly the best
_MOST_BELOW, _NOTHING = 60, 1e-12  # panels below the floor, and the share of what was found where they may end
_FALLEN = -10.0  # of log F: there one minus the tail loses digits


@rule
def _log_fall(family: int, parameters: FloatArray, a: int, distance: float) -> float:
    return marginal_log_fall(family, parameters[a, 0], parameters[a, 1], parameters[a, 2], distance)


@rule
def expected(family: int, parameters: FloatArray, arms: FloatArray) -> bool:
    """Tell whether some probability of being optimal will surely be small. arms : work space, see survey."""
    survey(family, parameters, EXACT, arms)
    surest = 0
    for a in range(arms.shape[0]):
        if arms[a, LOWER] > arms[surest, LOWER]:
            surest = a
    for a in range(arms.shape[0]):
        gap = arms[surest, CENTRE] - arms[a, CENTRE]
        far = gap > 0.0 and _log_fall(family, parameters, a, gap) < _FAR
        if far and _log_fall(family, parameters, surest, -gap) < _FAR:
            return True
    return False


@rule
def _small_below(family: int, parameters: FloatArray, a: int, distance: float) -> bool:
    """Whether F of an arm is small at a distance below its centre, and its tail is short enough to be gathered."""
    fall = _log_fall(family, parameters, a, -distance)
    if family not in (BETA, GAMMA, INVERSE_GAMMA) and not math.isinf(parameters[a, 2]):
        freedom = parameters[a, 2]
        fall *= freedom / (freedom + 1.0) if freedom >= 1.0 else 0.0  # of a density r^-(v + 1), r^-v is left
    return distance > 0.0 and fall < _FALLEN


@rule
def _mass_below(family: int, parameters: FloatArray, arms: FloatArray, floor: float, panel: FloatArray) -> float:
    """The probability that a single arm lies below the floor, by panels of its own."""
    total, top = 0.0, floor
    for _ in range(_MOST_BELOW):
        step = panel_step(family, parameters, FINENESS[1], arms, 0, top)
        if not top - step < top:
            break
        panel_densities(family, parameters, arms, top, 0.5 * step, panel)
        inside = panel_share(panel[0, 0])
        total += inside
        if inside <= _NOTHING * total:
            break
        top -= step
    return total


@allocating
def _edges(family: int, parameters: FloatArray, arms: FloatArray, floor: float) -> FloatArray:
    """Where panels begin and end, from the highest reward down to the floor."""
    top = -math.inf
    for a in range(arms.shape[0]):
        top = max(top, arms[a, UPPER])
    edges = np.empty(64)
    edges[0] = top
    count = 1
    while edges[count - 1] > floor:
        bottom = panel_bottom(family, parameters, FINENESS[1], arms, edges[count - 1], floor)
        if not bottom < edges[count - 1]:  # narrower than the spacing of floating-point numbers
            break
        if count == edges.size:
            edges = np.concatenate((edges, np.empty(count)))
        edges[count] = bottom
        count += 1
    return edges[:count]


@allocating
def _masses_below(
    family: int, parameters: FloatArray, arms: FloatArray, edges: FloatArray, panel: FloatArray
) -> FloatArray:
    """The probability that each arm lies below each edge, float array (edge, arm)."""
    count, last = parameters.shape[0], edges.size - 1
    below = np.empty((edges.size, count))
    for a in range(count):
        below[last, a] = _mass_below(family, parameters[a : a + 1], arms[a : a + 1], edges[last], panel)
    for i in range(last - 1, -1, -1):
        panel_densities(family, parameters, arms, edges[i], 0.5 * (edges[i] - edges[i + 1]), panel)
        for a in range(count):
            below[i, a] = below[i + 1, a] + panel_share(panel[a, 0])
    return below


@allocating
def probability_optimal(
    family: int, parameters: FloatArray, masses: FloatArray, arms: FloatArray, panel: FloatArray
) -> None:
    """Fill masses with p_a as optimality.probability_optimal does, right relative to itself down to about 1e-15."""
    count = parameters.shape[0]
    floor = survey(family, parameters, FINENESS, arms)
    edges = _edges(family, parameters, arms, floor)
    last = edges[edges.size - 1]
    strong = np.empty(count, dtype=np.int64)
    found = 0
    for a in range(count):
        if _small_below(family, parameters, a, arms[a, CENTRE] - last):
            strong[found] = a
            found += 1
    strong = strong[:found]
    below = _masses_below(family, parameters[strong], arms[strong], edges, panel)
    for a in range(count):
        masses[a] = arms[a, TAIL] = 0.0
    for i in range(edges.size - 1):
        panel_densities(family, parameters, arms, edges[i], 0.5 * (edges[i] - edges[i + 1]), panel)
        for k in range(found):
            gather_from_below(panel[strong[k], 0], below[i + 1, k], panel[strong[k], 1])
        panel_masses(count, panel, masses)
    complete(floor, masses, arms)
