"""Read a log for analysis: a DataFrame, a mapping of arrays, a file, or the export of a live experiment."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from doublesampling import checks
from doublesampling.errors import LogError, SettingError
from doublesampling.inference.blocks import block_shares
from doublesampling.inference.decision_log import (
    DecisionLog,
    FloatArray,
    IntArray,
    check_propensities,
)
from doublesampling.logs import context_column, read_table

_PREFIX = "propensity_"
_EXPORT = ("arm", "arm_name", "propensities", "status", "reward")
_NO_OUTCOME = ("waiting", "withdrawn")


def read_decisions(log: Any, context: Sequence[str] | str = ()) -> DecisionLog:
    """Return a checked log.

    ``log`` is a DataFrame or a mapping with ``arm``, ``reward`` and ``propensity_0``, ``propensity_1``, ... (one per
    arm, or named after the arms), the name of a CSV, Parquet or JSON Lines file, an Experiment, or its export. An
    optional column ``known`` holds the position of the first decision, counted from 0, that knew the outcome of the
    row; without it, outcomes are taken to be known at the next decision.
    """
    if isinstance(log, DecisionLog):
        return log
    if hasattr(log, "decisions") and hasattr(log, "session"):  # an Experiment, which this layer does not import
        _refuse_context(context)
        return _from_export(log.decisions(), tuple(log.state.arms))
    table = _table(log)
    if all(name in table.columns for name in _EXPORT):
        _refuse_context(context)
        return _from_export(table, None)
    return _from_columns(table, [context] if isinstance(context, str) else list(context))


def _refuse_context(context: Sequence[str] | str) -> None:
    if len(context) > 0:
        raise SettingError(
            f"context names columns of a table, got {checks.shown(context)} for an experiment or its export, whose own "
            "contexts are used. Leave it out."
        )


def _table(log: Any) -> Any:
    pandas = import_module("pandas")
    if isinstance(log, pandas.DataFrame):
        return log
    if isinstance(log, Mapping):
        return _from_mapping(pandas, log)
    if isinstance(log, str) or hasattr(log, "__fspath__"):
        return read_table(log)
    raise SettingError(
        "A log is a DataFrame, a mapping of arrays, a file or an experiment with the columns arm, reward and "
        f"propensity_0, propensity_1, ..., got {checks.shown(log)}."
    )


def _from_mapping(pandas: Any, log: Mapping[str, Any]) -> Any:
    """A table of arrays; a two-dimensional ``propensities`` becomes one column per arm."""
    columns = dict(log)
    given = columns.pop("propensities", None)
    rows = len(columns.get("arm", ()))
    for name, values in columns.items():
        if np.ndim(values) != 1 or len(values) != rows:
            raise LogError(f"Column {name!r} has shape {np.shape(values)}, the arms have {rows} rows.")
    if given is not None:
        table = np.asarray(given, dtype=np.float64)
        if table.ndim != 2 or table.shape[0] != rows:
            hint = " It looks transposed." if table.ndim == 2 and table.shape[1] == rows else ""
            raise LogError(f"propensities must have shape ({rows}, number of arms), got {table.shape}.{hint}")
        columns |= {f"{_PREFIX}{arm}": table[:, arm] for arm in range(table.shape[1])}
    return pandas.DataFrame(columns)


def _from_columns(table: Any, context: list[str]) -> DecisionLog:
    propensity = [str(name) for name in table.columns if str(name).startswith(_PREFIX)]
    for name in ("arm", "reward", *context):
        if name not in table.columns:
            some = ", ".join(map(repr, list(table.columns)[:12])) + (", ..." if len(table.columns) > 12 else "")
            hint = " It looks transposed." if len(table.columns) > len(table) else ""
            raise LogError(f"The log has no column {name!r}. It has {some}.{hint}")
    if len(propensity) < 2:
        raise LogError(
            "The log needs the propensity of every arm at every decision, in the columns propensity_0, propensity_1, "
            f"...; it has {', '.join(map(repr, table.columns))}."
        )
    ends = [name.removeprefix(_PREFIX) for name in propensity]
    if all(end.isdigit() for end in ends):
        propensity = [f"{_PREFIX}{end}" for end in sorted(ends, key=int)]
        ends = sorted(ends, key=int)
        if [int(end) for end in ends] != list(range(len(ends))):
            raise LogError(f"Propensity columns must be counted from 0 without gaps, got {', '.join(propensity)}.")
    names = tuple(ends)
    arms = _arm_indices(table["arm"], names)
    shares = np.column_stack([_numbers(table, name, missing=False) for name in propensity])
    rewards = _numbers(table, "reward", missing=True)
    _check_rows(rewards, arms.size)
    known = _known(table, arms.size)
    check_propensities(shares, arms)
    contexts = np.column_stack([context_column(name, table[name]) for name in context]) if context else None
    shares = np.minimum(shares, 1.0)
    return DecisionLog(names, arms, rewards, shares, known, contexts, shares=block_shares(arms, shares))


def _check_rows(rewards: FloatArray, rows: int) -> None:
    if rows == 0:
        raise LogError("The log has no rows.")
    if np.isnan(rewards).all():
        raise LogError(f"The log holds {rows} decisions, and no outcome of any is known yet.")


def _arm_indices(values: Any, names: tuple[str, ...]) -> IntArray:
    """Arms as indices: whole numbers from 0, or the names that the propensity columns end with."""
    raw = values.to_numpy()
    if raw.dtype.kind in "iufb":
        plain = raw.astype(np.float64)
        for row in np.flatnonzero(~np.isin(plain, np.arange(len(names))))[:1]:
            raise LogError(
                f"Row {row + 1}, column 'arm': {raw[row]} is not an arm. With {len(names)} propensity columns, arms "
                f"are 0 to {len(names) - 1}."
            )
        whole: IntArray = plain.astype(np.int64)
        return whole
    pandas = import_module("pandas")
    codes: IntArray = pandas.Index(names).get_indexer([str(value) for value in raw]).astype(np.int64)
    for row in np.flatnonzero(codes < 0)[:1]:
        raise LogError(
            f"Row {row + 1}, column 'arm': {checks.shown(raw[row])} has no column {_PREFIX}{raw[row]}. "
            f"The arms with one are {', '.join(map(repr, names))}."
        )
    return codes


def _numbers(table: Any, name: str, *, missing: bool) -> FloatArray:
    """A column of numbers; nan where a value is missing and may be."""
    pandas = import_module("pandas")
    raw = table[name]
    found: FloatArray = pandas.to_numeric(raw, errors="coerce").to_numpy(dtype=np.float64)
    wrong = (np.isnan(found) & raw.notna().to_numpy()) | np.isinf(found)
    for row in np.flatnonzero(wrong)[:1]:
        raise LogError(f"Row {row + 1}, column {name!r}: {checks.shown(raw.iloc[row])} is not a finite number.")
    if not missing:
        for row in np.flatnonzero(np.isnan(found))[:1]:
            raise LogError(f"Row {row + 1}, column {name!r}: missing. Every decision needs it.")
    return found


def _known(table: Any, rows: int) -> IntArray:
    """The first decision that knew each outcome: the column ``known``, or the next decision."""
    if "known" not in table.columns:
        return np.arange(1, rows + 1)
    given = _numbers(table, "known", missing=True)
    position = np.where(np.isnan(given), float(rows), given)
    for row in np.flatnonzero((position <= np.arange(rows)) | (position != np.floor(position)))[:1]:
        raise LogError(
            f"Row {row + 1}, column 'known': {given[row]:g} must be the position, counted from 0, of a later "
            f"decision; this one is at {row}."
        )
    return np.minimum(position, rows).astype(np.int64)


def _from_export(table: Any, names: tuple[str, ...] | None) -> DecisionLog:
    """A log from a live experiment: voided decisions are left out, those without an outcome counted."""
    table = table.sort_values("number") if "number" in table else table
    carried = ~table["status"].isin(("void", "voided")).to_numpy()
    kept = table[carried]
    status = kept["status"].to_numpy()
    every = np.minimum(_shares(table["propensities"], 0 if names is None else len(names)), 1.0)
    drawn = table["arm"].to_numpy().astype(np.int64)
    arms, shares = drawn[carried], every[carried]
    if names is None:
        called = [f"arm {i}" for i in range(shares.shape[1])]
        for code, name in zip(*np.unique(table["arm"].to_numpy(), return_index=True), strict=True):
            called[int(code)] = str(table["arm_name"].iloc[name])
        names = tuple(called)
    rewards = _numbers(kept, "reward", missing=True).copy()
    rewards[np.isin(status, _NO_OUTCOME)] = np.nan
    _check_rows(rewards, arms.size)
    check_propensities(shares, arms)
    contexts = None
    if "context" in kept and kept["context"].notna().all():
        contexts = context_column("context", kept["context"])
    imputed = int(kept["imputed"].astype(bool).sum()) if "imputed" in kept else 0
    return DecisionLog(
        names, arms, rewards, shares, _known_by_time(kept), contexts, int((status == "waiting").sum()), imputed,
        len(table) - len(kept), block_shares(drawn, every)[carried],  # a voided decision took a slot of its block
    )  # fmt: skip


def _shares(values: Any, least: int) -> FloatArray:
    """Propensities from lists or JSON texts, float array (row, arm); arms that were added later had 0."""
    each = list(values)
    if any(isinstance(value, str) for value in each):
        try:
            each = json.loads("[" + ",".join(str(value) for value in each) + "]")  # one call: quick on long logs
        except ValueError:
            raise LogError("Column 'propensities' must hold a list of numbers, one per arm, in every row.") from None
    size = max([least, *(len(row) for row in each)])
    filled = [row if len(row) == size else [*row, *[0.0] * (size - len(row))] for row in each]
    return np.array(filled, dtype=np.float64).reshape(len(each), size)


def _known_by_time(table: Any) -> IntArray:
    """The first decision that was asked for after each outcome was told."""
    rows = len(table)
    if "asked_at" not in table or "told_at" not in table:
        return np.arange(1, rows + 1)
    pandas = import_module("pandas")
    asked, told = (
        pandas.to_datetime(table[name], utc=True, format="ISO8601").dt.tz_localize(None).to_numpy("datetime64[ns]")
        for name in ("asked_at", "told_at")
    )
    # numbers may be drawn in another order than times: the running maximum is a clock that never goes back
    clock = np.maximum.accumulate(asked.astype(np.int64))
    first = np.searchsorted(clock, told.astype(np.int64), side="right")
    first[np.isnat(told)] = rows
    later: IntArray = np.maximum(first, np.arange(1, rows + 1))
    return later
