"""Sampling one: the probability that each arm is the best.

Exactly, p_a = integral of f_a(x) prod_{b != a} F_b(x) dx (the paper's marginalization of the indicator I_a), by
Gauss-Legendre panels walked from the highest reward downwards. Tail integrals gathered on the way give every F_b,
so no incomplete beta function is needed. The walk ends where some arm is certain to be better.

From M posterior samples, the counts of "arm a was best" are Multinomial(M, p): one multinomial draw has exactly the
law of the paper's M x A posterior draws.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.belief import (
    BETA,
    GAMMA,
    INVERSE_GAMMA,
    STUDENT,
    marginal_centre,
    marginal_log_fall,
    marginal_log_peak,
)
from doublesampling.rules.compiled import inlined, rule, spliced
from doublesampling.rules.draws import OPTIMALITY, Address, multinomial_draw
from doublesampling.rules.special import log_beta_fall, log_gamma_fall

FloatArray = NDArray[np.float64]

_NODES = 10

# how fine the panels are: a tail below e^-fall is left out; a panel is so many deviations of the narrowest law wide
Fineness = tuple[float, float]
EXACT = (28.0, 1.2)  # right to 1e-10, for decisions that are kept
# right to 1e-6, for simulations, whose samples blur it ten thousand times more
QUICK_BETA = (16.0, 3.0)
QUICK_STUDENT = (13.0, 4.5)

_MOST_EXPONENT = 560.0  # heavier tails reach beyond the range of floating-point numbers

# columns of the surveyed arms
CENTRE, LOWER, UPPER, _STEP_DOWN, _STEP_UP, _LOG_PEAK, TAIL = range(7)
SURVEY_COLUMNS = 7
PANEL_ROWS = 4  # density, F, the running product of F over the arms before; the last arm's row is scratch
PANEL_NODES = _NODES


def _gauss_legendre(count: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Nodes and weights on [-1, 1], and the matrix (node, from) that integrates from each node up to 1."""
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


_NODE, _WEIGHT, _UPWARD = _gauss_legendre(_NODES)
_DOWNWARD = _WEIGHT[:, None] - _UPWARD  # the same from -1 up to each node


@inlined
def _is_gamma(family: int) -> bool:
    return family in (GAMMA, INVERSE_GAMMA)


@rule
def _gamma_edge(shape: float, side: float, fall: float) -> float:
    """The same for the logarithm of a Gamma variable: a long tail below, a short one above."""
    # start outside: e^u = 1 + u + far, where u <= sqrt(2 far) above; below it is at least -1 - far
    far = fall / shape
    u = math.log(1.0 + math.sqrt(2.0 * far) + far) if side > 0.0 else -1.0 - far
    for _ in range(100):
        step = (log_gamma_fall(shape, u) + fall) / (-shape * math.expm1(u))
        u -= step
        if abs(step) < 0.01 * abs(u):
            break
    return abs(u)


@rule
def edge(family: int, first: float, second: float, third: float, side: float, fall: float) -> float:
    """How far from its peak a marginal's mass reaches on one side (+1 up, -1 down), but for e^-fall of it."""
    if family == GAMMA:
        return _gamma_edge(first, side, fall)
    if family == INVERSE_GAMMA:
        return _gamma_edge(first, -side, fall)
    if family != BETA:
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


@rule
def survey(family: int, parameters: FloatArray, fineness: Fineness, arms: FloatArray) -> float:
    """Fill one row per arm (centre, edges, steps, peak); returns the reward below which some arm is surely better."""
    fall, width = fineness
    steps = math.sqrt(2.0 * fall) / width
    surest = 0
    for a in range(parameters.shape[0]):
        first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
        centre = marginal_centre(family, first, second)
        below = edge(family, first, second, third, -1.0, fall)
        above = edge(family, first, second, third, 1.0, fall)
        arms[a, CENTRE] = centre
        arms[a, LOWER] = centre - below
        arms[a, UPPER] = centre + above
        arms[a, _STEP_DOWN] = below / steps
        arms[a, _STEP_UP] = above / steps
        arms[a, _LOG_PEAK] = marginal_log_peak(family, first, second, third)
        arms[a, TAIL] = 0.0
        if arms[a, LOWER] > arms[surest, LOWER]:
            surest = a
    if family != BETA and not _is_gamma(
        family
    ):  # count from the surest arm, so that large locations do not round small scales away
        origin = parameters[surest, 0]
        for a in range(parameters.shape[0]):
            above = arms[a, _STEP_UP] * steps
            arms[a, CENTRE] = parameters[a, 0] - origin
            arms[a, LOWER] = arms[a, CENTRE] - above
            arms[a, UPPER] = arms[a, CENTRE] + above
    return arms[surest, LOWER]


@rule
def _clear_of(distance: float, near: float) -> float:
    """The widest panel below a point that keeps clear of a singularity near the real line, a signed distance below."""
    return max(near, 0.6 * distance if distance > 0.0 else -1.2 * distance)


