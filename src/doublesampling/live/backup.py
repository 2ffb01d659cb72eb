"""Backups: a whole store, of either database, as one SQLite file that can itself be opened, verified and restored."""

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import OutputError, StorageError
from doublesampling.live import upgrade
from doublesampling.live.files import PRIVATE
from doublesampling.live.schema import decisions, experiments, health, incarnations, metadata, outcomes
from doublesampling.live.sqlite import SqliteStore
from doublesampling.live.store import Store

_PIECE = 5000  # rows in memory at once


@dataclass(frozen=True)
class Backup:
    """What a backup holds."""

    path: str
    identity: str
    experiments: int
    decisions: int
    outcomes: int
    bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def backup(store: Store, path: str | Path, force: bool = False) -> Backup:
    """Write everything that a store holds at one moment to a new file; writers go on meanwhile.

    The file is complete or not there: it is written under another name, flushed to the disk, and renamed.
    """
    target = Path(path)
    if target.is_dir() or not target.absolute().parent.is_dir():
        raise OutputError(f"{str(target)!r} cannot be written: name a file in a folder that exists.")
    if isinstance(store, SqliteStore) and target.absolute() == store.path:
        raise OutputError(f"{str(target)!r} is the store itself. Name another file.")
    if target.exists() and not force:
        raise OutputError(f"{str(target)!r} exists. Name another file, or pass force=True.")
    upgrade.check(store)
    with private_file(target) as part:
        with store.reading() as source:
            identity = store.incarnation(source).identity
            if isinstance(store, SqliteStore):
                _copy_file(source, part)
            else:
                _copy_rows(source, part)
        with opened(part) as made:
            check_integrity(made, str(target))
            counted = count_rows(made)
        install(part, target)
    return Backup(str(target), identity, *counted, bytes=target.stat().st_size)


def count_rows(connection: Connection) -> tuple[int, int, int]:
    """Return how many experiments, decisions and outcomes there are."""
    first, second, third = (
        int(connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
        for table in (experiments, decisions, outcomes)
    )
    return first, second, third


@contextmanager
def private_file(target: Path) -> Iterator[Path]:
    """An empty file beside the target that only its owner may read; it is removed, unless it was renamed."""
    part = target.absolute().with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE))
    except OSError as problem:
        raise OutputError(f"{str(target)!r} cannot be written: {problem.strerror or problem}.") from None
    try:
        yield part
    finally:
        for side in ("", "-journal", "-wal", "-shm"):
            part.with_name(part.name + side).unlink(missing_ok=True)


@contextmanager
def opened(path: Path) -> Iterator[Connection]:
    """A transaction on a file that nobody else uses: no write-ahead log, so that it is one file."""
    engine = sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(path), poolclass=sa.pool.NullPool)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
            yield connection
    except sa.exc.DBAPIError as problem:
        if not isinstance(problem.orig, sqlite3.Error):  # of the database that it is copied to
            raise
        raise StorageError(f"{str(path)!r} cannot be used: {problem.orig}.") from problem
    finally:
        engine.dispose()


def check_integrity(connection: Connection, where: str) -> None:
    """Refuse a file that SQLite itself calls damaged."""
    found = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())
    if found != "ok":
        raise StorageError(f"{where} is damaged ({found}). Use another backup.")


def install(part: Path, target: Path) -> None:
    """Flush a file to the disk and give it its name, replacing what is there in one step."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
    with contextlib.suppress(OSError):  # not every system can flush a folder
        folder = os.open(target.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _copy_file(source: Connection, part: Path) -> None:
    """Copy page by page what one transaction sees."""
    raw: Any = source.connection.driver_connection
    with contextlib.closing(sqlite3.connect(part)) as made:
        raw.backup(made)
        made.execute("PRAGMA journal_mode=DELETE")


def _copy_rows(source: Connection, part: Path) -> None:
    """Copy row by row what one transaction sees, into tables made here."""
    with opened(part) as made:
        upgrade._migrate(made)
        copy_tables(source, made)


def copy_tables(source: Connection, target: Connection) -> None:
    """Copy every row into tables that were just made."""
    replace_identity(target, [])
    for table in metadata.sorted_tables:
        if table is health:
            continue
        rows = source.execution_options(yield_per=_PIECE).execute(sa.select(table).order_by(*table.primary_key.columns))
        for piece in rows.mappings().partitions():
            target.execute(sa.insert(table), [dict(row) for row in piece])


def replace_identity(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Replace the rows that name a store; a migration has just made some."""
    if connection.dialect.name == "sqlite":
        query = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'ds_store'"
        triggers = connection.exec_driver_sql(query).all()
        for name, _ in triggers:
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
        connection.execute(sa.delete(incarnations))
        for _, text in triggers:
            connection.exec_driver_sql(text)
    else:
        connection.execute(sa.text("ALTER TABLE ds_store DISABLE TRIGGER USER"))
        connection.execute(sa.delete(incarnations))
        connection.execute(sa.text("ALTER TABLE ds_store ENABLE TRIGGER USER"))
    if rows:
        connection.execute(sa.insert(incarnations), rows)
