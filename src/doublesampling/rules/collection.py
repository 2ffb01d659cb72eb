"""Pause Python's garbage collection while Numba compiles our rules.

Compiling makes millions of small objects, which stay; looking through them again and again takes a tenth of the time.
"""

import gc
import threading
from typing import Any

from numba.core import event


class PauseWhileCompiling(event.Listener):
    """Collects nothing between the start of the first compilation of ours and the end of the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._resume = False

    def on_start(self, event: Any) -> None:
        """Count a compilation; the first one pauses collection."""
        if _is_ours(event):
            with self._lock:
                if self._running == 0:
                    self._resume = gc.isenabled()
                    gc.disable()
                self._running += 1

    def on_end(self, event: Any) -> None:
        """Count its end; the last one resumes collection, if it was running before."""
        if _is_ours(event):
            with self._lock:
                self._running -= 1
                if self._running == 0 and self._resume:
                    gc.enable()


def _is_ours(compiling: Any) -> bool:
    module = getattr(compiling.data["dispatcher"].py_func, "__module__", None)
    return str(module).partition(".")[0] == "doublesampling"


def pause_while_compiling() -> None:
    """Begin to do so, in this process."""
    event.register("numba:compile", PauseWhileCompiling())  # type: ignore[no-untyped-call]
