"""Sums over the states in which a trial of two binary arms ends, for many pairs of success probabilities at once."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from doublesampling.exact.prior import ratio_of_theta
from doublesampling.rules.cached import kept
from doublesampling.rules.looks.bundles import EQUIVALENCE, FUTILITY, MAXIMUM, SUPERIORITY

FloatArray = NDArray[np.float64]

OUTCOMES = MAXIMUM + 1
_OUTCOME_NAMES = {
    "superiority": SUPERIORITY,
    "equivalence": EQUIVALENCE,
    "futility": FUTILITY,
    "maximum": MAXIMUM,
}


@kept
def _multiply(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
    """Fill a product of matrices; most of the left one is 0, and threads of a library would wait for each other."""
    for i in range(left.shape[0]):
        for j in range(right.shape[1]):
            out[i, j] = 0.0
        for k in range(left.shape[1]):
            factor = left[i, k]
            if factor != 0.0:
                for j in range(right.shape[1]):
                    out[i, j] += factor * right[k, j]


def product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return a product of matrices, quickly where most of the left one is 0."""
    out = np.empty((left.shape[0], right.shape[1]))
    _multiply(np.ascontiguousarray(left), np.ascontiguousarray(right), out)
    return out


def z_statistic(first: int, second: int) -> FloatArray:
    """Return the pooled z statistic of every (s1, s2) for the second arm less the first; 0 where it is not defined."""
    s1, s2 = np.arange(first + 1.0)[:, None], np.arange(second + 1.0)
    if first == 0 or second == 0:
        return np.zeros((first + 1, second + 1))
    pooled = (s1 + s2) / (first + second)
    variance = pooled * (1.0 - pooled) * (1.0 / first + 1.0 / second)
    difference = s2 / second - s1 / first
    return np.asarray(np.divide(difference, np.sqrt(variance), out=np.zeros_like(difference), where=variance > 0.0))


