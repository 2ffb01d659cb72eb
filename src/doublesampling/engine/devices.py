"""Which devices there are."""

import contextlib
import functools
import warnings
from collections.abc import Iterator
from importlib import import_module

from doublesampling.errors import missing_extra

_BROKEN = "device='cuda' needs a working numba-cuda, which fails to load: {}. Use device='cpu' or 'auto'."


@functools.cache
def cuda_problem() -> str:
    """Return why CUDA cannot be used, and what to do; empty where it can."""
    try:
        import_module("numba_cuda")
    except ImportError:
        return str(missing_extra("device='cuda' needs numba-cuda", "cuda"))
    except Exception as problem:  # a CUDA toolkit can fail to load in many ways
        return _BROKEN.format(problem)
    try:
        cuda = import_module("numba.cuda")
    except Exception as problem:  # with a NumPy that is newer than it knows, numba-cuda fails here
        return _BROKEN.format(problem)
    if not cuda.is_available():
        return "device='cuda' needs an NVIDIA GPU and its driver, and none was found. Use device='cpu' or 'auto'."
    return ""


@contextlib.contextmanager
def quiet_launches() -> Iterator[None]:
    """Silence Numba's advice about small grids: the size of a launch is that of the user's question."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Grid size .* under-utilization")
        yield
