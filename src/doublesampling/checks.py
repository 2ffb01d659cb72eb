"""Checks of what users hand in: each returns the value in its plain form, or says what was wanted and what came."""

import difflib
import math
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from numpy.typing import NDArray

from doublesampling.errors import ArmError, ContextError, DoubleSamplingError, SettingError

FloatArray = NDArray[np.float64]
PerArm = float | Sequence[float]
"""One number for all arms, or one per arm."""
T = TypeVar("T")
ErrorType = type[DoubleSamplingError]

LARGEST_SEED = 2**64 - 1


def shown(value: object) -> str:
    """A value as it appears in an error: short, on one line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def settings(cls: type[T]) -> type[T]:
    """A frozen dataclass with named settings; a misspelt name is an error of ours that offers the nearest right one."""
    made = dataclass(frozen=True, kw_only=True, repr=False)(cls)
    names = [f.name for f in fields(made) if f.init]  # type: ignore[arg-type]
    unnamed = [f.name for f in fields(made) if f.init and not f.kw_only]  # type: ignore[arg-type]
    needed = [n for n in names if not hasattr(cls, n)]
    build: Callable[..., None] = made.__init__

    @wraps(build)
    def checked_init(self: Any, *args: Any, **kwargs: Any) -> None:
        if len(args) > len(unnamed):
            raise SettingError(
                f"{cls.__name__} takes its settings by name, got {shown(args[len(unnamed)])} without one. "
                f"Write {cls.__name__}({names[0]}=...)."
            )
        for name in kwargs:
            if name in unnamed[: len(args)]:
                raise SettingError(f"{cls.__name__} was given {name} twice.")
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"Its settings are {', '.join(names)}."
                raise SettingError(f"{cls.__name__} has no setting {name!r}. {hint}")
        for name in needed[len(args) :] if unnamed else needed:
            if name not in kwargs:
                raise SettingError(f"{cls.__name__} needs {name}. Write {cls.__name__}({name}=...).")
        build(self, *args, **kwargs)

    def short_repr(self: Any) -> str:
        """Only what differs from the defaults: what a reader would have to type."""
        given = [(f.name, getattr(self, f.name), f.default) for f in fields(self)]
        return f"{cls.__name__}({', '.join(f'{name}={value!r}' for name, value, usual in given if value != usual)})"

    made.__init__, made.__repr__ = checked_init, short_repr  # type: ignore[method-assign]
    return made


def _complain(error: ErrorType, name: str, wanted: str, value: object, hint: str) -> DoubleSamplingError:
    return error(f"{name} must be {wanted}, got {shown(value)}.{' ' + hint if hint else ''}")


def integer(
    name: str, value: object, *, least: int, most: int | None = None, hint: str = "", error: ErrorType = SettingError
) -> int:
    """A whole number between least and most."""
    if type(value) is int and least <= value and (most is None or value <= most):
        return value
    wanted = f"a whole number of at least {least}"
    if error is not SettingError and most is not None:
        wanted = f"a whole number from {least} to {most}"
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral):
        raise _complain(error, name, wanted, value, hint)
    plain = int(value)
    if most is not None and plain > most:
        wanted = f"a whole number from {least} to {most:,}"
    if plain < least or (most is not None and plain > most):
        raise _complain(error, name, wanted, value, hint)
    return plain


def real(name: str, value: object, *, wanted: str = "a finite number", hint: str = "", error: ErrorType) -> float:
    """A finite real number; True and False count as 1 and 0."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, np.bool_):
        value = bool(value)
    if not isinstance(value, numbers.Real):
        raise _complain(error, name, wanted, value, hint)
    try:
        plain = float(value)
    except (OverflowError, ValueError, TypeError):
        raise _complain(error, name, wanted, value, hint) from None
    if not math.isfinite(plain):
        raise _complain(error, name, wanted, value, hint)
    return plain


def within(name: str, value: object, least: float, most: float, *, hint: str = "") -> float:
    """A setting that is a number from least to most."""
    wanted = f"a number from {least:g} to {most:g}"
    plain = real(name, value, wanted=wanted, hint=hint, error=SettingError)
    if not least <= plain <= most:
        raise _complain(SettingError, name, wanted, value, hint)
    return plain


