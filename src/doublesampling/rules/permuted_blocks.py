"""Draw an arm from its share, in permuted blocks or without: each with its exact probability given the past.

A block has a whole number of slots per arm, in random order. Given what was drawn of it so far, an arm is next with
probability (its slots that are left) / (all slots that are left), so no order has to be stored.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import rule
from doublesampling.rules.draws import ALLOCATION, Address, uniform

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

_EQUAL = 1e-9  # remainders that differ by less are equal: rounding must not decide which arm gets a slot


@rule
def draw_arm(address: Address, shares: FloatArray) -> int:
    """Draw an arm with these probabilities."""
    total = 0.0
    for a in range(shares.size):
        total += shares[a]
    u = uniform(address, ALLOCATION, np.uint64(0)) * total
    last = 0
    for a in range(shares.size):
        if shares[a] > 0.0:
            last = a
            u -= shares[a]
            if u < 0.0:
                break
    return last


@rule
def fill_burn_in(counts: IntArray, active: BoolArray, per_arm: int, out: FloatArray) -> bool:
    """Fill the propensities of the burn-in and return True, or return False where it is over.

    counts : int array (arm), decisions so far. Its blocks have one slot per active arm: the arms with the fewest
    decisions are those that the current block has not drawn yet.
    """
    fewest, tied = per_arm, 0
    for a in range(counts.size):
        if active[a] and counts[a] < fewest:
            fewest, tied = counts[a], 0
        if active[a] and counts[a] == fewest:
            tied += 1
    if fewest >= per_arm:
        return False
    for a in range(counts.size):
        out[a] = 1.0 / tied if active[a] and counts[a] == fewest else 0.0
    return True


@rule
def compose_block(address: Address, shares: FloatArray, slots: int, left: IntArray) -> None:
    """Fill the slots of every arm in a block by the largest remainder; equal remainders are drawn from fairly."""
    given = 0
    for a in range(shares.size):
        left[a] = math.floor(shares[a] * slots + _EQUAL)
        given += left[a]
    for seat in range(slots - given):
        largest, tied = -1.0, 0
        for a in range(shares.size):
            remainder = shares[a] * slots - left[a]  # below 0 for an arm that got one of these slots
            if shares[a] > 0.0 and remainder > largest + _EQUAL:
                largest, tied = remainder, 1
            elif shares[a] > 0.0 and remainder > largest - _EQUAL:
                tied += 1
        skip = int(uniform(address, ALLOCATION, np.uint64(1 + seat)) * tied)
        for a in range(shares.size):
            if shares[a] > 0.0 and abs(shares[a] * slots - left[a] - largest) <= _EQUAL:
                if skip == 0:
                    left[a] += 1
                    break
                skip -= 1


@rule
def read_block(propensities: FloatArray, arm: int, slots: int, left: IntArray) -> bool:
    """Fill the slots that are left of a block after its last decision, and return whether they make a block.

    propensities : float array (arm), those of the last decision, whose arm is ``arm``. ``slots`` were left before it.
    """
    total, whole = 0, True
    for a in range(propensities.size):
        share = propensities[a] * slots
        left[a] = math.floor(share + 0.5)
        whole = whole and abs(share - left[a]) < 1e-6
        total += left[a]
    left[arm] -= 1
    return whole and total == slots and left[arm] >= 0


@rule
def fill_block(left: IntArray, out: FloatArray) -> None:
    """Fill the exact propensities of the next decision of a block."""
    total = 0
    for a in range(left.size):
        total += left[a]
    for a in range(left.size):
        out[a] = left[a] / total
