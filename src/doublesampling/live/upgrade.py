"""The schema of a store: made, recognised, brought up to date, or refused with a clear word."""

import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import __version__
from doublesampling.errors import NotFoundError, NotOursError, TooNewError, TooOldError
from doublesampling.live.schema import APPEND_ONLY, HEAD, VERSION_TABLE, decisions, eras, events, experiments, outcomes
from doublesampling.live.store import Store


def schema_version(connection: Connection, where: str) -> int | None:
    """The schema version of a store; None where there is nothing of ours and nothing in the way."""
    tables = set(sa.inspect(connection).get_table_names())
    if VERSION_TABLE not in tables:
        strange = tables & set(APPEND_ONLY) if connection.dialect.name == "postgresql" else tables
        if strange:
            raise NotOursError(
                f"{where} holds other tables ({', '.join(sorted(strange)[:3])}) and no experiments. "
                "Name another database; experiments want one of their own."
            )
        return None
    found = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if not str(found).isdigit():
        raise NotOursError(f"{where} has a schema called {found!r}, which this package never made. Name another.")
    return int(str(found))


def check(store: Store) -> None:
    """Refuse a store that this package cannot work with."""
    if not store.exists():
        raise NotFoundError(f"There is no database at {store.where}. Experiment.create makes one, or check the path.")
    with store.reading() as connection:
        version = schema_version(connection, store.where)
        if version is None:
            raise NotFoundError(f"{store.where} holds no experiments yet. Experiment.create makes the first.")
        _compare(version, store.where)
        _check_era(connection, store.where)


def _compare(version: int, where: str) -> None:
    if version > HEAD:
        raise TooNewError(
            f"{where} has schema {version}; doublesampling {__version__} knows up to {HEAD}. "
            "Update the package: pip install --upgrade doublesampling."
        )
    if version < HEAD:
        raise TooOldError(
            f"{where} has schema {version}, this package wants {HEAD}. Make a copy, then run: doublesampling db upgrade"
        )


def ensure(store: Store) -> None:
    """Make the tables where there are none; otherwise check them."""
    if store.exists():
        with store.reading() as connection:
            version = schema_version(connection, store.where)
        if version is not None:
            check(store)
            return
    upgrade(store)


def upgrade(store: Store) -> tuple[int, int]:
    """Bring a store up to date; returns the versions before and after."""
    with store.changing() as connection:
        before = schema_version(connection, store.where) or 0
        if before > HEAD:
            _compare(before, store.where)
        if before < HEAD:
            _migrate(connection)
        _begin_era(connection)
    store.forget()
    return before, HEAD


def _migrate(connection: Connection, to: str = "head") -> None:
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(Path(__file__).parent / "migrations"))

    def steps(revision: Any, _: Any) -> Any:
        return script._upgrade_revs(to, revision)  # what alembic's own command does

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE, transaction_per_migration=False)
        environment.run_migrations()


def _newest(connection: Connection) -> tuple[int, int]:
    """The highest transaction number in the store, and the one that the server would give next; PostgreSQL only."""
    highest = [  # per experiment, because the index begins with it
        sa.func.max(sa.select(sa.func.max(table.c.xid)).where(table.c.experiment == experiments.c.id).scalar_subquery())
        for table in (decisions, outcomes, events)
    ]
    found = connection.execute(sa.select(*highest).select_from(experiments)).one()
    following = int(connection.execute(sa.text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")).scalar_one())
    shift = int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(eras.c.offset), 0))).scalar_one())
    return max((int(x) for x in found if x is not None), default=0), following + shift


def _check_era(connection: Connection, where: str) -> None:
    """A dump restored on another server meets smaller transaction numbers there; new rows would look old."""
    if connection.dialect.name != "postgresql":
        return
    highest, following = _newest(connection)
    if highest >= following:
        raise TooOldError(
            f"{where} was restored from another server, whose transaction numbers were higher. "
            "Run: doublesampling db upgrade"
        )


def _begin_era(connection: Connection) -> None:
    if connection.dialect.name != "postgresql":
        return
    highest, following = _newest(connection)
    if highest >= following:
        now = datetime.datetime.now(datetime.UTC)
        row = {"offset": highest, "actor": "db upgrade", "at": now, "version": __version__}
        connection.execute(sa.insert(eras).values(row))
