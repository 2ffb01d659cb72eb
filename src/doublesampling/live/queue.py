"""A queue in front of a SQLite database: writers wait in the kernel, so that none is told "database is locked"."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: SQLite's own busy timeout has to do
    fcntl = None  # type: ignore[assignment]


class Queue:
    """One writer at a time, over threads and processes. A killed process leaves the queue by itself.

    Two locks, as before a counter: whoever is next holds ``queue`` until it gets ``turn``. With one lock, a process
    that has just written takes it again before the next in line has woken up, and some wait very long.
    """

    def __init__(self, database: Path) -> None:
        self._queue = database.with_name(database.name + "-queue")
        self._turn = database.with_name(database.name + "-turn")
        self._threads, self._process = threading.Lock(), os.getpid()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn, and hand it on at the end."""
        if self._process != os.getpid():  # a fork copies locks as they are, held or not
            self._threads, self._process = threading.Lock(), os.getpid()
        with self._threads, ExitStack() as held:
            if fcntl is not None:
                self._wait(held)
            yield

    def _wait(self, held: ExitStack) -> None:
        try:
            turn = held.enter_context(self._turn.open("ab"))
            queue = self._queue.open("ab")
        except OSError:  # a folder that may only be read: the database itself will say so
            return
        with queue:  # closing a file gives its lock back
            fcntl.flock(queue, fcntl.LOCK_EX)
            fcntl.flock(turn, fcntl.LOCK_EX)
