"""The law of an expected reward whose log odds are normal."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class LogitNormal:
    """The law of 1 / (1 + e^-Z) for normal Z, with the methods that SciPy's laws have."""

    def __init__(self, normal: Any) -> None:
        self._normal = normal

    def pdf(self, x: FloatArray) -> FloatArray:
        """Return the density."""
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self._normal.pdf(_logit(x)) / (x * (1.0 - x))
        return np.where((x > 0.0) & (x < 1.0), found, 0.0)

    def cdf(self, x: FloatArray) -> FloatArray:
        """Return the probability of at most x."""
        return np.asarray(self._normal.cdf(_logit(np.clip(x, 0.0, 1.0))))

    def ppf(self, level: FloatArray) -> FloatArray:
        """Return the quantile of a level."""
        return _expit(self._normal.ppf(level))

    def sd(self, mean: FloatArray) -> FloatArray:
        """Return the standard deviation about a mean."""
        z = np.linspace(-8.0, 8.0, 801)[:, None]
        weights = np.exp(-0.5 * z * z)
        x = _expit(self._normal.mean() + z * self._normal.std())
        return np.asarray(np.sqrt((weights * (x - mean) ** 2).sum(axis=0) / weights.sum()))


def _expit(z: FloatArray) -> FloatArray:
    with np.errstate(over="ignore"):
        return np.asarray(1.0 / (1.0 + np.exp(-z)))


def _logit(x: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x) - np.log1p(-x))
