"""Two Student arms in a simulation: the probability that the first is better, without work space.

p = integral of f(x) F(x) dx, with f of the narrower arm and F of the wider one. The narrower arm is seen through
x = location + scale r, r = sqrt(freedom) sinh(u / sqrt(freedom)), where its density falls like a normal law's whatever
its tails are, so that a plain sum over equal steps of u converges faster than any power of the step. The walk goes
outwards from the centre on both sides at once and carries F along. Everything stays in registers, which on a GPU is
worth more than any saving of operations.
"""

import math

import numpy as np

from doublesampling.rules import laws
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.specialise import specialised

_LEAST_FREEDOM = 6.0  # of the narrower arm: heavier tails reach so far that the steps out there overlook the other arm
_AS_GOOD_AS_NORMAL = 1e7  # more freedom changes nothing above 1e-7
_FALL = 13.0  # a density below e^-13 of its peak is left out
_CERTAIN_FALL = 16.0  # an arm e^-16 away is surely worse
_STEP = 0.65  # of u
_PANEL = 5.5  # of u, for the one value of F that the walk starts from
_BEND = 3.5  # of u / sqrt(freedom): where heavy tails bend the density
_NODE, _WEIGHT = np.polynomial.legendre.leggauss(10)


@inlined
def _power(base: float, freedom: float) -> float:
    """Return base^(freedom / 2), by squaring where the degrees of freedom are whole."""
    whole = int(freedom)
    if whole != freedom:
        return math.exp(0.5 * freedom * math.log(base))
    value = math.sqrt(base) if whole & 1 else 1.0
    whole >>= 1
    while whole > 0:
        if whole & 1:
            value *= base
        base *= base
        whole >>= 1
    return value


@inlined
def _four_powers(a: float, b: float, c: float, d: float, freedom: float) -> tuple[float, float, float, float]:
    """Return the same power of four numbers: one loop, and four products that do not wait for each other."""
    whole = int(freedom)
    if whole != freedom:
        return _power(a, freedom), _power(b, freedom), _power(c, freedom), _power(d, freedom)
    odd = whole & 1
    p, q = math.sqrt(a) if odd else 1.0, math.sqrt(b) if odd else 1.0
    r, s = math.sqrt(c) if odd else 1.0, math.sqrt(d) if odd else 1.0
    whole >>= 1
    while whole > 0:
        if whole & 1:
            p, q, r, s = p * a, q * b, r * c, s * d
        a, b, c, d = a * a, b * b, c * c, d * d
        whole >>= 1
    return p, q, r, s


@inlined
def _reach(freedom: float, fall: float) -> float:
    """Return how far u goes until the density over u has fallen by e^-fall."""
    return math.sqrt(freedom) * math.acosh(math.exp(fall / freedom))


@inlined
def _edge(scale: float, freedom: float) -> float:
    """Return how far from its centre an arm may be expected at all."""
    return scale * math.sqrt(freedom * math.expm1(2.0 * _CERTAIN_FALL / freedom))


@inlined
def _base(r: float, freedom: float) -> float:
    """Return what a Student density is a power of: 1 / (1 + r^2 / freedom)."""
    return 1.0 / (1.0 + r * r / freedom)


@rule
def _above_centre(r: float, freedom: float) -> float:
    """Return the probability between the centre and r scales above it, over the peak density; r >= 0."""
    root = math.sqrt(freedom)
    u = min(root * math.asinh(r / root), _reach(freedom, _CERTAIN_FALL))
    panels = 1 + int(max(u / _PANEL, u / (root * _BEND)))
    half = 0.5 * u / panels
    total = 0.0
    for panel in range(panels):
        for j in range(_NODE.size):
            cosh = math.cosh(half * (2 * panel + 1 + _NODE[j]) / root)
            total += _WEIGHT[j] * _power(1.0 / (cosh * cosh), freedom)
    return half * total


