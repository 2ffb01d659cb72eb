"""How a rule becomes machine code: once as a CPU function, and as a device function where CUDA calls it.

Rules are called by machine code and through the entry points, so they go without two things that Numba does for calls
from Python: wrappers, which take time to compile, and counting references to arrays, which takes time in
every step. Whoever calls a rule owns the arrays; a rule makes none.
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

import numba

from doublesampling.rules import linked_rules
from doublesampling.rules.collection import pause_while_compiling

P = ParamSpec("P")
R = TypeVar("R")

# the CUDA simulator runs kernels as plain Python, and everything that they call
SIMULATED = bool(getattr(numba.config, "ENABLE_CUDASIM", False))

# division follows IEEE, as it does on a GPU: a rule never raises
_OPTIONS: dict[str, Any] = {
    "error_model": "numpy",
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    **linked_rules.OPTIONS,
}


if not SIMULATED:
    pause_while_compiling()


def _compile(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    if SIMULATED:
        return function
    compiled = numba.njit(**_OPTIONS, **options)(function)
    linked_rules.ignore_literals(compiled)
    return cast(Callable[P, R], compiled)


def rule(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a scalar rule on first use; the original stays reachable as ``.py_func``."""
    return _compile(function, _nrt=False)


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a rule into its callers: for short rules, where the call costs more than the work."""
    return _compile(function, _nrt=False, forceinline=True)


def spliced(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a rule by copying its statements into its callers (specialise.py); Numba inlines what is left."""
    return _compile(function, _nrt=False, inline="always")


def plain(compiled: Callable[P, R]) -> Callable[P, R]:
    """Return a rule as plain Python, for a single call of a few operations."""
    return cast(Callable[P, R], getattr(compiled, "py_func", compiled))
