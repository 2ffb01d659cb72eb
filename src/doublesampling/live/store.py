"""The contract of a store: transactions that know which transactions they see. Both databases keep it.

A store promises: (1) what ``writing`` wrote is there for good once it ends without an error, or not at all; (2) all
that one transaction reads belongs to the ``Snapshot`` of its ``moment``, exactly; (3) every row carries the number of
its transaction, ``xid``; (4) transactions below ``xmin`` of a snapshot are over: rows with ``xid < xmin``, in the order
(xid, seq), are a prefix that only ever grows at its end, as long as the ``Incarnation`` of the moment is the same;
(5) ``attempt`` repeats work that lost a race for a key, or met a restore; (6) nothing is written to a database that was
removed, or replaced by another one.
"""

import datetime
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

from doublesampling.errors import StorageBusyError, StorageReplacedError
from doublesampling.live import troubles
from doublesampling.live.identity import Incarnation, Moment, RestoredError
from doublesampling.live.schema import health

T = TypeVar("T")
_ATTEMPTS = 200
_FRESH = 1.0  # seconds for which a commit shows that the store can be written


class Store:
    """A database, opened. Subclasses say how it numbers its transactions."""

    def __init__(self, url: sa.URL) -> None:
        self.url, self.where = url, url.render_as_string(hide_password=True)
        self._engine: Engine | None = None
        self._process, self._opening = os.getpid(), threading.Lock()
        self._met: Incarnation | None = None
        self._written_at = -1e9
        self.version = 0
        """Grows whenever this process notices a restore: what was derived from the store before does not hold."""

    def make_engine(self) -> Engine:
        """A fresh engine for this process."""
        raise NotImplementedError

    def exists(self) -> bool:
        """Whether there is a database at all."""
        raise NotImplementedError

    @property
    def read_only(self) -> bool:
        """Whether it is known beforehand that nothing can be written."""
        return False

    def replaced(self) -> bool:
        """Whether what is open is no longer what the URL leads to."""
        return False

    def enter(self, connection: Connection) -> None:
        """Do what must come first in a transaction that reads and then writes; hold an experiment's lock meanwhile."""

    def incarnation(self, connection: Connection) -> Incarnation:
        """Return which store, and which incarnation of it, this transaction meets."""
        raise NotImplementedError

    def moment(self, connection: Connection, experiment: int) -> Moment:
        """Return what this transaction sees of an experiment."""
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
        try:
            with troubles.translated(self.where), self.engine.begin() as connection:
                yield connection
        except exc.DBAPIError as problem:  # a reader that waited crosswise with a restore
            raise StorageBusyError(f"{self.where} was being restored. Try again.") from problem

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
            except RestoredError:
                if turn > _ATTEMPTS // 10:
                    raise
            except exc.DBAPIError as problem:
                if not troubles.lost_a_race(problem):
                    raise
            time.sleep(random.random() * min(0.001 * 2.0**turn, 0.1))
        raise StorageBusyError(f"{self.where}: {_ATTEMPTS} attempts lost against other writers. Try again.")

    def is_new(self, found: Incarnation) -> bool:
        """Whether this process has not met this incarnation just before."""
        return found != self._met

    def meet(self, found: Incarnation) -> Incarnation:
        """Compare what a transaction meets with what was met before: a restore is noted, another store refused."""
        if found == self._met:
            return self._met
        if self._met is not None and found.identity != self._met.identity:
            raise StorageReplacedError(
                f"{self.where} is another store now: it was {self._met.identity} when this process opened it, and is "
                f"{found.identity}. Nothing was written. Start this process again to work with the new one."
            )
        if self._met is not None:
            self.note_restore()
        self._met = found
        return found

    def note_restore(self) -> None:
        """Tell everybody who looks at ``version`` that the store is not what it was."""
        self.version += 1

    def note_commit(self) -> None:
        """Remember that something could be written just now."""
        self._written_at = time.monotonic()

    def identity(self) -> str:
        """Return the name that this store has had since it was made."""
        with self.reading() as connection:
            return self.incarnation(connection).identity

    def check_writable(self) -> None:
        """Commit a write, or raise the StorageError that a caller would meet.

        Where this process has committed something within the last second, only the identity is checked.
        """
        if time.monotonic() - self._written_at < _FRESH:
            with self.reading() as connection:
                self.incarnation(connection)
            return

        def work(connection: Connection) -> None:
            self.incarnation(connection)
            now = datetime.datetime.now(datetime.UTC)
            if connection.execute(sa.update(health).where(health.c.id == 1).values(at=now)).rowcount == 0:
                connection.execute(sa.insert(health).values(id=1, at=now))

        self.attempt(work)

    def forget(self) -> None:
        """Take whatever is there next for the store, whichever it is."""
        self._met = None
        self.note_restore()

    def close(self) -> None:
        """Give the connections back."""
        self.forget()
        if self._engine is not None and self._process == os.getpid():
            self._engine.dispose()
            self._engine = None
