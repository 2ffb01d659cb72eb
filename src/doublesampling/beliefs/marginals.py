"""The law of every arm's expected reward under the posterior: mean, deviation, density, quantiles, draws."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.beliefs.logit_normal import LogitNormal
from doublesampling.errors import SettingError
from doublesampling.quick_records import quick_record
from doublesampling.rules import entry_points
from doublesampling.rules.laws import BETA, GAMMA, INVERSE_GAMMA, LOGISTIC, STUDENT

FloatArray = NDArray[np.float64]
_MOST_DRAWS = 10**8  # 0.8 GB


def address_words(seed: int, time: int, bandit: int = 0, realization: int = 0) -> NDArray[np.uint64]:
    """Return a random address as the compiled code takes it."""
    return np.array([seed, bandit, realization, time], dtype=np.uint64)


def draws_that_fit(samples: int, arms: int) -> int:
    """So many posterior samples, where there is room for them: each one is kept."""
    hint = f"Draws of {arms} arms are kept in memory: take fewer."
    return checks.integer("samples", samples, least=1, most=_MOST_DRAWS // arms, hint=hint)


class _Drawn:
    """Laws that can be drawn from at a random address."""

    def draws_at(self, samples: int, words: NDArray[np.uint64]) -> FloatArray:
        """Return posterior draws of the expected rewards, float array (sample, arm), at a random address."""
        raise NotImplementedError

    def draws(self, samples: int, *, seed: int = 0, time: int = 1) -> FloatArray:
        """Return posterior draws of the expected rewards, float array (sample, arm)."""
        return self.draws_at(samples, address_words(checks.seed(seed), checks.time(time)))


@quick_record
class Marginals(_Drawn):
    """One law per arm, by three parameters (arm, 3), see rules/laws.py. Methods add a last axis: (..., arm)."""

    law: int
    parameters: FloatArray

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.parameters)

    def only(self, arms: ArrayLike) -> "Marginals":
        """Return the laws of some arms."""
        return Marginals(self.law, np.ascontiguousarray(self.parameters[np.asarray(arms)]))

    @cached_property
    def _laws(self) -> Any:
        from scipy import stats  # slow to import, and a decision does not need it

        first, second, third = self.parameters.T
        if self.law == BETA:
            return stats.beta(first, second)
        if self.law == GAMMA:
            return stats.gamma(first, scale=1.0 / second)
        if self.law == INVERSE_GAMMA:
            return stats.invgamma(first, scale=second)
        if self.law == LOGISTIC:
            return LogitNormal(stats.norm(first, second))
        return stats.t(third, first, second) if np.isfinite(third).all() else stats.norm(first, second)

    @property
    def mean(self) -> FloatArray:
        """The expected reward of each arm, float array (arm)."""
        return entry_points.marginal_means(self.law, self.parameters)

    @property
    def sd(self) -> FloatArray:
        """Its standard deviation, float array (arm); infinite where the law is too wide to have one."""
        first, second, third = self.parameters.T
        with np.errstate(invalid="ignore", divide="ignore"):
            if self.law == BETA:
                total = first + second
                return np.asarray(np.sqrt(first / total * (second / total) / (total + 1.0)))
            if self.law == GAMMA:
                return np.asarray(np.sqrt(first) / second)
            if self.law == INVERSE_GAMMA:
                return np.asarray(np.where(first > 2.0, self.mean / np.sqrt(np.abs(first - 2.0)), np.inf))
            if self.law == LOGISTIC:
                return np.asarray(self._laws.sd(self.mean))
            widening = np.where(np.isinf(third), 1.0, third / (third - 2.0))
            return np.asarray(np.where(third > 2.0, second * np.sqrt(np.abs(widening)), np.inf))

    @property
    def precisions(self) -> FloatArray:
        """How well each arm is known, float array (arm): observations or one over variances, see rules/laws.py."""
        return entry_points.precisions(self.law, self.parameters)

    @property
    def location_and_scale(self) -> FloatArray | None:
        """Of Student and normal laws, float array (arm, 2), in log odds for logistic ones; None for others."""
        return np.ascontiguousarray(self.parameters[:, :2]) if self.law in (STUDENT, LOGISTIC) else None

    @property
    def probability_optimal(self) -> FloatArray:
        """The probability of each arm being the best, float array (arm), exactly: by a finite sum or by quadrature."""
        found: FloatArray | None = self.__dict__.get("_optimal")
        if found is None:  # cached_property would take a lock on Python 3.11, for every decision
            found = self.__dict__["_optimal"] = entry_points.exact_optimality(self.law, self.parameters)
        return found

    def estimated_optimality(self, samples: int, words: NDArray[np.uint64]) -> FloatArray:
        """The same as so many posterior samples estimate it, at a random address."""
        return entry_points.estimated_optimality(self.probability_optimal, samples, words)

    def upper_quantiles(self, log_tail: float) -> FloatArray | None:
        """A number per arm in the order of its upper quantile; None where only samples can tell."""
        return entry_points.upper_quantiles(self.law, self.parameters, log_tail)

    def draws_at(self, samples: int, words: NDArray[np.uint64]) -> FloatArray:
        """Return posterior draws of the expected rewards, float array (sample, arm), at a random address."""
        count = draws_that_fit(samples, len(self.parameters))
        return entry_points.posterior_draws(self.law, self.parameters, count, words)

    def pdf(self, reward: ArrayLike) -> FloatArray:
        """Return the density of the expected reward, float array (..., arm)."""
        return np.asarray(self._laws.pdf(checks.array("reward", reward, error=SettingError)[..., None]))

    def cdf(self, reward: ArrayLike) -> FloatArray:
        """Return the probability that the expected reward is at most this, float array (..., arm)."""
        return np.asarray(self._laws.cdf(checks.array("reward", reward, error=SettingError)[..., None]))

    def quantile(self, level: ArrayLike) -> FloatArray:
        """Return the expected reward that is not exceeded with this probability, float array (..., arm)."""
        return np.asarray(self._laws.ppf(_levels(level)[..., None]))


@dataclass(frozen=True, eq=False)
class DrawnLaws(_Drawn):
    """Laws known by draws: the methods of Marginals. What would be exact elsewhere comes from ``many`` draws."""

    many: int

    location_and_scale = None

    @property
    def arms(self) -> int:
        """The number of arms."""
        raise NotImplementedError

    def only(self, arms: ArrayLike) -> "DrawnLaws":
        """Return the laws of some arms."""
        raise NotImplementedError

    @cached_property
    def _sorted(self) -> FloatArray:
        return np.sort(self.draws(self.many), axis=0)

    @property
    def mean(self) -> FloatArray:
        """The expected reward of each arm, float array (arm)."""
        return np.asarray(self._sorted.mean(axis=0))

    @property
    def sd(self) -> FloatArray:
        """Its standard deviation, float array (arm)."""
        return np.asarray(self._sorted.std(axis=0))

    @property
    def precisions(self) -> FloatArray:
        """One over the variance of each arm's draws, float array (arm)."""
        return precisions_of_draws(self._sorted)

    @cached_property
    def probability_optimal(self) -> FloatArray:
        """The probability of each arm being the best, float array (arm)."""
        return share_of_bests(self.draws(self.many))

    def estimated_optimality(self, samples: int, words: NDArray[np.uint64]) -> FloatArray:
        """The same as so many posterior samples estimate it, at a random address."""
        return share_of_bests(self.draws_at(samples, words))

    def upper_quantiles(self, log_tail: float) -> FloatArray | None:
        """None: only samples can tell."""
        return None

    def pdf(self, reward: ArrayLike) -> FloatArray:
        """Return the density of the expected reward, float array (..., arm), smoothed from draws."""
        from scipy import stats

        x = checks.array("reward", reward, error=SettingError)
        found = []
        for arm, column in enumerate(self._sorted.T):
            try:
                found.append(stats.gaussian_kde(column)(x.ravel()).reshape(x.shape))
            except np.linalg.LinAlgError:  # all draws are the same number
                found.append(stats.norm(self.mean[arm], max(self.sd[arm], 1e-12)).pdf(x))
        return np.stack(found, axis=-1)

    def cdf(self, reward: ArrayLike) -> FloatArray:
        """Return the probability that the expected reward is at most this, float array (..., arm)."""
        x = checks.array("reward", reward, error=SettingError)
        levels = (np.arange(self.many) + 0.5) / self.many
        return np.stack([np.interp(x, column, levels, 0.0, 1.0) for column in self._sorted.T], axis=-1)

    def quantile(self, level: ArrayLike) -> FloatArray:
        """Return the expected reward that is not exceeded with this probability, float array (..., arm)."""
        given = _levels(level)
        levels = (np.arange(self.many) + 0.5) / self.many
        return np.stack([np.interp(given, levels, column) for column in self._sorted.T], axis=-1)


