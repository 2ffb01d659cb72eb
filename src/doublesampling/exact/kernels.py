"""The loops over the states of a layer on a CPU thread: backward induction, and the two halves of a forward step.

Each takes the blocks ``low <= n1 < high`` of a layer; ``mirrored`` says that only blocks with n1 <= n2 are stored.
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.bundles import PolicySettings, Scratch
from doublesampling.rules.cached import kept, kept_for
from doublesampling.rules.choose.share_of_first import share_of_first
from doublesampling.rules.two_arm_states import NEGLIGIBLE, begin_block, offset, swap_failure_for_success

FloatArray = NDArray[np.float64]
ByteArray = NDArray[np.int8]


class Layer(NamedTuple):
    """Which states a call works on."""

    time: int
    """Observations so far."""
    low: int
    high: int
    mirrored: bool


@kept
def improve(layer: Layer, prior: FloatArray, after: FloatArray, value: FloatArray, best: ByteArray) -> None:
    """Fill the expected successes from each state on, when all decisions are the best, from those of the next layer.

    prior : float array (arm, 2). best : the best arm of each state, 2 where both are; empty where it is not kept.
    """
    t, keep = layer.time, best.size > 0
    for n1 in range(layer.low, layer.high):
        n2 = t - n1
        here, below = offset(t, n1), offset(t + 1, n1)
        for s1 in range(n1 + 1):
            m1 = (prior[0, 0] + s1) / (prior[0, 0] + prior[0, 1] + n1)
            next1, step = offset(t + 1, n1 + 1) + s1 * (n2 + 1), 1
            ahead = n2 + 1
            if layer.mirrored and n1 == n2:  # the first arm would be ahead: read the mirrored state
                next1, step, ahead = below + s1, n1 + 2, 1
            next2 = below + s1 * (n2 + 2)
            for s2 in range(n2 + 1):
                m2 = (prior[1, 0] + s2) / (prior[1, 0] + prior[1, 1] + n2)
                at = next1 + s2 * step
                first = m1 * (1.0 + after[at + ahead]) + (1.0 - m1) * after[at]
                second = m2 * (1.0 + after[next2 + s2 + 1]) + (1.0 - m2) * after[next2 + s2]
                i = here + s1 * (n2 + 1) + s2
                value[i] = max(first, second)
                if keep:
                    close = 1e-12 * value[i]
                    best[i] = 2 if abs(first - second) <= close else (0 if first > second else 1)


@kept
def fill_corner(prior: FloatArray, corner: FloatArray) -> None:
    """Fill the track (p and H) where all n1 and n2 observations were failures, from that of the prior at (0, 0)."""
    for n1 in range(corner.shape[0]):
        b1, size1 = prior[0, 1] + n1, prior[0, 0] + prior[0, 1] + n1
        for n2 in range(corner.shape[0] - n1):
            b2, size2 = prior[1, 1] + n2, prior[1, 0] + prior[1, 1] + n2
            p, overlap = corner[n1, n2, 0], corner[n1, n2, 1]
            if n1 + n2 + 1 < corner.shape[0]:  # the steps of recurrence.follow_two
                corner[n1, n2 + 1, 0] = p + overlap / b2
                corner[n1, n2 + 1, 1] = overlap / b2 * (b1 + b2) * size2 / (size1 + size2)
                if n2 == 0:
                    corner[n1 + 1, 0, 0] = p - overlap / b1
                    corner[n1 + 1, 0, 1] = overlap / b1 * (b1 + b2) * size1 / (size1 + size2)


@functools.cache
def share_kernel(kind: int, form: int) -> Callable[..., None]:
    """Return the first half of a step: it fills the probability with which the first arm is played in each state.

    States that are as good as never reached (``weight``) are left out.
    """

    @kept_for(kind, form)
    def fill(
        layer: Layer, prior: FloatArray, corner: FloatArray, policy: PolicySettings, weight: FloatArray,
        share: FloatArray, scratch: Scratch,
    ) -> None:  # fmt: skip
        parameters, track = scratch.parameters, scratch.state.track
        alpha, beta = scratch.state.alpha, scratch.state.beta
        for n1 in range(layer.low, layer.high):
            n2 = layer.time - n1
            i = offset(layer.time, n1)
            begin_block(corner, prior, n1, n2, scratch)
            for s1 in range(n1 + 1):
                start, overlap = track[0], track[1]
                for s2 in range(n2 + 1):
                    if weight[i] > NEGLIGIBLE:
                        share[i] = share_of_first(kind, form, policy, layer.time + 1, scratch)
                    i += 1
                    if s2 < n2:
                        swap_failure_for_success(alpha, beta, track, 1)
                parameters[1, 0], parameters[1, 1] = prior[1, 0], prior[1, 1] + n2
                track[0], track[1] = start, overlap
                if s1 < n1:
                    swap_failure_for_success(alpha, beta, track, 0)

    return fill


@kept
def split(low: int, high: int, weight: FloatArray, share: FloatArray) -> None:
    """Turn shares into the probability of playing the first arm, and weights into that of playing the second."""
    for i in range(low, high):
        if weight[i] > NEGLIGIBLE:
            share[i] *= weight[i]
            weight[i] -= share[i]
        else:
            share[i] = weight[i] = 0.0


@kept
def advance(layer: Layer, first: FloatArray, second: FloatArray, weight: FloatArray) -> None:
    """Fill the probability of each state of a layer under uniform priors, from what was played in the layer before.

    first, second : the probabilities of being in a state of the layer before and playing this arm.
    """
    t = layer.time
    for n1 in range(layer.low, layer.high):
        n2 = t - n1
        i = offset(t, n1)
        before1 = offset(t - 1, n1 - 1) if n1 > 0 else 0
        exchanged = layer.mirrored and n1 == n2
        played2 = first if exchanged else second
        before2 = offset(t - 1, n2 - 1 if exchanged else n1) if n2 > 0 else 0
        row, column = (1, n1 + 1) if exchanged else (n2, 1)
        for s1 in range(n1 + 1):
            win1, loss1 = s1 / (n1 + 1.0), (n1 - s1) / (n1 + 1.0)
            for s2 in range(n2 + 1):
                total = 0.0
                if s1 > 0:
                    total += win1 * first[before1 + (s1 - 1) * (n2 + 1) + s2]
                if s1 < n1:
                    total += loss1 * first[before1 + s1 * (n2 + 1) + s2]
                at = before2 + s1 * row + s2 * column
                if s2 > 0:
                    total += s2 / (n2 + 1.0) * played2[at - column]
                if s2 < n2:
                    total += (n2 - s2) / (n2 + 1.0) * played2[at]
                weight[i] = total
                i += 1
