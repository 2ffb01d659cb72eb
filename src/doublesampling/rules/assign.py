"""What Python calls to draw an arm within limits on the shares: see allocate.py and permuted_blocks.py."""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import permuted_blocks
from doublesampling.rules.allocate import BoolArray, Limits, allocate
from doublesampling.rules.cached import kept
from doublesampling.rules.entry_points import address_of

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]


@kept
def _fill_shares(w: FloatArray, active: BoolArray, limits: Limits, out: FloatArray, held: BoolArray) -> None:
    for i in range(w.shape[0]):
        allocate(w[i], active, limits, out[i], held)


def shares_of_many(propensities: FloatArray, limits: Limits, active: BoolArray | None = None) -> FloatArray:
    """Return the shares within the limits, float array (decision, arm), from a policy's propensities.

    active : bool array (arm), which arms take part; all where it is left out.
    """
    which = np.ones(propensities.shape[1], dtype=np.bool_) if active is None else active
    out = np.empty(propensities.shape)
    _fill_shares(propensities, which, limits, out, np.empty_like(which))
    return out


def shares_within(propensities: FloatArray, limits: Limits, active: BoolArray | None = None) -> FloatArray:
    """Return the shares of one decision within the limits, float array (arm)."""
    return shares_of_many(propensities.reshape(1, -1), limits, active)[0]


@kept
def _fill_burn_in(counts: IntArray, active: BoolArray, per_arm: int, out: FloatArray) -> bool:
    return permuted_blocks.fill_burn_in(counts, active, per_arm, out)


def burn_in_propensities(counts: IntArray, takes_part: BoolArray, per_arm: int) -> FloatArray | None:
    """Return the propensities of the next decision of the burn-in, float array (arm); None where it is over."""
    out = np.empty(counts.size)
    return out if _fill_burn_in(counts, takes_part, per_arm, out) else None


@kept
def _compose_block(words: WordArray, shares: FloatArray, slots: int, left: IntArray) -> None:
    permuted_blocks.compose_block(address_of(words), shares, slots, left)


def new_block(shares: FloatArray, slots: int, words: WordArray) -> IntArray:
    """Return the slots of every arm in a new block, int array (arm)."""
    left = np.empty(shares.size, dtype=np.int64)
    _compose_block(words, shares, slots, left)
    return left


@kept
def _read_block(propensities: FloatArray, arm: int, slots: int, left: IntArray) -> bool:
    return permuted_blocks.read_block(propensities, arm, slots, left)


def rest_of_block(propensities: FloatArray, arm: int, slots: int) -> IntArray | None:
    """Return the slots that are left after a decision with these propensities, which had ``slots`` before it.

    None where they are not those of a block.
    """
    left = np.empty(propensities.size, dtype=np.int64)
    return left if _read_block(propensities, arm, slots, left) else None


@kept
def _draw_arms(words: WordArray, shares: FloatArray, arms: IntArray) -> None:
    for i in range(arms.size):
        arms[i] = permuted_blocks.draw_arm(address_of(words[i]), shares[i])


def draw_arms(shares: FloatArray, words: WordArray) -> IntArray:
    """Return an arm for every row of shares (decision, arm) and of random addresses (decision, 4)."""
    arms = np.empty(shares.shape[0], dtype=np.int64)
    _draw_arms(words, shares, arms)
    return arms


def draw_arm(shares: FloatArray, words: WordArray) -> int:
    """Return an arm drawn with these probabilities."""
    return int(draw_arms(shares.reshape(1, -1), words.reshape(1, -1))[0])
