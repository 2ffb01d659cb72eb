"""PostgreSQL: many machines at once, without a row lock on the way of ``ask`` and ``tell``."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from doublesampling.live import troubles
from doublesampling.live.eras import check_era
from doublesampling.live.identity import Incarnation, Moment, RestoredError, check_schema
from doublesampling.live.snapshot import Snapshot
from doublesampling.live.store import Store

# The first statement of a transaction that writes. Reading ds_store locks it until the transaction ends, so that no
# restore can drop tables half-way; one that was waited for leaves the row invisible to a snapshot taken before, and
# pg_restore makes the triggers last. The marks change where somebody restores by other means: another start or server,
# tables made or filled anew.
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


class PostgresStore(Store):
    """The server numbers transactions and says which of them a snapshot sees; an era shifts them after a restore."""

    def __init__(self, url: sa.URL) -> None:
        super().__init__(url)
        self._checked_numbers: dict[int, Incarnation] = {}

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
            connection.info.pop("moment", None)  # of the last transaction on this connection
            yield connection
        self.note_commit()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads one consistent picture."""
        with super().reading() as connection:
            connection.info.pop("moment", None)
            yield connection

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """Behind an advisory lock; reads what the holder before committed."""
        patient = self.engine.execution_options(isolation_level="READ COMMITTED")
        with troubles.translated(self.where), patient.begin() as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
            yield connection

    def _look(self, connection: Connection) -> tuple[Moment, int]:
        """What this transaction sees, and by how much the server's numbers are shifted."""
        found = connection.execute(_MOMENT).one()
        if found.identity is None or not found.guarded:
            raise RestoredError(f"{self.where} is being restored, or was emptied. Nothing was written; try again.")
        check_schema(int(found.version or 0), self.where)
        marks = (found.started, found.decisions, found.outcomes, found.events)
        incarnation = Incarnation(found.identity, found.incarnation, marks)
        if self.is_new(incarnation):
            check_era(connection, self.where)
        era = int(found.era)
        return Moment(Snapshot.parse(found.snapshot).shifted(era), self.meet(incarnation)), era

    def _seen(self, connection: Connection) -> tuple[Moment, int]:
        found: tuple[Moment, int] | None = connection.info.get("moment")
        if found is None:
            found = connection.info["moment"] = self._look(connection)
        return found

    def enter(self, connection: Connection) -> None:
        """Take the snapshot, and keep a restore from dropping tables until the transaction ends."""
        self._seen(connection)

    def incarnation(self, connection: Connection) -> Incarnation:
        """Return which store, and which incarnation of it, this transaction meets."""
        return self._seen(connection)[0].incarnation

    def moment(self, connection: Connection, experiment: int) -> Moment:
        """Return the snapshot from which everything in this transaction is read."""
        return self._seen(connection)[0]

    def draw_xid(self, connection: Connection, experiment: int) -> int:
        """The server's number of this transaction."""
        found: int = connection.execute(_XID).scalar_one()
        return found + self._seen(connection)[1]

    def draw_numbers(self, connection: Connection, experiment: int, count: int) -> list[int]:
        """From the experiment's own sequence: no lock, and a transaction that fails leaves a gap."""
        incarnation = self.incarnation(connection)
        if self._checked_numbers.get(experiment) != incarnation:
            self._advance_sequence(connection, experiment)
            self._checked_numbers[experiment] = incarnation
        found = connection.execute(_NUMBERS, {"sequence": f"ds_numbers_{experiment:d}", "count": count})
        return sorted(int(row[0]) for row in found)

    def _advance_sequence(self, connection: Connection, experiment: int) -> None:
        """A restore may bring tables back without their sequences, or with older ones: begin behind what is used."""
        sequence = f"ds_numbers_{experiment:d}"
        if connection.execute(sa.text("SELECT to_regclass(:name)"), {"name": sequence}).scalar() is None:
            connection.execute(sa.text(f"CREATE SEQUENCE IF NOT EXISTS {sequence}"))
        used = int(connection.execute(_USED, {"experiment": experiment}).scalar_one())
        given = f"SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END FROM {sequence}"
        if used > int(connection.execute(sa.text(given)).scalar_one()):
            connection.execute(sa.text("SELECT setval(:name, :used)"), {"name": sequence, "used": used})

    def forget(self) -> None:
        """Take whatever is there next for the store, whichever it is."""
        super().forget()
        self._checked_numbers.clear()

    def prepare(self, connection: Connection, experiment: int) -> None:
        """A sequence of its own, so that an experiment's decisions do not depend on its neighbours."""
        connection.execute(sa.text(f"CREATE SEQUENCE ds_numbers_{experiment:d}"))
