"""A queue in front of a SQLite database: writers wait in the kernel, so that none is told "database is locked"."""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from doublesampling.live.files import PRIVATE

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
        self._database = database
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
            turn = held.enter_context(self._open(self._turn))
            queue = self._open(self._queue)
        except OSError:  # a folder that may only be read: the database itself will say so
            return
        with queue:  # closing a file gives its lock back
            fcntl.flock(queue, fcntl.LOCK_EX)
            fcntl.flock(turn, fcntl.LOCK_EX)

    def _open(self, path: Path) -> IO[bytes]:
        """Open a lock file; one that is made here gets the mode of the database, or is its owner's alone."""
        try:
            return path.open("r+b")
        except FileNotFoundError:
            made = os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE), "r+b")
        with suppress(OSError):  # no database yet, or a file that somebody else made in this moment
            os.fchmod(made.fileno(), stat.S_IMODE(self._database.stat().st_mode) & 0o666)
        return made
