"""Two or three Beta arms: the probability of being optimal follows each observation exactly, in a few operations.

A success turns arm i's distribution function F_i(x) into F_i(x) - x^a (1-x)^b / (a B(a, b)), a failure adds the same
with 1/b. Put into p_j = integral of f_j prod F, p_j changes after a success of arm i by minus

    H_ij / a_i                 two arms,    H_ij = B(a_i + a_j, b_i + b_j) / (B(a_i, b_i) B(a_j, b_j))
    (H_ij / a_i) Q_ij          three arms,  Q_ij = P(the third arm is below a Beta(a_i + a_j, b_i + b_j) variable)

(a failure: plus, over b_i), and H, Q and the H of Q move by ratios and steps of the same kind. Nothing is integrated
after the start.
"""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import inlined, rule

FloatArray = NDArray[np.float64]

TRACK_SIZE = 12
# where three arms keep H, Q and the H of Q, indexed by the arm that is not in the pair; p comes first
PAIR, BELOW, PAIR_BELOW = 3, 6, 9
_NEGLIGIBLE = 1e-9  # a probability below it is mostly rounding, and counts as none


@inlined
def follow_two(alpha: FloatArray, beta: FloatArray, track: FloatArray, arm: int, success: bool) -> None:
    """Update track (p_0 and H) by an observation of one of two arms; alpha and beta are those before it."""
    mine = alpha[arm] if success else beta[arm]
    theirs = alpha[1 - arm] if success else beta[1 - arm]
    total = alpha[0] + beta[0] + alpha[1] + beta[1]
    rise = track[1] / mine
    track[0] += rise if (arm == 0) == success else -rise
    track[1] = rise * (mine + theirs) * (alpha[arm] + beta[arm]) / total


@inlined
def follow_three(alpha: FloatArray, beta: FloatArray, track: FloatArray, arm: int, success: bool) -> None:
    """Update track by an observation of one of three arms; alpha and beta are those before it."""
    mine = alpha[arm] if success else beta[arm]
    size = alpha[arm] + beta[arm]
    total = alpha[0] + beta[0] + alpha[1] + beta[1] + alpha[2] + beta[2]
    sign = 1.0 if success else -1.0
    inverse = 1.0 / mine
    for step in range(1, 3):
        other, third = (arm + step) % 3, (arm + 3 - step) % 3
        theirs = alpha[other] if success else beta[other]
        both = size + alpha[other] + beta[other]
        rise = track[PAIR + third] * inverse
        change = sign * rise * track[BELOW + third]
        track[other] -= change
        track[arm] += change
        track[PAIR + third] = rise * (mine + theirs) * size / both
        # the pair's merged arm grows with this one, against the third
        lift = track[PAIR_BELOW + third] / (mine + theirs)
        against = alpha[third] if success else beta[third]
        track[BELOW + third] += sign * lift
        track[PAIR_BELOW + third] = lift * (mine + theirs + against) * both / total
    # and this arm grows against the pair of the other two
    drop = track[PAIR_BELOW + arm] * inverse
    rest = alpha[0] + alpha[1] + alpha[2] if success else beta[0] + beta[1] + beta[2]
    track[BELOW + arm] -= sign * drop
    track[PAIR_BELOW + arm] = drop * rest * size / total


@rule
def tally(alpha: FloatArray, beta: FloatArray, track: FloatArray, work: FloatArray) -> None:
    """Fill work with E[reward of a, b is best] at (b, a) and P(b is best) below, for information-directed sampling.

    A Beta density times its reward is the mean times the density after one more success, whose p is known.
    """
    arms = alpha.size
    if arms == 2:
        work[2, 0], work[2, 1] = track[0], 1.0 - track[0]
    for a in range(arms):
        if arms == 3:
            work[3, a] = track[a]
        if work[arms, a] < _NEGLIGIBLE:
            work[arms, a] = 0.0
    for a in range(arms):
        mean = alpha[a] / (alpha[a] + beta[a])
        work[a, a] = mean * work[arms, a]
        for b in range(arms):
            if b == a:
                continue
            rise = track[1] / alpha[a]
            if arms == 3:
                third = 3 - a - b
                rise = track[PAIR + third] / alpha[a] * track[BELOW + third]
            rise = min(rise, work[arms, b])
            work[a, a] += mean * rise
            work[b, a] = mean * (work[arms, b] - rise)


@inlined
def tracked_optimality(track: FloatArray, p: FloatArray) -> None:
    """Fill p from the track, kept inside [0, 1] against the rounding of many steps."""
    if p.size == 2:
        p[0] = min(max(track[0], 0.0), 1.0)
        p[1] = 1.0 - p[0]
    else:
        for a in range(3):
            p[a] = min(max(track[a], 0.0), 1.0)