def wald_interval(first: int, second: int, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the difference of the success rates and half the width of its Wald interval, float arrays (s1, s2)."""
    p1, p2 = np.arange(first + 1.0)[:, None] / first, np.arange(second + 1.0) / second
    half = special.ndtri(0.5 + 0.5 * level) * np.sqrt(p1 * (1.0 - p1) / first + p2 * (1.0 - p2) / second)
    return p2 - p1, half


@dataclass
class Characteristics:
    """Running sums over ended states; arrays have (pair) first."""

    thetas: FloatArray
    alpha: float
    outcomes: FloatArray = field(init=False)
    """(pair, outcome, selected arm)"""
    size: FloatArray = field(init=False)
    size_squared: FloatArray = field(init=False)
    played: FloatArray = field(init=False)
    """(pair, arm): expected participants."""
    share: FloatArray = field(init=False)
    """(pair, arm): expected share of the participants."""
    successes: FloatArray = field(init=False)
    """(pair, arm)"""
    rejected: FloatArray = field(init=False)
    there: FloatArray = field(init=False)
    """(pair, arm): P(the arm was played); with the next two: its success rate then, and the square of that."""
    rate: FloatArray = field(init=False)
    rate_squared: FloatArray = field(init=False)
    compared: FloatArray = field(init=False)
    """P(both arms were played); with the next three: their difference then, its square, whether intervals cover."""
    effect: FloatArray = field(init=False)
    effect_squared: FloatArray = field(init=False)
    covered: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        pairs = len(self.thetas)
        self.outcomes = np.zeros((pairs, OUTCOMES, 2))
        for name in ("played", "share", "successes", "there", "rate", "rate_squared"):
            setattr(self, name, np.zeros((pairs, 2)))
        for name in ("size", "size_squared", "rejected", "compared", "effect", "effect_squared", "covered"):
            setattr(self, name, np.zeros(pairs))
        self._limit = special.ndtri(1.0 - 0.5 * self.alpha)
        gaps = np.round(self.thetas[:, 1] - self.thetas[:, 0], 12)
        self._gaps, self._of_gap = np.unique(gaps, return_inverse=True)
        # a grid of pairs has few probabilities per arm: sums over an arm are made once for each
        self._values, self._places = zip(
            *(np.unique(self.thetas[:, a], return_inverse=True) for a in (0, 1)), strict=True
        )
        self._ratios: dict[tuple[int, int], FloatArray] = {}

    def _ratio(self, arm: int, count: int) -> FloatArray:
        """Return ratio_of_theta for the distinct probabilities of an arm, float array (probability, successes)."""
        if (arm, count) not in self._ratios:
            self._ratios[arm, count] = ratio_of_theta(self._values[arm], count)
        return self._ratios[arm, count]

    def add(self, n1: int, n2: int, weight: FloatArray, outcome: int, selected: FloatArray) -> None:
        """Add states of one block that end with an outcome; weight (s1, s2) under uniform priors, 0 where they do not.

        selected : float array (s1, s2), 1 where the second arm is selected and 0.5 for a draw.
        """
        first, second, pair = self._ratio(0, n1), self._ratio(1, n2)[self._places[1]], self._places[0]
        s1, s2 = np.arange(n1 + 1.0), np.arange(n2 + 1.0)
        time = float(n1 + n2)
        beside = product(first, weight)[pair]
        mass = (beside * second).sum(axis=1)
        chosen = (product(first, weight * selected)[pair] * second).sum(axis=1)
        self.outcomes[:, outcome, 0] += mass - chosen
        self.outcomes[:, outcome, 1] += chosen
        self.size += time * mass
        self.size_squared += time * time * mass
        for arm, count in ((0, n1), (1, n2)):
            self.played[:, arm] += count * mass
            self.share[:, arm] += count / time * mass
        along, twice = product(first * s1, weight)[pair], product(first * s1**2, weight)[pair]
        of_first = [(part * second).sum(axis=1) for part in (along, twice)]
        of_second = [(beside * second) @ power for power in (s2, s2**2)]
        for arm, count, (one, square) in ((0, n1, of_first), (1, n2, of_second)):
            self.successes[:, arm] += one
            if count > 0:
                self.there[:, arm] += mass
                self.rate[:, arm] += one / count
                self.rate_squared[:, arm] += square / count**2
        if n1 == 0 or n2 == 0:
            return
        extreme = np.abs(z_statistic(n1, n2)) > self._limit
        self.rejected += (product(first, weight * extreme)[pair] * second).sum(axis=1)
        self.compared += mass
        self.effect += of_second[0] / n2 - of_first[0] / n1
        self.effect_squared += of_first[1] / n1**2 + of_second[1] / n2**2 - 2.0 * (along * second) @ s2 / (n1 * n2)
        difference, half = wald_interval(n1, n2, 1.0 - self.alpha)
        for place, gap in enumerate(self._gaps):
            which = np.flatnonzero(self._of_gap == place)
            inside = weight * (np.abs(difference - gap) <= half)
            self.covered[which] += (product(first[pair[which]], inside) * second[which]).sum(axis=1)


def describe(sums: Characteristics, reference: int) -> dict[str, tuple[Any, FloatArray]]:
    """Return every characteristic with its dimensions; effects are those of the other arm against the reference."""
    thetas, one, each = sums.thetas, ("scenario",), ("scenario", "arm")
    sign, other = (1.0, 1) if reference == 0 else (-1.0, 0)
    gap = thetas[:, 1] - thetas[:, 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        rate, rate_squared = sums.rate / sums.there, sums.rate_squared / sums.there
        effect, effect_squared, covered = (
            part / sums.compared for part in (sums.effect, sums.effect_squared, sums.covered)
        )

    def of_other(values: FloatArray) -> FloatArray:
        out = np.full(thetas.shape, np.nan)  # an arm has no effect against itself
        out[:, other] = values
        return out

    best = thetas == thetas.max(axis=1, keepdims=True)
    selected, successes = sums.outcomes.sum(axis=1), sums.successes.sum(axis=1)
    named = {f"probability_{name}": (one, sums.outcomes[:, code].sum(axis=1)) for name, code in _OUTCOME_NAMES.items()}
    return named | {
        "probability_selected": (each, selected),
        "probability_superior": (each, sums.outcomes[:, SUPERIORITY]),
        "probability_best_selected": (one, (selected * best).sum(axis=1)),
        "expected_size": (one, sums.size),
        "size_std": (one, np.sqrt(np.maximum(sums.size_squared - sums.size**2, 0.0))),
        "expected_successes": (one, successes),
        "expected_failures": (one, sums.size - successes),
        "expected_inferior": (one, (sums.played * ~best).sum(axis=1)),
        "expected_share": (each, sums.share),
        "bias": (each, rate - thetas),
        "rmse": (each, np.sqrt(np.maximum(rate_squared - 2.0 * thetas * rate + thetas**2, 0.0))),
        "effect_bias": (each, of_other(sign * (effect - gap))),
        "effect_rmse": (each, of_other(np.sqrt(np.maximum(effect_squared - 2.0 * gap * effect + gap**2, 0.0)))),
        "naive_coverage": (each, of_other(covered)),
        "rejection_rate": (one, sums.rejected),
    }
