"""``ds.Features``: how a record, several records or a table become context vectors; frozen, and stored as JSON."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from keyword import iskeyword
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks, html
from doublesampling.errors import ContextError, SettingError
from doublesampling.features.category import Category
from doublesampling.features.fields import Field, Value
from doublesampling.features.kinds import make_field
from doublesampling.features.rows import as_mapping, check_at, encode, fit

FloatArray = NDArray[np.float64]
ContextLike = ArrayLike | Mapping[str, Any]
"""A context: numbers, or a record for a belief with features."""
ContextsLike = ArrayLike | Sequence[ContextLike]
"""Several contexts: an array (observation, entry), records, or a DataFrame."""
_INTERCEPT = "intercept"
_SETTINGS = (_INTERCEPT, "unknown", "drop_first")


@dataclass(frozen=True, init=False, repr=False)
class Features:
    """The fields of a record, and the columns of the context vector that they become.

    Name each field with its kind:

    - ``"number"``: the number itself;
    - ``"standard"``: less its mean, over its standard deviation, which ``fit`` learns once from data; or
      ``("standard", mean, deviation)`` where they are known;
    - ``(low, high)``: a number of that range, mapped to 0 to 1; others are refused;
    - ``"boolean"``: True or False, as 1 or 0;
    - ``["a", "b", "c"]``: categories, as one column of 0 and 1 each; ``"category"`` lets ``fit`` learn them.

    ``intercept`` puts a column of ones first. ``drop_first`` leaves out the column of the first category, which is then
    the reference. ``unknown`` says what a category that is not in the list means: an "error", a column of its own
    ("other"), or zeros in all columns ("zero"). Names that are no Python names go in a dictionary, the first argument.

    >>> features = Features(age=("standard", 60, 10), smoker="boolean", site=["a", "b", "c"])
    >>> features.names
    ('intercept', 'age', 'smoker', 'site=a', 'site=b', 'site=c')
    >>> features.vector({"age": 75, "smoker": True, "site": "b"}).tolist()
    [1.0, 1.5, 1.0, 0.0, 1.0, 0.0]
    """

    fields: tuple[Field, ...]
    intercept: bool

    def __init__(
        self,
        fields: Mapping[str, Any] | None = None,
        /,
        *,
        intercept: bool = True,
        unknown: str = "error",
        drop_first: bool = False,
        **more: Any,
    ) -> None:
        if fields is not None and not isinstance(fields, Mapping):
            raise SettingError(
                f"Features takes fields by name or in a dictionary, got {checks.shown(fields)}. "
                'Write Features(age="standard", site=["a", "b"]).'
            )
        named = {**(fields or {}), **more}
        if len(named) < len(fields or {}) + len(more):
            twice = next(name for name in more if name in (fields or {}))
            raise SettingError(f"The field {twice!r} is given twice.")
        usual = {"unknown": checks.one_of("unknown", unknown, ("error", "other", "zero")), "drop_first": drop_first}
        made = tuple(make_field(name, given, usual) for name, given in named.items())
        if not made:
            raise SettingError('Features needs a field, such as Features(age="standard", site=["a", "b"]).')
        object.__setattr__(self, "fields", made)
        object.__setattr__(self, _INTERCEPT, checks.flag(_INTERCEPT, intercept))
        if len(set(self.names)) < len(self.names):
            twice = next(name for name in self.names if self.names.count(name) > 1)
            raise SettingError(f"Two columns would be called {twice!r}. Rename a field.")

    @property
    def fitted(self) -> bool:
        """Whether nothing is left to be learned by ``fit``."""
        return all(field.fitted for field in self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of the context vector."""
        first = (_INTERCEPT,) if self.intercept else ()
        return (*first, *(column for field in self.fields for column in field.columns))

    @cached_property
    def dimension(self) -> int:
        """The number of columns: the length of a context vector."""
        self.check_fitted()
        return len(self.names)

    def check_fitted(self) -> None:
        """Raise SettingError where ``fit`` has something left to learn."""
        for field in self.fields:
            if not field.fitted:
                known = '("standard", mean, deviation)' if field.kind == "standard" else "the list of its categories"
                raise SettingError(
                    f'{field.name} is "{field.kind}" and nothing is learned of it yet. Call features.fit(data), which '
                    f"returns new features, or write {known}."
                )

    def fit(self, data: Any) -> "Features":
        """Return features that have learned means, deviations and categories from records or a DataFrame.

        What is known already stays as it is. A deviation is that of the whole, divided by n.

        >>> Features(age="standard").fit([{"age": 50}, {"age": 70}])
        Features(age=('standard', 60.0, 10.0))
        """
        columns = self._columns(data)
        if len(columns[0]) == 0:
            raise SettingError("Features cannot learn from a table without rows.")
        learned = [fit(field, values) for field, values in zip(self.fields, columns, strict=True)]
        return read_features({"fields": [field.to_dict() for field in learned], _INTERCEPT: self.intercept})

    def record(self, record: Any) -> dict[str, Value]:
        """Return a record as it is stored: its fields in order, as plain values; raise ContextError for a wrong one."""
        given = as_mapping(record, self.fields)
        known = [field.name for field in self.fields]
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"The fields are {', '.join(map(repr, known))}."
                raise ContextError(f"The context has a field {checks.shown(name)} that these features do not. {hint}")
        return {field.name: field.check(given.get(field.name)) for field in self.fields}

    def records(self, data: Any) -> list[dict[str, Value]]:
        """Return the rows of records or of a DataFrame as they are stored; other columns are left out."""
        found: list[dict[str, Value]] = [{} for _ in range(len(data))]
        for field, values in zip(self.fields, self._columns(data), strict=True):
            for row, value in enumerate(values):
                found[row][field.name] = check_at(field, value, row)
        return found

    def vector(self, record: Any) -> FloatArray:
        """Return the context vector of a record (a dictionary, or a row of a DataFrame), float array (column)."""
        self.check_fitted()
        checked = self.record(record)
        numbers = [1.0] if self.intercept else []
        for field in self.fields:
            numbers += field.encode(checked[field.name])
        return np.array(numbers)

    def matrix(self, data: Any) -> FloatArray:
        """Return the context vectors of records or of a DataFrame, float array (row, column).

        Other columns of a DataFrame are ignored.
        """
        self.check_fitted()
        columns = self._columns(data)
        parts = [np.ones((len(columns[0]), 1))] if self.intercept else []
        parts += [encode(field, values) for field, values in zip(self.fields, columns, strict=True)]
        return np.hstack(parts)

    def typical(self, records: Sequence[Mapping[str, Value]] = ()) -> dict[str, Value]:
        """Return a record in the middle of others: means of numbers, and the most frequent categories."""
        return {field.name: field.typical([record[field.name] for record in records]) for field in self.fields}

    def _columns(self, data: Any) -> list[Any]:
        """The values of each field, one list or array per field."""
        if hasattr(data, "columns"):
            for field in self.fields:
                if field.name not in data.columns:
                    listed = ", ".join(map(repr, list(data.columns)[:20]))
                    raise ContextError(f"The table has no column {field.name!r}. It has {listed}.")
            return [data[field.name].to_numpy() for field in self.fields]
        if not isinstance(data, (list, tuple)) or not all(isinstance(each, Mapping) for each in data):
            raise ContextError(
                f"A list of records (dictionaries) or a DataFrame is needed, got {checks.shown(data)}. "
                f"A record has the fields {', '.join(field.name for field in self.fields)}."
            )
        known = {field.name for field in self.fields}
        for row, each in enumerate(data):
            if not known >= each.keys():
                name = next(name for name in each if name not in known)
                raise ContextError(f"Row {row + 1} has a field {checks.shown(name)} that these features do not.")
        return [[each.get(field.name) for each in data] for field in self.fields]

    def to_dict(self) -> dict[str, Any]:
        """Return the features in plain values, for JSON."""
        return {"fields": [field.to_dict() for field in self.fields], "intercept": self.intercept}

    def to_json(self) -> str:
        """Return the features as JSON text.

        >>> features = Features(age=(18, 90), site=["a", "b"])
        >>> Features.from_json(features.to_json()) == features
        True
        """
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Features":
        """Return the features that ``to_json`` wrote."""
        try:
            content = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            raise SettingError("This is not JSON. Pass what features.to_json() returned.") from None
        return read_features(content)

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        rows = [(field.name, field.kind, field.written(), len(field.columns)) for field in self.fields]
        told = f"{len(self.names)} columns{', the first an intercept' if self.intercept else ''}"
        return html.block(
            html.table(rows, ["field", "kind", "settings", "columns"], caption="Features"), html.line(told)
        )

    def __repr__(self) -> str:
        common = {(field.unknown, field.drop_first) for field in self.fields if isinstance(field, Category)}
        written = {field.name: _written(field, alone=len(common) > 1) for field in self.fields}
        if all(name.isidentifier() and not iskeyword(name) and name not in _SETTINGS for name in written):
            parts = [f"{name}={shown}" for name, shown in written.items()]
        else:
            parts = [f"{{{', '.join(f'{name!r}: {shown}' for name, shown in written.items())}}}"]
        unknown, drop_first = common.pop() if len(common) == 1 else ("error", False)
        parts += ([] if self.intercept else ["intercept=False"]) + ([f"{unknown=}"] if unknown != "error" else [])
        return f"Features({', '.join([*parts, *(['drop_first=True'] if drop_first else [])])})"


def read_features(given: object) -> Features:
    """Return features from themselves or from the plain values that ``to_dict`` returned."""
    if isinstance(given, Features):
        return given
    if (
        not isinstance(given, Mapping)
        or set(given) - {"fields", _INTERCEPT}
        or not isinstance(given.get("fields"), (list, tuple))
    ):
        raise SettingError(
            'features must be Features(...), or {"fields": [{"name": "age", "kind": "number"}, ...], "intercept": '
            f"true}}, got {checks.shown(given)}."
        )
    named: dict[str, Any] = {}
    for field in given["fields"]:
        if not isinstance(field, Mapping) or not isinstance(field.get("name"), str) or field["name"] in named:
            raise SettingError(f"Each field needs a name of its own and a kind, got {checks.shown(field)}.")
        named[field["name"]] = {key: value for key, value in field.items() if key != "name"}
    return Features(named, intercept=given.get(_INTERCEPT, True))


def _written(field: Field, *, alone: bool) -> str:
    """The field as it is written; categories with all their settings where those differ between fields."""
    if alone and isinstance(field, Category):
        return repr({name: value for name, value in field.to_dict().items() if name != "name"})
    return field.written()
