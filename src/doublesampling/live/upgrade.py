"""The schema of a store: made, recognised, brought up to date, or refused with a clear word."""

import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import __version__
from doublesampling.errors import NotFoundError, NotOursError
from doublesampling.live.eras import check_era, newest
from doublesampling.live.identity import check_schema
from doublesampling.live.schema import APPEND_ONLY, HEAD, VERSION_TABLE, eras
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
        check_schema(version, store.where, store.read_only)
        check_era(connection, store.where)


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
            check_schema(before, store.where)
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


def _begin_era(connection: Connection) -> None:
    if connection.dialect.name != "postgresql":
        return
    highest, following = newest(connection)
    if highest >= following:
        now = datetime.datetime.now(datetime.UTC)
        row = {"offset": highest, "actor": "db upgrade", "at": now, "version": __version__}
        connection.execute(sa.insert(eras).values(row))
