"""Records and rows of tables: what counts as one, and the columns that many of them become."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.errors import ContextError
from doublesampling.features.fields import Field, Number, Value

FloatArray = NDArray[np.float64]


def is_records(data: object) -> bool:
    """Tell whether contexts are records or a table, and not numbers."""
    if hasattr(data, "columns"):
        return True
    return isinstance(data, (list, tuple)) and bool(data) and all(isinstance(each, Mapping) for each in data)


def is_record(data: object) -> bool:
    """Tell whether a context is a record, or the row of a table, and not numbers."""
    if isinstance(data, Mapping):
        return True
    return hasattr(data, "to_dict") and hasattr(data, "index") and not hasattr(data, "columns")


def as_mapping(record: Any, fields: tuple[Field, ...]) -> Mapping[Any, Any]:
    """Return the fields of a record, or of the row of a table."""
    if isinstance(record, Mapping):
        return record
    if is_record(record):  # a row of a table, which may have other columns
        row = record.to_dict()
        return {field.name: row.get(field.name) for field in fields}
    names = ", ".join(repr(field.name) for field in fields)
    raise ContextError(f"The context must be a record with the fields {names}, got {checks.shown(record)}.")


def encode(field: Field, values: Any) -> FloatArray:
    """The columns of a field, float array (row, column)."""
    if isinstance(field, Number) and isinstance(values, np.ndarray) and field.accepts_all(values):
        return np.asarray(field.encode_all(values)[:, None])
    words: dict[str, list[float]] = {}  # a column of categories repeats a few words
    found = []
    for row, value in enumerate(values):
        word = words.get(value) if type(value) is str else None
        if word is None:
            word = field.encode(check_at(field, value, row))
            if type(value) is str:
                words[value] = word
        found.append(word)
    return np.array(found, dtype=np.float64).reshape(len(values), len(field.columns))


def check_at(field: Field, value: object, row: int) -> Value:
    """Return the checked value of a row; an error tells its number."""
    try:
        return field.check(value)
    except ContextError as problem:
        raise ContextError(f"Row {row + 1}: {problem}") from None


def fit(field: Field, values: Any) -> Field:
    """Learn from the values of a field; a wrong one is told with its row."""
    try:
        return field.fit(values)
    except ContextError:
        for row, value in enumerate(values):
            check_at(field, value, row)
        raise
