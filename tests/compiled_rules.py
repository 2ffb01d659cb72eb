"""Call single rules from Python: the software calls them from machine code only (rules/compiled.py)."""

import functools
import inspect
from types import ModuleType
from typing import Any

import numba

from doublesampling.rules.specialise import Specialised


@functools.cache
def _wrapped(rule: Any) -> Any:
    """Return a compiled function that calls a rule, with the wrapper for Python that the rule goes without."""
    names = ", ".join(inspect.signature(rule.py_func).parameters)
    space: dict[str, Any] = {"rule": rule}
    exec(f"def call({names}):\n    return rule({names})", space)
    return numba.njit(error_model="numpy")(space["call"])


def callable_rule(rule: Any) -> Any:
    """Return a rule as a function that Python can call; anything else as it is."""
    if isinstance(rule, Specialised):

        def call(*args: Any) -> Any:
            given = dict(zip((p.name for p in rule.parameters), args, strict=True))
            constants = {name: int(given.pop(name)) for name in rule.constants}
            return _wrapped(rule.at(**constants))(*given.values())

        return call
    return _wrapped(rule) if hasattr(rule, "py_func") and not rule.targetoptions.get("cache") else rule


class CallableRules:
    """A module of rules whose rules Python can call."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return callable_rule(getattr(self._module, name))
