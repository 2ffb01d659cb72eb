"""Beliefs and policies of one's own in a stored design: where to import the class from, and its settings as JSON.

A store that names code could make whoever opens it run that code. So a class is imported only where the caller allows
its module: ``Experiment.load(..., allow_import=["mypackage.policies"])``, or the environment variable
DOUBLESAMPLING_ALLOW_IMPORT. A class whose module is loaded already is treated in the same way.
"""

import copy
import importlib
import inspect
import json
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from doublesampling import checks
from doublesampling.beliefs import OwnBelief
from doublesampling.errors import DoubleSamplingError, SettingError
from doublesampling.given import check_policy
from doublesampling.live.unavailable import (
    NotImportedError,
    Unavailable,
    UnavailableBelief,
    UnavailablePolicy,
    show_call,
)
from doublesampling.policies import is_ours

ALLOW_IMPORT = "DOUBLESAMPLING_ALLOW_IMPORT"
"""The environment variable with the modules that may be imported, separated by commas."""
CREATED_HERE: set[str] = set()
"""References of the classes with which this process created experiments."""
_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class OwnCodeError(DoubleSamplingError, RuntimeError):
    """The code of a belief or policy of one's own raised an error."""

    code = "own-code"


def is_own(component: object) -> bool:
    """Tell whether a belief or policy is not one of this package."""
    return isinstance(component, Unavailable) or not is_ours(component)


def reference_of(component: object) -> str:
    """Return where to import the class of a belief or policy from, as ``module:qualname``."""
    if isinstance(component, Unavailable):
        return component.reference
    return f"{type(component).__module__}:{type(component).__qualname__}"


def settings_of(component: Any) -> dict[str, Any]:
    """Return the arguments with which a belief or policy can be made again, read from attributes of the same name."""
    if isinstance(component, Unavailable):
        return dict(component.settings)
    name, found = type(component).__name__, {}
    for parameter in inspect.signature(type(component)).parameters.values():
        if parameter.kind not in _NAMED:
            raise SettingError(f"{name} takes {parameter}, which cannot be stored. Give every argument a name.")
        if not hasattr(component, parameter.name):
            raise SettingError(
                f"{name} takes the argument {parameter.name!r} and has no attribute of this name, so its value cannot "
                f"be stored. Write self.{parameter.name} = {parameter.name} in __init__."
            )
        found[parameter.name] = getattr(component, parameter.name)
    return found


def show(component: Any) -> str:
    """Return a belief or policy as it would be typed, also where its class has no ``__repr__``."""
    cls: Any = type(component)
    if is_own(component) and cls.__repr__ is object.__repr__:
        return show_call(cls.__name__, settings_of(component))
    return repr(component)


def make_anew(policy: Any) -> Any:
    """Return a new policy with the same settings where it is one's own: what it keeps would not be replayed."""
    if is_ours(policy):
        return policy
    with own_code(policy):
        return type(policy)(**copy.deepcopy(settings_of(policy)))


def check_storable(what: str, component: Any) -> None:
    """Raise SettingError unless another process can import the class and make the same object from JSON."""
    _check_kind(what, component)
    _check_importable(what, component)
    cls: Any = type(component)
    name, settings = cls.__name__, settings_of(component)
    stored = {key: _through_json(name, key, value) for key, value in settings.items()}
    try:
        again = cls(**stored)
    except Exception as problem:
        raise SettingError(
            f"{name} cannot be made again from its settings {checks.shown(stored)}: {type(problem).__name__}: "
            f"{problem}."
        ) from problem
    for key, value in settings_of(again).items():
        if value != settings[key]:
            raise SettingError(
                f"{name} does not come back equal from the store: its setting {key!r} is {checks.shown(settings[key])} "
                f"and would be {checks.shown(value)}. Keep the argument as it was given; use lists, not tuples."
            )
    if cls.__eq__ is not object.__eq__ and again != component:
        raise SettingError(f"{name} does not come back equal from the store. Keep all that defines it in its settings.")


def _check_kind(what: str, component: Any) -> None:
    if what == "policy":
        check_policy(component)
    elif not isinstance(component, OwnBelief):
        hint = f" Write {component.__name__}(...)." if isinstance(component, type) else ""
        raise SettingError(
            f"belief must be one of doublesampling's own, such as BetaBernoulli(arms=2), or a subclass of OwnBelief, "
            f"got {checks.shown(component)}.{hint}"
        )


def _check_importable(what: str, component: Any) -> None:
    cls = type(component)
    why = None
    if cls.__module__ == "__main__":
        why = "is defined in the running program (__main__)"
    elif "<locals>" in cls.__qualname__:
        why = "is defined inside a function"
    elif _find(importlib.import_module(cls.__module__), cls.__qualname__) is not cls:
        why = f"is not what {cls.__module__} holds under the name {cls.__qualname__}"
    if why is not None:
        raise SettingError(
            f"{what} {cls.__qualname__} {why}, so another process could not import it. A stored experiment names its "
            "class: move it to the top level of a module that can be imported."
        )


