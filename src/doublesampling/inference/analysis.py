"""``ds.analyse``: the mean of an arm, or the difference of two, from data that a policy chose."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from doublesampling import checks, html
from doublesampling.errors import SettingError
from doublesampling.inference.decision_log import Contrast, DecisionLog, FloatArray
from doublesampling.inference.reading import read_decisions
from doublesampling.inference.scores import (
    constant_weights,
    make_scores,
    regressions,
    running_means,
    stick_breaking_weights,
)
from doublesampling.inference.trust import Support, check_propensities_last, find_support
from doublesampling.inference.words import trust

METHODS = ("aw-aipw", "aipw", "ips", "naive")
WEIGHTS = ("constant", "stick-breaking")


@dataclass(frozen=True)
class Analysis:
    """An estimate with its confidence interval, what it rests on, and in words when it may be trusted.

    >>> import pandas as pd
    >>> import doublesampling as ds
    >>> log = pd.DataFrame({"arm": [0, 1] * 50, "reward": [0, 1, 1, 1] * 25, "propensity_0": 0.5, "propensity_1": 0.5})
    >>> found = ds.analyse(log, contrast=(1, 0))
    >>> round(found.estimate, 2), found.low < 0.5 < found.high, found.outcomes
    (0.5, True, (50, 50))
    """

    estimate: float
    low: float
    high: float
    p_value: float
    """Two-sided, of the hypothesis that the true value is ``null``."""
    standard_error: float
    effective_sample_size: float
    """Outcomes of equal weight that would be as informative, (Σw)² / Σw²; of two arms, the smaller number."""
    degrees_of_freedom: float
    """Of the Student law that the interval and the p-value use."""
    method: str
    level: float
    contrast: str
    null: float
    rows: int
    """Decisions that were used."""
    outcomes: tuple[int, ...]
    """Of these, decisions for each arm of the contrast."""
    pending: int
    """Decisions whose outcome is awaited; left out."""
    missing: int
    """Decisions whose outcome is missing; left out."""
    imputed: int
    voided: int
    unavailable: int
    """Decisions with an outcome that were left out because an arm of the contrast was not available."""
    used_up: int
    """Decisions that tell nothing about one arm of the contrast, because its slots of a permuted block were used."""
    least_propensity: float
    worst_case: tuple[float, float] | None
    """The interval that holds whatever the pending and missing outcomes are, where rewards are bounded."""
    trust: str
    """When the result may be trusted."""

    def __str__(self) -> str:
        head = (
            f"{self.contrast}: {self.estimate:.4g}, {100 * self.level:g} % interval {self.low:.4g} to {self.high:.4g}"
        )
        return f"{head}, p = {self.p_value:.3g} ({self.method}, {self.rows} decisions)\n{self.trust}"

    def _repr_html_(self) -> str:
        """A table for a notebook, and when to trust it."""
        headings = ["", "estimate", f"{100 * self.level:g} % interval", "p", "method", "effective outcomes"]
        between, size = f"{self.low:.4g} to {self.high:.4g}", round(self.effective_sample_size)
        row = (self.contrast, self.estimate, between, f"{self.p_value:.3g}", self.method, size)
        return html.block(html.table([row], headings, caption="Analysis"), html.line(self.trust))


@dataclass(frozen=True, kw_only=True)
class AnalysisSettings:
    """The settings of ``analyse`` that do not depend on the log, checked."""

    method: str = "aw-aipw"
    level: float = 0.95
    weights: str = "constant"
    bounds: tuple[float, float] | None = None
    null: float = 0.0
    decay: float = 0.7
    initial: float | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "method": checks.one_of("method", self.method, METHODS),
            "level": checks.within("level", self.level, 0.5, 0.9999),
            "weights": checks.one_of("weights", self.weights, WEIGHTS),
            "bounds": None if self.bounds is None else _check_bounds(self.bounds),
            "null": checks.real("null", self.null, error=SettingError),
            "decay": checks.within("decay", self.decay, 0.0, 0.99),
            "initial": None if self.initial is None else checks.real("initial", self.initial, error=SettingError),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)


def _check_bounds(bounds: object) -> tuple[float, float]:
    given = checks.array("bounds", bounds, error=SettingError)
    if given.shape != (2,) or given[0] >= given[1]:
        raise SettingError(f"bounds must be the least and the largest reward, got {checks.shown(bounds)}.")
    return float(given[0]), float(given[1])


def analyse(
    log: Any,
    contrast: Contrast = (1, 0),
    method: str = "aw-aipw",
    level: float = 0.95,
    *,
    weights: str = "constant",
    context: Sequence[str] | str = (),
    bounds: tuple[float, float] | None = None,
    null: float = 0.0,
    decay: float = 0.7,
    initial: float | None = None,
) -> Analysis:
    """Estimate the mean reward of an arm, or the difference of two, from a log with propensities.

    ``log`` is a DataFrame or mapping with the columns ``arm``, ``reward`` and ``propensity_0``, ``propensity_1``, ...,
    a CSV, Parquet or JSON Lines file, an Experiment, or its export. ``contrast`` names two arms, or one.

    ``method`` is "aw-aipw" (adaptively weighted scores, valid for adaptive logs whose propensities do not vanish),
    "aipw" (the same scores, equal weights), "ips" (inverse propensity), or "naive" (plain means, for comparison).
    ``weights`` of aw-aipw are "constant" or "stick-breaking", with the ``decay`` of a floor such as t^-0.7. Columns
    named in ``context`` enter a regression per arm that is fitted on the past only. ``bounds`` are the least and the
    largest reward; without them, rewards within [0, 1] are taken to be bounded by 0 and 1. ``initial`` is what is
    expected of an arm before its first outcome; by default, the mean of all outcomes known so far.

    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(1)
    >>> arm = rng.integers(0, 2, 1000)
    >>> reward = (rng.random(1000) < 0.4 + 0.2 * arm).astype(float)
    >>> log = pd.DataFrame({"arm": arm, "reward": reward, "propensity_0": 0.5, "propensity_1": 0.5})
    >>> found = analyse(log, contrast=(1, 0))
    >>> found.low < 0.2 < found.high
    True
    """
    choice = AnalysisSettings(
        method=method, level=level, weights=weights, bounds=bounds, null=null, decay=decay, initial=initial
    )
    found = read_decisions(log, context)
    arms = found.contrast(contrast)
    limits = _limits(found, choice.bounds)
    support = find_support(found, arms, choice.method == "naive")
    if choice.method != "naive":
        check_propensities_last(found, arms, support)
    result = _estimate(found, arms, choice, support)
    worst = _worst_case(found, arms, choice, limits)
    result = replace(result, worst_case=worst)
    return replace(result, trust=trust(found, arms, result, limits))


def _limits(log: DecisionLog, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
    known = log.rewards[log.observed]
    if bounds is None:
        return (0.0, 1.0) if ((known >= 0.0) & (known <= 1.0)).all() else None
    for reward in known[(known < bounds[0]) | (known > bounds[1])][:1]:
        raise SettingError(f"bounds are {bounds[0]:g} to {bounds[1]:g}, and the log holds a reward of {reward:g}.")
    return bounds


def _estimate(log: DecisionLog, arms: tuple[int, ...], choice: AnalysisSettings, support: Support) -> Analysis:
    """The estimate from the rows of a support, without words."""
    method: Callable[..., tuple[FloatArray, FloatArray]] = _naive_terms if choice.method == "naive" else _score_terms
    each, terms = method(log, arms, choice, support)
    signs = np.array([1.0, -1.0])[: len(arms)]
    sizes = _effective(log, arms, choice, support)
    estimate, error = float(each @ signs), math.sqrt(float((terms @ signs) @ (terms @ signs)))
    freedom = degrees_of_freedom((terms**2).sum(axis=0), sizes)
    reach = float(special.stdtrit(freedom, 0.5 + choice.level / 2.0)) * error
    z = abs(estimate - choice.null) / error if error > 0.0 else math.inf
    played = log.arms[support.rows]
    return Analysis(
        estimate=estimate, low=estimate - reach, high=estimate + reach, p_value=float(2.0 * special.stdtr(freedom, -z)),
        standard_error=error, effective_sample_size=float(sizes.min()), degrees_of_freedom=freedom,
        method=choice.method, level=choice.level, contrast=log.title(arms), null=choice.null, rows=support.rows.size,
        outcomes=tuple(int((played == arm).sum()) for arm in arms), pending=log.pending, missing=log.missing,
        imputed=log.imputed, voided=log.voided, unavailable=support.unavailable, used_up=support.used_up,
        least_propensity=support.least, worst_case=None, trust="",
    )  # fmt: skip


def _naive_terms(
    log: DecisionLog, arms: tuple[int, ...], choice: AnalysisSettings, support: Support
) -> tuple[FloatArray, FloatArray]:
    """Means of the arms, and terms (row, arm) whose sums of squares are their variances."""
    rewards, played = log.rewards[support.rows], log.arms[support.rows]
    means, terms = np.zeros(len(arms)), np.zeros((support.rows.size, len(arms)))
    for column, arm in enumerate(arms):
        mine = played == arm
        count = int(mine.sum())
        means[column] = rewards[mine].mean()
        terms[mine, column] = (rewards[mine] - means[column]) / math.sqrt(count * (count - 1))
    return means, terms


def _weights(log: DecisionLog, arms: tuple[int, ...], choice: AnalysisSettings, support: Support) -> FloatArray:
    """The weight of every score, float array (row of the support, arm of the contrast)."""
    shares = log.propensities[support.rows][:, list(arms)]
    if choice.method != "aw-aipw":
        return (shares > 0.0).astype(np.float64)
    h = constant_weights(shares) if choice.weights == "constant" else stick_breaking_weights(shares, choice.decay)
    if choice.initial is None:
        # before any outcome is known m̂ has no scale: unless these rows hold most outcomes of an arm, they add noise
        played, later = log.arms[support.rows], support.rows >= int(log.known[log.observed].min())
        kept, dropped = (np.array([(played[rows] == arm).sum() for arm in arms]) for rows in (later, ~later))
        if (kept > dropped).all():
            h[~later] = 0.0
    return h


def _score_terms(
    log: DecisionLog, arms: tuple[int, ...], choice: AnalysisSettings, support: Support
) -> tuple[FloatArray, FloatArray]:
    """Weighted means of the scores, and terms (row, arm) whose sums of squares are their variances."""
    if choice.method == "ips":
        means = np.zeros((log.arms.size, len(arms)))
    else:
        fit = running_means if log.contexts is None else regressions
        means = fit(log, arms, choice.initial)
    scores = make_scores(log, arms, means)[support.rows]
    h = _weights(log, arms, choice, support)
    total = h.sum(axis=0)
    each = (h * scores).sum(axis=0) / total
    return each, h * (scores - each) / total


def degrees_of_freedom(variances: FloatArray, sizes: FloatArray) -> float:
    """Return Welch and Satterthwaite's degrees of freedom from the variance and effective sample size of each arm.

    Theory gives a normal law in large samples; a variance from few outcomes is itself uncertain.
    """
    if not (variances > 0.0).any():
        return math.inf
    return float(variances.sum() ** 2 / (variances**2 / np.maximum(sizes - 1.0, 1.0)).sum())


def _effective(log: DecisionLog, arms: tuple[int, ...], choice: AnalysisSettings, support: Support) -> FloatArray:
    """The effective sample size of each arm of the contrast."""
    h, sizes = _weights(log, arms, choice, support), []
    for column, arm in enumerate(arms):
        mine = log.arms[support.rows] == arm
        weights = h[mine, column] / log.propensities[support.rows[mine], arm]
        if choice.method == "naive":
            weights = np.ones(int(mine.sum()))
        sizes.append(float(weights.sum() ** 2 / (weights**2).sum()))
    return np.array(sizes)


def _worst_case(
    log: DecisionLog, arms: tuple[int, ...], choice: AnalysisSettings, limits: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The lowest and the highest end of an interval over all values that unknown outcomes may have."""
    if limits is None or log.observed.all():
        return None
    ends = []
    for against, pick in ((limits, 0), (limits[::-1], 1)):
        rewards = log.rewards.copy()
        for arm, value in zip(arms, against, strict=False):
            rewards[~log.observed & (log.arms == arm)] = value
        rewards[np.isnan(rewards)] = limits[0]  # of other arms: they do not enter
        known = np.where(log.observed, log.known, log.arms.size)
        filled = replace(log, rewards=rewards, known=known, pending=0)
        found = _estimate(filled, arms, choice, find_support(filled, arms))
        ends.append((found.low, found.high)[pick])
    return ends[0], ends[1]
