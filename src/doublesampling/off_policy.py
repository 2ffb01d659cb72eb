"""Estimate what a policy would have earned on logged decisions: rejection replay, inverse propensities, doubly robust.

A log holds, for each decision, the arm that was played, what it paid, the probability with which it was played, and
perhaps a context. Every policy walks the log in order and never looks ahead:

    replay   its own choice counts where it is the logged one and a coin of (least propensity / propensity) allows it:
             what is left is distributed as if the policy had played alone (Li et al., 2011)
    ips      reward times (its propensity / the logged one), averaged; it learns from every row
    dr       the same, with its own posterior mean taken off and put back: the same mean, less noise

On the log of a policy that learned, ips and dr of a policy that never changes are adaptively weighted means (see
inference/fixed_targets.py), and there is no interval where the log's propensities vanish.

Policies and beliefs of your own are evaluated too. A policy may keep state of its own along a walk, as in ``simulate``:
each walk begins with a copy, and in ``replay`` a choice that does not count leaves no trace.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from doublesampling import checks, html
from doublesampling.decision import decide
from doublesampling.errors import SettingError
from doublesampling.evidence import Played
from doublesampling.given import check_belief, check_policy
from doublesampling.inference.fixed_targets import (
    adaptive_mean,
    is_fixed,
    why_no_interval,
    why_no_interval_while_learning,
)
from doublesampling.logs import Log
from doublesampling.policies import is_ours

FloatArray = NDArray[np.float64]

FEWEST = 30
"""Rows, or effective rows, below which no interval is given."""
COVERED = 0.05
"""How far, beyond chance, the mean weight may be from 1 before an adaptive log is said not to cover a policy."""
_OFTEN = 256  # rows between two reports of progress


class Worth(NamedTuple):
    """An estimate of the mean reward with a confidence interval, nan where too few rows carry it."""

    mean: float
    low: float
    high: float
    rows: int
    """How many rows enter."""
    effective: float
    """How many rows of equal weight would be as informative: (sum of weights)^2 / sum of squared weights."""


@dataclass(frozen=True)
class Evaluation:
    """What a policy would have earned per decision by three estimates, and why they may not be trusted."""

    replay: Worth
    ips: Worth
    dr: Worth
    warnings: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        rows = [(name, *getattr(self, name)) for name in ("replay", "ips", "dr")]
        headings = ["estimate", "mean reward", "low", "high", "rows", "effective rows"]
        shown = html.table(rows, headings, caption="What the policy would have earned per decision")
        return html.block(shown, *(html.line(f"Note: {each}") for each in self.warnings))


def evaluate(
    policy: Any,
    log: Log,
    *,
    belief: Any = None,
    seed: int = 0,
    level: float = 0.95,
    progress: Callable[[int], None] = lambda rows: None,
) -> Evaluation:
    """Estimate what a policy would have earned per decision on a log, with confidence intervals of a level.

    ``progress`` is called now and then with how many rows were walked since; every row is walked twice.
    """
    policy = check_policy(policy)
    if not isinstance(log, Log):
        raise SettingError(f"evaluate takes a log, as read_log and make_log return it, got {checks.shown(log)}.")
    belief = log.belief() if belief is None else check_belief(belief)
    if belief.arms != len(log.names):
        raise SettingError(f"The belief has {belief.arms} arms and the log {len(log.names)}. They must agree.")
    level, seed = checks.within("level", level, 0.5, 0.9999), checks.seed(seed)
    walked = _weighed(policy, log, belief, seed, progress)
    accepted = _replayed(policy, log, belief, seed, progress)
    replay = _worth(accepted, np.ones(accepted.size), level)
    ips, dr, reason = _weighted_worths(log, walked, level)
    return Evaluation(replay, ips, dr, _warnings(log, replay, ips, walked, reason))


class _Walked(NamedTuple):
    """A walk over a log: the terms of both weighted estimates, their weights, and the policy's propensities."""

    ips: FloatArray
    dr: FloatArray
    weights: FloatArray
    target: FloatArray
    """(row, arm)"""


def _weighted_worths(log: Log, walked: _Walked, level: float) -> tuple[Worth, Worth, str | None]:
    """Return ips and dr, and why an adaptive log gives them no interval."""
    ips, dr, weights, target = walked
    every, reason = log.all_propensities, None
    if log.adaptive and is_fixed(target):
        reason = why_no_interval(target[0], every, log.contexts is not None)
        if reason is None and every is not None:
            found = [adaptive_mean(terms, target[0], log.arms, every, level) for terms in (ips, dr)]
            few = found[0].effective < FEWEST
            first, second = (
                Worth(each.mean, *((math.nan, math.nan) if few else (each.low, each.high)), ips.size, each.effective)
                for each in found
            )
            return first, second, None
    elif log.adaptive:
        reason = why_no_interval_while_learning(target, every, weights)
    usable = reason is None and (_is_covered(weights) or not log.adaptive)
    return _worth(ips, weights, level, usable), _worth(dr, weights, level, usable), reason


def _is_covered(weights: FloatArray) -> bool:
    """Return whether the log plays what the policy would play: then the weights average to 1, whatever was learned."""
    error = float(weights.std(ddof=1) / math.sqrt(weights.size)) if weights.size > 1 else math.inf
    return abs(float(weights.mean()) - 1.0) <= COVERED + 2.0 * error


