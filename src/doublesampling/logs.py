"""Logs of decisions: read from files, from a live experiment's export, or made of columns."""

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.beliefs import BetaBernoulli, Gaussian, LinearGaussian
from doublesampling.errors import ContextError, LogError, missing_extra
from doublesampling.features import ContextsLike, Features, read_features

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_ARMS = 200
"""Different values of a column above which it can hardly be the arm."""
_ROUNDING = 1e-9  # a sum of propensities may be this much above 1
_EXPORT = ("arm", "arm_name", "propensity", "propensities", "status", "reward")  # columns that only our exports have


@dataclass(frozen=True, eq=False)
class Log:
    """Logged decisions: arms as int array (row), rewards and propensities as float arrays (row), contexts or None.

    ``skipped`` counts rows that were left out because their outcome is not known.
    """

    names: tuple[str, ...]
    arms: IntArray
    rewards: FloatArray
    propensities: FloatArray
    contexts: FloatArray | None = None
    skipped: int = 0
    shares: FloatArray | None = None
    """Propensities of all arms, float array (row, arm), where the log has them."""

    @property
    def all_propensities(self) -> FloatArray | None:
        """The propensity of every arm in every row, float array (row, arm); None where only those played are known."""
        if self.shares is not None or len(self.names) != 2:
            return self.shares
        first = np.where(self.arms == 0, self.propensities, 1.0 - self.propensities)
        return np.column_stack([first, 1.0 - first])

    @property
    def adaptive(self) -> bool:
        """Whether an arm's propensity changes from row to row: a policy that learns logged it."""
        return any(np.ptp(self.propensities[self.arms == arm]) > 1e-9 for arm in np.unique(self.arms))

    def belief(self) -> Any:
        """Return a belief that fits the log: Beta for rewards of 0 and 1 without a context, else Gaussian."""
        if self.contexts is not None:
            size = self.contexts.shape[1]  # as much is expected of many columns as of one
            return LinearGaussian(arms=len(self.names), dimension=size, mean=0.0, covariance=1.0 / size)
        if np.isin(self.rewards, (0.0, 1.0)).all():
            return BetaBernoulli(arms=len(self.names))
        return Gaussian(arms=len(self.names))


@dataclass(frozen=True)
class Columns:
    """What the columns of a log are called, in the file and in errors."""

    arm: str = "arm"
    reward: str = "reward"
    propensity: str = "propensity"


def make_log(
    arms: Sequence[Any],
    rewards: ArrayLike,
    propensities: ArrayLike | None = None,
    contexts: ContextsLike | None = None,
    *,
    features: Features | None = None,
) -> Log:
    """Make a log of columns; without propensities every arm is taken to have been played with the same probability.

    With ``features``, contexts are records or a DataFrame. Else they are numbers, and a column of ones is put first.

    >>> log = make_log(["a", "b"], [0, 1], contexts=[{"age": 40}, {"age": 70}], features=Features(age=(0, 100)))
    >>> log.contexts.tolist()
    [[1.0, 0.4], [1.0, 0.7]]
    """
    given = contexts if features is None else _encoded(features, contexts)
    return _make(arms, rewards, propensities, given, Columns(), ones=features is None)


def _encoded(features: Features, contexts: Any) -> FloatArray:
    try:
        return read_features(features).matrix(contexts)
    except ContextError as problem:
        raise LogError(str(problem)) from None


def _make(
    arms: Sequence[Any], rewards: ArrayLike, propensities: ArrayLike | None, contexts: Any, called: Columns,
    ones: bool = True,
) -> Log:  # fmt: skip
    names = tuple(sorted({str(arm) for arm in arms}))
    if len(names) < 2:
        raise LogError(f"A log needs at least two arms, got {len(names)}. Is it the right column?")
    if len(names) > MOST_ARMS:
        raise LogError(
            f"Column {called.arm!r} has {len(names):,} different values in {len(arms):,} rows; an arm is one of at "
            f"most {MOST_ARMS} choices. Name the column of the arm."
        )
    index = {name: i for i, name in enumerate(names)}
    codes = np.array([index[str(arm)] for arm in arms])
    return _checked(names, codes, rewards, propensities, contexts, called, ones)