@dataclass(frozen=True, eq=False)
class DirichletMeans(DrawnLaws):
    """The laws of mean values under Dirichlet beliefs.

    concentration : float array (arm, category). values : float array (category).
    """

    concentration: FloatArray
    values: FloatArray

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.concentration)

    def only(self, arms: ArrayLike) -> "DirichletMeans":
        """Return the laws of some arms."""
        return DirichletMeans(self.many, np.ascontiguousarray(self.concentration[np.asarray(arms)]), self.values)

    @property
    def mean(self) -> FloatArray:
        """The expected reward of each arm, float array (arm)."""
        return np.asarray(self.concentration @ self.values / self.concentration.sum(axis=1))

    @property
    def sd(self) -> FloatArray:
        """Its standard deviation, float array (arm)."""
        total = self.concentration.sum(axis=1)
        squares = (self.concentration * (self.values - self.mean[:, None]) ** 2).sum(axis=1) / total
        return np.asarray(np.sqrt(squares / (total + 1.0)))

    @property
    def precisions(self) -> FloatArray:
        """The observations that each arm's law is worth, float array (arm)."""
        return np.asarray(self.concentration.sum(axis=1))

    def draws_at(self, samples: int, words: NDArray[np.uint64]) -> FloatArray:
        """Return posterior draws of the expected rewards, float array (sample, arm), at a random address."""
        count = draws_that_fit(samples, len(self.concentration))
        return entry_points.dirichlet_draws(self.concentration, self.values, count, words)


def precisions_of_draws(draws: FloatArray) -> FloatArray:
    """Return one over the variance of each arm's draws (sample, arm), as far as numbers reach."""
    return np.asarray(1.0 / np.maximum(draws.var(axis=0), 1e-100))


def share_of_bests(draws: FloatArray) -> FloatArray:
    """Return the paper's p_hat of posterior draws (sample, arm); equal bests share a sample."""
    best = draws == draws.max(axis=1, keepdims=True)
    return np.asarray((best / best.sum(axis=1, keepdims=True)).mean(axis=0))


def _levels(level: ArrayLike) -> FloatArray:
    given = checks.array("level", level, error=SettingError)
    if ((given < 0.0) | (given > 1.0)).any():
        raise SettingError(f"level must be from 0 to 1, got {checks.shown(level)}.")
    return given
