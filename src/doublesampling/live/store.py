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

from doublesampling.errors import MissingExtraError, StorageBusyError, StorageError
from doublesampling.live import troubles
from doublesampling.live.snapshot import Snapshot

T = TypeVar("T")
DEFAULT = "sqlite:///doublesampling.db"
_ATTEMPTS = 200
_FORMS = "Write sqlite:///trial.db, or postgresql://user@host/database."


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


_stores: dict[str, Store] = {}
_keeping = threading.Lock()


def _renew_locks() -> None:
    """A forked child must not wait for a lock that a thread of its parent held."""
    global _keeping
    _keeping = threading.Lock()
    _stores.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def locate(storage: str | None) -> sa.URL:
    """The URL of a store: as given, or from DOUBLESAMPLING_STORAGE, or a file in the current folder."""
    text = storage if storage is not None else os.environ.get("DOUBLESAMPLING_STORAGE") or DEFAULT
    try:
        url = sa.make_url(text)
    except (exc.ArgumentError, ValueError, AttributeError):
        raise StorageError(f"storage must be a URL, got {text!r}. {_FORMS}") from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    return url


def open_store(storage: "str | Store | None") -> Store:
    """The store at a URL; one per process and URL."""
    if isinstance(storage, Store):
        return storage
    url = locate(storage)
    key = url.render_as_string(hide_password=False)
    with _keeping:
        if key not in _stores:
            _stores[key] = _make(url)
        return _stores[key]


def _make(url: sa.URL) -> Store:
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        from doublesampling.live.sqlite import SqliteStore

        return SqliteStore(url)
    if url.drivername == "postgresql+psycopg":
        try:
            import psycopg  # noqa: F401
        except ImportError:
            message = "A postgresql:// store needs psycopg: pip install 'doublesampling[postgres]'"
            raise MissingExtraError(message) from None
        from doublesampling.live.postgres import PostgresStore

        return PostgresStore(url)
    raise StorageError(f"storage of the kind {url.drivername!r} is not known. {_FORMS}")
