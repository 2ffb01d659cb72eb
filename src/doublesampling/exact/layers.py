"""Layers of states: their sizes, whether they fit into memory, and how threads share their blocks."""

import itertools
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.exact.kernels import Layer
from doublesampling.rules.compiled import plain
from doublesampling.rules.two_arm_states import offset

FloatArray = NDArray[np.float64]

MOST_HORIZON = 5000
_PIECES = 8  # per thread: blocks differ in the work that they need
_FEW = 4000  # states: one thread is done before others have begun
_LEFT = 0.9  # of the memory that is free, at most


def blocks_of(time: int, mirrored: bool) -> int:
    """Return how many blocks a layer stores."""
    return time // 2 + 1 if mirrored else time + 1


def layer_size(time: int, mirrored: bool) -> int:
    """Return how many states a layer stores."""
    return int(plain(offset)(time, blocks_of(time, mirrored)))


def all_layers_size(horizon: int, mirrored: bool) -> int:
    """Return how many states all layers before the horizon store."""
    return sum(layer_size(time, mirrored) for time in range(horizon))


def free_memory() -> float:
    """Return the bytes of memory that are free, or of all memory where this system does not say."""
    try:
        with Path("/proc/meminfo").open(encoding="ascii") as lines:
            return next(1024.0 * float(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return float("inf")


def check_horizon(horizon: object) -> int:
    """Return a horizon for which states can be counted."""
    hint = "An exact computation visits every posterior state: T^4 / 24 of them. Use simulate for longer runs."
    return checks.integer("horizon", horizon, least=1, most=MOST_HORIZON, hint=hint)


def check_room(horizon: int, bytes_needed: Callable[[int], float], free: float, what: str) -> None:
    """Refuse a computation that memory cannot hold, and say what would fit."""
    needed = bytes_needed(horizon)
    if needed <= _LEFT * free:
        return
    fits = next((t for t in range(horizon - 1, 0, -1) if bytes_needed(t) <= _LEFT * free), 0)
    raise SettingError(
        f"{what} to horizon {horizon} needs {needed / 1e9:,.1f} GB of memory, and {free / 1e9:,.1f} GB are free. "
        f"The longest horizon that fits is {fits}."
    )


class Threads:
    """Threads that share the blocks of a layer; each call has work space of its own."""

    def __init__(self, threads: int | None, new_scratch: Callable[[], Any] = lambda: None) -> None:
        found = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.count = found if threads is None else checks.integer("threads", threads, least=1, most=4096)
        self._spaces = [new_scratch() for _ in range(self.count)]
        self._pool = ThreadPoolExecutor(self.count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()

    def over(self, time: int, mirrored: bool, work: Callable[[Layer, Any], None]) -> None:
        """Call ``work(layer, scratch)`` for all blocks of a layer, in pieces of about equal numbers of states."""
        pieces = list(self._pieces(time, mirrored))
        if len(pieces) == 1:
            work(pieces[0], self._spaces[0])
            return
        waiting = iter(pieces)

        def take(space: Any) -> None:
            while True:
                try:
                    piece = next(waiting)  # a list's iterator: one call of next at a time, under the interpreter's lock
                except StopIteration:
                    return
                work(piece, space)

        for done in [self._pool.submit(take, space) for space in self._spaces]:
            done.result()

    def _pieces(self, time: int, mirrored: bool) -> Iterator[Layer]:
        blocks, size = blocks_of(time, mirrored), layer_size(time, mirrored)
        if self.count == 1 or size < _FEW:
            yield Layer(time, 0, blocks, mirrored)
            return
        ends = np.array([plain(offset)(time, n) for n in range(1, blocks + 1)])
        wanted = size * np.arange(1, self.count * _PIECES) / (self.count * _PIECES)
        edges = np.unique(np.concatenate([[0], np.searchsorted(ends, wanted) + 1, [blocks]]).clip(0, blocks))
        for low, high in itertools.pairwise(edges):
            yield Layer(time, int(low), int(high), mirrored)
