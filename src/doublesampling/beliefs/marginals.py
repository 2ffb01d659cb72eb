"""The law of every arm's expected reward under the posterior: mean, deviation, density, quantiles, draws."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.rules import doors
from doublesampling.rules.belief import BETA

FloatArray = NDArray[np.float64]


def address_words(seed: int, time: int, bandit: int = 0, realization: int = 0) -> NDArray[np.uint64]:
    """A random address as the doors take it."""
    return np.array([seed, bandit, realization, time], dtype=np.uint64)


@dataclass(frozen=True, eq=False)
class Marginals:
    """One law per arm. Methods take numbers or arrays and add a last axis: (..., arm)."""

    family: int
    parameters: FloatArray

    @cached_property
    def _laws(self) -> Any:
        from scipy import stats  # slow to import, and a decision does not need it

        first, second, third = self.parameters.T
        if self.family == BETA:
            return stats.beta(first, second)
        return stats.t(third, first, second) if np.isfinite(third).all() else stats.norm(first, second)

    @property
    def mean(self) -> FloatArray:
        """The expected reward of each arm, float array (arm)."""
        first, second, _ = self.parameters.T
        return np.asarray(first / (first + second) if self.family == BETA else first.copy())

    @property
    def sd(self) -> FloatArray:
        """Its standard deviation, float array (arm); infinite for a Student t law of two degrees of freedom or less."""
        first, second, third = self.parameters.T
        if self.family == BETA:
            total = first + second
            return np.asarray(np.sqrt(first / total * (second / total) / (total + 1.0)))
        with np.errstate(invalid="ignore", divide="ignore"):
            widening = np.where(np.isinf(third), 1.0, third / (third - 2.0))
        return np.asarray(np.where(third > 2.0, second * np.sqrt(np.abs(widening)), np.inf))

    def pdf(self, reward: ArrayLike) -> FloatArray:
        """The density of the expected reward, float array (..., arm)."""
        return np.asarray(self._laws.pdf(checks.array("reward", reward, error=SettingError)[..., None]))

    def cdf(self, reward: ArrayLike) -> FloatArray:
        """The probability that the expected reward is at most this, float array (..., arm)."""
        return np.asarray(self._laws.cdf(checks.array("reward", reward, error=SettingError)[..., None]))

    def quantile(self, level: ArrayLike) -> FloatArray:
        """The expected reward that is not exceeded with this probability, float array (..., arm)."""
        given = checks.array("level", level, error=SettingError)
        if ((given < 0.0) | (given > 1.0)).any():
            raise SettingError(f"level must be from 0 to 1, got {checks.shown(level)}.")
        return np.asarray(self._laws.ppf(given[..., None]))

    def draws(self, samples: int, *, seed: int = 0, time: int = 1) -> FloatArray:
        """Posterior draws of the expected rewards, float array (sample, arm)."""
        samples = checks.integer("samples", samples, least=1, most=10**8)
        words = address_words(checks.seed(seed), checks.time(time))
        return doors.posterior_draws(self.family, self.parameters, samples, words)