def discount(value: object) -> float:
    """What is left of a memory after one more observation: 1 forgets nothing."""
    return within("discount", value, 0.5, 1.0, hint="1 forgets nothing; 0.99 remembers about a hundred observations.")


def flag(name: str, value: object) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise _complain(SettingError, name, "True or False", value, "")
    return bool(value)


def one_of(name: str, value: object, options: Iterable[str]) -> str:
    """One of a few words."""
    options = list(options)
    if not isinstance(value, str) or value not in options:
        near = difflib.get_close_matches(value, options, n=1, cutoff=0.5) if isinstance(value, str) else []
        hint = f"Did you mean {near[0]!r}?" if near else ""
        raise _complain(SettingError, name, "one of " + ", ".join(map(repr, options)), value, hint)
    return value


def array(name: str, value: object, *, error: ErrorType, hint: str = "") -> FloatArray:
    """A float array of finite numbers; the first that is not is named with its place."""
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "biufO":
            raise TypeError
        plain = np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _complain(error, name, "numbers in a regular array", value, hint) from None
    if not np.isfinite(plain).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(plain))[0])
        where = f" at index {place[0] if len(place) == 1 else place}" if place else ""
        raise error(f"{name} must be finite, got {plain[place]}{where}.{' ' + hint if hint else ''}")
    return plain


def different_numbers(name: str, value: object) -> FloatArray:
    """Two or more different numbers."""
    given = array(name, value, error=SettingError)
    if given.ndim != 1 or given.size < 2 or np.unique(given).size < given.size:
        raise SettingError(f"{name} must list two or more different numbers, got {shown(value)}.")
    if np.abs(given).max() > 1e50:
        raise SettingError(f"{name} must lie within 1e50 of 0. Choose a larger unit.")
    return given


def frozen(values: FloatArray) -> Any:
    """Nested tuples instead of an array: settings compare, hash and print as plain values."""

    def freeze(part: Any) -> Any:
        return tuple(freeze(p) for p in part) if isinstance(part, list) else part

    return freeze(values.tolist())


def per_arm(name: str, value: object, arms: int, *, least: float, most: float) -> float | tuple[float, ...]:
    """One number for all arms, or one per arm, each from least to most."""
    if not isinstance(value, (tuple, list, np.ndarray)) or (isinstance(value, np.ndarray) and value.ndim == 0):
        return within(name, value, least, most)
    given = array(name, value, error=SettingError)
    if given.shape != (arms,):
        raise SettingError(f"{name} must be one number or one per arm ({arms}), got shape {given.shape}.")
    return tuple(within(f"{name}[{i}]", float(v), least, most) for i, v in enumerate(given))


def arm_count(value: object) -> int:
    """At least two arms."""
    return integer("arms", value, least=2, most=10_000, hint="A bandit needs two arms to choose between.")


def arm_index(value: object, arms: int) -> int:
    """An arm that exists."""
    if type(value) is int and 0 <= value < arms:
        return value
    hint = f"Arms are counted from 0; this belief has {arms}."
    return integer("arm", value, least=0, most=arms - 1, hint=hint, error=ArmError)


def arm_indices(value: object, arms: int) -> NDArray[np.int64]:
    """Several arms that exist, int array (observation)."""
    given = array("arms", value, error=ArmError)
    if given.ndim != 1:
        raise ArmError(f"arms must be a list, one arm per observation, got shape {given.shape}.")
    wrong = np.flatnonzero((given != np.floor(given)) | (given < 0) | (given >= arms))
    if wrong.size:
        raise ArmError(f"arms[{wrong[0]}] must be a whole number from 0 to {arms - 1}, got {given[wrong[0]]:g}.")
    return given.astype(np.int64)


def no_context(value: object) -> None:
    """A belief without contexts was given none."""
    if value is not None:
        raise ContextError(f"This belief has no context, got {shown(value)}. Leave context out, or use LinearGaussian.")


def seed(value: object) -> int:
    """A seed: any whole number that fits in 64 bits."""
    return integer("seed", value, least=0, most=LARGEST_SEED)


def time(value: object) -> int:
    """The number of a decision, counted from 1."""
    return integer("time", value, least=1, most=2**63 - 1, hint="Decisions are counted from 1.")
