"""The fields of a record: what values each accepts, and the columns of the context vector that it becomes."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.errors import ContextError, SettingError

FloatArray = NDArray[np.float64]
Value = float | int | str | bool


def is_missing(value: object) -> bool:
    """Tell whether a value is None, nan, or one of pandas' marks for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def plain(value: object) -> object:
    """Return a NumPy scalar as the Python value it stands for."""
    return value.item() if isinstance(value, np.generic) else value


@dataclass(frozen=True, kw_only=True)
class Field:
    """One field of a record."""

    name: str
    kind: ClassVar[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns that the field becomes."""
        raise NotImplementedError

    @property
    def fitted(self) -> bool:
        """Whether nothing is left to be learned from data."""
        return True

    def fit(self, values: Sequence[Any]) -> Self:
        """Return the field with what it needs learned from the values of a table; most fields need nothing."""
        return self

    def check(self, value: object) -> Value:
        """Return a value as it is stored, or raise ContextError with the field's name."""
        raise NotImplementedError

    def encode(self, value: Value) -> list[float]:
        """Return the columns of a checked value."""
        raise NotImplementedError

    def typical(self, values: Sequence[Value]) -> Value:
        """Return a value in the middle of these; a neutral one where there are none."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """Return the field in plain values, for JSON."""
        raise NotImplementedError

    def written(self) -> str:
        """Return the field as it is written in ``Features(...)``."""
        raise NotImplementedError

    def _refuse(self, wanted: str, value: object, hint: str = "") -> ContextError:
        return ContextError(f"{self.name} must be {wanted}, got {checks.shown(value)}.{' ' + hint if hint else ''}")

    def _present(self, value: object) -> object:
        if is_missing(value):
            raise ContextError(f"{self.name} is missing. Fill it in, or leave the record out.")
        return plain(value)


@dataclass(frozen=True, kw_only=True)
class Number(Field):
    """A number, as it is ("number"), less a mean over a deviation ("standard"), or from 0 to 1 ("range")."""

    form: str = "number"
    settings: tuple[float, float] | None = None
    """Mean and deviation of "standard", both ends of "range"; None where there are none, or none are learned yet."""

    @property
    def kind(self) -> str:  # type: ignore[override]
        """One of number, standard and range."""
        return self.form

    @property
    def columns(self) -> tuple[str, ...]:
        """One column with the field's name."""
        return (self.name,)

    @property
    def fitted(self) -> bool:
        """Whether mean and deviation are known."""
        return self.form == "number" or self.settings is not None

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The ends of a range; None for other numbers."""
        return self.settings if self.form == "range" else None

    def fit(self, values: Sequence[Any]) -> Self:
        """Return the field with the mean and the standard deviation (of the whole, divided by n) of these values."""
        if self.fitted:
            return self
        found = np.array([self.check(value) for value in values])
        mean, deviation = float(found.mean()), float(found.std())
        if not deviation > 1e-12 * max(1.0, abs(mean)):
            raise SettingError(
                f"{self.name} is {found[0]:g} in every record, so it has no deviation to divide by. Leave it out, or "
                f'write {self.name}=("standard", mean, deviation).'
            )
        return replace(self, settings=(mean, deviation))

    def check(self, value: object) -> float:
        """Return a finite number, within the range where there is one."""
        given = self._present(value)
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise self._refuse("a number", value)
        try:
            found = float(given)
        except OverflowError:
            raise self._refuse("a finite number", value) from None
        if not math.isfinite(found):
            raise self._refuse("a finite number", value)
        bounds = self.bounds
        if bounds is not None and not bounds[0] <= found <= bounds[1]:
            raise self._refuse(f"a number from {bounds[0]:g} to {bounds[1]:g}", value)
        return found

    def encode(self, value: Value) -> list[float]:
        """Return the number, shifted and scaled."""
        return [float(self.encode_all(float(value)))]

    def encode_all(self, values: Any) -> Any:
        """Return numbers, shifted and scaled."""
        if self.settings is None:
            return values * 1.0
        first, second = self.settings
        return (values - first) / (second if self.form == "standard" else second - first)

    def accepts_all(self, values: NDArray[Any]) -> bool:
        """Tell whether all values of an array are numbers that ``check`` accepts."""
        if values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            return False
        low, high = self.bounds or (-math.inf, math.inf)
        return bool(((values >= low) & (values <= high)).all())

    def typical(self, values: Sequence[Value]) -> float:
        """Return the mean of the values; without any, the mean of "standard", the middle of "range", or 0."""
        if values:
            return statistics.fmean(float(value) for value in values)
        return statistics.fmean(self.bounds) if self.bounds else (self.settings or (0.0, 1.0))[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the field in plain values, for JSON."""
        names = ("mean", "deviation") if self.form == "standard" else ("low", "high")
        return {"name": self.name, "kind": self.form, **dict(zip(names, self.settings or (), strict=False))}

    def written(self) -> str:
        """Return the field as it is written in ``Features(...)``."""
        if self.settings is None:
            return repr(self.form)
        return repr(self.settings if self.form == "range" else ("standard", *self.settings))


@dataclass(frozen=True, kw_only=True)
class Boolean(Field):
    """True or False, as 1 or 0."""

    kind: ClassVar[str] = "boolean"

    @property
    def columns(self) -> tuple[str, ...]:
        """One column with the field's name."""
        return (self.name,)

    def check(self, value: object) -> bool:
        """Return True or False; 1 and 0 are accepted."""
        given = self._present(value)
        if not isinstance(given, (bool, int, float)) or given not in (0, 1):
            raise self._refuse("True or False", value)
        return bool(given)

    def encode(self, value: Value) -> list[float]:
        """Return 1 for True and 0 for False."""
        return [float(value)]

    def typical(self, values: Sequence[Value]) -> bool:
        """Return the more frequent value."""
        return sum(bool(value) for value in values) * 2 > len(values)

    def to_dict(self) -> dict[str, Any]:
        """Return the field in plain values, for JSON."""
        return {"name": self.name, "kind": self.kind}

    def written(self) -> str:
        """Return the field as it is written in ``Features(...)``."""
        return repr(self.kind)
