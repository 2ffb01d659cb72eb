"""How a rule becomes machine code: once as a CPU function, and as a device function where CUDA calls it."""

from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")

# the CUDA simulator runs kernels as plain Python, and everything that they call
SIMULATED = bool(getattr(numba.config, "ENABLE_CUDASIM", False))


def rule(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a scalar rule on first use; the original stays reachable as ``.py_func``.

    Division follows IEEE (``error_model="numpy"``), as it does on a GPU: a rule never raises.
    """
    return function if SIMULATED else cast(Callable[P, R], numba.njit(error_model="numpy", nogil=True)(function))


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """A rule copied into its callers: for short rules that take arrays, where the call costs more than the work."""
    if SIMULATED:
        return function
    return cast(Callable[P, R], numba.njit(error_model="numpy", nogil=True, forceinline=True)(function))
