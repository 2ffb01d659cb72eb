"""Probabilities of being optimal that keep their digits when they are tiny; for single decisions, on CPUs.

rules/optimal_arm/quadrature.py takes F as one minus the tail above: right to 1e-12, and no more than that is left of a
probability of 1e-12. Here F of every arm that may be small is gathered from below instead, and the densities are
followed further out: a probability of 1e-12 is right to 1e-8 of itself. That takes about twice as long, and is done
only where some probability will be small.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import rule
from doublesampling.rules.optimal_arm.panels import add_panel, gather_from_below, panel_densities, panel_share
from doublesampling.rules.optimal_arm.quadrature import complete
from doublesampling.rules.optimal_arm.regions import (
    CENTRE,
    EXACT,
    LOWER,
    TAIL,
    UPPER,
    Fineness,
    panel_bottom,
    panel_step,
    survey_arms,
)
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]

FINENESS: Fineness = (45.0, 1.2)
SMALL = 1e-6
MOST_EDGES = 8192
"""Panels of work space: a hundred per arm and more."""
_FAR = -28.0  # a log density over its peak: of two arms that see each other's centre so far out, one is hardly the best
_MOST_BELOW, _NOTHING = 60, 1e-12  # panels below the floor, and the share of what was found where they may end
_FALLEN = -10.0  # of log F: there one minus the tail loses digits


@specialised(rule)
def _log_fall(law: Constant, parameters: FloatArray, a: int, distance: float) -> float:
    return laws.log_fall(law, parameters[a, 0], parameters[a, 1], parameters[a, 2], distance)


@specialised(rule)
def expected(law: Constant, parameters: FloatArray, survey: FloatArray) -> bool:
    """Tell whether some probability of being optimal will surely be small. survey : work space, see survey_arms."""
    survey_arms(law, parameters, EXACT, survey)
    surest = 0
    for a in range(survey.shape[0]):
        if survey[a, LOWER] > survey[surest, LOWER]:
            surest = a
    found = False
    for a in range(survey.shape[0]):
        gap = survey[surest, CENTRE] - survey[a, CENTRE]
        far = gap > 0.0 and _log_fall(law, parameters, a, gap) < _FAR
        if far and _log_fall(law, parameters, surest, -gap) < _FAR:
            found = True
    return found


@specialised(rule)
def _small_below(law: Constant, parameters: FloatArray, a: int, distance: float) -> bool:
    """Tell whether F of an arm is small at a distance below its centre, and its tail is short enough to be gathered."""
    fall = _log_fall(law, parameters, a, -distance)
    if law == laws.STUDENT:
        freedom = parameters[a, 2]
        if not math.isinf(freedom):  # of a density r^-(v + 1), r^-v is left
            fall *= freedom / (freedom + 1.0) if freedom >= 1.0 else 0.0
    return distance > 0.0 and fall < _FALLEN


@specialised(rule)
def _mass_below(
    law: Constant, parameters: FloatArray, survey: FloatArray, a: int, floor: float, panel: FloatArray
) -> float:
    """Return the probability that one arm lies below the floor, by panels of its own."""
    total, top = 0.0, floor
    for _ in range(_MOST_BELOW):
        step = panel_step(law, parameters, FINENESS[1], survey, a, top)
        if not top - step < top:
            break
        panel_densities(law, parameters[a : a + 1], survey[a : a + 1], top, 0.5 * step, panel)
        inside = panel_share(panel[0, 0])
        total += inside
        if inside <= _NOTHING * total:
            break
        top -= step
    return total


@specialised(rule)
def _fill_edges(law: Constant, parameters: FloatArray, survey: FloatArray, floor: float, edges: FloatArray) -> int:
    """Fill the edges of the panels, from the highest reward down to the floor; return how many there are."""
    edges[0] = -math.inf
    for a in range(survey.shape[0]):
        edges[0] = max(edges[0], survey[a, UPPER])
    count = 1
    while edges[count - 1] > floor and count < edges.size:
        bottom = panel_bottom(law, parameters, FINENESS[1], survey, edges[count - 1], floor)
        if not bottom < edges[count - 1]:  # narrower than the spacing of floating-point numbers
            break
        edges[count] = bottom
        count += 1
    return count


@specialised(rule)
def probability_optimal(
    law: Constant, parameters: FloatArray, p: FloatArray, survey: FloatArray, panel: FloatArray, edges: FloatArray,
    below: FloatArray,
) -> None:  # fmt: skip
    """Fill p with p_a as quadrature.probability_optimal does, right relative to itself down to about 1e-15.

    Work space: edges (edge), below (edge, arm): the probability that an arm lies below an edge, nan where its tail
    above tells it well enough; the rest as there.
    """
    count = parameters.shape[0]
    floor = survey_arms(law, parameters, FINENESS, survey)
    last = _fill_edges(law, parameters, survey, floor, edges) - 1
    bottom = edges[last]
    for a in range(count):
        below[last, a] = math.nan
        if _small_below(law, parameters, a, survey[a, CENTRE] - bottom):
            below[last, a] = _mass_below(law, parameters, survey, a, bottom, panel)
            survey[a, TAIL] = 0.0
    for i in range(last - 1, -1, -1):
        panel_densities(law, parameters, survey, edges[i], 0.5 * (edges[i] - edges[i + 1]), panel)
        for a in range(count):
            below[i, a] = below[i + 1, a] + panel_share(panel[a, 0])
    for a in range(count):
        p[a] = survey[a, TAIL] = 0.0
    for i in range(last):
        panel_densities(law, parameters, survey, edges[i], 0.5 * (edges[i] - edges[i + 1]), panel)
        for a in range(count):
            if not math.isnan(below[i + 1, a]):
                gather_from_below(panel[a, 0], below[i + 1, a], panel[a, 1])
        add_panel(count, panel, p)
    complete(floor, p, survey)
