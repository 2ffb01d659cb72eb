"""A queue in front of a SQLite database: writers wait in the kernel, so that none is told "database is locked"."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: SQLite's own busy timeout has to do
    fcntl = None  # type: ignore[assignment]


class Queue:
    """One writer at a time, over threads and processes. A killed process leaves the queue by itself."""

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + "-queue")
        self._threads, self._process = threading.Lock(), os.getpid()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn, and hand it on at the end."""
        if self._process != os.getpid():  # a fork copies locks as they are, held or not
            self._threads, self._process = threading.Lock(), os.getpid()
        with self._threads:
            try:
                file = None if fcntl is None else self._path.open("ab")
            except OSError:  # a folder that may only be read: the database itself will say so
                file = None
            if file is None:
                yield
                return
            with file:  # closing gives the lock back
                fcntl.flock(file, fcntl.LOCK_EX)
                yield
