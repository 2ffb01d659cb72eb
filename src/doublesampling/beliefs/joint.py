"""The joint law of expected rewards that depend on each other: multivariate Student, or normal where noise is known."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling.beliefs.marginals import DrawnLaws, Marginals, draws_that_fit, share_of_bests
from doublesampling.rules import entry_points
from doublesampling.rules.laws import GAMMA, STUDENT

FloatArray = NDArray[np.float64]
_LEAST_SCALE = 1e-100  # as in rules/posterior.py: a law this narrow keeps every formula finite
_SCALES = np.uint64(1 << 63)  # sets the luck of the common scale apart from that of the arms


@dataclass(frozen=True, eq=False)
class JointStudent(DrawnLaws):
    """Expected rewards location + root z / sqrt(g), z standard normal, g a chi-square of ``freedom`` over ``freedom``.

    Each arm's own law is exact, and so is the probability of being the best of two arms: their difference has a
    Student law. Of more than two arms it is a share of ``many`` posterior draws, made at a fixed random address, so
    that the same state gives the same number; its standard error is at most 0.5 / sqrt(many).
    """

    location: FloatArray
    """float array (arm)."""
    root: FloatArray
    """float array (arm, entry); root root^T is the scale matrix."""
    freedom: float
    """Degrees of freedom; infinite for a normal law."""

    @property
    def arms(self) -> int:
        """The number of arms."""
        return self.location.size

    def only(self, arms: ArrayLike) -> "JointStudent":
        """Return the laws of some arms."""
        chosen = np.asarray(arms)
        return JointStudent(self.many, self.location[chosen], self.root[chosen], self.freedom)

    @cached_property
    def marginals(self) -> Marginals:
        """The law of each arm on its own, exactly."""
        return self._students(self.location, self.root)

    def _students(self, location: FloatArray, root: FloatArray) -> Marginals:
        scale = np.maximum(np.linalg.norm(root, axis=1), _LEAST_SCALE)
        return Marginals(STUDENT, np.column_stack([location, scale, np.full(location.size, self.freedom)]))

    def difference(self, arm: int, other: int) -> Marginals:
        """Return the law of the expected reward of an arm less that of another, exactly, as a law of one arm."""
        apart = self.root[arm] - self.root[other]
        return self._students(np.array([self.location[arm] - self.location[other]]), apart[None])

    @property
    def mean(self) -> FloatArray:
        """The expected reward of each arm, float array (arm)."""
        return self.marginals.mean

    @property
    def sd(self) -> FloatArray:
        """Its standard deviation, float array (arm)."""
        return self.marginals.sd

    @property
    def location_and_scale(self) -> FloatArray | None:  # type: ignore[override]
        """Of each arm's own law, float array (arm, 2)."""
        return self.marginals.location_and_scale

    @cached_property
    def probability_optimal(self) -> FloatArray:
        """The probability of each arm being the best, float array (arm): exact for two arms, else by draws."""
        if self.arms == 1:
            return np.ones(1)
        if self.arms > 2:
            return share_of_bests(self.draws(self.many))
        return np.array([float(self.difference(other, arm).cdf(0.0)[0]) for arm, other in ((0, 1), (1, 0))])

    def estimated_optimality(self, samples: int, words: NDArray[np.uint64]) -> FloatArray:
        """The same as so many posterior samples estimate it, at a random address."""
        if self.arms <= 2:
            return entry_points.estimated_optimality(self.probability_optimal, samples, words)
        return share_of_bests(self.draws_at(samples, words))

    def upper_quantiles(self, log_tail: float) -> FloatArray | None:
        """A number per arm in the order of its upper quantile."""
        return self.marginals.upper_quantiles(log_tail)

    def pdf(self, reward: ArrayLike) -> FloatArray:
        """The density of the expected reward, float array (..., arm)."""
        return self.marginals.pdf(reward)

    def cdf(self, reward: ArrayLike) -> FloatArray:
        """The probability that the expected reward is at most this, float array (..., arm)."""
        return self.marginals.cdf(reward)

    def quantile(self, level: ArrayLike) -> FloatArray:
        """The expected reward that is not exceeded with this probability, float array (..., arm)."""
        return self.marginals.quantile(level)

    @cached_property
    def _factor(self) -> FloatArray:
        return semidefinite_root(self.root @ self.root.T)

    def draws_at(self, samples: int, words: NDArray[np.uint64]) -> FloatArray:
        """Posterior draws of the expected rewards, float array (sample, arm), at a random address."""
        count = draws_that_fit(samples, self.arms)
        standard = np.tile([0.0, 1.0, math.inf], (self.arms, 1))
        apart = entry_points.posterior_draws(STUDENT, standard, count, words) @ self._factor.T
        if math.isfinite(self.freedom):
            elsewhere = words.copy()
            elsewhere[1] ^= _SCALES
            half = 0.5 * self.freedom
            scales = entry_points.posterior_draws(GAMMA, np.array([[half, half, 0.0]]), count, elsewhere)
            apart /= np.sqrt(scales)
        return np.asarray(self.location + apart)


def semidefinite_root(matrix: FloatArray) -> FloatArray:
    """Return the lower triangular L with L L^T = matrix, also where it is singular: a column of zeros then.

    NumPy's Cholesky decomposition refuses singular matrices, which two arms that cannot differ have.
    """
    size = len(matrix)
    root = np.zeros((size, size))
    for j in range(size):
        column = matrix[j:, j] - root[j:, :j] @ root[j, :j]
        if column[0] > 1e-14 * matrix[j, j]:
            root[j:, j] = column / math.sqrt(column[0])
    return root