def _checked(
    names: tuple[str, ...], codes: IntArray, rewards: ArrayLike, propensities: ArrayLike | None,
    contexts: Any, called: Columns, ones: bool = True,
) -> Log:  # fmt: skip
    count = codes.size
    given = np.full(count, 1.0 / len(names))
    if propensities is not None:
        given = _column(called.propensity, propensities, count)
    for row in np.flatnonzero(~((given > 0.0) & (given <= 1.0 + _ROUNDING)))[:1]:
        wrong = f"Row {row + 1}, column {called.propensity!r}: {given[row]:g} is not a probability above 0."
        raise LogError(f"{wrong} Correct it, or drop the row.")
    seen = None
    if contexts is not None:
        given_contexts = checks.array("contexts", contexts, error=LogError).reshape(count, -1)
        seen = np.column_stack([np.ones(count), given_contexts]) if ones else given_contexts
    return Log(names, codes, _column(called.reward, rewards, count), np.minimum(given, 1.0), seen)


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
    context: Sequence[str] = (), features: Features | None = None,
) -> Log:  # fmt: skip
    """Read a log from a CSV, Parquet or JSON Lines file.

    An export of a live experiment is recognised by its columns: its propensities and contexts are used, and decisions
    whose outcome is not known are left out and counted. ``context`` names columns of numbers; ``features`` take the
    columns of their fields instead, or the records of an export.
    """
    if features is not None and context:
        raise LogError("A log takes context= or features=, not both.")
    table = read_table(path)
    as_exported = arm == "arm" and reward == "reward" and propensity in (None, "propensity") and not context
    if as_exported and all(name in table.columns for name in _EXPORT):
        return _from_export(table, features)
    context = [context] if isinstance(context, str) else context
    for name in (arm, reward, *([propensity] if propensity else []), *context):
        if name not in table.columns:
            raise LogError(f"The log has no column {name!r}. It has {', '.join(map(repr, table.columns))}.")
    if table[arm].isna().any():
        row = int(np.flatnonzero(table[arm].isna())[0]) + 1
        raise LogError(f"Row {row}, column {arm!r}: missing. Fill it in, or drop the row.")
    contexts = None
    if context:
        contexts = np.column_stack([context_column(name, table[name]) for name in context])
    if features is not None:
        contexts = _encoded(features, table)
    given = None if propensity is None else table[propensity].to_numpy()
    called = Columns(arm, reward, propensity or "propensity")
    return _make(table[arm].tolist(), table[reward].to_numpy(), given, contexts, called, ones=features is None)


def read_table(path: object) -> "pd.DataFrame":
    """Return the rows of a CSV, Parquet or JSON Lines file."""
    if not isinstance(path, (str, os.PathLike)):
        raise LogError(f"A log is read from a file, got {checks.shown(path)}. Write its name.")
    pandas = import_module("pandas")  # heavy, and only for files
    file = Path(path)
    try:
        if file.suffix == ".parquet":
            return pandas.read_parquet(file)
        if file.suffix in (".jsonl", ".ndjson"):
            return pandas.read_json(file, lines=True, precise_float=True)
        return pandas.read_csv(file, **_exact_floats(pandas.__version__))
    except ImportError:
        raise missing_extra("Parquet files need pyarrow", "data") from None
    except OSError as problem:
        raise LogError(f"The log {str(file)!r} cannot be read: {problem.strerror or problem}.") from None
    except ValueError as problem:
        raise LogError(f"The log {str(file)!r} is not a table: {problem}.") from None


