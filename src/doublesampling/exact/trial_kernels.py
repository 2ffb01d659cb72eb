"""The loops over the states of a layer that trials need: limits on the shares, and what a look says in each state."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.exact.kernels import Layer
from doublesampling.rules import laws
from doublesampling.rules.allocate import Limits, allocate
from doublesampling.rules.bundles import Scratch
from doublesampling.rules.cached import kept
from doublesampling.rules.looks.bundles import CONTINUE, EQUIVALENCE, FUTILITY, SUPERIORITY, Known, LookRule, Space
from doublesampling.rules.looks.look import gather, with_margin
from doublesampling.rules.optimal_arm.regions import QUICK_BETA
from doublesampling.rules.permuted_blocks import fill_burn_in
from doublesampling.rules.two_arm_states import NEGLIGIBLE, begin_block, offset, swap_failure_for_success

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.int8]


class ShareSpace(NamedTuple):
    """Work space of one thread for limits on shares."""

    counts: IntArray
    active: BoolArray
    held: BoolArray
    asked: FloatArray
    given: FloatArray


def share_space() -> ShareSpace:
    """Return work space for two arms."""
    active = np.ones(2, dtype=np.bool_)
    return ShareSpace(np.zeros(2, dtype=np.int64), active, np.zeros(2, dtype=np.bool_), np.empty(2), np.empty(2))


@kept
def limit_shares(
    layer: Layer, limits: Limits, burn_in: int, weight: FloatArray, share: FloatArray, space: ShareSpace
) -> None:
    """Turn the shares that a policy asks for into those that an allocation gives: the burn-in, then the limits."""
    for n1 in range(layer.low, layer.high):
        n2 = layer.time - n1
        space.counts[0], space.counts[1] = n1, n2
        fixed = fill_burn_in(space.counts, space.active, burn_in, space.given)
        for i in range(offset(layer.time, n1), offset(layer.time, n1 + 1)):
            if weight[i] > NEGLIGIBLE:
                if not fixed:
                    space.asked[0], space.asked[1] = share[i], 1.0 - share[i]
                    allocate(space.asked, space.active, limits, space.given, space.held)
                share[i] = space.given[0]


@kept
def fill_outcomes(
    layer: Layer, look: int, rules: LookRule, prior: FloatArray, corner: FloatArray, weight: FloatArray,
    outcome: ByteArray, scratch: Scratch, known: Known, space: Space,
) -> None:  # fmt: skip
    """Fill what a look says in each state: 0 to go on, else 2 * outcome + the selected arm (rules/looks/bundles.py).

    The same rules as looks/look.py, with P(best) of two arms from the recurrence. known.place holds the control.
    """
    track, alpha, beta = scratch.state.track, scratch.state.alpha, scratch.state.beta
    control = known.place[0]
    for n1 in range(layer.low, layer.high):
        n2 = layer.time - n1
        i = offset(layer.time, n1)
        begin_block(corner, prior, n1, n2, scratch)
        for s1 in range(n1 + 1):
            start, overlap = track[0], track[1]
            for s2 in range(n2 + 1):
                outcome[i] = 0
                if weight[i] > NEGLIGIBLE and min(n1, n2) >= rules.minimum:
                    best = 1 if track[0] < 0.5 else 0
                    found, selected = CONTINUE, best
                    p = 1.0 - track[0] if best == 1 else track[0]  # P(the leader is the best)
                    if control >= 0:  # P(the other arm is better than the control)
                        p, selected = (p if best != control else 1.0 - p), 1 - control
                        if p < rules.inferiority[look]:
                            found, selected = FUTILITY, control
                    if found == CONTINUE and p > rules.superiority[look]:
                        found = SUPERIORITY
                    elif control < 0 and 1.0 - p < rules.inferiority[look]:
                        found = SUPERIORITY
                    if found == CONTINUE:
                        gather(known, space)
                        if not math.isnan(rules.equivalence[look]) and (
                            with_margin(laws.BETA, 2, -1, rules.equivalence_margin, QUICK_BETA, known, space)
                            > rules.equivalence[look]
                        ):
                            found, selected = EQUIVALENCE, best if control < 0 else control
                        elif not math.isnan(rules.futility[look]) and (
                            with_margin(laws.BETA, 2, max(control, 0), rules.futility_margin, QUICK_BETA, known, space)
                            > rules.futility[look]
                        ):
                            found, selected = FUTILITY, control
                    if found != CONTINUE:
                        outcome[i] = 2 * found + selected
                i += 1
                if s2 < n2:
                    swap_failure_for_success(alpha, beta, track, 1)
            scratch.parameters[1, 0], scratch.parameters[1, 1] = prior[1, 0], prior[1, 1] + n2
            track[0], track[1] = start, overlap
            if s1 < n1:
                swap_failure_for_success(alpha, beta, track, 0)
