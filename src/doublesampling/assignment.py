"""Draw the arm of a decision within an allocation: from the limited shares, in the burn-in, or in a permuted block."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.allocation import Allocation
from doublesampling.errors import SettingError
from doublesampling.rules import assign
from doublesampling.rules.allocate import Limits

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
WordArray = NDArray[np.uint64]


class Past(NamedTuple):
    """The decisions before this one, as far as a burn-in and blocks depend on them."""

    made: int
    """How many there are; the outcome of some may not be known yet."""
    counts: IntArray | None = None
    """Decisions per arm, int array (arm); None where there were enough to know that the burn-in is over."""
    arm: int | None = None
    """The arm of the last decision."""
    propensities: FloatArray | None = None
    """Its propensities, float array (arm)."""


def after_decision(past: Past, arm: int, propensities: FloatArray) -> Past:
    """Return the past after one more decision."""
    counts = past.counts
    if counts is not None:
        counts = np.pad(counts, (0, propensities.size - counts.size))  # arms may have been added
        counts[arm] += 1
    return Past(past.made + 1, counts, arm, propensities)


class Participants(NamedTuple):
    """Which arms may be drawn; bool arrays (arm)."""

    active: BoolArray
    """Those that were not dropped."""
    initial: BoolArray
    """Those that have a burn-in: the ones that were there at the start."""


class Assignment(NamedTuple):
    """What the arm of a decision is drawn within."""

    allocation: Allocation
    limits: Limits
    which: Participants
    past: Past | None
    """None where the allocation does not depend on it."""


def assign_every_arm(allocation: Allocation, arms: int, past: Past | None) -> Assignment:
    """Return that all arms may be drawn, and were there at the start."""
    every = np.ones(arms, dtype=np.bool_)
    return Assignment(allocation, allocation.limits(arms), Participants(every, every), past)


def check_known(propensities: FloatArray, policy: object) -> None:
    """Raise SettingError where a policy does not know its propensities, so that nothing can be made of them."""
    if np.isnan(propensities).any():
        raise SettingError(
            f"{checks.shown(policy)} does not know with which probability it plays each arm, so an allocation cannot "
            "be applied to it. Use samples=None, or return the probability of every arm from choose."
        )


def draw_within(within: Assignment, w: FloatArray, words: WordArray) -> tuple[int, FloatArray]:
    """Return an arm and the exact propensities that it was drawn from, float array (arm); w are the policy's."""
    found = next_propensities(within, w, words)
    return assign.draw_arm(found, words), found


def next_propensities(within: Assignment, w: FloatArray, words: WordArray) -> FloatArray:
    """Return the exact propensities of a decision, float array (arm), from those of a policy and from the past."""
    allocation, limits, which, past = within
    if past is None:
        return assign.shares_within(w, limits, which.active)
    if allocation.burn_in and past.counts is not None:
        found = assign.burn_in_propensities(past.counts, which.active & which.initial, allocation.burn_in)
        if found is not None:
            return found
    shares = assign.shares_within(w, limits, which.active)
    if allocation.block is None:
        return shares
    slots = allocation.block - past.made % allocation.block
    left = _rest_of_block(within, past, slots) if slots < allocation.block else None
    if left is None:
        left = assign.new_block(shares, slots, words)
    return left / slots


def _rest_of_block(within: Assignment, past: Past, slots: int) -> IntArray | None:
    """Return what is left of the block that the last decision was in; None where a new one must begin.

    A new one begins after the burn-in, and where an arm was dropped that still had slots.
    """
    if past.propensities is None or past.arm is None:
        return None
    which, burn_in = within.which, within.allocation.burn_in
    if burn_in and past.counts is not None:
        before = past.counts.copy()
        before[past.arm] -= 1
        took_part = (which.active | (past.propensities > 0.0)) & which.initial
        if assign.burn_in_propensities(before, took_part, burn_in) is not None:
            return None
    left = assign.rest_of_block(past.propensities, past.arm, slots + 1)
    return None if left is None or left[~which.active].any() else left


def check_past(allocation: Allocation, arms: int, assigned: ArrayLike | None, previous: object) -> Past | None:
    """Return what a decision needs to know of the earlier ones, from what was handed in; None where it needs nothing.

    assigned : decisions per arm so far. ``previous`` is the decision before this one.
    """
    if not allocation.needs_past:
        return None
    if assigned is None:
        raise SettingError(
            f"{allocation!r} depends on earlier decisions. Pass assigned=, the number of decisions of each arm so far, "
            "or use Experiment, which counts them."
        )
    counts = checks.array("assigned", assigned, error=SettingError)
    if counts.shape != (arms,) or (counts < 0).any() or (counts != np.floor(counts)).any():
        raise SettingError(f"assigned must be {arms} whole numbers, one per arm, got {checks.shown(assigned)}.")
    past = Past(int(counts.sum()), counts.astype(np.int64))
    block = allocation.block
    if block is None or past.made % block == 0 or counts.min() < allocation.burn_in:
        return past
    arm, propensities = getattr(previous, "arm", None), getattr(previous, "propensities", None)
    if not isinstance(arm, int) or np.shape(propensities) != (arms,) or counts[arm] < 1:  # type: ignore[arg-type]
        raise SettingError(
            f"Decision {past.made + 1} is inside a block of {block}. Pass previous=, the decision before it, "
            "or use Experiment, which keeps it."
        )
    return past._replace(arm=arm, propensities=np.asarray(propensities))