def _exact_floats(version: str) -> dict[str, str]:
    """Return how read_csv gives every digit back: by default from pandas 3.1 on, which deprecates to ask for it."""
    major, minor = (int(part) for part in version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def context_column(name: str, values: Any) -> FloatArray:
    """Return one number per row, or the list of numbers that each cell holds as JSON, float array (row, number)."""
    if any(isinstance(value, Mapping) or str(value).lstrip().startswith("{") for value in values):
        raise LogError(
            f"Column {name!r} holds records. Pass features=, those of the experiment: "
            "read_log(path, features=experiment.design.belief.features)."
        )
    if not any(isinstance(value, (str, list)) and str(value).lstrip().startswith("[") for value in values):
        return _column(name, values.to_numpy(), len(values))[:, None]
    rows = [_numbers(name, row, value) for row, value in enumerate(values)]
    length = len(rows[0])
    for row, numbers in enumerate(rows):
        if len(numbers) != length:
            raise LogError(f"Row {row + 1}, column {name!r}: {len(numbers)} numbers, where row 1 has {length}.")
    return np.array(rows)


def _record(row: int, value: Any) -> Any:
    """The record that a cell holds as JSON."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        found = None
    if not isinstance(found, Mapping):
        raise LogError(f"Row {row + 1}, column 'context': {checks.shown(value)} is not a record. Leave features out.")
    return found


def _numbers(name: str, row: int, value: Any) -> list[float]:
    """The numbers that a cell lists."""
    try:
        found = json.loads(value) if isinstance(value, str) else value
        return [float(number) for number in found]
    except (TypeError, ValueError):
        raise LogError(f"Row {row + 1}, column {name!r}: {checks.shown(value)} is not a list of numbers.") from None


def _from_export(table: "pd.DataFrame", features: Features | None) -> Log:
    """A log from a live experiment's export: rows without an outcome are skipped and counted."""
    known = table[table["reward"].notna() & ~table["status"].isin(("void", "voided", "withdrawn"))]
    shares = [_numbers("propensities", i, value) for i, value in enumerate(table["propensities"])]
    arms = max((len(each) for each in shares), default=0)
    names = [f"arm {i}" for i in range(arms)]
    for code, name in zip(table["arm"], table["arm_name"], strict=True):
        names[int(code)] = str(name)
    if len(known) == 0:
        raise LogError(f"The export holds {len(table)} decisions, and no outcome of any is known yet.")
    contexts = None
    if "context" in known and known["context"].notna().all():
        if features is not None:
            contexts = _encoded(features, [_record(i, value) for i, value in enumerate(known["context"])])
        else:
            contexts = context_column("context", known["context"])
    codes = known["arm"].to_numpy().astype(np.int64)
    log = _checked(tuple(names), codes, known["reward"], known["propensity"], contexts, Columns(), features is None)
    filled = np.array([[*each, *[0.0] * (arms - len(each))] for each in shares], dtype=np.float64)
    every = filled[table.index.get_indexer(known.index)]
    skipped = len(table) - len(known)
    return Log(log.names, log.arms, log.rewards, log.propensities, log.contexts, skipped, every)


DATASETS = ("breast-cancer", "digits")


def classification_log(name: str, *, seed: int = 0) -> Log:
    """Turn a data set of scikit-learn into a bandit's log: arms are classes, uniformly logged, the right one pays 1."""
    checks.one_of("dataset", name, DATASETS)
    try:
        datasets = import_module("sklearn.datasets")
    except ImportError:
        raise missing_extra("The data sets come with scikit-learn", "data") from None
    found = datasets.load_breast_cancer() if name == "breast-cancer" else datasets.load_digits()
    rng = np.random.default_rng(seed)
    order = rng.permutation(found.target.size)
    features, target = found.data[order], found.target[order]
    spread = features.std(axis=0)
    features = (features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0]
    arms = rng.integers(0, len(found.target_names), target.size)
    return make_log([str(found.target_names[a]) for a in arms], (arms == target).astype(float), None, features)
