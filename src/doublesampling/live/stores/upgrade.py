"""The schema of a store: create it, check its version, and upgrade it."""

from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import NotFoundError, NotOursError
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.eras import begin_era, check_era
from doublesampling.live.stores.identity import check_schema
from doublesampling.live.stores.schema import APPEND_ONLY, HEAD, VERSION_TABLE


def schema_version(connection: Connection, where: str) -> int | None:
    """Return the schema version of a store; None for an empty database. Raise NotOursError for other tables."""
    tables = set(sa.inspect(connection).get_table_names())
    if VERSION_TABLE not in tables:
        strange = tables & set(APPEND_ONLY) if connection.dialect.name == "postgresql" else tables
        if strange:
            raise NotOursError(
                f"{where} holds other tables ({', '.join(sorted(strange)[:3])}) and no experiments. "
                "Name another database; experiments need a database of their own."
            )
        return None
    found = connection.execute(sa.text(f"SELECT version_num FROM {VERSION_TABLE}")).scalar()
    if not str(found).isdigit():
        raise NotOursError(
            f"{where} has the schema version {found!r}, which no version of this package wrote. Name another database."
        )
    return int(str(found))


def check(store: Store) -> None:
    """Raise an error where this version of the package cannot use the store."""
    if not store.exists():
        raise NotFoundError(f"There is no database at {store.where}. Check the path, or create an experiment there.")
    with store.reading() as connection:
        version = schema_version(connection, store.where)
        if version is None:
            raise NotFoundError(f"{store.where} holds no experiments yet. Create the first.")
        check_schema(version, store.where, store.read_only)
        check_era(connection, store.where)


def ensure(store: Store) -> None:
    """Create the tables where there are none; otherwise check them."""
    if store.exists():
        with store.reading() as connection:
            version = schema_version(connection, store.where)
        if version is not None:
            check(store)
            return
    upgrade(store)


def upgrade(store: Store) -> tuple[int, int]:
    """Create or upgrade the tables of a store; return the schema versions before and after."""
    with store.changing() as connection:
        before = schema_version(connection, store.where) or 0
        if before > HEAD:
            check_schema(before, store.where)
        if before < HEAD:
            migrate(connection)
        begin_era(connection)
    store.forget()
    return before, HEAD


def migrate(connection: Connection, to: str = "head") -> None:
    """Run the Alembic migrations up to a revision in this transaction."""
    from alembic.config import Config
    from alembic.runtime.environment import EnvironmentContext
    from alembic.runtime.migration import MigrationStep
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(Path(__file__).parent / "migrations"))

    def steps(revision: Any, _: Any) -> Any:
        revisions = script.iterate_revisions(to, revision, implicit_base=True)
        return [MigrationStep.upgrade_from_script(script.revision_map, each) for each in reversed(list(revisions))]

    with EnvironmentContext(Config(), script, fn=steps) as environment:
        environment.configure(connection=connection, version_table=VERSION_TABLE, transaction_per_migration=False)
        environment.run_migrations()
