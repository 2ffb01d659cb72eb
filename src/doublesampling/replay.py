"""What a policy would have earned on logged decisions: rejection replay, inverse propensities, doubly robust.

A log holds, for each decision, the arm that was played, what it paid, the probability with which it was played, and
perhaps a context. Every policy walks the log in order and never looks ahead:

    replay   its own choice counts where it is the logged one and a coin of (least propensity / propensity) allows it:
             what is left is distributed as if the policy had played alone (Li et al., 2011)
    ips      reward times (its propensity / the logged one), averaged; it learns from every row
    dr       the same, with its own posterior mean taken off and put back: the same mean, less noise
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from doublesampling import checks
from doublesampling.beliefs import BetaBernoulli, Gaussian, LinearGaussian
from doublesampling.decision import decide
from doublesampling.errors import LogError, MissingExtraError, SettingError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Log:
    """Logged decisions: arms as int array (row), rewards and propensities as float arrays (row), contexts or None."""

    names: tuple[str, ...]
    arms: IntArray
    rewards: FloatArray
    propensities: FloatArray
    contexts: FloatArray | None = None

    def belief(self) -> Any:
        """A belief that fits the log: Beta for rewards of 0 and 1 without a context, else Gaussian."""
        if self.contexts is not None:
            size = self.contexts.shape[1]  # a prior that expects nothing, and as much from many columns as from one
            return LinearGaussian(arms=len(self.names), dimension=size, mean=0.0, covariance=1.0 / size)
        if np.isin(self.rewards, (0.0, 1.0)).all():
            return BetaBernoulli(arms=len(self.names))
        return Gaussian(arms=len(self.names))


class Worth(NamedTuple):
    """An estimate of the mean reward, with a confidence interval, from so many rows."""

    mean: float
    low: float
    high: float
    rows: int


@dataclass(frozen=True)
class Evaluation:
    """What a policy would have earned per decision, by three estimates."""

    replay: Worth
    ips: Worth
    dr: Worth


def make_log(
    arms: Sequence[Any], rewards: ArrayLike, propensities: ArrayLike | None = None, contexts: ArrayLike | None = None
) -> Log:
    """A log from columns; without propensities every arm is taken to have been played with the same probability."""
    return _log(arms, rewards, propensities, contexts, "reward", "propensity")


def _log(
    arms: Sequence[Any], rewards: ArrayLike, propensities: ArrayLike | None, contexts: ArrayLike | None,
    reward: str, propensity: str,
) -> Log:  # fmt: skip
    """The same with the names that the columns of rewards and propensities go by in errors."""
    names = tuple(sorted({str(arm) for arm in arms}))
    if len(names) < 2:
        raise LogError(f"A log needs at least two arms, got {len(names)}. Is it the right column?")
    index = {name: i for i, name in enumerate(names)}
    count = len(arms)
    given = np.full(count, 1.0 / len(names)) if propensities is None else _column(propensity, propensities, count)
    for row, p in enumerate(given):
        if not 0.0 < p <= 1.0:
            wrong = f"Row {row + 1}, column {propensity!r}: {p:g} is not a probability above 0."
            raise LogError(f"{wrong} Correct it, or drop the row.")
    seen = None
    if contexts is not None:
        seen = np.column_stack([np.ones(count), checks.array("contexts", contexts, error=LogError).reshape(count, -1)])
    codes = np.array([index[str(arm)] for arm in arms])
    return Log(names, codes, _column(reward, rewards, count), given, seen)


def _column(name: str, values: ArrayLike, count: int) -> FloatArray:
    found = np.asarray(values)
    if found.shape != (count,):
        raise LogError(f"Column {name!r} has {found.size} rows, the arms have {count}.")
    out = np.empty(count)
    for row, value in enumerate(found.tolist()):
        try:
            out[row] = float(value)
        except (TypeError, ValueError):
            raise LogError(
                f"Row {row + 1}, column {name!r}: {checks.shown(value)} is not a number. Correct it, or drop the row."
            ) from None
        if not math.isfinite(out[row]):
            raise LogError(f"Row {row + 1}, column {name!r}: missing or not finite. Fill it in, or drop the row.")
    return out


def read_log(
    path: str | os.PathLike[str], *, arm: str = "arm", reward: str = "reward", propensity: str | None = None,
    context: Sequence[str] = (),
) -> Log:  # fmt: skip
    """A log from a CSV or Parquet file."""
    if not isinstance(path, (str, os.PathLike)):
        raise LogError(f"A log is read from a file, got {checks.shown(path)}. Write its name.")
    context = [context] if isinstance(context, str) else context
    pd = import_module("pandas")  # heavy, and only for files

    file = Path(path)
    try:
        table = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    except ImportError:
        raise MissingExtraError("Parquet files need pyarrow: pip install 'doublesampling[data]'") from None
    except OSError as problem:
        raise LogError(f"The log {str(file)!r} cannot be read: {problem.strerror or problem}.") from None
    except ValueError as problem:
        raise LogError(f"The log {str(file)!r} is not a table: {problem}.") from None
    for name in (arm, reward, *([propensity] if propensity else []), *context):
        if name not in table.columns:
            raise LogError(f"The log has no column {name!r}. It has {', '.join(map(repr, table.columns))}.")
    if table[arm].isna().any():
        row = int(np.flatnonzero(table[arm].isna())[0]) + 1
        raise LogError(f"Row {row}, column {arm!r}: missing. Fill it in, or drop the row.")
    contexts = None
    if context:
        contexts = np.column_stack([_column(name, table[name].to_numpy(), len(table)) for name in context])
    given = None if propensity is None else table[propensity].to_numpy()
    return _log(table[arm].tolist(), table[reward].to_numpy(), given, contexts, reward, propensity or "propensity")


def evaluate(policy: Any, log: Log, *, belief: Any = None, seed: int = 0, level: float = 0.95) -> Evaluation:
    """What a policy would have earned per decision on a log, with confidence intervals of a level."""
    if not isinstance(log, Log):
        raise SettingError(f"evaluate takes a log, as read_log and make_log return it, got {checks.shown(log)}.")
    belief = log.belief() if belief is None else belief
    if belief.arms != len(log.names):
        raise SettingError(f"The belief has {belief.arms} arms and the log {len(log.names)}. They must agree.")
    level = checks.within("level", level, 0.5, 0.9999)
    ips, dr = _weighed(policy, log, belief, seed)
    return Evaluation(_worth(_replayed(policy, log, belief, seed), level), _worth(ips, level), _worth(dr, level))


def _context(log: Log, row: int) -> FloatArray | None:
    return None if log.contexts is None else log.contexts[row]


def _replayed(policy: Any, log: Log, belief: Any, seed: int) -> FloatArray:
    """Rewards of the rows that count; the policy learns from these alone."""
    coin = np.random.default_rng(seed)
    least = float(log.propensities.min())
    state = belief.prior()
    earned: list[float] = []
    for row, arm in enumerate(log.arms.tolist()):
        allowed = coin.random() < least / log.propensities[row]
        if not allowed:
            continue
        decision = decide(policy, belief, state, _context(log, row), seed=seed, time=len(earned) + 1)
        if decision.arm == arm:
            state = belief.update(state, arm, float(log.rewards[row]), _context(log, row))
            earned.append(float(log.rewards[row]))
    return np.array(earned)


def _weighed(policy: Any, log: Log, belief: Any, seed: int) -> tuple[FloatArray, FloatArray]:
    """The terms of the two weighted estimates; the policy learns from every row."""
    state, span = belief.prior(), (0.0, 0.0)
    ips, dr = np.empty(log.arms.size), np.empty(log.arms.size)
    for row, arm in enumerate(log.arms.tolist()):
        context, reward = _context(log, row), float(log.rewards[row])
        decision = decide(policy, belief, state, context, seed=seed, time=row + 1)
        # what a model expects may lie outside of all that was ever paid; any guess from the past keeps dr unbiased
        expected = np.clip(belief.marginals(state, context).mean, *span)
        if np.isnan(decision.propensities).any():
            raise SettingError(f"{policy!r} does not know its propensities, which this estimate needs. Use another.")
        weight = decision.propensities[arm] / log.propensities[row]
        ips[row] = weight * reward
        dr[row] = decision.propensities @ expected + weight * (reward - expected[arm])
        state = belief.update(state, arm, reward, context)
        span = min(span[0], reward), max(span[1], reward)
    return ips, dr


def _worth(terms: FloatArray, level: float) -> Worth:
    """The mean of terms, each unbiased given those before it, and an interval by the normal law."""
    if terms.size < 2:
        return Worth(math.nan, math.nan, math.nan, terms.size)
    reach = float(stats.norm.isf((1.0 - level) / 2.0) * terms.std(ddof=1) / math.sqrt(terms.size))
    mean = float(terms.mean())
    return Worth(mean, mean - reach, mean + reach, terms.size)


DATASETS = ("breast-cancer", "digits")


def classification_log(name: str, *, seed: int = 0) -> Log:
    """A data set of scikit-learn as a bandit: arms are classes, uniformly logged, and the right one pays 1."""
    checks.one_of("dataset", name, DATASETS)
    try:
        datasets = import_module("sklearn.datasets")
    except ImportError:
        raise MissingExtraError("The data sets come with scikit-learn: pip install 'doublesampling[data]'") from None
    found = datasets.load_breast_cancer() if name == "breast-cancer" else datasets.load_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(found.target.size)
    features, target = found.data[order], found.target[order]
    spread = features.std(axis=0)
    features = (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    arms = rng.integers(0, len(found.target_names), target.size)
    return make_log([str(found.target_names[a]) for a in arms], (arms == target).astype(float), None, features)