def _find(module: Any, qualname: str) -> Any:
    """Return what a module holds under a name with dots, or None."""
    found = module
    for part in qualname.split("."):
        found = getattr(found, part, None)
    return found


def _through_json(name: str, key: str, value: Any) -> Any:
    """Return a setting as it would be read back from the store."""
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as problem:
        raise SettingError(
            f"{name} has the setting {key} = {checks.shown(value)}, which cannot be stored as JSON: {problem}. Use "
            "numbers, texts, True, False, None, and lists and dictionaries of them."
        ) from None


def trust(*components: Any) -> None:
    """Allow this process to import the classes of these beliefs and policies: it had them before the store did."""
    CREATED_HERE.update(reference_of(component) for component in components if is_own(component))


def check_allowed(modules: Sequence[str] | None) -> tuple[str, ...]:
    """Return the modules that may be imported, those of the environment included."""
    if isinstance(modules, str) or not all(isinstance(m, str) and _MODULE.fullmatch(m) for m in modules or ()):
        raise SettingError(
            f'allow_import must list names of modules, such as ["mypackage.policies"], got {checks.shown(modules)}.'
        )
    listed = os.environ.get(ALLOW_IMPORT, "").split(",")
    return (*(modules or ()), *(name.strip() for name in listed if name.strip()))


def load(what: str, reference: str, settings: Mapping[str, Any], arms: int, allowed: Sequence[str]) -> Any:
    """Return the belief or policy that a design names, or a placeholder that says why it is not imported."""
    try:
        return _make(what, _import(what, reference, allowed), settings)
    except NotImportedError as problem:
        if what == "policy":
            return UnavailablePolicy(reference, settings, str(problem))
        return UnavailableBelief(reference, settings, str(problem), arms)


def _import(what: str, reference: str, allowed: Sequence[str]) -> type:
    """Return a class of an allowed module; nothing is imported from any other."""
    module, _, qualname = reference.partition(":")
    if not _REFERENCE.fullmatch(reference):
        raise NotImportedError(f"The {what} of this experiment is stored as {reference[:100]!r}: no module and class.")
    by_name = any(module == name or module.startswith(f"{name}.") for name in allowed)
    if not by_name and reference not in CREATED_HERE:
        raise NotImportedError(
            f"The {what} of this experiment is {qualname} of the module {module!r}, which is not imported: this "
            f'process was not told to trust it. Pass allow_import=["{module}"] to Experiment.load (--allow-import), '
            f"or set {ALLOW_IMPORT}={module} before the start."
        )
    try:
        found = _find(importlib.import_module(module), qualname)
    except Exception as problem:
        raise NotImportedError(
            f"The {what} of this experiment is {qualname} of the module {module!r}, which cannot be imported here: "
            f"{type(problem).__name__}: {problem}. Install it, or add its folder to PYTHONPATH."
        ) from problem
    # a name such as "subprocess.Popen" would reach through the allowed module into another one
    if not isinstance(found, type) or (found.__module__, found.__qualname__) != (module, qualname):
        raise NotImportedError(
            f"The {what} of this experiment is {qualname} of the module {module!r}, which defines no such class here. "
            "Install the version with which the experiment was created."
        )
    return found


def _make(what: str, cls: type, settings: Mapping[str, Any]) -> Any:
    name = f"{cls.__module__}:{cls.__qualname__}"
    if not (issubclass(cls, OwnBelief) if what == "belief" else callable(getattr(cls, "choose", None))):
        raise NotImportedError(f"The {what} of this experiment is {name}, which is not a {what}.")
    try:
        return cls(**settings)
    except Exception as problem:
        raise NotImportedError(
            f"The {what} of this experiment is {name}, which does not take its stored settings "
            f"{checks.shown(dict(settings))}: {type(problem).__name__}: {problem}. Install the version with which the "
            "experiment was created."
        ) from problem


@contextmanager
def own_code(*components: Any) -> Iterator[None]:
    """Report an error in the code of one's own class with its file and line."""
    try:
        yield
    except DoubleSamplingError:
        raise
    except Exception as problem:
        own = [component for component in components if is_own(component)]
        if not own:
            raise
        names = [type(component).__name__ for component in own]
        files = [getattr(sys.modules.get(type(component).__module__), "__file__", None) for component in own]
        frames = traceback.extract_tb(problem.__traceback__)
        frame = next((frame for frame in reversed(frames) if frame.filename in files), frames[-1])
        where = f"{os.path.basename(frame.filename)}, line {frame.lineno}, in {frame.name}"  # noqa: PTH119
        raise OwnCodeError(
            f"The code of {' or '.join(names)} raised {type(problem).__name__}: {problem} ({where}). Nothing was "
            "stored. Correct it and try again."
        ) from problem
