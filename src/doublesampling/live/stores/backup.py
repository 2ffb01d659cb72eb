"""Back up a store of either database to one SQLite file, which can itself be opened, verified and restored."""

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
from doublesampling.live.stores import upgrade
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.files import PRIVATE
from doublesampling.live.stores.schema import decisions, experiments, health, incarnations, metadata, outcomes
from doublesampling.live.stores.sqlite import SqliteStore

_CHUNK = 5000  # rows in memory at once


@dataclass(frozen=True)
class Backup:
    """The path and contents of a backup."""

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
    """Write a consistent copy of a store to a new file, while other processes keep writing to the store.

    The file is written under a temporary name, flushed to the disk, and renamed, so it is complete or absent.
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
    """Yield an empty file in the target's folder that only its owner may read; remove it unless it was renamed."""
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
    """Yield a transaction on a file that no other process uses, without a write-ahead log, so that it is one file."""
    engine = sa.create_engine("sqlite://", creator=lambda: sqlite3.connect(path), poolclass=sa.pool.NullPool)
    try:
        with engine.begin() as connection:
            connection.exec_driver_sql("PRAGMA journal_mode=DELETE")
            yield connection
    except sa.exc.DBAPIError as problem:
        if not isinstance(problem.orig, sqlite3.Error):  # it comes from the database that the copy goes to
            raise
        raise StorageError(f"{str(path)!r} cannot be used: {problem.orig}.") from problem
    finally:
        engine.dispose()


def check_integrity(connection: Connection, where: str) -> None:
    """Raise StorageError where SQLite's integrity check finds damage."""
    found = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())
    if found != "ok":
        raise StorageError(f"{where} is damaged ({found}). Use another backup.")


def install(part: Path, target: Path) -> None:
    """Flush a file to the disk and rename it to the target, replacing an existing file atomically."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)
    with contextlib.suppress(OSError):  # some systems cannot flush a folder
        folder = os.open(target.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _copy_file(source: Connection, part: Path) -> None:
    """Copy the pages that one transaction sees."""
    raw: Any = source.connection.driver_connection
    with contextlib.closing(sqlite3.connect(part)) as made:
        raw.backup(made)
        made.execute("PRAGMA journal_mode=DELETE")


def _copy_rows(source: Connection, part: Path) -> None:
    """Copy the rows that one transaction sees into new tables."""
    with opened(part) as made:
        upgrade.migrate(made)
        copy_tables(source, made)


def copy_tables(source: Connection, target: Connection) -> None:
    """Copy every row into newly created tables."""
    replace_identity(target, [])
    for table in metadata.sorted_tables:
        if table is health:
            continue
        rows = source.execution_options(yield_per=_CHUNK).execute(sa.select(table).order_by(*table.primary_key.columns))
        for piece in rows.mappings().partitions():
            target.execute(sa.insert(table), [dict(row) for row in piece])


def replace_identity(connection: Connection, rows: list[dict[str, Any]]) -> None:
    """Replace the rows that identify a store; the migration has just inserted some."""
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
