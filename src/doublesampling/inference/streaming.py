"""``ds.ConfidenceSequence``: an interval that may be looked at after every outcome, updated in constant time.

Asymptotic (Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas): with the mean μ̂_t and variance σ̂²_t of t scores,
μ̂_t ± sqrt(2 (t σ̂² ρ² + 1) log(sqrt(t σ̂² ρ² + 1) / α) / (t² ρ²)), ρ² = (-W_{-1}(-α² / e) - 1) / t_opt. σ̂² is the
larger of the scores' variance and of what the outcomes' variances and the propensities predict for it.

Non-asymptotic, for rewards in [0, 1]: a predictable plug-in empirical Bernstein bound on inverse-propensity scores
ξ = 1{A = a} R / e, L_t = [Σ λ ξ - log(1/α) - Σ ψ(λ_i)(ξ_i - ξ̄_{i-1})²] / Σ λ with ψ(λ) = -log(1 - λ) - λ; the upper
bound comes from 1 - R in the same way, a contrast from a union bound over the bounds of both arms.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from doublesampling import checks
from doublesampling.errors import ArmError, RewardError, SettingError
from doublesampling.inference.decision_log import ROUNDING

METHODS = ("asymptotic", "empirical-bernstein")
LARGEST_BET = 0.5
"""λ never exceeds this."""
FEWEST = 20
"""Outcomes of each arm before which an asymptotic sequence gives no interval."""
FEWEST_EACH_SIDE = 5
"""The same above the mean of the arm so far, and below it: before rare outcomes came, the variance looks small."""
EVERYTHING = (-math.inf, math.inf)


def mixture_parameter(alpha: float, optimal_at: float) -> float:
    """Return ρ², with which the asymptotic sequence is narrowest after ``optimal_at`` scores of variance 1.

    >>> round(mixture_parameter(0.05, 100), 4)
    0.0821
    """
    found = special.lambertw(-(alpha**2) / math.e, -1)
    return float((-found.real - 1.0) / optimal_at)


def asymptotic_reach(count: float, squares: float, alpha: float, rho2: float) -> float:
    """Return half the width of the asymptotic interval; ``squares`` is t σ̂²."""
    inside = squares * rho2 + 1.0
    return math.sqrt(2.0 * inside * math.log(math.sqrt(inside) / alpha) / (count**2 * rho2))


def why_withheld(arms: Iterable[tuple[str, int, int]], least: float, scores: int) -> str | None:
    """Return why there is no asymptotic interval, None where there is one.

    ``arms`` are those of the contrast: name, outcomes, and how many of these were above the mean before them.
    """
    for given, count, above in arms:
        name = given if given.isdigit() else repr(given)
        if count < FEWEST:
            return f"Arm {name} has {count} outcomes, fewer than {FEWEST}: an asymptotic interval waits for more."
        if min(above, count - above) < FEWEST_EACH_SIDE:
            side = "above" if above < count - above else "below"
            return (
                f"Arm {name} has {min(above, count - above)} outcomes {side} its mean, fewer than {FEWEST_EACH_SIDE}: "
                "before rare outcomes come, their variance looks too small."
            )
    if least * scores < 1.0:
        return f"A propensity fell to {least:.2g}, below 1 / {scores}: set a floor on the propensities."
    return None


@dataclass
class BernsteinBound:
    """A lower bound of the mean of non-negative scores that holds at all times with probability 1 - alpha."""

    alpha: float
    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    bets: float = 0.0
    won: float = 0.0
    paid: float = 0.0

    def update(self, score: float) -> None:
        """Add one score."""
        following = self.count + 1
        centre = min(1.0, (0.5 + self.total) / following)  # at most 1: the inequality needs ξ - ξ̄ >= -1
        variance = (0.25 + self.squares) / following
        bet = min(
            LARGEST_BET, math.sqrt(2.0 * math.log(1.0 / self.alpha) / (variance * following * math.log1p(following)))
        )
        away = (score - centre) ** 2
        self.won += bet * score
        self.paid += (-math.log1p(-bet) - bet) * away
        self.bets += bet
        self.count, self.total, self.squares = following, self.total + score, self.squares + away

    @property
    def value(self) -> float:
        """The bound, -inf before the first score."""
        if self.bets == 0.0:
            return -math.inf
        return (self.won - math.log(1.0 / self.alpha) - self.paid) / self.bets


@dataclass
class _Moments:
    """A running mean and squared deviations (Welford), and how many values were above the mean before them."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0
    above: int = 0

    def add(self, value: float, expected: float = math.inf) -> None:
        self.count += 1
        change = value - self.mean
        self.mean += change / self.count
        self.squares += change * (value - self.mean)
        self.above += value > expected


