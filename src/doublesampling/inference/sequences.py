"""``ds.sequence``: the confidence sequence of a whole log, after every outcome at once."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.inference.decision_log import Contrast, DecisionLog, FloatArray, IntArray
from doublesampling.inference.reading import read_decisions
from doublesampling.inference.streaming import (
    FEWEST,
    FEWEST_EACH_SIDE,
    LARGEST_BET,
    METHODS,
    mixture_parameter,
    why_withheld,
)


@dataclass(frozen=True, eq=False)
class Sequence:
    """A confidence sequence, arrays (point) in the order in which outcomes were known."""

    estimate: FloatArray
    low: FloatArray
    """-inf where nothing can be said yet."""
    high: FloatArray
    outcomes: IntArray
    """How many outcomes each point rests on."""
    method: str
    level: float
    contrast: str
    pending: int
    missing: int
    reason: str | None = None
    """Why the latest point has no interval; None where it has one."""

    @property
    def interval(self) -> tuple[float, float]:
        """The latest interval."""
        return float(self.low[-1]), float(self.high[-1])

    def __str__(self) -> str:
        low, high = self.interval
        between = f"{low:.4g} to {high:.4g}" if self.reason is None else "no interval"
        head = f"{self.contrast}: {self.estimate[-1]:.4g}, {between} after {self.outcomes[-1]} outcomes"
        head = head if self.reason is None else f"{head}. {self.reason}"
        return f"{head} ({100 * self.level:g} %, {self.method}, valid however often one looks)"


def sequence(
    log: Any,
    contrast: Contrast = (1, 0),
    level: float = 0.95,
    *,
    method: str = "asymptotic",
    optimal_at: float = 500.0,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Sequence:
    """Return the confidence sequence of an arm, or of the difference of two, after every outcome of a log.

    The arguments are those of ``ConfidenceSequence``, which gives the same intervals one outcome at a time; ``log`` is
    what ``analyse`` takes. Outcomes count in the order in which they were known.

    >>> import pandas as pd
    >>> import doublesampling as ds
    >>> log = pd.DataFrame({"arm": [0, 1] * 50, "reward": [0, 1, 1, 1] * 25, "propensity_0": 0.5, "propensity_1": 0.5})
    >>> found = ds.sequence(log, contrast=(1, 0))
    >>> len(found.low), bool(found.low[-1] < 0.5 < found.high[-1])
    (100, True)
    """
    found = read_decisions(log)
    arms = found.contrast(contrast)
    level = checks.within("level", level, 0.5, 0.9999)
    checks.one_of("method", method, METHODS)
    checks.within("optimal_at", optimal_at, 1.0, 1e12)
    told = np.flatnonzero(found.observed)
    rows: IntArray = told[np.argsort(found.known[told], kind="stable")]
    reason = None
    if method == "asymptotic":
        estimate, low, high, reason = _asymptotic(found, arms, rows, level, optimal_at)
    else:
        estimate, low, high = _bernstein(found, arms, rows, level, bounds)
    outcomes = np.arange(1, rows.size + 1)
    return Sequence(
        estimate, low, high, outcomes, method, level, found.title(arms), found.pending, found.missing, reason
    )


def _asymptotic(
    log: DecisionLog, arms: tuple[int, ...], rows: IntArray, level: float, optimal_at: float
) -> tuple[FloatArray, FloatArray, FloatArray, str | None]:
    """Estimates and both ends after every row, and why the last has no interval."""
    played, rewards, shares = log.arms[rows], log.rewards[rows], log.propensities[rows][:, list(arms)]
    point = rewards.mean()  # sums of deviations from a fixed point: no cancellation on long logs
    paid, chosen = rewards - point, played[:, None] == np.array(arms)
    mine, every = chosen * paid[:, None], np.arange(rows.size, dtype=float)
    known, sums = _before(chosen.astype(float)), _before(mine)
    start = np.divide(_before(paid[:, None])[:, 0], every, out=np.full(rows.size, -point), where=every > 0)
    means = np.divide(sums, known, out=np.repeat(start[:, None], len(arms), axis=1), where=known > 0)
    usable, safe = (shares > 0.0).all(axis=1) & (every > 0), np.where(shares > 0.0, shares, 1.0)
    signs = np.array([1.0, -1.0])[: len(arms)]
    scores = (means + np.where(chosen, (paid[:, None] - means) / safe, 0.0)) @ signs
    scores, count = np.where(usable, scores, 0.0), np.maximum(usable.cumsum(), 1).astype(float)
    mean = scores.cumsum() / count
    squares = (scores**2).cumsum() - count * mean**2
    inverse = np.where(usable[:, None], 1.0 / safe, 0.0).cumsum(axis=0)
    squares = np.maximum(squares, _predicted_squares(chosen, paid, inverse))
    least = np.minimum.accumulate(np.where(usable, safe.min(axis=1), 1.0))
    above = (chosen & (paid[:, None] > means)).cumsum(axis=0)
    outcomes = chosen.cumsum(axis=0)
    shown = (outcomes.min(axis=1) >= FEWEST) & (least * count >= 1.0)
    shown &= np.minimum(above, outcomes - above).min(axis=1) >= FEWEST_EACH_SIDE
    alpha = 1.0 - level
    rho2 = mixture_parameter(alpha, optimal_at)
    inside = squares * rho2 + 1.0
    reach = np.where(shown, np.sqrt(2.0 * inside * np.log(np.sqrt(inside) / alpha) / (count**2 * rho2)), math.inf)
    centre = mean + point * signs.sum()
    each = zip([log.names[arm] for arm in arms], outcomes[-1].tolist(), above[-1].tolist(), strict=True)
    reason = why_withheld(each, float(least[-1]), int(usable.sum()))
    return np.where(usable.cumsum() > 0, centre, math.nan), centre - reach, centre + reach, reason


def _predicted_squares(chosen: Any, paid: FloatArray, inverse: FloatArray) -> FloatArray:
    """The variance of the scores, times their number, that the outcomes' variances and the propensities predict."""
    count, every = np.maximum(chosen.cumsum(axis=0), 1), np.arange(1, paid.size + 1)
    spread = np.maximum((paid**2).cumsum() / every - (paid.cumsum() / every) ** 2, 0.0)
    sums, squares = (chosen * paid[:, None]).cumsum(axis=0), (chosen * paid[:, None] ** 2).cumsum(axis=0)
    around = np.maximum(squares - sums**2 / count, 0.0)
    predicted: FloatArray = ((around + spread[:, None]) / count * inverse).sum(axis=1)
    return predicted


