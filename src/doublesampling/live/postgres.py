"""PostgreSQL: many machines at once, without a row lock on the way of ``ask`` and ``tell``."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from doublesampling.live import troubles
from doublesampling.live.snapshot import Snapshot
from doublesampling.live.store import Store

_SNAPSHOT = sa.text("SELECT pg_current_snapshot()::text")
_XID = sa.text("SELECT pg_current_xact_id()::text::bigint")
_NUMBERS = sa.text("SELECT nextval(:sequence) FROM generate_series(1, :count)")
_ERA = sa.text('SELECT coalesce(max("offset"), 0) FROM ds_eras')

_LOCK = 0x646F75626C65  # held while tables are made or changed


class PostgresStore(Store):
    """The server numbers transactions and says which of them a snapshot sees; an era shifts them after a restore."""

    def __init__(self, url: sa.URL) -> None:
        super().__init__(url)
        self._offset: int | None = None

    def exists(self) -> bool:
        """A server is asked, not looked for."""
        return True

    def make_engine(self) -> Engine:
        """Every transaction reads from one snapshot; a connection that the server dropped is made anew."""
        return sa.create_engine(
            self.url, isolation_level="REPEATABLE READ", pool_pre_ping=True, pool_size=5, max_overflow=20
        )

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction; readers and writers do not wait for each other."""
        with troubles.translated(self.where), self.engine.begin() as connection:
            yield connection

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Behind an advisory lock; reads what the holder before committed."""
        patient = self.engine.execution_options(isolation_level="READ COMMITTED")
        with troubles.translated(self.where), patient.begin() as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            yield connection

    def see(self, connection: Connection, experiment: int) -> Snapshot:
        """The snapshot from which everything in this transaction is read."""
        return Snapshot.parse(str(connection.execute(_SNAPSHOT).scalar())).shifted(self._era(connection))

    def draw_xid(self, connection: Connection, experiment: int) -> int:
        """The server's number of this transaction."""
        found: int = connection.execute(_XID).scalar_one()
        return found + self._era(connection)

    def draw_numbers(self, connection: Connection, experiment: int, count: int) -> list[int]:
        """From the experiment's own sequence: no lock, and a transaction that fails leaves a gap."""
        found = connection.execute(_NUMBERS, {"sequence": f"ds_numbers_{experiment:d}", "count": count})
        return sorted(int(row[0]) for row in found)

    def prepare(self, connection: Connection, experiment: int) -> None:
        """A sequence of its own, so that an experiment's decisions do not depend on its neighbours."""
        connection.execute(sa.text(f"CREATE SEQUENCE ds_numbers_{experiment:d}"))

    def _era(self, connection: Connection) -> int:
        if self._offset is None:
            self._offset = int(connection.execute(_ERA).scalar_one())
        return self._offset

    def forget(self) -> None:
        """An upgrade may have begun another era."""
        self._offset = None
