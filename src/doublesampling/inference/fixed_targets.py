"""What a fixed policy would have earned on an adaptive log: scores weighted by how much each row can tell.

The score of decision t for a target with propensities π is Γ_t = Σ_a π(a) m̂_t(a) + π(A_t) (Y_t - m̂_t(A_t)) / e_t(A_t).
Given the past its variance is about Σ_a π(a)² / e_t(a), so equal weights let few rows decide where e_t becomes small.
With h_t = (Σ_a π(a)² / e_t(a))^(-1/2), known before the decision, every row adds about the same variance to the
weighted mean, as constant-allocation weights do for one arm (Hadad and others 2021; Zhan and others 2021).
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from doublesampling.inference.decision_log import FloatArray, IntArray
from doublesampling.inference.trust import enough_floor

LARGEST_PART = 0.05
"""The part of all rows that a single one may count for before a learning target gets no interval."""


class Weighted(NamedTuple):
    """A weighted mean with its confidence interval, and how many outcomes of equal weight it is worth."""

    mean: float
    low: float
    high: float
    effective: float


def is_fixed(target: FloatArray) -> bool:
    """Return whether a policy would have played every arm with the same probability throughout, from (row, arm)."""
    return bool((np.ptp(target, axis=0) < 1e-12).all())


def adaptive_mean(
    scores: FloatArray, target: FloatArray, arms: IntArray, propensities: FloatArray, level: float
) -> Weighted:
    """Return the adaptively weighted mean of scores, with an interval by the Student law.

    Its degrees of freedom are those of the target's arm with the fewest effective outcomes: that arm's variance is the
    least certain one. target : float array (arm), arms : int array (row), propensities : (row, arm)
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        spread = np.where(target > 0.0, target**2 / propensities, 0.0).sum(axis=1)
    h = 1.0 / np.sqrt(spread)
    weight = h * target[arms] / propensities[np.arange(arms.size), arms]
    effective = _effective(weight)
    fewest = min(_effective(weight[arms == arm]) for arm in np.flatnonzero(target > 0.0))
    mean = float((h * scores).sum() / h.sum())
    error = math.sqrt(float((h**2 * (scores - mean) ** 2).sum())) / float(h.sum())
    reach = float(special.stdtrit(max(fewest - 1.0, 1.0), 0.5 + level / 2.0)) * error
    return Weighted(mean, mean - reach, mean + reach, effective)


def _effective(weight: FloatArray) -> float:
    """How many outcomes of equal weight would be as informative."""
    total = float((weight**2).sum())
    return float(weight.sum() ** 2 / total) if total > 0.0 else 0.0


def why_no_interval(target: FloatArray, propensities: FloatArray | None, contexts: bool) -> str | None:
    """Return why an adaptive log gives no interval for a fixed target, None where it does; target : (arm)."""
    if contexts:
        return "an adaptive log with contexts has no valid interval for a policy that never changes."
    if propensities is None:
        return (
            "the log is adaptive and has the propensity of the played arm only: an interval for a policy that never "
            "changes needs those of all arms, as an experiment's export has them."
        )
    rows, arms = propensities.shape
    least = float(propensities[:, target > 0.0].min())
    if least * rows >= 1.0 - 1e-9:
        return None
    floor = enough_floor(rows, arms)
    return (
        f"a propensity of the log falls to {least:.2g}, below 1 / {rows}: it all but stops playing an arm that this "
        f"policy plays, for reasons that lie in its outcomes, and no interval is valid. A floor of {floor:g} under the "
        "propensities of the log would have been enough."
    )


def why_no_interval_while_learning(
    target: FloatArray, propensities: FloatArray | None, ratio: FloatArray
) -> str | None:
    """Return why an adaptive log gives no interval for a policy that learns, None where it does; target : (row, arm).

    The weight of a row has the mean square Σ_a π(a)² / e(a). Where a single row may count as much as a large part of
    all rows together, the mean is skewed. Without the propensities of all arms, weights that were met take its place.
    """
    if propensities is None:
        largest = float(ratio.max())
    else:
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            largest = float(np.where(target > 0.0, target**2 / propensities, 0.0).sum(axis=1).max())
    if largest <= LARGEST_PART * ratio.size:
        return None
    return (
        f"a row could have counted as {largest:.3g} rows, more than {LARGEST_PART:.0%} of the {ratio.size}: the log "
        "hardly ever plays what this policy may play. A floor under the propensities of the log would have been needed."
    )
