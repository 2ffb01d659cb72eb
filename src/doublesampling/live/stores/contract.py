"""The contract of a store, which both databases implement: transactions that know which transactions they see.

A store guarantees: (1) what ``writing`` wrote is durable once the block ends without an error, and otherwise absent;
(2) one transaction reads exactly the rows that the ``Snapshot`` of its ``moment`` sees; (3) every row carries the
number of its transaction, ``xid``; (4) transactions below ``xmin`` of a snapshot have ended: rows with ``xid < xmin``,
in the order (xid, seq), are a prefix that only grows at its end, as long as the ``Incarnation`` of the moment is the
same; (5) ``run_transaction`` retries work that lost a race for a key, or met a restore; (6) nothing is written to a
database that was removed, or replaced by another one.
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
from doublesampling.live.stores import db_errors
from doublesampling.live.stores.identity import Incarnation, Moment, RestoredError
from doublesampling.live.stores.schema import health

T = TypeVar("T")
_ATTEMPTS = 200
_FRESH = 1.0  # seconds for which a commit proves that the store is writable


class Store:
    """An open database. Subclasses define how it numbers its transactions."""

    def __init__(self, url: sa.URL) -> None:
        self.url, self.where = url, url.render_as_string(hide_password=True)
        self._engine: Engine | None = None
        self._process, self._opening = os.getpid(), threading.Lock()
        self._incarnation: Incarnation | None = None
        self._written_at = -1e9
        self.version = 0
        """Increases whenever this process notices a restore: everything cached from the store before is invalid."""

    def make_engine(self) -> Engine:
        """Return a new SQLAlchemy engine for this process."""
        raise NotImplementedError

    def exists(self) -> bool:
        """Return whether the database exists."""
        raise NotImplementedError

    @property
    def read_only(self) -> bool:
        """Whether the store is known to be read-only."""
        return False

    def replaced(self) -> bool:
        """Return whether the URL leads to another database than the open one."""
        return False

    def enter(self, connection: Connection) -> None:
        """Run the first statement of a transaction that reads and then writes; call it with the state cache locked."""

    def incarnation(self, connection: Connection) -> Incarnation:
        """Return the identity and incarnation of the store that this transaction uses."""
        raise NotImplementedError

    def moment(self, connection: Connection, experiment: int) -> Moment:
        """Return the snapshot and incarnation that this transaction sees of an experiment."""
        raise NotImplementedError

    def draw_xid(self, connection: Connection, experiment: int) -> int:
        """Return the number of this writing transaction."""
        raise NotImplementedError

    def draw_numbers(self, connection: Connection, experiment: int, count: int) -> list[int]:
        """Return numbers for new decisions of an experiment; none is given twice."""
        raise NotImplementedError

    def prepare(self, connection: Connection, experiment: int) -> None:
        """Create whatever the database needs for a new experiment."""

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a transaction that may write; it is committed at the end of the block."""
        raise NotImplementedError
        yield

    @contextmanager
    def writing_alone(self, experiment: int) -> Iterator[Connection]:
        """Yield a transaction that no other of this kind overlaps; it sees all that came before it.

        For decisions that depend on all earlier ones of an experiment.
        """
        with self.writing() as connection:
            yield connection

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Yield a transaction that may create or change tables, one process at a time."""
        with self.writing() as connection:
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a transaction that reads one consistent state."""
        try:
            with db_errors.translate_errors(self.where), self.engine.begin() as connection:
                yield connection
        except exc.DBAPIError as problem:  # a deadlock of this reader with a restore
            raise StorageBusyError(f"{self.where} was being restored. Try again.") from problem

    @property
    def engine(self) -> Engine:
        """The engine of this process; a forked child gets a new one, because connections must not be shared."""
        if self._engine is None or self._process != os.getpid():
            with self._opening:
                if self._process != os.getpid() and self._engine is not None:
                    self._engine.dispose(close=False)  # the parent closes its connections
                    self._engine = None
                if self._engine is None:
                    self._engine, self._process = self.make_engine(), os.getpid()
        return self._engine

    def run_transaction(self, work: Callable[[Connection], T], *, alone: int | None = None) -> T:
        """Return the result of work in a writing transaction; retry where another writer was first.

        ``alone`` is an experiment for ``writing_alone``.
        """
        for turn in range(_ATTEMPTS):
            try:
                with self.writing() if alone is None else self.writing_alone(alone) as connection:
                    return work(connection)
            except RestoredError:
                if turn > _ATTEMPTS // 10:
                    raise
            except exc.DBAPIError as problem:
                if not db_errors.is_conflict(problem):
                    raise
            time.sleep(random.random() * min(0.001 * 2.0**turn, 0.1))
        raise StorageBusyError(f"{self.where}: {_ATTEMPTS} attempts conflicted with other writers. Try again.")

    def is_new(self, found: Incarnation) -> bool:
        """Return whether this incarnation differs from the last one that this process saw."""
        return found != self._incarnation

    def check_incarnation(self, found: Incarnation) -> Incarnation:
        """Return the incarnation after comparing it with the last one: note a restore, refuse another store."""
        if found == self._incarnation:
            return self._incarnation
        if self._incarnation is not None and found.identity != self._incarnation.identity:
            raise StorageReplacedError(
                f"{self.where} is another store now: this process opened {self._incarnation.identity} and finds "
                f"{found.identity}. Nothing was written. Restart this process to use the new one."
            )
        if self._incarnation is not None:
            self.note_restore()
        self._incarnation = found
        return found

    def note_restore(self) -> None:
        """Increase ``version``, so that caches of this store are dropped."""
        self.version += 1

    def note_commit(self) -> None:
        """Note that a commit has just succeeded."""
        self._written_at = time.monotonic()

    def identity(self) -> str:
        """Return the identity that the store got when it was created."""
        with self.reading() as connection:
            return self.incarnation(connection).identity

    def check_writable(self) -> None:
        """Commit a write, or raise the StorageError that a caller would get.

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

        self.run_transaction(work)

    def forget(self) -> None:
        """Accept whatever store the URL leads to next."""
        self._incarnation = None
        self.note_restore()

    def close(self) -> None:
        """Close the connections."""
        self.forget()
        if self._engine is not None and self._process == os.getpid():
            self._engine.dispose()
            self._engine = None
