"""Bandits: simulated worlds that pay rewards. Frozen settings, checked at birth."""

from collections.abc import Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.beliefs.marginals import address_words
from doublesampling.checks import PerArm, frozen, settings
from doublesampling.errors import SettingError
from doublesampling.rules import doors
from doublesampling.rules.draws import REWARD

FloatArray = NDArray[np.float64]

_CONTEXTS = ("uniform", "normal", "constant")
_PATHS = ("fresh", "shared")


def _per_arm_list(name: str, given: object) -> FloatArray:
    found = checks.array(name, given, error=SettingError)
    if found.ndim != 1 or found.size < 2:
        raise SettingError(f"{name} must list one number per arm, two arms at least, got {checks.shown(given)}.")
    return found


@settings
class BernoulliBandit:
    """Each arm pays 1 with its own probability, else 0.

    >>> BernoulliBandit([0.4, 0.8]).arms
    2
    """

    probabilities: Sequence[float] = field(kw_only=False)

    def __post_init__(self) -> None:
        given = _per_arm_list("probabilities", self.probabilities)
        found = tuple(checks.within(f"probabilities[{i}]", float(p), 0.0, 1.0) for i, p in enumerate(given))
        object.__setattr__(self, "probabilities", found)

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return len(self.probabilities)

    def reward(self, arm: int, *, seed: int, time: int, realization: int = 0) -> float:
        """What the arm pays at a time: the same, whichever policy asks."""
        arm = checks.arm_index(arm, self.arms)
        realization = checks.integer("realization", realization, least=0, most=checks.LARGEST_SEED)
        words = address_words(checks.seed(seed), checks.time(time), realization=realization)
        return float(doors.uniform_at(words, REWARD, np.uint64(arm)) < self.probabilities[arm])


@settings
class GaussianBandit:
    """Each arm pays its own mean plus Gaussian noise; ``noise`` is one standard deviation, or one per arm.

    >>> GaussianBandit([0.0, 1.0], noise=0.5).noise
    0.5
    """

    means: Sequence[float] = field(kw_only=False)
    noise: PerArm = 1.0

    def __post_init__(self) -> None:
        given = _per_arm_list("means", self.means)
        found = tuple(checks.within(f"means[{i}]", float(m), -1e50, 1e50) for i, m in enumerate(given))
        object.__setattr__(self, "means", found)
        object.__setattr__(self, "noise", checks.per_arm("noise", self.noise, self.arms, least=0.0, most=1e50))

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return len(self.means)


@settings
class LinearGaussianBandit:
    """Each arm pays x^T w_a plus Gaussian noise, where the context x is shown before each decision.

    ``weights`` is (arm, dimension). ``context`` is "uniform" (each entry on [0, 1]), "normal", "constant" (ones), an
    array (dimension) that never changes, or a path (time, dimension), walked through and begun again. With
    ``path="shared"`` all realizations see the same contexts; "fresh" draws a path for each.

    >>> LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]], noise=0.2).dimension
    2
    """

    weights: Any
    noise: PerArm = 1.0
    context: Any = "uniform"
    path: str = "fresh"

    def __post_init__(self) -> None:
        fix = object.__setattr__
        given = checks.array("weights", self.weights, error=SettingError)
        if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] < 1:
            raise SettingError(f"weights must be an array (arm, dimension) of two arms or more, got {given.shape}.")
        if np.abs(given).max() > 1e50:
            raise SettingError("weights must lie within 1e50 of 0. Choose a larger unit.")
        fix(self, "weights", frozen(given))
        fix(self, "noise", checks.per_arm("noise", self.noise, self.arms, least=0.0, most=1e50))
        checks.one_of("path", self.path, _PATHS)
        if isinstance(self.context, str):
            checks.one_of("context", self.context, _CONTEXTS)
        else:
            shown = checks.array("context", self.context, error=SettingError)
            if shown.ndim not in (1, 2) or shown.shape[-1] != self.dimension or shown.shape[0] < 1:
                wanted = f"({self.dimension},) or (time, {self.dimension})"
                raise SettingError(f"context must be one of {', '.join(_CONTEXTS)}, or have shape {wanted}.")
            fix(self, "context", frozen(shown))

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return len(self.weights)

    @property
    def dimension(self) -> int:
        """How many numbers a context holds."""
        return len(self.weights[0])


Bandit = BernoulliBandit | GaussianBandit | LinearGaussianBandit