@rule
def panel_step(family: int, parameters: FloatArray, width: float, arms: FloatArray, a: int, x: float) -> float:
    """The panel width that resolves one arm's density just below x."""
    distance = x - arms[a, CENTRE]
    if family == BETA or _is_gamma(family):
        up, down = arms[a, _STEP_UP], arms[a, _STEP_DOWN]
        # towards the centre step by step: a long tail may end in a cliff on its other side
        step = min(up, max(down, 0.6 * distance)) if distance > 0.0 else min(down, max(up, -1.5 * distance))
        # log odds bend at 0, within pi: only laws wider than that need to know
        return min(step, _clear_of(x, 3.0)) if family == BETA else step
    scale, freedom = parameters[a, 1], parameters[a, 2]
    r = distance / scale
    near = min(width, 1.2 * math.sqrt(freedom))
    return scale * min(width * math.sqrt(1.0 + r * r / freedom), _clear_of(r, near))


@rule
def panel_bottom(
    family: int, parameters: FloatArray, width: float, arms: FloatArray, top: float, floor: float
) -> float:
    """Where the panel that hangs from top ends, so that every density inside it is resolved."""
    bottom = floor
    for a in range(parameters.shape[0]):
        if arms[a, UPPER] >= top:
            bottom = max(bottom, top - panel_step(family, parameters, width, arms, a, top))
    for a in range(parameters.shape[0]):  # an arm that begins further down and is too narrow for this panel
        upper = arms[a, UPPER]
        if bottom < upper < top and panel_step(family, parameters, width, arms, a, upper) < top - bottom:
            bottom = max(bottom, upper)
    return bottom


@rule
def _log_probability_step(z: float, u: float) -> float:
    """By how much log x at log odds z + u is above log x at z, u <= 0; for z <= 0, log(1 - x) instead.

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


@rule
def _student_densities(
    scale: float, freedom: float, top: float, half: float, log_peak: float, density: FloatArray, work: FloatArray
) -> None:
    """A Student t or normal law's density at the nodes of a panel, times half its width.

    The power (1 + r^2 / freedom)^-((freedom + 1) / 2) of whole degrees of freedom is a product of squares, which a
    processor takes for several nodes at once; it is the hot loop of linear Gaussian simulations.
    """
    whole = int(freedom) if freedom < 1e9 else 0
    if whole != freedom:
        for j in range(_NODES):
            fall = marginal_log_fall(STUDENT, 0.0, scale, freedom, top + half * (_NODE[j] - 1.0))
            density[j] = half * math.exp(log_peak + fall)
        return
    peak = half * math.exp(log_peak)
    start, step, share = (top - half) / scale, half / scale, 1.0 / freedom
    for j in range(_NODES):
        r = start + step * _NODE[j]
        work[j] = 1.0 / (1.0 + r * r * share)
        density[j] = peak
    if whole % 2 == 0:
        for j in range(_NODES):
            density[j] *= math.sqrt(work[j])
    power = (whole + 1) // 2
    while power > 0:
        if power & 1:
            for j in range(_NODES):
                density[j] *= work[j]
        for j in range(_NODES):
            work[j] *= work[j]
        power >>= 1


@inlined
def node_of(j: int) -> float:
    """The j-th node on [-1, 1]."""
    return _NODE[j]


@inlined
def gather_upward(values: FloatArray, whole: float, out: FloatArray) -> float:
    """What is left of a whole below each node of a panel, given its density there; returns the panel's share of it."""
    for j in range(_NODES):
        out[j] = whole
    total = 0.0
    for k in range(_NODES):
        for j in range(_NODES):
            out[j] -= _UPWARD[k, j] * values[k]
        total += _WEIGHT[k] * values[k]
    return total


@inlined
def gather_tail(density: FloatArray, below: FloatArray, tail: float) -> float:
    """F at the nodes of a panel, from the tail above it; returns the tail above the next panel."""
    for j in range(_NODES):
        below[j] = 1.0 - tail
    for k in range(_NODES):  # nodes innermost: several at once
        mass = density[k]
        for j in range(_NODES):
            below[j] -= _UPWARD[k, j] * mass
        tail += _WEIGHT[k] * mass
    for j in range(_NODES):
        below[j] = max(below[j], 0.0)
    return tail


@inlined
def gather_from_below(density: FloatArray, start: float, below: FloatArray) -> None:
    """F at the nodes of a panel, from F at its bottom: right relative to itself where F is small."""
    for j in range(_NODES):
        below[j] = start
    for k in range(_NODES):  # nodes innermost: several at once
        mass = density[k]
        for j in range(_NODES):
            below[j] += _DOWNWARD[k, j] * mass
    for j in range(_NODES):
        below[j] = max(below[j], 0.0)


