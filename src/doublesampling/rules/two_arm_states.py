"""All posterior states of two Bernoulli arms after t observations: where they are stored, and p from one to the next.

A layer holds the states (s1, f1, s2, f2) with n1 + n2 = t, in blocks of equal n1. State (n1, s1, s2) is at
offset(t, n1) + s1 (n2 + 1) + s2. Where the arms can be exchanged, only blocks with n1 <= n2 are stored.
"""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.bundles import Scratch
from doublesampling.rules.compiled import inlined
from doublesampling.rules.optimal_arm.recurrence import follow_two

FloatArray = NDArray[np.float64]

NEGLIGIBLE = 1e-30  # a state of smaller probability under uniform priors is not followed


@inlined
def offset(time: int, first: int) -> int:
    """How many states of a layer have fewer than ``first`` observations of the first arm."""
    n = first
    return n * (time + 1) + time * (n * (n - 1) // 2) - (n - 1) * n * (2 * n - 1) // 6


@inlined
def swap_failure_for_success(alpha: FloatArray, beta: FloatArray, track: FloatArray, arm: int) -> None:
    """Turn one failure of an arm into a success: alpha, beta, and the track of recurrence.follow_two."""
    other = 1 - arm
    mine = beta[arm] - 1.0
    size = alpha[arm] + mine
    total = size + alpha[other] + beta[other]
    rise = track[1] * total / ((mine + beta[other]) * size)  # follow_two of a failure, solved for what was before
    track[0] += rise if arm == 0 else -rise
    track[1] = rise * mine
    beta[arm] = mine
    follow_two(alpha, beta, track, arm, True)
    alpha[arm] += 1.0


@inlined
def begin_block(corner: FloatArray, prior: FloatArray, first: int, second: int, scratch: Scratch) -> None:
    """Put both arms where so many observations of each were all failures.

    corner : float array (n1, n2, 2), the track there. prior : float array (arm, 2)
    """
    parameters, track = scratch.parameters, scratch.state.track
    parameters[0, 0], parameters[0, 1] = prior[0, 0], prior[0, 1] + first
    parameters[1, 0], parameters[1, 1] = prior[1, 0], prior[1, 1] + second
    track[0], track[1] = corner[first, second, 0], corner[first, second, 1]
