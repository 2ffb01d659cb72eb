"""The contract of a store: transactions that know which transactions they see. Both databases keep it.

A store promises: (1) what ``writing`` wrote is there for good once it ends without an error, or not at all; (2) all
that one transaction reads belongs to the ``Snapshot`` of its ``moment``, exactly; (3) every row carries the number of
its transaction, ``xid``; (4) transactions below ``xmin`` of a snapshot are over: rows with ``xid < xmin``, in the order
(xid, seq), are a prefix that only ever grows at its end; (5) ``attempt`` repeats work that lost a race for a key.
"""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import Connection, Engine

from doublesampling.errors import StorageBusyError
from doublesampling.live import troubles
from doublesampling.live.snapshot import Snapshot

T = TypeVar("T")
_ATTEMPTS = 200


class Store:
    """A database, opened. Subclasses say how it numbers its transactions."""

    def __init__(self, url: sa.URL) -> None:
        self.url, self.where = url, url.render_as_string(hide_password=True)
        self._engine: Engine | None = None
        self._process, self._opening = os.getpid(), threading.Lock()

    def make_engine(self) -> Engine:
        """A fresh engine for this process."""
        raise NotImplementedError

    def exists(self) -> bool:
        """Whether there is a database at all."""
        raise NotImplementedError

    def see(self, connection: Connection, experiment: int) -> Snapshot:
        """What this transaction sees of an experiment."""
        raise NotImplementedError

    def draw_xid(self, connection: Connection, experiment: int) -> int:
        """The number of this writing transaction."""
        raise NotImplementedError

    def draw_numbers(self, connection: Connection, experiment: int, count: int) -> list[int]:
        """Numbers for new decisions of an experiment, never given twice."""
        raise NotImplementedError

    def prepare(self, connection: Connection, experiment: int) -> None:
        """Whatever a new experiment needs."""

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may write; it ends with the block."""
        raise NotImplementedError
        yield

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """A transaction that may make or change tables, one process at a time."""
        with self.writing() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads one consistent picture."""
        with troubles.translated(self.where), self.engine.begin() as connection:
            yield connection

    @property
    def engine(self) -> Engine:
        """The engine of this process: connections must not be carried over a fork."""
        if self._engine is None or self._process != os.getpid():
            with self._opening:
                if self._process != os.getpid() and self._engine is not None:
                    self._engine.dispose(close=False)  # they are the parent's to close
                    self._engine = None
                if self._engine is None:
                    self._engine, self._process = self.make_engine(), os.getpid()
        return self._engine

    def attempt(self, work: Callable[[Connection], T]) -> T:
        """Do the work in a writing transaction; again, where another writer was first."""
        for turn in range(_ATTEMPTS):
            try:
                with self.writing() as connection:
                    return work(connection)
            except exc.DBAPIError as problem:
                if not troubles.lost_a_race(problem):
                    raise
            time.sleep(random.random() * min(0.001 * 2.0**turn, 0.1))
        raise StorageBusyError(f"{self.where}: {_ATTEMPTS} attempts lost against other writers. Try again.")

    def forget(self) -> None:
        """Read again what an upgrade may have changed."""

    def close(self) -> None:
        """Give the connections back."""
        if self._engine is not None and self._process == os.getpid():
            self._engine.dispose()
            self._engine = None
