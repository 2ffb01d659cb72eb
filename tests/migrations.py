"""Create the tables of new stores by the statements of an earlier migration: Alembic takes ten times as long."""

import re
import uuid
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_READS = ("SELECT", "PRAGMA", "WITH")


def _renewed(value: Any) -> Any:
    """Return a new identity for an identity, and anything else as it is."""
    return str(uuid.uuid4()) if isinstance(value, str) and _UUID.fullmatch(value) else value


class RepeatedMigrations:
    """Migrations that Alembic runs once for each kind of database, and only for databases that are empty."""

    def __init__(self, migrate: Callable[..., None]) -> None:
        self._migrate = migrate
        self._recorded: dict[str, list[tuple[str, Any]]] = {}

    def migrate(self, connection: Connection, to: str = "head") -> None:
        """Create the tables in an empty database; otherwise run the migrations."""
        kind = connection.dialect.name
        if to != "head" or sa.inspect(connection).get_table_names():
            self._migrate(connection, to)
        elif kind not in self._recorded:
            self._recorded[kind] = self._record(connection)
        else:
            for statement, parameters in self._recorded[kind]:
                if isinstance(parameters, dict):
                    given: Any = {name: _renewed(value) for name, value in parameters.items()}
                else:
                    given = tuple(_renewed(value) for value in parameters)
                connection.exec_driver_sql(statement, given)

    def _record(self, connection: Connection) -> list[tuple[str, Any]]:
        """Run the migrations, and return the statements that changed something with their parameters."""
        found: list[tuple[str, Any]] = []

        def note(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
            if not statement.lstrip().upper().startswith(_READS):
                found.append((statement, parameters))

        sa.event.listen(connection, "before_cursor_execute", note)
        try:
            self._migrate(connection)
        finally:
            sa.event.remove(connection, "before_cursor_execute", note)
        return found
