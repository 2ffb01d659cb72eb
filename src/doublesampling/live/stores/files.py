"""The files of a SQLite database, and a check that their paths still lead to the files that are open."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from doublesampling.errors import StorageReplacedError

T = TypeVar("T")
Identity = tuple[int, int] | None
"""Device and inode number of a file, or the system's equivalent; None where there is no file."""
SIDES = ("-wal", "-shm")
PRIVATE = 0o600


def identify(path: Path) -> Identity:
    """Return the identity of the file at a path."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class DatabaseFiles:
    """A database and the two side files of SQLite.

    A file that is removed while it is open still accepts writes, and SQLite would acknowledge commits that are then
    lost. The inode of an open file is not reused, so comparing inodes is enough to notice it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sides = [path.with_name(path.name + side) for side in SIDES]
        self._first: Identity = None

    @property
    def known(self) -> bool:
        """Whether a connection was opened before, so that the file must exist."""
        return self._first is not None

    def make(self) -> None:
        """Create an empty database that only its owner may read; SQLite creates its side files with the same mode."""
        with contextlib.suppress(OSError):  # it exists, or the folder is read-only, which SQLite will report
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))

    def open(self, connect: Callable[[], T]) -> T:
        """Return a new connection; raise where it would open another file than the first connection."""
        expected = identify(self.path) if self._first is None else self._first
        self._compare(self.path, expected)
        connection = connect()
        self._compare(self.path, expected)  # it was not replaced while it was opened
        self._first = expected
        return connection

    def opened(self) -> tuple[Identity, ...]:
        """Return the identities of the files that a connection has open."""
        return self._first, *(identify(side) for side in self._sides)

    def check(self, opened: tuple[Identity, ...]) -> None:
        """Raise StorageReplacedError where a path no longer leads to the file that a connection has open."""
        for path, expected in zip((self.path, *self._sides), opened, strict=True):
            if expected is not None:
                self._compare(path, expected)

    def replaced(self) -> bool:
        """Return whether the path leads to another file than when it was first opened."""
        return self._first is not None and identify(self.path) != self._first

    def forget(self) -> None:
        """Accept whatever file the path leads to when it is opened next."""
        self._first = None

    def _compare(self, path: Path, expected: Identity) -> None:
        found = identify(path)
        if found == expected:
            return
        what = "removed" if found is None else "replaced by another file"
        raise StorageReplacedError(
            f"{str(path)!r} was {what} while this process had it open. Nothing was written. Put the file back, or "
            "restore a backup (doublesampling db restore), then start this process again."
        )
