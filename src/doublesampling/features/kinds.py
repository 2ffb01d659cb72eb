"""Make a field from what a user wrote for it: a word, a tuple, a list, or a dictionary with its settings."""

import math
from collections.abc import Mapping
from typing import Any

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.features.category import Category
from doublesampling.features.fields import Boolean, Field, Number

_PAIRS = {"standard": ("mean", "deviation"), "range": ("low", "high")}
_KINDS = ("standard", "number", "range", "boolean", "category")
_LARGEST = 1e50


def make_field(name: object, given: object, usual: Mapping[str, Any]) -> Field:
    """Return a checked field; ``usual`` holds the settings that categories have unless they say otherwise."""
    if not isinstance(name, str) or not name.strip() or len(name) > 100 or not name.isprintable():
        raise SettingError(f"The name of a field must be a printable text, got {checks.shown(name)}.")
    settings = dict(given) if isinstance(given, Mapping) else _settings(name, given)
    kind = checks.one_of(f"The kind of {name}", settings.pop("kind", None), _KINDS)
    if kind == "category":
        return _category(name, {**usual, **settings})
    if kind == "boolean":
        _refuse_more(name, kind, settings, ())
        return Boolean(name=name)
    wanted = _PAIRS.get(kind, ())
    _refuse_more(name, kind, settings, wanted)
    if not settings and kind != "range":
        return Number(name=name, form=kind)
    for word in wanted:
        if word not in settings:
            raise SettingError(f"{name} needs {word}: a {kind} has {' and '.join(wanted)}.")
    first, second = (checks.within(f"{word} of {name}", settings[word], -_LARGEST, _LARGEST) for word in wanted)
    if not (second > 1e-50 if kind == "standard" else second > first and math.isfinite(second - first)):
        told = "deviation must be above 0" if kind == "standard" else f"low must be below high ({first:g})"
        raise SettingError(f"{name}: {told}, got {second:g}.")
    return Number(name=name, form=kind, settings=(first, second))


def _category(name: str, settings: dict[str, Any]) -> Category:
    _refuse_more(name, "category", settings, ("categories", "unknown", "drop_first"))
    listed = settings.pop("categories", None)
    if listed is not None and not isinstance(listed, (list, tuple)):
        raise SettingError(f"The categories of {name} must be a list, got {checks.shown(listed)}.")
    return Category(name=name, categories=None if listed is None else tuple(listed), **settings)


def _settings(name: str, given: object) -> dict[str, Any]:
    """What a word, a tuple or a list stands for."""
    if isinstance(given, str):
        return {"kind": given}
    if isinstance(given, list):
        return {"kind": "category", "categories": given}
    if isinstance(given, tuple) and len(given) == 3 and given[0] == "standard":
        return {"kind": "standard", "mean": given[1], "deviation": given[2]}
    if isinstance(given, tuple) and len(given) == 2 and not any(isinstance(each, str) for each in given):
        return {"kind": "range", "low": given[0], "high": given[1]}
    raise SettingError(
        f'{name} must be "standard", "number", "boolean", "category", ("standard", mean, deviation), a range '
        f"(low, high), or a list of categories, got {checks.shown(given)}."
    )


def _refuse_more(name: str, kind: str, settings: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for word in settings:
        if word not in known:
            told = f"It has {', '.join(known)}." if known else "It has none."
            raise SettingError(f"{name}: a {kind} has no setting {checks.shown(word)}. {told}")
