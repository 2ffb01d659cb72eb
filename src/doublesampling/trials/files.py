"""Designs of trials as plain values, and as TOML and JSON files."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from doublesampling import beliefs, policies
from doublesampling.allocation import Allocation
from doublesampling.checks import shown
from doublesampling.errors import OutputError, SettingError
from doublesampling.stopping import Stopping

_NONE = '"none"'  # TOML has no word for it
_PARTS = ("arms", "horizon", "delay", "belief", "policy", "allocation", "stopping")


def to_dict(trial: Any) -> dict[str, Any]:
    """Return a design as plain values; what has its default is left out."""
    found: dict[str, Any] = {"arms": list(trial.arms), "horizon": trial.horizon}
    if trial.delay:
        found["delay"] = _plain(trial.delay)
    for name, module in (("belief", beliefs), ("policy", policies)):
        part = getattr(trial, name)
        if getattr(module, type(part).__name__, None) is not type(part):
            raise SettingError(f"Only designs with a {name} of this package can be written, got {shown(part)}.")
        found[name] = {"class": type(part).__name__, **_changed(part)}
    found["belief"].pop("arms")
    for name in ("allocation", "stopping"):
        if getattr(trial, name) is not None:
            found[name] = _changed(getattr(trial, name))
    return found


def _changed(part: Any) -> dict[str, Any]:
    """Return the settings that differ from their defaults."""
    values = {f.name: (getattr(part, f.name), f.default) for f in fields(part) if f.init}
    return {name: _plain(value) for name, (value, usual) in values.items() if value != usual}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value.item() if hasattr(value, "item") else value


def settings_from(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a trial from plain values."""
    if not isinstance(content, Mapping):
        raise SettingError(f"A design must be a table of settings, got {shown(content)}.")
    for name in content:
        if name not in _PARTS:
            raise SettingError(f"A design has no part {name!r}. Its parts are {', '.join(_PARTS)}.")
    for name in ("arms", "horizon"):
        if name not in content:
            raise SettingError(f"A design needs {name}.")
    found = {name: content[name] for name in ("arms", "horizon", "delay") if name in content}
    if not isinstance(content["arms"], (list, tuple)):
        raise SettingError(f"arms must be a list of names, got {shown(content['arms'])}.")
    if "belief" in content:
        found["belief"] = _component("belief", content["belief"], beliefs, "prior", {"arms": len(content["arms"])})
    if "policy" in content:
        found["policy"] = _component("policy", content["policy"], policies, "choose", {})
    for name, kind in (("allocation", Allocation), ("stopping", Stopping)):
        if content.get(name) is not None:
            found[name] = kind(**_table(name, content[name]))
    return found


def _table(name: str, content: Any) -> dict[str, Any]:
    if not isinstance(content, Mapping):
        raise SettingError(f"{name} must be a table of settings, got {shown(content)}.")
    return dict(content)


def _component(name: str, content: Any, module: Any, member: str, given: dict[str, Any]) -> Any:
    """Return a belief or policy from its class and settings."""
    table = {"class": content} if isinstance(content, str) else _table(name, content)
    wanted = table.pop("class", None)
    public: dict[str, Any] = {
        word: found for word, found in vars(module).items() if is_dataclass(found) and hasattr(found, member)
    }
    if wanted not in public:
        raise SettingError(f"{name} must have a class, one of {', '.join(sorted(public))}, got {shown(wanted)}.")
    return public[wanted](**(given | {word: None if value == "none" else value for word, value in table.items()}))


def read(path: str | Path) -> dict[str, Any]:
    """Return the content of a .toml or .json file."""
    place = Path(path)
    if place.suffix.lower() not in (".toml", ".json"):
        raise SettingError(f"A design is read from a .toml or .json file, got {str(path)!r}.")
    try:
        text = place.read_text(encoding="utf-8")
        found: dict[str, Any] = tomllib.loads(text) if place.suffix.lower() == ".toml" else json.loads(text)
    except OSError as problem:
        raise SettingError(f"{str(path)!r} cannot be read: {problem.strerror or problem}.") from None
    except (ValueError, UnicodeDecodeError) as problem:
        raise SettingError(f"{str(path)!r} cannot be read: {problem}.") from None
    return found


def write(content: Mapping[str, Any], path: str | Path) -> None:
    """Write a design to a .toml or .json file."""
    place = Path(path)
    if place.suffix.lower() not in (".toml", ".json"):
        raise OutputError(f"A design is written to a .toml or .json file, got {str(path)!r}.")
    json_text = json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    try:
        place.write_text(to_toml(content) if place.suffix.lower() == ".toml" else json_text, encoding="utf-8")
    except OSError as problem:
        raise OutputError(f"{str(path)!r} cannot be written: {problem.strerror or problem}.") from None


def to_toml(content: Mapping[str, Any]) -> str:
    """Return a table of plain values as TOML: values first, then one section per table.

    >>> print(to_toml({"arms": ["a", "b"], "policy": {"class": "TopTwo"}}), end="")
    arms = ["a", "b"]
    <BLANKLINE>
    [policy]
    class = "TopTwo"
    """
    lines = [f"{_key(name)} = {_value(value)}" for name, value in content.items() if not isinstance(value, Mapping)]
    for name, table in content.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{_key(name)}]", *(f"{_key(word)} = {_value(value)}" for word, value in table.items())]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    return name if name.isascii() and name.replace("_", "").replace("-", "").isalnum() else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(word)} = {_value(part)}" for word, part in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_value, value)) + "]"
    return _NONE if value is None else json.dumps(value, ensure_ascii=False)  # other values are written alike
