"""Restore a backup into a store in one transaction, while other processes use the store."""

import contextlib
import datetime
import sqlite3
import tempfile
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import ConflictError, DoubleSamplingError, NotFoundError, NotOursError, StorageError
from doublesampling.live.stores import db_errors, upgrade
from doublesampling.live.stores.backup import (
    backup,
    check_integrity,
    copy_tables,
    count_rows,
    install,
    opened,
    private_file,
)
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.eras import begin_era
from doublesampling.live.stores.files import SIDES
from doublesampling.live.stores.identity import check_schema
from doublesampling.live.stores.provenance import default_actor, provenance
from doublesampling.live.stores.schema import HEAD, decisions, experiments, incarnations, keys, metadata
from doublesampling.live.stores.sqlite import SqliteStore

_TRIES = 20  # attempts to lock the tables of a busy server


@dataclass(frozen=True)
class Restored:
    """The contents that a restore put into the store."""

    identity: str
    experiments: int
    decisions: int
    outcomes: int
    kept: str | None
    """The path of the backup of the replaced contents; None where there was none."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)


def restore(store: Store, path: str | Path, *, force: bool = False, keep: bool = True) -> Restored:
    """Replace the contents of a store by a backup; running processes notice it and continue with the restored data.

    A store that holds experiments is only replaced with ``force``. It is backed up first, to a file next to the
    backup, unless ``keep`` is False. API keys that were revoked since the backup stay revoked.
    """
    source = Path(path)
    if not source.is_file():
        raise NotFoundError(f"There is no backup at {str(source)!r}. Check the path.")
    if isinstance(store, SqliteStore) and source.absolute() == store.path:
        raise ConflictError(f"{str(source)!r} is the store itself. Name a backup.")
    full = _holds_experiments(store)
    if full and not force:
        raise ConflictError(
            f"{store.where} holds experiments. Pass force=True (--force) to replace them; they are backed up first."
        )
    if full:
        upgrade.check(store)
    kept = None
    if full and keep:
        stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%S%fZ")
        kept = backup(store, source.with_name(f"{source.name}.before-restore-{stamp}")).path
    near = store.path if isinstance(store, SqliteStore) else Path(tempfile.gettempdir()) / source.name
    with private_file(near) as part:
        identity, counted = _prepare(source, part, store if full else None)
        if isinstance(store, SqliteStore):
            _restore_sqlite(store, part)
        else:
            _restore_postgresql(store, part)
    store.forget()
    return Restored(identity, *counted, kept=kept)


def _holds_experiments(store: Store) -> bool:
    if not store.exists():
        return False
    with store.reading() as connection:
        if upgrade.schema_version(connection, store.where) is None:
            return False
        return connection.execute(sa.text("SELECT 1 FROM ds_experiments LIMIT 1")).first() is not None


def _revoked(store: Store) -> list[dict[str, Any]]:
    """Return the revocations of API keys, which an older backup does not contain."""
    with store.reading() as connection:
        rows = connection.execute(sa.select(keys).where(keys.c.kind == "revoked")).mappings().all()
    return [{name: value for name, value in row.items() if name != "seq"} for row in rows]


def _prepare(source: Path, part: Path, replaced: Store | None) -> tuple[str, tuple[int, int, int]]:
    """Copy a backup, upgrade the copy, and give it a new incarnation; the backup itself is not changed."""
    address = SqliteStore(
        sa.URL.create("sqlite", database=str(source.absolute()), query={"mode": "ro"})
    ).connection_url()
    try:
        with (
            contextlib.closing(sqlite3.connect(address, uri=True)) as old,
            contextlib.closing(sqlite3.connect(part)) as copied,
        ):
            old.backup(copied)
            copied.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as problem:
        raise NotOursError(f"{str(source)!r} is not a backup of a store ({problem}). Name another file.") from None
    with opened(part) as made:
        check_integrity(made, str(source))
        version = upgrade.schema_version(made, str(source))
        if version is None:
            raise NotOursError(f"{str(source)!r} is empty. Name a backup that `doublesampling db backup` made.")
        if version > HEAD:
            check_schema(version, str(source))
        if version < HEAD:
            upgrade.migrate(made)
        last = sa.select(incarnations.c.identity).order_by(incarnations.c.seq.desc()).limit(1)
        nameless = (
            version < 3 and replaced is not None
        )  # written before stores had an identity: it gets that of the store
        identity = replaced.identity() if nameless and replaced else str(made.execute(last).scalar_one())
        row = {"identity": identity, "incarnation": str(uuid.uuid4()), "kind": "restored"}
        made.execute(sa.insert(incarnations).values(row | provenance(default_actor())))
        known = {(r.key, r.kind) for r in made.execute(sa.select(keys.c.key, keys.c.kind))}
        revoked = [] if replaced is None else _revoked(replaced)
        late = [row for row in revoked if (row["key"], "made") in known and (row["key"], "revoked") not in known]
        if late:
            made.execute(sa.insert(keys), late)
        return identity, count_rows(made)


def _restore_sqlite(store: SqliteStore, part: Path) -> None:
    """Write the pages of the copy into the database in one transaction, or rename the copy where there is none."""
    if not store.exists():
        stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
        for side in SIDES:  # of a removed database: SQLite would apply them to the new one
            left = store.path.with_name(store.path.name + side)
            if left.exists():
                left.rename(left.with_name(f"{left.name}.left-{stamp}"))
        install(part, store.path)
        return
    with contextlib.closing(sqlite3.connect(part)) as source, store.replacing() as live:
        size = live.execute("PRAGMA page_size").fetchone()[0]
        if source.execute("PRAGMA page_size").fetchone()[0] != size:
            source.execute(f"PRAGMA page_size={size}")
            source.execute("VACUUM")
        source.backup(live)


def _restore_postgresql(store: Store, part: Path) -> None:
    for turn in range(_TRIES):
        try:
            with opened(part) as source, store.changing() as connection:
                _drop_tables(connection)
                upgrade.migrate(connection)
                copy_tables(source, connection)
                _set_sequences(store, connection)
                begin_era(connection)
            return
        except sa.exc.DBAPIError as problem:  # a deadlock with a reader
            if not db_errors.is_conflict(problem) or turn == _TRIES - 1:
                raise
        except DoubleSamplingError:
            raise
    raise StorageError(f"{store.where} could not be restored. Try again.")


def _drop_tables(connection: Connection) -> None:
    """Drop our tables, first the one that every writer reads first, so that writers wait before they start."""
    there = set(sa.inspect(connection).get_table_names())
    ours = ["ds_store", *(table.name for table in metadata.sorted_tables if table.name != "ds_store"), "ds_version"]
    for name in [name for name in ours if name in there]:
        connection.execute(sa.text(f"LOCK TABLE {name} IN ACCESS EXCLUSIVE MODE"))
    for name in [name for name in ours if name in there]:
        connection.execute(sa.text(f"DROP TABLE {name}"))
    connection.execute(sa.text("DROP FUNCTION IF EXISTS ds_refuse()"))
    query = sa.text(
        "SELECT relname FROM pg_class WHERE relkind = 'S' AND relname ~ '^ds_numbers_[0-9]+$' "
        "AND pg_table_is_visible(oid)"
    )
    for name in connection.execute(query).scalars().all():
        connection.execute(sa.text(f"DROP SEQUENCE {name}"))


def _set_sequences(store: Store, connection: Connection) -> None:
    """Set the sequences so that new numbers follow the restored ones."""
    for table in metadata.sorted_tables:
        column = next(iter(table.primary_key.columns))
        query = sa.text("SELECT pg_get_serial_sequence(:table, :column)")
        sequence = connection.execute(query, {"table": table.name, "column": column.name}).scalar()
        most = connection.execute(sa.select(sa.func.max(column))).scalar()
        if sequence is not None and most is not None:
            connection.execute(sa.text("SELECT setval(:name, :most)"), {"name": sequence, "most": int(most)})
    for row in connection.execute(sa.select(experiments.c.id)).all():
        store.prepare(connection, row.id)
        used = sa.select(sa.func.max(decisions.c.number)).where(decisions.c.experiment == row.id)
        most = connection.execute(used).scalar()
        if most is not None:
            named = {"name": f"ds_numbers_{row.id:d}", "most": int(most)}
            connection.execute(sa.text("SELECT setval(:name, :most)"), named)
