"""The named tuples of a simulated trial: its world, its design, what is followed, and where results go."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.allocate import Limits
from doublesampling.rules.choose.propensities import ModeScratch
from doublesampling.rules.looks.bundles import Space

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# how participants get their arm: by the policy itself, or by its shares within the limits of an allocation
DIRECT, SHARED = range(2)

# columns of every arm's record: participants, sum of outcomes; known outcomes, their sum, their sum of squares
ASSIGNED, TOTAL, KNOWN, KNOWN_TOTAL, KNOWN_SQUARES = range(5)
ARM_COLUMNS = 5


class TrialBlock(NamedTuple):
    """Some realizations of a scenario."""

    seed: np.uint64
    scenario: np.uint64
    first: int
    """The number of the first realization."""
    horizon: int
    """Participants, at most."""


class TrialWorld(NamedTuple):
    """The truth of a scenario; arms of categories have chances, other arms means."""

    means: FloatArray
    """(arm)"""
    noise: FloatArray
    """(arm)"""
    drift: FloatArray
    """(arm): how far the mean has moved when the last participant comes."""
    chances: FloatArray
    """(arm, category)"""
    values: FloatArray
    """(category)"""
    delay: int
    """Further decisions after which an outcome is known; -1 where it is drawn."""
    delays: FloatArray
    """(d): P(delay <= d), where it is drawn."""
    dropout: float
    """The probability that an outcome is never known."""


class TrialDesign(NamedTuple):
    """Allocation and stopping as numbers."""

    looks: IntArray
    """(look): known outcomes at which there is a look."""
    control: int
    """-1 for none."""
    limits: Limits
    burn_in: int
    block: int
    """0 where there are no permuted blocks."""
    at_looks: bool
    """Whether shares are renewed at looks only."""
    equal: bool
    """Whether all remaining arms have the same share, whatever the policy."""


class TrialState(NamedTuple):
    """What is followed in one trial beside what looks know; with a first dimension, in several.

    ``mean`` to ``concentration`` belong to beliefs that need them.
    """

    mean: FloatArray
    """(arm, 1), with the next three: Normal-Inverse-Gamma laws."""
    root: FloatArray
    alpha: FloatArray
    beta: FloatArray
    concentration: FloatArray
    """(arm, category)"""
    record: FloatArray
    """(arm, ARM_COLUMNS)"""
    assigned: IntArray
    """(arm): participants so far."""
    left: IntArray
    """(arm): slots that are left of a block."""
    shares: FloatArray
    """(arm): the current shares."""
    head: IntArray
    """(time): the first outcome that becomes known then, -1 for none; and the last."""
    tail: IntArray
    following: IntArray
    """(participant): the next outcome of the same time."""
    arm: IntArray
    """(participant)"""
    paid: FloatArray
    """(participant)"""


class TrialSpace(NamedTuple):
    """Work space."""

    look: Space
    modes: ModeScratch
    shares: FloatArray
    """(arm): new shares."""
    wanted: FloatArray
    """(arm): the policy's own shares."""
    held: BoolArray
    """(arm): which shares are at a limit."""
    one: FloatArray
    """(1): the context of a belief that sees none."""
    work: FloatArray
    """(1)"""
    category: FloatArray
    """(category)"""
