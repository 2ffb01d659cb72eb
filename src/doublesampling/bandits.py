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
from doublesampling.rules import entry_points
from doublesampling.rules.draws import REWARD

FloatArray = NDArray[np.float64]

_CONTEXTS = ("uniform", "normal", "constant")
_PATHS = ("fresh", "shared")


def _per_arm_list(name: str, given: object) -> FloatArray:
    found = checks.array(name, given, error=SettingError)
    if found.ndim != 1 or found.size < 2:
        raise SettingError(f"{name} must list one number per arm, two arms at least, got {checks.shown(given)}.")
    return found


class _WithWeights:
    """Each arm has weights w_a, one per entry of the context; what x^T w_a is to the reward is the subclass's."""

    weights: Any
    context: Any
    path: str

    def _check_weights(self) -> None:
        """Weights (arm, dimension), and where contexts come from."""
        fix = object.__setattr__
        given = checks.array("weights", self.weights, error=SettingError)
        if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] < 1:
            raise SettingError(f"weights must be an array (arm, dimension) of two arms or more, got {given.shape}.")
        if np.abs(given).max() > 1e50:
            raise SettingError("weights must lie within 1e50 of 0. Choose a larger unit.")
        fix(self, "weights", frozen(given))
        checks.one_of("path", self.path, _PATHS)
        if isinstance(self.context, str):
            checks.one_of("context", self.context, _CONTEXTS)
        else:
            shown = checks.array("context", self.context, error=SettingError)
            if shown.ndim not in (1, 2) or shown.shape[-1] != self.dimension or shown.shape[0] < 1:
                wanted = f"({self.dimension},) or (time, {self.dimension})"
                raise SettingError(f"context must be one of {', '.join(_CONTEXTS)}, or have shape {wanted}.")
            if np.abs(shown).max() > 1e50:
                raise SettingError("context must lie within 1e50 of 0. Choose a larger unit.")
            fix(self, "context", frozen(shown))

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return len(self.weights)

    @property
    def dimension(self) -> int:
        """How many numbers a context holds."""
        return len(self.weights[0])


@settings
class _WithMeans:
    """Each arm has a mean; what it pays is the subclass's."""

    means: Sequence[float] = field(kw_only=False)

    def _check_means(self, least: float, most: float) -> None:
        given = _per_arm_list("means", self.means)
        found = tuple(checks.within(f"means[{i}]", float(m), least, most) for i, m in enumerate(given))
        object.__setattr__(self, "means", found)

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return len(self.means)


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
        """Return what the arm pays at a time: the same, whichever policy asks."""
        arm = checks.arm_index(arm, self.arms)
        realization = checks.integer("realization", realization, least=0, most=checks.LARGEST_SEED)
        words = address_words(checks.seed(seed), checks.time(time), realization=realization)
        return float(entry_points.uniform_at(words, REWARD, np.uint64(arm)) < self.probabilities[arm])


@settings
class GaussianBandit(_WithMeans):
    """Each arm pays its own mean plus Gaussian noise; ``noise`` is one standard deviation, or one per arm.

    >>> GaussianBandit([0.0, 1.0], noise=0.5).noise
    0.5
    """

    noise: PerArm = 1.0

    def __post_init__(self) -> None:
        self._check_means(-1e50, 1e50)
        object.__setattr__(self, "noise", checks.per_arm("noise", self.noise, self.arms, least=0.0, most=1e50))


@settings
class LinearGaussianBandit(_WithWeights):
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
        self._check_weights()
        object.__setattr__(self, "noise", checks.per_arm("noise", self.noise, self.arms, least=0.0, most=1e50))


@settings
class LogisticBandit(_WithWeights):
    """Each arm pays 1 with log odds x^T w_a, else 0. ``weights``, ``context`` and ``path`` as in LinearGaussianBandit.

    >>> LogisticBandit(weights=[[1.0, -1.0], [0.0, 0.5]]).arms
    2
    """

    weights: Any
    context: Any = "normal"
    path: str = "fresh"

    def __post_init__(self) -> None:
        self._check_weights()


@settings
class PoissonBandit(_WithMeans):
    """Each arm pays a count with its own mean.

    >>> PoissonBandit([0.5, 2.0]).arms
    2
    """

    def __post_init__(self) -> None:
        self._check_means(0.0, 1e6)


@settings
class ExponentialBandit(_WithMeans):
    """Each arm pays a waiting time with its own mean.

    >>> ExponentialBandit([1.0, 2.0]).arms
    2
    """

    def __post_init__(self) -> None:
        self._check_means(1e-30, 1e30)


@settings
class CategoricalBandit:
    """Each arm pays one of a few ``values``, with its own probabilities, (arm, category).

    >>> CategoricalBandit([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], values=[0, 1, 2]).arms
    2
    """

    probabilities: Any = field(kw_only=False)
    values: Sequence[float]

    def __post_init__(self) -> None:
        values = checks.different_numbers("values", self.values)
        given = checks.array("probabilities", self.probabilities, error=SettingError)
        if given.ndim != 2 or given.shape[0] < 2 or given.shape[1] != values.size:
            raise SettingError(f"probabilities must have shape (arm, {values.size}), two arms at least.")
        if given.min() < 0.0 or np.abs(given.sum(axis=1) - 1.0).max() > 1e-9:
            raise SettingError("probabilities must be 0 or more and add up to 1 for every arm.")
        object.__setattr__(self, "values", frozen(values))
        object.__setattr__(self, "probabilities", frozen(given))

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return len(self.probabilities)


@settings
class ChangingBernoulliBandit:
    """Each arm pays 1 with a probability that changes: ``probabilities`` is (stage, arm), each ``every`` steps long.

    After the last stage the first begins again. Regret is counted against the best arm of each stage.

    >>> ChangingBernoulliBandit([[0.2, 0.8], [0.8, 0.2]], every=500).arms
    2
    """

    probabilities: Any = field(kw_only=False)
    every: int = 1

    def __post_init__(self) -> None:
        given = checks.array("probabilities", self.probabilities, error=SettingError)
        if given.ndim != 2 or given.shape[0] < 1 or given.shape[1] < 2:
            raise SettingError(f"probabilities must be (stage, arm) of two arms or more, got shape {given.shape}.")
        if given.min() < 0.0 or given.max() > 1.0:
            raise SettingError(f"probabilities must be from 0 to 1, got {given.min():g} to {given.max():g}.")
        object.__setattr__(self, "probabilities", frozen(given))
        object.__setattr__(self, "every", checks.integer("every", self.every, least=1, most=10**9))

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return len(self.probabilities[0])


Bandit = (
    BernoulliBandit
    | CategoricalBandit
    | ChangingBernoulliBandit
    | ExponentialBandit
    | GaussianBandit
    | LinearGaussianBandit
    | LogisticBandit
    | PoissonBandit
)
