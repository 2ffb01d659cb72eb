"""The SQLite store: one file, one writer at a time, and every commit flushed to the disk."""

import os
import sqlite3
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine

from doublesampling.errors import StorageError, StorageReplacedError
from doublesampling.live.stores import db_errors
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.files import DatabaseFiles
from doublesampling.live.stores.identity import Incarnation, Moment, check_schema
from doublesampling.live.stores.queue import Queue
from doublesampling.live.stores.schema import decisions, events, outcomes
from doublesampling.live.visibility import Snapshot

_BUSY_TIMEOUT = 120.0  # seconds; the queue keeps waits far below
# sqlite3's .restore changes schema_version even where it restores the same tables
_INCARNATION = (
    "SELECT identity, incarnation, (SELECT schema_version FROM pragma_schema_version), "
    "(SELECT version_num FROM ds_version) FROM ds_store ORDER BY seq DESC LIMIT 1"
)


class SqliteStore(Store):
    """A store in a SQLite file.

    Writers are serial, so a transaction's number is one more than the last one, and a snapshot is that number.
    """

    def __init__(self, url: sa.URL) -> None:
        super().__init__(url)
        if not url.database or url.database == ":memory:":
            raise StorageError(
                "An experiment needs a file, because it must outlive its process. Write sqlite:///trial.db."
            )
        self.path = Path(url.database.removeprefix("file:").partition("?")[0]).absolute()
        if not self.path.parent.is_dir():
            raise StorageError(f"The folder {str(self.path.parent)!r} does not exist. Make it, or name another file.")
        if self.path.is_dir():
            raise StorageError(f"{str(self.path)!r} is a folder. Name a file in it: {url}/trial.db.")
        self._files = DatabaseFiles(self.path)
        self._queue = Queue(self.path)

    def exists(self) -> bool:
        """Return whether the file exists and is not empty."""
        return self.path.exists() and self.path.stat().st_size > 0

    def replaced(self) -> bool:
        """Return whether the open file is no longer the one at the path."""
        return self._files.replaced()

    @property
    def read_only(self) -> bool:
        """Whether the file is read-only, by its mode, its folder's mode, or the URL."""
        if self.url.query.get("mode") == "ro" or "immutable" in self.url.query:
            return True
        if not self.path.exists():
            return False
        sides = [self.path.with_name(self.path.name + side) for side in ("-wal", "-shm")]
        writable = os.access(self.path.parent, os.W_OK) or all(os.access(side, os.W_OK) for side in sides)
        return not (writable and os.access(self.path, os.W_OK))

    def make_engine(self) -> Engine:
        """Return an engine in WAL mode with full synchronous commits and explicit BEGIN statements."""
        engine = sa.create_engine("sqlite://", creator=self._connect, poolclass=sa.pool.QueuePool)
        event.listen(engine, "connect", self._set_up)
        event.listen(engine, "begin", _begin)
        return engine

    def _connect(self) -> sqlite3.Connection:
        if not self.read_only and not self._files.known:
            self._files.make()
        address = self.connection_url()
        return self._files.open(
            lambda: sqlite3.connect(address, uri=True, timeout=_BUSY_TIMEOUT, check_same_thread=False)
        )

    def connection_url(self) -> str:
        """Return the SQLite URI of the file, which creates no missing file and opens an archive without side files."""
        settings = {"mode": "rw"} | {k: str(v) for k, v in self.url.query.items() if k in ("mode", "immutable")}
        if self.read_only:
            settings["mode"] = "ro"
            log = self.path.with_name(self.path.name + "-wal")
            folder = os.access(self.path.parent, os.W_OK)
            if not folder and not (log.exists() and log.stat().st_size > 0):
                settings["immutable"] = "1"  # a read-only folder, where SQLite cannot create its side files
        return f"{self.path.as_uri()}?{urllib.parse.urlencode(settings)}"

    def _set_up(self, connection: Any, record: Any) -> None:
        connection.isolation_level = None  # otherwise the driver begins transactions itself, and too late
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={int(1000 * _BUSY_TIMEOUT)}")
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal" and not self.read_only:
            _turn_on_wal(cursor)
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # opens the side files
        cursor.close()
        record.info["files"] = self._files.opened()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Wait in the queue, then yield an immediate transaction, which never has to be rolled back for a lock."""
        engine = self.engine.execution_options(writes=True)
        with self._queue.turn(), db_errors.translate_errors(self.where), engine.begin() as connection:
            self._check_files(connection)
            yield connection
            self._check_files(connection)  # the last thing before the commit
        self.note_commit()

    @contextmanager
    def replacing(self) -> Iterator[sqlite3.Connection]:
        """Yield a raw connection while all writers wait: for a restore, which writes every page."""
        with self._queue.turn(), db_errors.translate_errors(self.where), self.engine.connect() as connection:
            self._check_files(connection)
            live = connection.connection.driver_connection
            assert isinstance(live, sqlite3.Connection)
            yield live
            self._check_files(connection)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a transaction that reads one consistent state of the file at the path."""
        with super().reading() as connection:
            self._check_files(connection)
            yield connection

    def _check_files(self, connection: Connection) -> None:
        self._files.check(connection.info["files"])

    def incarnation(self, connection: Connection) -> Incarnation:
        """Return the identity and incarnation of the store that this transaction uses."""
        found = connection.exec_driver_sql(_INCARNATION).first()
        if found is None:
            raise StorageReplacedError(
                f"{self.where} lost the row with its identity. Restore a backup: doublesampling db restore"
            )
        check_schema(int(found[3]), self.where)
        return self.check_incarnation(Incarnation(found[0], found[1], (found[2],)))

    def moment(self, connection: Connection, experiment: int) -> Moment:
        """Return the snapshot of this transaction: everything up to the last transaction that wrote."""
        following = self.draw_xid(connection, experiment)
        return Moment(Snapshot(following, following), self.incarnation(connection))

    def draw_xid(self, connection: Connection, experiment: int) -> int:
        """Return one more than the highest number of the experiment; no other writer can use it at the same time."""
        last = [
            sa.select(sa.func.max(table.c.xid)).where(table.c.experiment == experiment).scalar_subquery()
            for table in (decisions, outcomes, events)
        ]
        found = connection.execute(sa.select(*last)).one()
        return max((int(x) for x in found if x is not None), default=0) + 1

    def draw_numbers(self, connection: Connection, experiment: int, count: int) -> list[int]:
        """Return the next numbers, without gaps."""
        query = sa.select(sa.func.max(decisions.c.number)).where(decisions.c.experiment == experiment)
        first = int(connection.execute(query).scalar() or 0) + 1
        return list(range(first, first + count))

    def close(self) -> None:
        """Close the connections, and accept whatever file the path leads to next."""
        super().close()
        self._files.forget()


def _turn_on_wal(cursor: Any) -> None:
    deadline = time.monotonic() + _BUSY_TIMEOUT
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorname.startswith("SQLITE_READONLY"):  # reading needs no write-ahead log
                return
            # SQLite does not wait here where another process turns it on at the same time
            if not problem.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
