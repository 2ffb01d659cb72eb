"""Machine code that is kept on disk: what Python calls, and the loops of the engine.

Numba's cache looks only at the file of the function it keeps, so its machine code would outlive an edit of a rule that
it calls. Every kept function therefore carries a digest of this folder's sources in its name: another source, another
name. A function may close over whole numbers, which are part of its key; what it closes over is a constant of its code.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba

from doublesampling.rules.compiled import SIMULATED
from doublesampling.rules.specialise import written_out

P = ParamSpec("P")
R = TypeVar("R")


def sources_digest() -> str:
    """Return a digest of the source of every rule."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


_DIGEST = sources_digest()
_KEPT: list[Any] = []


def digest_name(function: Callable[P, R]) -> Callable[P, R]:
    """Put the digest of the sources into a function's name, and so into the name of its file in the cache."""
    function.__qualname__ = f"{function.__qualname__}_{_DIGEST}"
    return function


def kept(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function when it is first called, and keep its machine code on disk. It makes no arrays of its own."""
    if SIMULATED:
        return function
    function = digest_name(function)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
    try:
        compiled = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # no folder to keep machine code in: compile anew in each process
        compiled = numba.njit(**options)(function)
    _KEPT.append(compiled)
    return cast(Callable[P, R], compiled)


def kept_for(*constants: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Compile a function that closes over whole numbers, with what they do not need left out, and keep it on disk."""

    def compiled(function: Callable[P, R]) -> Callable[P, R]:
        if SIMULATED:
            return function
        special = written_out(function)
        special.__qualname__ = "_".join([function.__qualname__, *map(str, constants)])
        return kept(special)

    return compiled


def compilations() -> int:
    """Count the functions that this process had to compile, finished or not, because none was kept on disk."""
    return sum(sum(compiled.stats.cache_misses.values()) for compiled in _KEPT)
