"""What every family shares: problems and policies as plain arrays, and what a family has to say of itself."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import directed, optimality, play

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PackedPolicy:
    """A policy's settings as the rules take them: whole numbers, real numbers, and a table of false alarms or none."""

    whole: IntArray
    real: FloatArray
    alarms: FloatArray
    two_arm_counts: FloatArray

    @property
    def kind(self) -> int:
        """Which policy it is, as the rules count them."""
        return int(self.whole[play.KIND])

    def table_of(self, arms: int) -> FloatArray:
        """p_FA by two counts; for two arms N itself, in one column, since one count says both."""
        return self.two_arm_counts if arms == 2 else self.alarms


@dataclass(frozen=True, eq=False)
class PackedProblem:
    """A bandit and the belief that plays it, as the kernels take them."""

    family: str
    arms: int
    dimension: int
    world: tuple[Any, ...]
    prior: tuple[Any, ...]
    on_device: bool = False
    counts_wins: bool = False  # rewards are 0 and 1, and all of them are remembered alike


@dataclass(frozen=True)
class Family:
    """How one kind of belief is packed and played.

    ``defaults`` maps each bandit it knows to a function from the bandit to the belief that fits it. ``takes`` says
    whether it plays a bandit with a belief; ``pack`` turns them into arrays. ``kernel`` plays a block, in the work
    space that ``work`` lays out; ``samples_itself`` tells that p comes from its own samples, never from the exact p.
    """

    name: str
    defaults: Mapping[type, Callable[[Any], Any]]
    beliefs: tuple[type, ...]
    takes: Callable[[Any, Any], bool]
    pack: Callable[[Any, Any], PackedProblem]
    kernel: Callable[..., None]
    work: Callable[[PackedProblem, PackedPolicy], tuple[Any, ...]]
    samples_itself: bool = False


def sample_space(arms: int, policy: PackedPolicy) -> tuple[FloatArray, ...] | None:
    """Work space of information-directed sampling; None for every other policy, so that Numba compiles none of it."""
    if policy.kind != play.INFORMATION_DIRECTED:
        return None
    draws, work = np.empty((int(policy.whole[play.SAMPLES]), arms)), np.empty((arms + directed.EXTRA_ROWS, arms))
    return draws, work, *panel_space(arms), np.empty((arms + 2, optimality.PANEL_NODES))


def panel_space(arms: int) -> tuple[FloatArray, FloatArray]:
    """Work space of the quadrature: the survey of the arms, and a panel."""
    survey = np.empty((arms, optimality.SURVEY_COLUMNS))
    return survey, np.empty((arms + 1, optimality.PANEL_ROWS, optimality.PANEL_NODES))
