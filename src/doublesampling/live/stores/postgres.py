"""The PostgreSQL store: for many machines, without row locks in ``ask`` and ``tell``."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from doublesampling.live.stores import db_errors
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.eras import check_era
from doublesampling.live.stores.identity import Incarnation, Moment, RestoredError, check_schema
from doublesampling.live.visibility import Snapshot

# The first statement of a writing transaction. Reading ds_store locks it until the transaction ends, so that a restore
# cannot drop tables in between. After waiting for a restore, the row is invisible to the older snapshot, and pg_restore
# creates triggers last, so both cases are noticed. The marks change where a store is restored by other means: another
# server or server start, or tables that were created or filled again.
_MOMENT = sa.text(
    "SELECT pg_current_snapshot()::text AS snapshot, s.identity, s.incarnation, "
    '(SELECT coalesce(max("offset"), 0) FROM ds_eras) AS era, (SELECT version_num FROM ds_version) AS version, '
    "pg_postmaster_start_time()::text AS started, pg_relation_filenode(to_regclass('ds_decisions')) AS decisions, "
    "pg_relation_filenode(to_regclass('ds_outcomes')) AS outcomes, "
    "pg_relation_filenode(to_regclass('ds_events')) AS events, "
    "(SELECT relhastriggers FROM pg_class WHERE oid = to_regclass('ds_store')) AS guarded "
    "FROM (SELECT 1) AS one LEFT JOIN "
    "(SELECT identity, incarnation FROM ds_store ORDER BY seq DESC LIMIT 1) AS s ON true"
)
_XID = sa.text("SELECT pg_current_xact_id()::text::bigint")
_NUMBERS = sa.text("SELECT nextval(:sequence) FROM generate_series(1, :count)")
_USED = sa.text("SELECT coalesce(max(number), 0) FROM ds_decisions WHERE experiment = :experiment")

_LOCK = 0x646F75626C65  # held while tables are made or changed
_EXPERIMENT_LOCKS = _LOCK << 8  # one for each experiment whose decisions are made one after another


class PostgresStore(Store):
    """A store in a PostgreSQL database.

    The server numbers transactions and reports which of them a snapshot sees; an era adds an offset after a restore.
    """

    def __init__(self, url: sa.URL) -> None:
        super().__init__(url)
        self._checked_numbers: dict[int, Incarnation] = {}

    def exists(self) -> bool:
        """Return True: whether a server answers shows when it is used."""
        return True

    def make_engine(self) -> Engine:
        """Return an engine whose transactions read from one snapshot and whose dropped connections are renewed."""
        return sa.create_engine(
            self.url, isolation_level="REPEATABLE READ", pool_pre_ping=True, pool_size=5, max_overflow=20
        )

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a transaction; readers and writers do not wait for each other."""
        with db_errors.translate_errors(self.where), self.engine.begin() as connection:
            connection.info.pop("moment", None)  # left by the last transaction on this connection
            yield connection
        self.note_commit()

    @contextmanager
    def writing_alone(self, experiment: int) -> Iterator[Connection]:
        """Yield a transaction that begins once an advisory lock of the experiment is held, and keep it to the end.

        The lock is of the connection: one of the transaction would be waited for with a snapshot from before.
        """
        key = {"key": _EXPERIMENT_LOCKS + experiment}
        with db_errors.translate_errors(self.where), self.engine.connect() as connection:
            with connection.begin():
                connection.execute(sa.text("SELECT pg_advisory_lock(:key)"), key)
            try:
                with connection.begin():
                    connection.info.pop("moment", None)
                    yield connection
            finally:
                if not connection.invalidated:
                    with connection.begin():
                        connection.execute(sa.text("SELECT pg_advisory_unlock(:key)"), key)
        self.note_commit()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a transaction that reads one consistent state."""
        with super().reading() as connection:
            connection.info.pop("moment", None)
            yield connection

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Yield a transaction that holds an advisory lock and sees what the previous holder committed."""
        locking = self.engine.execution_options(isolation_level="READ COMMITTED")
        with db_errors.translate_errors(self.where), locking.begin() as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            yield connection

    def _read_moment(self, connection: Connection) -> tuple[Moment, int]:
        """Return the moment of this transaction, and the offset of the server's transaction numbers."""
        found = connection.execute(_MOMENT).one()
        if found.identity is None or not found.guarded:
            raise RestoredError(f"{self.where} is being restored, or was emptied. Nothing was written. Try again.")
        check_schema(int(found.version or 0), self.where)
        marks = (found.started, found.decisions, found.outcomes, found.events)
        incarnation = Incarnation(found.identity, found.incarnation, marks)
        if self.is_new(incarnation):
            check_era(connection, self.where)
        era = int(found.era)
        return Moment(Snapshot.parse(found.snapshot).shifted(era), self.check_incarnation(incarnation)), era

    def _moment(self, connection: Connection) -> tuple[Moment, int]:
        found: tuple[Moment, int] | None = connection.info.get("moment")
        if found is None:
            found = connection.info["moment"] = self._read_moment(connection)
        return found

    def enter(self, connection: Connection) -> None:
        """Take the snapshot, and prevent a restore from dropping tables until the transaction ends."""
        self._moment(connection)

    def incarnation(self, connection: Connection) -> Incarnation:
        """Return the identity and incarnation of the store that this transaction uses."""
        return self._moment(connection)[0].incarnation

    def moment(self, connection: Connection, experiment: int) -> Moment:
        """Return the snapshot from which this transaction reads."""
        return self._moment(connection)[0]

    def draw_xid(self, connection: Connection, experiment: int) -> int:
        """Return the server's number of this transaction, with the offset of the era."""
        found: int = connection.execute(_XID).scalar_one()
        return found + self._moment(connection)[1]

    def draw_numbers(self, connection: Connection, experiment: int, count: int) -> list[int]:
        """Return numbers from the experiment's own sequence, without a lock; a failed transaction leaves a gap."""
        incarnation = self.incarnation(connection)
        if self._checked_numbers.get(experiment) != incarnation:
            self._advance_sequence(connection, experiment)
            self._checked_numbers[experiment] = incarnation
        found = connection.execute(_NUMBERS, {"sequence": f"ds_numbers_{experiment:d}", "count": count})
        return sorted(int(row[0]) for row in found)

    def _advance_sequence(self, connection: Connection, experiment: int) -> None:
        """Advance the sequence beyond all used numbers: a restore may bring back tables with an older one, or none."""
        sequence = f"ds_numbers_{experiment:d}"
        if connection.execute(sa.text("SELECT to_regclass(:name)"), {"name": sequence}).scalar() is None:
            connection.execute(sa.text(f"CREATE SEQUENCE IF NOT EXISTS {sequence}"))
        used = int(connection.execute(_USED, {"experiment": experiment}).scalar_one())
        given = f"SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM {sequence}"
        if used > int(connection.execute(sa.text(given)).scalar_one()):
            connection.execute(sa.text("SELECT setval(:name, :used)"), {"name": sequence, "used": used})

    def forget(self) -> None:
        """Accept whatever store the URL leads to next."""
        super().forget()
        self._checked_numbers.clear()

    def prepare(self, connection: Connection, experiment: int) -> None:
        """Create the experiment's own sequence, so that its numbers do not depend on other experiments."""
        connection.execute(sa.text(f"CREATE SEQUENCE ds_numbers_{experiment:d}"))
