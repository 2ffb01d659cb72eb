"""The files of a SQLite database, and whether a path still leads to those that are open."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from doublesampling.errors import StorageReplacedError

T = TypeVar("T")
Identity = tuple[int, int] | None
"""Device and inode, or what the system has in their place; None where there is no file."""
SIDES = ("-wal", "-shm")
PRIVATE = 0o600


def identify(path: Path) -> Identity:
    """Return which file a path leads to."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


class DatabaseFiles:
    """A database and the two files that SQLite keeps beside it.

    An open file lives on after its name is gone, and SQLite goes on writing to it: what is acknowledged then is lost.
    As long as a file is open its inode is not given to another, so comparing inodes is enough.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sides = [path.with_name(path.name + side) for side in SIDES]
        self._first: Identity = None

    @property
    def known(self) -> bool:
        """Whether a connection was opened before, so that the file must be there."""
        return self._first is not None

    def make(self) -> None:
        """Create an empty database that only its owner may read; SQLite gives its side files the same mode."""
        with contextlib.suppress(OSError):  # it is there, or the folder may not be written, which SQLite will say
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))

    def open(self, connect: Callable[[], T]) -> T:
        """Open the database; all connections of a process must open the same file."""
        expected = identify(self.path) if self._first is None else self._first
        self._compare(self.path, expected)
        connection = connect()
        self._compare(self.path, expected)  # nobody replaced it meanwhile: it is this one that was opened
        self._first = expected
        return connection

    def opened(self) -> tuple[Identity, ...]:
        """Return which files a connection has open."""
        return self._first, *(identify(side) for side in self._sides)

    def check(self, opened: tuple[Identity, ...]) -> None:
        """Refuse where a path no longer leads to the file that a connection has open."""
        for path, expected in zip((self.path, *self._sides), opened, strict=True):
            if expected is not None:
                self._compare(path, expected)

    def replaced(self) -> bool:
        """Whether the path leads elsewhere than when it was first opened."""
        return self._first is not None and identify(self.path) != self._first

    def forget(self) -> None:
        """Whatever is there is right when it is opened next."""
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
