"""Limits on the shares of arms: a map from a policy's exact propensities to exact propensities.

Fixed shares are set first; the other arms divide what is left. A floor f is additive among them: with n such arms and
a part r of all decisions left to them, arm i gets f + (r - n f) w_i, w their normalised propensities. Shares below a
minimum are then raised to it and those above a cap lowered to it, the rest is rescaled, and this is repeated until all
limits hold.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import rule

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# rules for the share of the control
FREE = 0  # that of any other arm
SQUARE_ROOT = 1  # sqrt(K - 1) parts, where each of the K - 1 other arms has one
MATCH = 2  # the largest share of any other arm

_EXACT = 1e-9  # shares whose sum misses 1 by more do not keep their limits


class Limits(NamedTuple):
    """What the shares of the arms must keep; arrays are (arm)."""

    floor: float
    minimum: FloatArray
    """0 where there is none."""
    cap: FloatArray
    """1 where there is none."""
    fixed: FloatArray
    """nan where the share is not fixed."""
    control: int
    """The control arm, -1 for none."""
    control_rule: int
    """FREE, SQUARE_ROOT or MATCH."""


@rule
def allocate(w: FloatArray, active: BoolArray, limits: Limits, out: FloatArray, held: BoolArray) -> None:
    """Fill the shares of all arms, from the policy's propensities w; arms that are not active get 0.

    Limits that the active arms cannot keep together, as after arms were dropped, are rescaled. ``held`` is work space.
    """
    fill_shares(w, active, limits, out, held)
    total = clip_shares(limits, out, held, False)
    if abs(total - 1.0) > _EXACT:  # a minimum and a cap that were set at once left too much or too little
        fill_shares(w, active, limits, out, held)
        total = clip_shares(limits, out, held, True)
    if abs(total - 1.0) > _EXACT:
        for a in range(out.size):
            out[a] /= total


@rule
def fill_shares(w: FloatArray, active: BoolArray, limits: Limits, out: FloatArray, held: BoolArray) -> None:
    """Fill the shares before any minimum or cap, and which arms hold a share that does not change any more."""
    count = 0
    for a in range(w.size):
        count += active[a]
    left, free, total = 1.0, 0, 0.0
    for a in range(w.size):
        share = limits.fixed[a] if active[a] else 0.0
        if active[a] and a == limits.control and limits.control_rule == SQUARE_ROOT:
            root = math.sqrt(count - 1.0)
            share = root / (root + count - 1.0) if count > 1 else 1.0
        held[a] = not math.isnan(share)
        if held[a]:
            out[a] = share
            left -= share
        else:
            out[a] = w[a]
            if a == limits.control and limits.control_rule == MATCH:
                out[a] = largest_of_others(w, active, a)
            free += 1
            total += out[a]
    if free > 0:
        left = max(left, 0.0)
        floor = min(limits.floor, left / free)
        for a in range(w.size):
            if not held[a]:
                out[a] = floor + (left - free * floor) * (out[a] / total if total > 0.0 else 1.0 / free)


@rule
def largest_of_others(w: FloatArray, active: BoolArray, arm: int) -> float:
    """The largest propensity of an active arm but this one; 1 where there is no other."""
    largest, others = 0.0, False
    for a in range(w.size):
        if active[a] and a != arm:
            largest, others = max(largest, w[a]), True
    return largest if others else 1.0


@rule
def clip_shares(limits: Limits, out: FloatArray, held: BoolArray, one_side: bool) -> float:
    """Hold shares at limits that they overstep, rescale the others, repeat; return the sum, 1 where all limits hold.

    With ``one_side``, a round holds shares at minima only, or at caps only, whichever side is overstepped by more: this
    finds shares within all limits whenever there are some.
    """
    total = 0.0
    for _ in range(out.size + 1):
        total, excess, steps = 0.0, 0.0, 0
        for a in range(out.size):
            total += out[a]
            if not held[a]:
                inside = min(max(out[a], max(limits.minimum[a], limits.floor)), limits.cap[a])
                excess += inside - out[a]
                steps += inside != out[a]
        if steps == 0:
            break
        for a in range(out.size):
            if not held[a]:
                inside = min(max(out[a], max(limits.minimum[a], limits.floor)), limits.cap[a])
                if inside != out[a] and (not one_side or (inside - out[a]) * excess >= 0.0):
                    out[a], held[a] = inside, True
        rescale_free(out, held)
    return total


@rule
def rescale_free(out: FloatArray, held: BoolArray) -> None:
    """Rescale the shares that are not held to what the held ones leave; equally where they are all 0."""
    left, free, total = 1.0, 0, 0.0
    for a in range(out.size):
        if held[a]:
            left -= out[a]
        else:
            free += 1
            total += out[a]
    left = max(left, 0.0)
    for a in range(out.size):
        if not held[a]:
            out[a] = left * (out[a] / total if total > 0.0 else 1.0 / free)