def _before(values: FloatArray) -> FloatArray:
    """Sums over the rows before each, float array (row, column)."""
    return np.vstack([np.zeros((1, values.shape[1])), values.cumsum(axis=0)[:-1]])


def _bernstein(
    log: DecisionLog, arms: tuple[int, ...], rows: IntArray, level: float, bounds: tuple[float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    low, high = float(bounds[0]), float(bounds[1])
    rewards = log.rewards[rows]
    if not low < high or (rewards < low).any() or (rewards > high).any():
        raise SettingError(
            f"method='empirical-bernstein' needs rewards within bounds; they are {bounds}, and the log holds rewards "
            f"from {rewards.min():g} to {rewards.max():g}. Give bounds=(least, largest)."
        )
    scaled, alpha = (rewards - low) / (high - low), (1.0 - level) / (2 * len(arms))
    ends, means = [], []
    for arm in arms:
        shares = log.propensities[rows, arm]
        weight = np.divide(log.arms[rows] == arm, shares, out=np.zeros(rows.size), where=shares > 0.0)
        usable = shares > 0.0
        least = np.maximum(_bernstein_bound(weight * scaled, usable, alpha), 0.0)
        most = np.minimum(1.0 - _bernstein_bound(weight * (1.0 - scaled), usable, alpha), 1.0)
        count = usable.cumsum()
        means.append(np.divide((weight * scaled).cumsum(), count, out=np.full(rows.size, math.nan), where=count > 0))
        ends.append((least, most))
    size = high - low
    if len(arms) == 1:
        return low + means[0] * size, low + ends[0][0] * size, low + ends[0][1] * size
    (low_a, high_a), (low_b, high_b) = ends
    return (means[0] - means[1]) * size, (low_a - high_b) * size, (high_a - low_b) * size


def _bernstein_bound(scores: FloatArray, usable: Any, alpha: float) -> FloatArray:
    """The lower bound after each row; rows that are not usable repeat the one before."""
    mine = scores[usable]
    if mine.size == 0:
        return np.full(scores.size, -math.inf)
    following = np.arange(1, mine.size + 1, dtype=float)
    centre = np.minimum(1.0, (0.5 + np.concatenate([[0.0], mine.cumsum()[:-1]])) / following)
    away = (mine - centre) ** 2
    variance = (0.25 + np.concatenate([[0.0], away.cumsum()[:-1]])) / following
    bets = np.minimum(LARGEST_BET, np.sqrt(2.0 * math.log(1.0 / alpha) / (variance * following * np.log1p(following))))
    paid = (-np.log1p(-bets) - bets) * away
    bound = ((bets * mine).cumsum() - math.log(1.0 / alpha) - paid.cumsum()) / bets.cumsum()
    place = usable.cumsum()
    return np.where(place > 0, np.concatenate([[-math.inf], bound])[place], -math.inf)
