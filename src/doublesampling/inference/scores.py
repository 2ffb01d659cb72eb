"""Scores of every decision for an arm, and the weights with which they are averaged.

The score of decision t for arm a is Γ_t(a) = m̂_t(a) + 1{A_t = a}(Y_t - m̂_t(a)) / e_t(a), with e_t(a) the logged
propensity and m̂_t(a) an expected reward fitted on outcomes that were known before decision t. Given the past, Γ_t(a)
has the mean of arm a, whatever m̂ is. Where e_t(a) = 0 the decision tells nothing about the arm, and its weight is 0.
Hadad, Hirshberg, Zhan, Wager, Athey (2021) average them with weights h_t(a).
"""

import numpy as np
from numpy.typing import NDArray

from doublesampling.inference.decision_log import DecisionLog, FloatArray, IntArray
from doublesampling.rules.ridge import predict_from_past

RIDGE = 1.0
"""The penalty of the regression on contexts."""


def running_means(log: DecisionLog, arms: tuple[int, ...], initial: float | None) -> FloatArray:
    """Return m̂, float array (row, arm of the contrast): the mean of the arm's outcomes known before each decision.

    Before the first outcome of an arm it is ``initial``, or the mean of all outcomes known so far where that is None;
    before any outcome is known it is 0.
    """
    counts, sums = zip(*(_known_before(log, log.arms == arm) for arm in arms), strict=True)
    count, total = np.column_stack(counts), np.column_stack(sums)
    start: FloatArray = np.full(len(count), 0.0 if initial is None else initial)
    if initial is None:
        every, every_total = _known_before(log, np.ones(log.arms.size, dtype=bool))
        start = np.divide(every_total, every, out=start, where=every > 0)
    means: FloatArray = np.divide(total, count, out=np.repeat(start[:, None], len(arms), axis=1), where=count > 0)
    return means


def _known_before(log: DecisionLog, chosen: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Count and sum of the outcomes of the chosen rows that were known before each decision."""
    rows = np.flatnonzero(chosen & log.observed)
    size = log.arms.size + 1
    count = np.bincount(log.known[rows], minlength=size).cumsum()[:-1].astype(np.float64)
    total = np.bincount(log.known[rows], weights=log.rewards[rows], minlength=size).cumsum()[:-1]
    return count, total


def regressions(log: DecisionLog, arms: tuple[int, ...], initial: float | None) -> FloatArray:
    """Return m̂, float array (row, arm of the contrast): a ridge regression on contexts per arm, from the past only."""
    assert log.contexts is not None
    rows, told = log.arms.size, np.flatnonzero(log.observed)
    first = int(log.known[told].min())
    centre = float(log.rewards[told][log.known[told] == first].mean()) if initial is None else initial
    features = np.column_stack([np.ones(rows), log.contexts])
    order: IntArray = told[np.argsort(log.known[told], kind="stable")]
    out, width = np.empty((len(arms), rows)), features.shape[1]
    for column, arm in enumerate(arms):
        inverse, moments, gain = np.eye(width) / RIDGE, np.zeros(width), np.zeros(width)
        mine = order[log.arms[order] == arm]
        predict_from_past(features, log.rewards, log.known, mine, centre, inverse, moments, gain, out[column])
    out[:, :first] = 0.0 if initial is None else initial
    return out.T.copy()


def make_scores(log: DecisionLog, arms: tuple[int, ...], means: FloatArray) -> FloatArray:
    """Return Γ, float array (row, arm of the contrast); nan where the row has no outcome, m̂ where the arm had none."""
    scores = means.copy()
    for column, arm in enumerate(arms):
        played = np.flatnonzero(log.arms == arm)
        scores[played, column] += (log.rewards[played] - means[played, column]) / log.propensities[played, arm]
    scores[~log.observed] = np.nan
    return scores


def constant_weights(propensities: FloatArray) -> FloatArray:
    """Return h_t = sqrt(e_t): every decision adds the same variance. float array (row, arm of the contrast)."""
    return np.sqrt(propensities)


def stick_breaking_weights(propensities: FloatArray, decay: float) -> FloatArray:
    """Return two-point allocation weights: h_t² / e_t = (1 - Σ_{s<t} h_s² / e_s) λ_t.

    λ_t averages two futures of an arm: that it is played always, with weight e_t, or less and less, as t^-decay.
    """
    rows = propensities.shape[0]
    t = np.arange(1, rows + 1, dtype=np.float64)[:, None]
    kept = 1.0 / (1.0 + rows - t)
    lost = (1.0 - decay) / (1.0 - decay + rows * (t / rows) ** decay - t)
    rate = np.clip((1.0 - propensities) * lost + propensities * kept, 0.0, 1.0)
    rate[propensities <= 0.0] = 0.0  # no part of the stick is spent where an arm cannot be drawn
    left = np.vstack([np.ones((1, rate.shape[1])), np.cumprod(1.0 - rate, axis=0)[:-1]])
    weights: FloatArray = np.sqrt(left * rate * propensities)
    return weights