@inlined
def panel_share(density: FloatArray) -> float:
    """The probability inside a panel, from the density at its nodes."""
    total = 0.0
    for k in range(_NODES):
        total += _WEIGHT[k] * density[k]
    return total


@rule
def panel_densities(
    family: int, parameters: FloatArray, arms: FloatArray, top: float, half: float, panel: FloatArray
) -> None:
    """Density and F of every arm at the nodes of a panel, and each arm's tail carried down to its bottom."""
    count = parameters.shape[0]
    scratch = panel[count]  # the last row: a node's distance from the top, and the step of log x or log(1 - x) there
    if family == BETA:
        for j in range(_NODES):
            u = half * (_NODE[j] - 1.0)
            scratch[0, j] = u
            scratch[1, j] = _log_probability_step(top, u)
    for a in range(count):
        density, below = panel[a, 0], panel[a, 1]
        first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
        if arms[a, UPPER] <= top - 2.0 * half:
            for j in range(_NODES):
                density[j] = 0.0
                below[j] = 1.0
            continue
        if family == BETA:
            base = arms[a, _LOG_PEAK] + marginal_log_fall(family, first, second, third, top - arms[a, CENTRE])
            total, slope = first + second, first if top <= 0.0 else -second
            for j in range(_NODES):
                density[j] = half * math.exp(base + total * scratch[1, j] + slope * scratch[0, j])
        elif _is_gamma(family):
            for j in range(_NODES):
                distance = top + half * (_NODE[j] - 1.0) - arms[a, CENTRE]
                fall = marginal_log_fall(family, first, second, third, distance)
                density[j] = half * math.exp(arms[a, _LOG_PEAK] + fall)
        else:
            _student_densities(second, third, top - arms[a, CENTRE], half, arms[a, _LOG_PEAK], density, below)
        arms[a, TAIL] = gather_tail(density, below, arms[a, TAIL])


@rule
def panel_masses(count: int, panel: FloatArray, masses: FloatArray) -> None:
    """Add each arm's share of a panel: f_a times the product of every other F, by running products from both ends.

    Row 2 of each arm is left holding its share at every node.
    """
    running = panel[count, 0]
    for j in range(_NODES):
        running[j] = 1.0
    for a in range(count):
        for j in range(_NODES):
            panel[a, 2, j] = running[j]
            running[j] *= panel[a, 1, j]
    for j in range(_NODES):
        running[j] = _WEIGHT[j]
    for a in range(count - 1, -1, -1):
        mass = 0.0
        for j in range(_NODES):
            share = panel[a, 0, j] * panel[a, 2, j] * running[j]
            running[j] *= panel[a, 1, j]
            panel[a, 2, j] = share
            mass += share
        masses[a] += mass


@rule
def complete(floor: float, masses: FloatArray, arms: FloatArray) -> None:
    """Scale the probabilities to 1, and give what is missing to the arms that are surely best below the floor.

    Much is missing only where an arm is narrower than the spacing of floating-point numbers: no panel entered it.
    """
    total = 0.0
    surest = 0
    for a in range(masses.size):
        total += masses[a]
        surest += arms[a, LOWER] == floor
    if total < 1.0 - 1e-9:
        for a in range(masses.size):
            if arms[a, LOWER] == floor:
                masses[a] += (1.0 - total) / surest
        total = 1.0
    for a in range(masses.size):
        masses[a] /= total


@rule
def probability_optimal(
    family: int, parameters: FloatArray, fineness: Fineness, masses: FloatArray, arms: FloatArray, panel: FloatArray
) -> None:
    """Fill masses with p_a, the probability that arm a has the highest expected reward, by quadrature.

    parameters : float array (arm, 3), the marginals. Work space: arms (arm, 7), panel (arm + 1, 4, 10).
    """
    count = parameters.shape[0]
    floor = survey(family, parameters, fineness, arms)
    top = -math.inf
    for a in range(count):
        masses[a] = 0.0
        top = max(top, arms[a, UPPER])
    while top > floor:
        bottom = panel_bottom(family, parameters, fineness[1], arms, top, floor)
        if not bottom < top:  # narrower than the spacing of floating-point numbers
            break
        panel_densities(family, parameters, arms, top, 0.5 * (top - bottom), panel)
        panel_masses(count, panel, masses)
        top = bottom
    complete(floor, masses, arms)


@spliced
def sampled_optimality(address: Address, samples: int, p: FloatArray, counts: NDArray[np.int64]) -> None:
    """Replace the exact p by the paper's estimate p_hat = counts / M, counts ~ Multinomial(M, p)."""
    multinomial_draw(address, OPTIMALITY, samples, p, counts)
    for a in range(p.size):
        p[a] = counts[a] / samples


@rule
def optimality_deviation(p: float) -> float:
    """Second-order statistic: sigma_hat of the indicator I_a, whose variance is p (1 - p)."""
    return math.sqrt(p * (1.0 - p))
