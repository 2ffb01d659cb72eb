"""Four or more Beta arms in a simulation: densities at fixed nodes, carried from step to step.

A success multiplies an arm's density by x (a + b) / a, a failure by (1 - x)(a + b) / b, so a step costs a few
multiplications per node and no exponentials. The nodes are laid anew when the arm that was observed has moved out of
the region they were laid for, or has become too narrow for them.

book : float array (panel, arm + 1, 4, 10), as in rules/optimal_arm/panels.py; the last arm's rows 2 and 3 hold x and
1 - x. notes : float array (arm + 1, 4), see below.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, add_panel, gather_tail, node_of, panel_densities
from doublesampling.rules.optimal_arm.quadrature import probability_optimal
from doublesampling.rules.optimal_arm.regions import QUICK_BETA, UPPER, edge, panel_bottom, survey_arms
from doublesampling.rules.specialise import specialised

FloatArray = NDArray[np.float64]

MOST_PANELS = 48
NOTE_COLUMNS = 4
_LAID = (22.0, 2.4)  # wider and finer than a step needs, so that the nodes last
_NEEDED = 15.0
_NARROWEST = 0.6  # of an arm's width when the nodes were laid

# columns of the notes: the upper edge and the width at laying time, the lower edge now; the last row is for all arms
_TOP, _WIDTH, _BOTTOM = range(3)
_PANELS, _FLOOR, _SERVES = range(3)


@inlined
def begin(notes: FloatArray) -> None:
    """Mark the nodes of the realization before as not usable."""
    notes[notes.shape[0] - 1, _SERVES] = 0.0


@specialised(rule)
def lay(parameters: FloatArray, survey: FloatArray, book: FloatArray, notes: FloatArray) -> None:
    """Place the nodes for the arms as they are; zero panels in the notes mean that there were too many."""
    count = parameters.shape[0]
    floor = survey_arms(laws.BETA, parameters, _LAID, survey)
    top = -math.inf
    for a in range(count):
        top = max(top, survey[a, UPPER])
        centre, below, above = _reach(parameters, a)
        notes[a, _TOP] = survey[a, UPPER]
        notes[a, _WIDTH] = above + below
        notes[a, _BOTTOM] = centre - below
    notes[count, _PANELS] = 0.0
    notes[count, _FLOOR] = floor
    panels = 0
    while top > floor:
        if panels == MOST_PANELS:
            return
        bottom = panel_bottom(laws.BETA, parameters, _LAID[1], survey, top, floor)
        if not bottom < top:
            break
        panel = book[panels]
        half = 0.5 * (top - bottom)
        panel_densities(laws.BETA, parameters, survey, top, half, panel)
        for j in range(PANEL_NODES):
            z = top + half * (node_of(j) - 1.0)
            panel[count, 2, j] = 1.0 / (1.0 + math.exp(-z)) if z > -700.0 else 0.0
            panel[count, 3, j] = 1.0 / (1.0 + math.exp(z)) if z < 700.0 else 0.0
        panels += 1
        top = bottom
    notes[count, _PANELS] = panels


@specialised(inlined)
def _reach(parameters: FloatArray, a: int) -> tuple[float, float, float]:
    """Return an arm's centre, and how far down and up its probability matters."""
    alpha, beta = parameters[a, 0], parameters[a, 1]
    centre = laws.centre(laws.BETA, alpha, beta)
    return centre, edge(laws.BETA, alpha, beta, 0.0, -1.0, _NEEDED), edge(laws.BETA, alpha, beta, 0.0, 1.0, _NEEDED)


@specialised(rule)
def carry(parameters: FloatArray, arm: int, success: bool, book: FloatArray, notes: FloatArray) -> None:
    """Update the densities by one observation (parameters: before it), and note whether the nodes still serve."""
    count = parameters.shape[0]
    alpha, beta = parameters[arm, 0], parameters[arm, 1]
    scale = (alpha + beta) / (alpha if success else beta)
    row = 2 if success else 3
    tail = 0.0
    for i in range(int(notes[count, _PANELS])):
        density, factor = book[i, arm, 0], book[i, count, row]
        for j in range(PANEL_NODES):
            density[j] *= scale * factor[j]
        tail = gather_tail(density, book[i, arm, 1], tail)
    parameters[arm, 0 if success else 1] += 1.0
    centre, below, above = _reach(parameters, arm)
    parameters[arm, 0 if success else 1] -= 1.0
    notes[arm, _BOTTOM] = centre - below
    floor = -math.inf
    for a in range(count):
        floor = max(floor, notes[a, _BOTTOM])
    serves = (
        floor >= notes[count, _FLOOR]
        and centre + above <= notes[arm, _TOP]
        and above + below >= _NARROWEST * notes[arm, _WIDTH]
    )
    notes[count, _SERVES] = 1.0 if serves else 0.0


@specialised(rule)
def carried_optimality(
    parameters: FloatArray, p: FloatArray, survey: FloatArray, book: FloatArray, notes: FloatArray
) -> None:
    """Fill p from the carried densities; new nodes are placed where the old ones do not serve any more."""
    count = parameters.shape[0]
    if notes[count, _SERVES] == 0.0:
        lay(parameters, survey, book, notes)
    panels = int(notes[count, _PANELS])
    if panels == 0:
        probability_optimal(laws.BETA, parameters, QUICK_BETA, p, survey, book[0])
        return
    total = 0.0
    for a in range(count):
        p[a] = 0.0
    for i in range(panels):
        add_panel(count, book[i], p)
    for a in range(count):
        total += p[a]
    for a in range(count):
        p[a] /= total
