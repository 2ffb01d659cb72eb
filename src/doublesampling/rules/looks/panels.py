"""Probabilities with a margin by Gauss-Legendre panels: right to 1e-9, for any law and few or many observations.

    all within d       integral of sum_k f_k(x) prod_{j != k} [F_j(x + d) - F_j(x)] dx
    none above by d    integral of f_c(x) prod_{j != c} F_j(x + d) dx, c being the control

Panels end wherever a panel of some arm does, at x and at x + d, so that every factor is resolved.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import rule
from doublesampling.rules.looks.tails import below, shifted
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, node_of, weight_of
from doublesampling.rules.optimal_arm.regions import (
    CENTRE,
    LOG_PEAK,
    LOWER,
    UPPER,
    Fineness,
    panel_step,
    survey,
)
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]

EDGES_PER_ARM = 128
"""Room for the edges of panels; a law with longer tails has wider panels at its end."""


@rule
def _add_edge(edge: float, count: int, edges: FloatArray) -> int:
    """Put an edge where it belongs between the first and the last; returns how many there are."""
    if not edges[0] < edge < edges[count - 1]:
        return count
    place = count - 1
    while edges[place - 1] > edge:
        place -= 1
    if edges[place - 1] == edge:
        return count
    for i in range(count, place, -1):
        edges[i] = edges[i - 1]
    edges[place] = edge
    return count + 1


@specialised(rule)
def _fill_edges(
    law: Constant, parameters: FloatArray, width: float, arms: FloatArray, margin: float, edges: FloatArray
) -> int:
    """Fill the edges of all panels between edges[0] and edges[1], in order; returns how many there are."""
    count = 2
    for a in range(parameters.shape[0]):
        edge = arms[a, UPPER]
        for _ in range(EDGES_PER_ARM // 2 - 2):
            count = _add_edge(edge, count, edges)
            count = _add_edge(shifted(law, edge, -margin), count, edges)
            if edge <= arms[a, LOWER]:
                break
            edge = max(edge - panel_step(law, parameters, width, arms, a, edge), arms[a, LOWER])
    if law == laws.BETA and margin > 0.0:  # noqa: SIM102 - the law is a constant
        if margin < 1.0:  # F(x + d) ends where x + d is 1
            count = _add_edge(math.log((1.0 - margin) / margin), count, edges)
    return count


@specialised(rule)
def _all_within(
    law: Constant, parameters: FloatArray, arms: FloatArray, margin: float, z: float, work: FloatArray
) -> float:
    """The integrand of "all within the margin"; work (2, arm)."""
    count = parameters.shape[0]
    above = shifted(law, z, margin)
    for a in range(count):
        first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
        fall = laws.log_fall(law, first, second, third, z - arms[a, CENTRE])
        work[0, a] = math.exp(arms[a, LOG_PEAK] + fall)
        work[1, a] = max(below(law, parameters, arms, a, above) - below(law, parameters, arms, a, z), 0.0)
    total = 0.0
    for k in range(count):
        term = work[0, k]
        for j in range(count):
            if j != k:
                term *= work[1, j]
        total += term
    return total


@specialised(rule)
def _none_above(
    law: Constant, parameters: FloatArray, arms: FloatArray, control: int, margin: float, z: float
) -> float:
    """The integrand of "no arm above the control by the margin"."""
    first, second, third = parameters[control, 0], parameters[control, 1], parameters[control, 2]
    fall = laws.log_fall(law, first, second, third, z - arms[control, CENTRE])
    found = math.exp(arms[control, LOG_PEAK] + fall)
    above = shifted(law, z, margin)
    for a in range(parameters.shape[0]):
        if a != control:
            found *= below(law, parameters, arms, a, above)
    return found


@specialised(rule)
def margin_by_panels(
    law: Constant, parameters: FloatArray, control: int, margin: float, fineness: Fineness, arms: FloatArray,
    edges: FloatArray, work: FloatArray,
) -> float:  # fmt: skip
    """P(all arms lie within the margin), or, where there is a control (not -1), P(none is above it by the margin).

    parameters : float array (arm, 3). Work space: arms (arm, 7), edges (arm * EDGES_PER_ARM), work (2, arm).
    """
    survey(law, parameters, fineness, arms)
    low, high = -math.inf, math.inf
    if control >= 0:
        low, high = arms[control, LOWER], arms[control, UPPER]
    else:
        for a in range(parameters.shape[0]):
            low = max(low, shifted(law, arms[a, LOWER], -margin))
            high = min(high, arms[a, UPPER])
        if low == -math.inf:  # every law may reach the lowest reward: below, some density has vanished
            low = math.inf
            for a in range(parameters.shape[0]):
                low = min(low, arms[a, LOWER])
    if not low < high:
        return 0.0
    edges[0], edges[1] = low, high
    count = _fill_edges(law, parameters, fineness[1], arms, margin, edges)
    total = 0.0
    for i in range(count - 1):
        half = 0.5 * (edges[i + 1] - edges[i])
        for j in range(PANEL_NODES):
            z = edges[i] + half * (1.0 + node_of(j))
            if control >= 0:
                value = _none_above(law, parameters, arms, control, margin, z)
            else:
                value = _all_within(law, parameters, arms, margin, z, work)
            total += half * weight_of(j) * value
    return min(max(total, 0.0), 1.0)