def _warnings(log: Log, replay: Worth, ips: Worth, walked: _Walked, reason: str | None) -> tuple[str, ...]:
    """What the reader of the estimates has to know."""
    said, weight = [], float(walked.weights.mean())
    if replay.rows < FEWEST:
        said.append(f"replay rests on {replay.rows} rows, fewer than {FEWEST}: no interval.")
    if ips.effective < FEWEST:
        rows = f"{ips.effective:.0f} rows' worth, fewer than {FEWEST}"
        said.append(f"ips and dr rest on {rows}: a few large weights decide them, no interval.")
    if reason is not None:
        said.append(f"ips and dr have no interval: {reason}")
    if log.adaptive and is_fixed(walked.target):
        if reason is None and ips.effective >= FEWEST:
            said.append(
                "the log was made by a policy that learned, and this policy never changes: ips and dr are adaptively "
                "weighted means, whose intervals hold in large samples."
            )
    elif not _is_covered(walked.weights):
        none = ", no interval" if log.adaptive else ""
        said.append(
            f"the weights of ips and dr average {weight:.2f} and should average 1: the log hardly ever plays what this "
            f"policy would play{none}. A floor under the propensities of the log would have been needed."
        )
    elif log.adaptive and reason is None:
        said.append(
            "the log was made by a policy that learned (its propensities change): intervals hold in large samples "
            "where its propensities do not become small. To compare arms, use ds.analyse."
        )
    return tuple(said)


@dataclass
class _Tally:
    """What a policy of one's own may see of the rows that it learned from."""

    arms: int
    counts: NDArray[np.int64] = field(init=False)
    sums: FloatArray = field(init=False)
    last: tuple[int, float] | None = None

    def __post_init__(self) -> None:
        self.counts, self.sums = np.zeros(self.arms, dtype=np.int64), np.zeros(self.arms)

    def add(self, arm: int, reward: float) -> None:
        """Count one more reward."""
        self.counts[arm] += 1
        self.sums[arm] += reward
        self.last = (arm, reward)

    def shown_to(self, policy: Any) -> Played | None:
        """Return copies, which the policy may change; policies of this package need none."""
        return None if is_ours(policy) else Played(self.counts.copy(), self.sums.copy(), self.last)


def _own_copy(policy: Any) -> Any:
    """Return a copy of a policy that may keep state of its own; those of this package keep none."""
    return policy if is_ours(policy) else copy.deepcopy(policy)


def _context(log: Log, row: int) -> FloatArray | None:
    return None if log.contexts is None else log.contexts[row]


def _replayed(policy: Any, log: Log, belief: Any, seed: int, progress: Callable[[int], None]) -> FloatArray:
    """Rewards of the rows that count; the policy learns from these alone."""
    coin = np.random.default_rng(seed)
    least = float(log.propensities.min())
    policy, state, tally = _own_copy(policy), belief.prior(), _Tally(belief.arms)
    earned: list[float] = []
    for row, arm in enumerate(log.arms.tolist()):
        if row % _OFTEN == _OFTEN - 1:
            progress(_OFTEN)
        allowed = coin.random() < least / log.propensities[row]
        if not allowed:
            continue
        chooser, context, reward = _own_copy(policy), _context(log, row), float(log.rewards[row])
        decision = decide(
            chooser, belief, state, context, seed=seed, time=len(earned) + 1, played=tally.shown_to(policy)
        )
        if decision.arm == arm:
            policy, state = chooser, belief.update(state, arm, reward, context)
            tally.add(arm, reward)
            earned.append(reward)
    return np.array(earned)


def _weighed(policy: Any, log: Log, belief: Any, seed: int, progress: Callable[[int], None]) -> _Walked:
    """The terms of the two weighted estimates, the weights and propensities; the policy learns from every row."""
    policy, state, tally, span = _own_copy(policy), belief.prior(), _Tally(belief.arms), (0.0, 0.0)
    ips, dr, weights = (np.empty(log.arms.size) for _ in range(3))
    target = np.empty((log.arms.size, belief.arms))
    for row, arm in enumerate(log.arms.tolist()):
        if row % _OFTEN == _OFTEN - 1:
            progress(_OFTEN)
        context, reward = _context(log, row), float(log.rewards[row])
        decision = decide(policy, belief, state, context, seed=seed, time=row + 1, played=tally.shown_to(policy))
        # what a model expects may lie outside of all that was ever paid; any guess from the past keeps dr unbiased
        expected = np.clip(belief.marginals(state, context).mean, *span)
        if np.isnan(decision.propensities).any():
            hint = "Use another." if is_ours(policy) else "Return the probability of each arm from choose, not an arm."
            raise SettingError(f"{policy!r} does not know its propensities, which this estimate needs. {hint}")
        target[row] = decision.propensities
        weights[row] = decision.propensities[arm] / log.propensities[row]
        ips[row] = weights[row] * reward
        dr[row] = decision.propensities @ expected + weights[row] * (reward - expected[arm])
        state = belief.update(state, arm, reward, context)
        tally.add(arm, reward)
        span = min(span[0], reward), max(span[1], reward)
    return _Walked(ips, dr, weights, target)


def _worth(terms: FloatArray, weights: FloatArray, level: float, usable: bool = True) -> Worth:
    """The mean of terms, each unbiased given those before it, and an interval by the Student law of so many rows."""
    total = float((weights**2).sum())
    effective = float(weights.sum() ** 2 / total) if total > 0.0 else 0.0
    mean = float(terms.mean()) if terms.size else math.nan
    if effective < FEWEST or not usable:
        return Worth(mean, math.nan, math.nan, terms.size, effective)
    quantile = stats.t.isf((1.0 - level) / 2.0, effective - 1.0)
    reach = float(quantile * terms.std(ddof=1) / math.sqrt(terms.size))
    return Worth(mean, mean - reach, mean + reach, terms.size, effective)
