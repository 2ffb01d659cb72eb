"""A queue for writers of a SQLite database, on file locks, so that none gets "database is locked"."""

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from doublesampling.live.stores.files import PRIVATE

try:
    import fcntl
except ImportError:  # Windows: only SQLite's own busy timeout applies
    fcntl = None  # type: ignore[assignment]


class Queue:
    """Admits one writer at a time, over threads and processes. A killed process leaves the queue automatically.

    There are two locks: the next writer holds ``queue`` until it gets ``turn``. With a single lock, a process that has
    just written would take it again before the next one has woken up, and some would starve.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._queue = database.with_name(database.name + "-queue")
        self._turn = database.with_name(database.name + "-turn")
        self._threads, self._process = threading.Lock(), os.getpid()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the turn and release it at the end of the block."""
        if self._process != os.getpid():  # a fork copies locks in their present state, held or not
            self._threads, self._process = threading.Lock(), os.getpid()
        with self._threads, ExitStack() as held:
            if fcntl is not None:
                self._wait(held)
            yield

    def _wait(self, held: ExitStack) -> None:
        try:
            turn = held.enter_context(self._open(self._turn))
            queue = self._open(self._queue)
        except OSError:  # a read-only folder: the database itself will report it
            return
        with queue:  # closing the file releases its lock
            fcntl.flock(queue, fcntl.LOCK_EX)
            fcntl.flock(turn, fcntl.LOCK_EX)

    def _open(self, path: Path) -> IO[bytes]:
        """Return an open lock file; a new one gets the mode of the database, or is private to its owner."""
        try:
            return path.open("r+b")
        except FileNotFoundError:
            made = os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, PRIVATE), "r+b")
        with suppress(OSError):  # no database yet, or a lock file that another user has just created
            os.fchmod(made.fileno(), stat.S_IMODE(self._database.stat().st_mode) & 0o666)
        return made
