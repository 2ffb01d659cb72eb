"""The loops over the states of a layer that trials need: limits on the shares, and what a look says in each state."""

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.exact.kernels import Layer
from doublesampling.rules import laws
from doublesampling.rules.allocate import Limits, allocate
from doublesampling.rules.bundles import Scratch
from doublesampling.rules.cached import kept, kept_for
from doublesampling.rules.compiled import rule
from doublesampling.rules.looks.bundles import (
    CONTINUE,
    EQUIVALENCE,
    FUTILITY,
    MAXIMUM,
    SUPERIORITY,
    Known,
    LookRule,
    Space,
)
from doublesampling.rules.looks.look import gather, with_margin
from doublesampling.rules.optimal_arm.regions import QUICK_BETA
from doublesampling.rules.permuted_blocks import fill_burn_in
from doublesampling.rules.specialise import Constant, specialised
from doublesampling.rules.two_arm_states import NEGLIGIBLE, begin_block, offset, swap_failure_for_success

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ByteArray = NDArray[np.int8]

_DRAW = 1e-12  # P(best) of two arms that differs by less is equal


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


@specialised(rule)
def _look_at_two(
    margins: Constant, p: float, best: int, rules: LookRule, known: Known, space: Space
) -> tuple[int, int]:
    """What a look says of two arms, and which it selects; p is P(the first is the best).

    ``margins`` is 1 where the rules ask for equivalence or futility.
    """
    control = known.place[0]
    if control >= 0:
        better = p if control == 1 else 1.0 - p  # P(the other arm is better than the control)
        if better < rules.inferiority[0]:
            return FUTILITY, control
        if better > rules.superiority[0]:
            return SUPERIORITY, 1 - control
    elif min(p, 1.0 - p) < rules.inferiority[0] or max(p, 1.0 - p) > rules.superiority[0]:
        return SUPERIORITY, best
    if margins == 1:
        gather(known, space)
        if not math.isnan(rules.equivalence[0]):
            within = with_margin(laws.BETA, 2, -1, rules.equivalence_margin, QUICK_BETA, known, space)
            if within > rules.equivalence[0]:
                return EQUIVALENCE, best if control < 0 else control
        if not math.isnan(rules.futility[0]):
            none_above = with_margin(laws.BETA, 2, control, rules.futility_margin, QUICK_BETA, known, space)
            if none_above > rules.futility[0]:
                return FUTILITY, control
    return CONTINUE, best


@functools.cache
def outcome_kernel(margins: int) -> Callable[..., None]:
    """Return the loop that fills what a look says in each state.

    That is 0 to go on, else 3 * outcome (rules/looks/bundles.py) + the selected arm, where a third arm stands for a
    draw. ``last`` ends all trials. ``rules`` holds the thresholds of one look, known.place the control. The rules are
    those of looks/look.py, where two arms know P(best) from the recurrence.
    """

    @kept_for(margins)
    def fill(
        layer: Layer, last: bool, rules: LookRule, prior: FloatArray, corner: FloatArray, weight: FloatArray,
        outcome: ByteArray, scratch: Scratch, known: Known, space: Space,
    ) -> None:  # fmt: skip
        track, alpha, beta = scratch.state.track, scratch.state.alpha, scratch.state.beta
        for n1 in range(layer.low, layer.high):
            n2 = layer.time - n1
            i = offset(layer.time, n1)
            begin_block(corner, prior, n1, n2, scratch)
            for s1 in range(n1 + 1):
                start, overlap = track[0], track[1]
                for s2 in range(n2 + 1):
                    outcome[i] = 0
                    if weight[i] > NEGLIGIBLE:
                        best = 0 if track[0] > 0.5 + _DRAW else (1 if track[0] < 0.5 - _DRAW else 2)
                        found, selected = CONTINUE, best
                        if min(n1, n2) >= rules.minimum:
                            found, selected = _look_at_two(margins, track[0], best, rules, known, space)
                        if found == CONTINUE and last:
                            found, selected = MAXIMUM, best
                        outcome[i] = 3 * found + selected if found != CONTINUE else 0
                    i += 1
                    if s2 < n2:
                        swap_failure_for_success(alpha, beta, track, 1)
                scratch.parameters[1, 0], scratch.parameters[1, 1] = prior[1, 0], prior[1, 1] + n2
                track[0], track[1] = start, overlap
                if s1 < n1:
                    swap_failure_for_success(alpha, beta, track, 0)

    return fill