@dataclass
class _Scores:
    """Moments of the scores, of the outcomes of each arm and of all, and sums of inverse propensities per arm."""

    scores: _Moments
    arms: list[_Moments]
    every: _Moments
    inverse: list[float]
    least: float = 1.0


class ConfidenceSequence:
    """An anytime-valid interval for the mean of an arm, or the difference of two.

    ``contrast`` holds one or two arm indices. ``method`` is "asymptotic", or "empirical-bernstein" for rewards within
    ``bounds``, which holds at any sample size. ``optimal_at`` is the number of outcomes at which the asymptotic
    interval is meant to be narrow; choose it before the data. The probability that any interval of the sequence,
    however often one looks, misses the truth is at most 1 - level (asymptotically, for "asymptotic").

    >>> seen = ConfidenceSequence(arms=2, contrast=(1, 0), method="empirical-bernstein")
    >>> for i in range(400):
    ...     seen.update(i % 2, float(i % 2), [0.5, 0.5])
    >>> low, high = seen.interval
    >>> low > 0, seen.rows
    (True, 400)
    """

    def __init__(
        self,
        arms: int,
        contrast: Sequence[int] | int = (1, 0),
        level: float = 0.95,
        *,
        method: str = "asymptotic",
        optimal_at: float = 500.0,
        bounds: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.arms = checks.arm_count(arms)
        chosen = (contrast,) if isinstance(contrast, int) else tuple(contrast)
        if len(chosen) not in (1, 2) or len(set(chosen)) < len(chosen):
            raise ArmError(f"contrast must name one arm or two different ones, got {checks.shown(contrast)}.")
        self.contrast = tuple(checks.arm_index(arm, self.arms) for arm in chosen)
        self.level = checks.within("level", level, 0.5, 0.9999)
        self.method = checks.one_of("method", method, METHODS)
        self.bounds = (checks.real("bounds", bounds[0], error=SettingError), float(bounds[1]))
        if not self.bounds[0] < self.bounds[1]:
            raise SettingError(f"bounds must be the least and the largest reward, got {checks.shown(bounds)}.")
        alpha = 1.0 - self.level
        self.optimal_at = checks.within("optimal_at", optimal_at, 1.0, 1e12)
        self._rho2 = mixture_parameter(alpha, self.optimal_at)
        sides = 2 * len(self.contrast)
        self._bounds = [(BernsteinBound(alpha / sides), BernsteinBound(alpha / sides)) for _ in self.contrast]
        outcomes = [_Moments() for _ in range(self.arms)]
        self._scores = _Scores(_Moments(), outcomes, _Moments(), [0.0] * self.arms)
        self.rows = 0
        """Outcomes that were added."""

    def update(self, arm: int, reward: float, propensities: ArrayLike) -> None:
        """Add the outcome of a decision, with the propensities of all arms at that decision."""
        arm = checks.arm_index(arm, self.arms)
        reward = checks.real("reward", reward, error=RewardError)
        shares = [float(p) for p in np.asarray(propensities, dtype=np.float64).ravel()]
        if len(shares) != self.arms or not abs(sum(shares) - 1.0) <= ROUNDING or not min(shares) >= 0.0:
            raise SettingError(
                f"propensities must be {self.arms} probabilities that sum to 1, got {checks.shown(propensities)}."
            )
        if shares[arm] <= 0.0:
            raise SettingError(f"Arm {arm} was played with propensity 0, which cannot be.")
        if self.method == "asymptotic":
            self._add_score(arm, reward, shares)
        else:
            self._add_bounds(arm, reward, shares)
        self.rows += 1

    def _add_bounds(self, arm: int, reward: float, shares: list[float]) -> None:
        low, high = self.bounds
        if not low <= reward <= high:
            raise RewardError(f"The reward must lie within {low:g} and {high:g}, got {reward:g}. Give other bounds.")
        scaled = (reward - low) / (high - low)
        for each, (lower, upper) in zip(self.contrast, self._bounds, strict=True):
            if shares[each] > 0.0:  # an arm that was not available tells nothing
                weight = 1.0 / shares[each] if arm == each else 0.0
                lower.update(weight * scaled)
                upper.update(weight * (1.0 - scaled))

    def _add_score(self, arm: int, reward: float, shares: list[float]) -> None:
        seen = self._scores
        start = seen.every.mean
        if min(shares[each] for each in self.contrast) > 0.0 and seen.every.count:  # before any outcome, no scale
            score = 0.0
            for sign, each in zip((1.0, -1.0), self.contrast, strict=False):
                expected = seen.arms[each].mean if seen.arms[each].count else start
                residual = (reward - expected) / shares[each] if arm == each else 0.0
                score += sign * (expected + residual)
                seen.inverse[each] += 1.0 / shares[each]
                seen.least = min(seen.least, shares[each])
            seen.scores.add(score)
        seen.arms[arm].add(reward, seen.arms[arm].mean if seen.arms[arm].count else start)
        seen.every.add(reward)

    def to_dict(self) -> dict[str, Any]:
        """Return the sums so far as plain values, which ``restore`` of a sequence with the same settings reads."""
        bounds = [[asdict(side) for side in pair] for pair in self._bounds]
        return {"rows": self.rows, "arms": self.arms, "scores": asdict(self._scores), "bounds": bounds}

    def restore(self, content: dict[str, Any]) -> None:
        """Continue from the sums that ``to_dict`` returned, perhaps of a sequence with fewer arms."""
        more, parts = self.arms - content["arms"], content["scores"]
        if more < 0 or len(content["bounds"]) != len(self._bounds):
            raise SettingError(f"These are sums of {content['arms']} arms, this sequence has {self.arms}.")
        arms = [_Moments(**each) for each in parts["arms"]] + [_Moments() for _ in range(more)]
        scores, every = (_Moments(**parts[name]) for name in ("scores", "every"))
        self._scores = _Scores(scores, arms, every, [*parts["inverse"], *[0.0] * more], parts["least"])
        self._bounds = [(BernsteinBound(**low), BernsteinBound(**high)) for low, high in content["bounds"]]
        self.rows = int(content["rows"])

    @property
    def estimate(self) -> float:
        """The mean of the scores so far; nan before the first."""
        if self.method == "asymptotic":
            return self._scores.scores.mean if self._scores.scores.count else math.nan
        low, high = self.bounds
        means = [lower.total / lower.count if lower.count else math.nan for lower, _ in self._bounds]
        return (means[0] - means[1]) * (high - low) if len(means) == 2 else low + means[0] * (high - low)

    @property
    def interval(self) -> tuple[float, float]:
        """The current interval; everything where nothing can be said yet."""
        return self._asymptotic() if self.method == "asymptotic" else self._bernstein()

    @property
    def reason(self) -> str | None:
        """Why an asymptotic sequence has no interval now; None where it has one."""
        return self.reason_among([str(arm) for arm in range(self.arms)])

    def reason_among(self, names: Sequence[str]) -> str | None:
        """Return the same with the arms by their names."""
        if self.method != "asymptotic":
            return None
        seen = self._scores
        each = [(names[arm], seen.arms[arm].count, seen.arms[arm].above) for arm in self.contrast]
        return why_withheld(each, seen.least, seen.scores.count)

    def _asymptotic(self) -> tuple[float, float]:
        if self.reason is not None:
            return EVERYTHING
        seen, every = self._scores, self._scores.every
        # the variance of the scores that the outcomes predict: the observed one misses rare, heavily weighted outcomes
        spread = every.squares / every.count
        predicted = sum(
            (seen.arms[arm].squares + spread) / seen.arms[arm].count * seen.inverse[arm] for arm in self.contrast
        )
        squares = max(seen.scores.squares, predicted)
        reach = asymptotic_reach(seen.scores.count, squares, 1.0 - self.level, self._rho2)
        return seen.scores.mean - reach, seen.scores.mean + reach

    def _bernstein(self) -> tuple[float, float]:
        low, high = self.bounds
        ends = []
        for lower, upper in self._bounds:
            least, most = max(lower.value, 0.0), min(1.0 - upper.value, 1.0)
            ends.append((low + least * (high - low), low + most * (high - low)))
        if len(ends) == 1:
            return ends[0]
        (low_a, high_a), (low_b, high_b) = ends
        return low_a - high_b, high_a - low_b

    def __repr__(self) -> str:
        shown: Any = self.contrast if len(self.contrast) == 2 else self.contrast[0]
        return f"ConfidenceSequence(arms={self.arms}, contrast={shown}, level={self.level:g}, method={self.method!r})"