@rule
def _walk(centre: float, ratio: float, freedom: float, wide: float) -> float:
    """Return the mean of F - F(centre) under the narrower arm, over F's peak; lengths in scales of the wider arm.

    centre : the narrower arm's location seen from the wider one's. ratio : its scale. wide : the other's freedom.
    """
    # sinh and cosh of equal steps by the addition theorem
    root = math.sqrt(freedom)
    grow, turn = math.cosh(_STEP / root), root * math.sinh(_STEP / root)
    r, cosh = 0.0, 1.0
    bend = 1.0 + 1.0 / wide
    base = _base(centre, wide)
    up = down = _power(base, wide + 1.0)  # the density at r above and below the centre, and how it falls there
    up_fall = down_fall = bend * centre * base * up
    rise = 0.0  # F at r above the centre, and F at r below it, less twice F at the centre
    weights, weighted = 0.5, 0.0
    for _ in range(int(_reach(freedom, _FALL) / _STEP) + 1):
        before = r
        r, cosh = r * grow + cosh * turn, cosh * grow + r * turn / freedom
        width = ratio * (r - before)
        high, low = centre + ratio * r, centre - ratio * r
        high_base, low_base = _base(high, wide), _base(low, wide)
        up_next, down_next, up_middle, down_middle = _four_powers(
            high_base, low_base, _base(high - 0.5 * width, wide), _base(low + 0.5 * width, wide), wide + 1.0
        )
        up_next_fall, down_next_fall = bend * high * high_base * up_next, bend * low * low_base * down_next
        # Simpson's rule with slopes: right to the seventh power of the width
        values = 7.0 * (up + up_next - down - down_next) + 16.0 * (up_middle - down_middle)
        slopes = up_next_fall - up_fall + down_next_fall - down_fall
        rise += width * (values + 0.5 * width * slopes) / 30.0
        up, up_fall, down, down_fall = up_next, up_next_fall, down_next, down_next_fall
        mass = _power(1.0 / (cosh * cosh), freedom)
        weights += mass
        weighted += mass * rise
    return 0.5 * weighted / weights


@inlined
def resolved(scale: float, freedom: float, other_scale: float, other_freedom: float) -> bool:
    """Tell whether equal steps are fine enough: no heavy tails where the arms are about equally wide."""
    if scale > other_scale:
        scale, freedom, other_scale, other_freedom = other_scale, other_freedom, scale, freedom
    wide = other_freedom >= 1.0 and other_freedom * other_scale * other_scale >= _LEAST_FREEDOM * scale * scale
    return freedom >= _LEAST_FREEDOM and wide


@specialised(rule)
def first_above_second(
    location: float, scale: float, freedom: float, other: float, other_scale: float, other_freedom: float
) -> float:
    """Return P(the first of two Student arms is the better one), to 1e-6 where resolved."""
    gap = location - other
    if math.isinf(freedom) and math.isinf(other_freedom):
        return 0.5 * math.erfc(-gap / math.hypot(scale, other_scale) * math.sqrt(0.5))
    freedom, other_freedom = min(freedom, _AS_GOOD_AS_NORMAL), min(other_freedom, _AS_GOOD_AS_NORMAL)
    if abs(gap) > math.hypot(_edge(scale, freedom), _edge(other_scale, other_freedom)):
        return 1.0 if gap > 0.0 else 0.0
    swap = scale > other_scale
    if swap:  # one walk for both orders: on a GPU the lanes of a warp take it together
        gap, scale, freedom, other_scale, other_freedom = -gap, other_scale, other_freedom, scale, freedom
    centre = gap / other_scale
    side = _above_centre(abs(centre), other_freedom)
    peak = math.exp(laws.log_peak(laws.STUDENT, 0.0, 1.0, other_freedom))
    rest = _walk(centre, scale / other_scale, freedom, other_freedom)
    p = min(max(0.5 + peak * ((side if gap > 0.0 else -side) + rest), 0.0), 1.0)
    return 1.0 - p if swap else p
