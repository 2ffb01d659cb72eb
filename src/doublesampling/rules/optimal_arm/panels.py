"""Gauss-Legendre panels: densities and distribution functions of all arms at their nodes, and what they add up to."""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.optimal_arm.regions import CENTRE, LOG_PEAK, TAIL, UPPER
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]

PANEL_NODES = 10
PANEL_ROWS = 4  # density, F, the running product of F over the arms before; the last arm's row is scratch


def _gauss_legendre(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return nodes and weights on [-1, 1], and the matrix (node, from) that integrates from each node up to 1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    # polynomial through the nodes, in Legendre coefficients; integral of P_k from x to 1 is (P_{k-1} - P_{k+1})/(2k+1)
    order = np.arange(count)
    coefficients = (2 * order[:, None] + 1) / 2 * np.polynomial.legendre.legvander(nodes, count - 1).T * weights
    values = np.polynomial.legendre.legvander(nodes, count)
    upward = np.empty((count, count))
    upward[:, 0] = 1.0 - nodes
    for k in range(1, count):
        upward[:, k] = (values[:, k - 1] - values[:, k + 1]) / (2 * k + 1)
    return nodes, weights, np.ascontiguousarray((upward @ coefficients).T)


_NODE, _WEIGHT, _UPWARD = _gauss_legendre(PANEL_NODES)
_DOWNWARD = _WEIGHT[:, None] - _UPWARD  # the same from -1 up to each node


@rule
def _log_probability_step(z: float, u: float) -> float:
    """Return log x at log odds z + u less log x at z, u <= 0; for z <= 0, of log(1 - x) instead.

    Each is the smaller one of its side, so that a law of many counts can be multiplied with it. Exact for small steps
    and safe for steps of any size.
    """
    if z <= 0.0:
        hit = math.exp(z) / (1.0 + math.exp(z))
        return -math.log1p(hit * math.expm1(u))
    if u > -30.0:
        miss = math.exp(-z) / (1.0 + math.exp(-z))
        return -math.log1p(miss * math.expm1(-u))
    end = z + u
    low = -math.log1p(math.exp(-end)) if end > 0.0 else end - math.log1p(math.exp(end))
    return low + math.log1p(math.exp(-z))


@specialised(rule)
def _student_densities(
    scale: float, freedom: float, top: float, half: float, log_peak: float, density: FloatArray, work: FloatArray
) -> None:
    """Fill a Student t or normal density at the nodes of a panel, times half its width.

    The power (1 + r^2 / freedom)^-((freedom + 1) / 2) of whole degrees of freedom is a product of squares, which a
    processor takes for several nodes at once; it is the hot loop of linear Gaussian simulations.
    """
    whole = int(freedom) if freedom < 1e9 else 0
    if whole != freedom:
        for j in range(PANEL_NODES):
            fall = laws.log_fall(laws.STUDENT, 0.0, scale, freedom, top + half * (_NODE[j] - 1.0))
            density[j] = half * math.exp(log_peak + fall)
        return
    peak = half * math.exp(log_peak)
    start, step, share = (top - half) / scale, half / scale, 1.0 / freedom
    for j in range(PANEL_NODES):
        r = start + step * _NODE[j]
        work[j] = 1.0 / (1.0 + r * r * share)
        density[j] = peak
    if whole % 2 == 0:
        for j in range(PANEL_NODES):
            density[j] *= math.sqrt(work[j])
    power = (whole + 1) // 2
    while power > 0:
        if power & 1:
            for j in range(PANEL_NODES):
                density[j] *= work[j]
        for j in range(PANEL_NODES):
            work[j] *= work[j]
        power >>= 1


@inlined
def node_of(j: int) -> float:
    """Return the j-th node on [-1, 1]."""
    return _NODE[j]


@inlined
def weight_of(j: int) -> float:
    """The weight of the j-th node."""
    return _WEIGHT[j]


@inlined
def gather_upward(values: FloatArray, whole: float, out: FloatArray) -> float:
    """Fill what is left of a whole below each node, given the density there; return the panel's share of it."""
    for j in range(PANEL_NODES):
        out[j] = whole
    total = 0.0
    for k in range(PANEL_NODES):
        for j in range(PANEL_NODES):
            out[j] -= _UPWARD[k, j] * values[k]
        total += _WEIGHT[k] * values[k]
    return total


@inlined
def gather_tail(density: FloatArray, below: FloatArray, tail: float) -> float:
    """Fill F at the nodes of a panel, from the tail above it; return the tail above the next panel."""
    for j in range(PANEL_NODES):
        below[j] = 1.0 - tail
    for k in range(PANEL_NODES):  # nodes innermost: several at once
        mass = density[k]
        for j in range(PANEL_NODES):
            below[j] -= _UPWARD[k, j] * mass
        tail += _WEIGHT[k] * mass
    for j in range(PANEL_NODES):
        below[j] = max(below[j], 0.0)
    return tail


@inlined
def gather_from_below(density: FloatArray, start: float, below: FloatArray) -> None:
    """Fill F at the nodes of a panel, from F at its bottom: this keeps the relative accuracy where F is small."""
    for j in range(PANEL_NODES):
        below[j] = start
    for k in range(PANEL_NODES):  # nodes innermost: several at once
        mass = density[k]
        for j in range(PANEL_NODES):
            below[j] += _DOWNWARD[k, j] * mass
    for j in range(PANEL_NODES):
        below[j] = max(below[j], 0.0)


@inlined
def panel_share(density: FloatArray) -> float:
    """Return the probability inside a panel, from the density at its nodes."""
    total = 0.0
    for k in range(PANEL_NODES):
        total += _WEIGHT[k] * density[k]
    return total


@specialised(rule)
def panel_densities(
    law: Constant, parameters: FloatArray, survey: FloatArray, top: float, half: float, panel: FloatArray
) -> None:
    """Fill density and F of every arm at the nodes of a panel, and carry each arm's tail down to its bottom."""
    count = parameters.shape[0]
    scratch = panel[count]  # the last row: a node's distance from the top, and the step of log x or log(1 - x) there
    if law == laws.BETA:
        for j in range(PANEL_NODES):
            u = half * (_NODE[j] - 1.0)
            scratch[0, j] = u
            scratch[1, j] = _log_probability_step(top, u)
    for a in range(count):
        density, below = panel[a, 0], panel[a, 1]
        first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
        if survey[a, UPPER] <= top - 2.0 * half:
            for j in range(PANEL_NODES):
                density[j] = 0.0
                below[j] = 1.0
            continue
        if law == laws.BETA:
            base = survey[a, LOG_PEAK] + laws.log_fall(law, first, second, third, top - survey[a, CENTRE])
            total, slope = first + second, first if top <= 0.0 else -second
            for j in range(PANEL_NODES):
                density[j] = half * math.exp(base + total * scratch[1, j] + slope * scratch[0, j])
        elif law == laws.GAMMA or law == laws.INVERSE_GAMMA:
            for j in range(PANEL_NODES):
                distance = top + half * (_NODE[j] - 1.0) - survey[a, CENTRE]
                fall = laws.log_fall(law, first, second, third, distance)
                density[j] = half * math.exp(survey[a, LOG_PEAK] + fall)
        else:
            _student_densities(second, third, top - survey[a, CENTRE], half, survey[a, LOG_PEAK], density, below)
        survey[a, TAIL] = gather_tail(density, below, survey[a, TAIL])


@rule
def add_panel(count: int, panel: FloatArray, p: FloatArray) -> None:
    """Add each arm's share of a panel: f_a times the product of every other F, by running products from both ends.

    Row 2 of each arm is left holding its share at every node.
    """
    running = panel[count, 0]
    for j in range(PANEL_NODES):
        running[j] = 1.0
    for a in range(count):
        for j in range(PANEL_NODES):
            panel[a, 2, j] = running[j]
            running[j] *= panel[a, 1, j]
    for j in range(PANEL_NODES):
        running[j] = _WEIGHT[j]
    for a in range(count - 1, -1, -1):
        mass = 0.0
        for j in range(PANEL_NODES):
            share = panel[a, 0, j] * panel[a, 2, j] * running[j]
            running[j] *= panel[a, 1, j]
            panel[a, 2, j] = share
            mass += share
        p[a] += mass
