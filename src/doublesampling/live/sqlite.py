"""SQLite: one file, one writer at a time, and every commit on the disk before it is acknowledged."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from doublesampling.errors import StorageError
from doublesampling.live import troubles
from doublesampling.live.queue import Queue
from doublesampling.live.schema import decisions, events, outcomes
from doublesampling.live.snapshot import Snapshot
from doublesampling.live.store import Store

_PATIENCE = 120.0  # seconds; the queue keeps waits far below


class SqliteStore(Store):
    """Writers are serial, so a transaction's number is one more than the last, and a snapshot is that number."""

    def __init__(self, url: sa.URL) -> None:
        super().__init__(url)
        if not url.database or url.database == ":memory:":
            raise StorageError("An experiment must outlive its process. Name a file: sqlite:///trial.db.")
        self.path = Path(url.database.removeprefix("file:").partition("?")[0]).absolute()
        if not self.path.parent.is_dir():
            raise StorageError(f"The folder {str(self.path.parent)!r} does not exist. Make it, or name another file.")
        if self.path.is_dir():
            raise StorageError(f"{str(self.path)!r} is a folder. Name a file in it: {url}/trial.db.")
        self._queue = Queue(self.path)

    def exists(self) -> bool:
        """Whether the file is there and holds anything."""
        return self.path.exists() and self.path.stat().st_size > 0

    def make_engine(self) -> Engine:
        """Connections in WAL mode with full synchronous commits, which begin transactions as we say."""
        engine = sa.create_engine(self.url, connect_args={"timeout": _PATIENCE, "check_same_thread": False})
        event.listen(engine, "connect", _set_up)
        event.listen(engine, "begin", _begin)
        return engine

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Wait in the queue, then write: an immediate transaction never has to be given up half-way."""
        engine = self.engine.execution_options(writes=True)
        with self._queue.turn(), troubles.translated(self.where), engine.begin() as connection:
            yield connection

    def see(self, connection: Connection, experiment: int) -> Snapshot:
        """Everything up to the last transaction that wrote."""
        following = self.draw_xid(connection, experiment)
        return Snapshot(following, following)

    def draw_xid(self, connection: Connection, experiment: int) -> int:
        """One more than any row of the experiment carries; inside the immediate transaction nobody else can take it."""
        last = [
            sa.select(sa.func.max(table.c.xid)).where(table.c.experiment == experiment).scalar_subquery()
            for table in (decisions, outcomes, events)
        ]
        found = connection.execute(sa.select(*last)).one()
        return max((int(x) for x in found if x is not None), default=0) + 1

    def draw_numbers(self, connection: Connection, experiment: int, count: int) -> list[int]:
        """The next numbers; gaps cannot arise."""
        query = sa.select(sa.func.max(decisions.c.number)).where(decisions.c.experiment == experiment)
        first = int(connection.execute(query).scalar() or 0) + 1
        return list(range(first, first + count))


def _set_up(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # the driver would begin transactions by itself, and too late
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout={int(1000 * _PATIENCE)}")
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        _turn_on_wal(cursor)
    cursor.execute("PRAGMA synchronous=FULL")
    cursor.close()


def _turn_on_wal(cursor: Any) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorname.startswith("SQLITE_READONLY"):  # reading needs no journal
                return
            # SQLite does not wait here by itself where another process turns it on at the same moment
            if not problem.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
