"""Transaction numbers of PostgreSQL after a restore on another server, where they begin again from below."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import TooOldError
from doublesampling.live.schema import decisions, eras, events, experiments, outcomes


def newest(connection: Connection) -> tuple[int, int]:
    """Return the highest transaction number in the store, and the one that the server would give next."""
    highest = [  # per experiment, because the index begins with it
        sa.func.max(sa.select(sa.func.max(table.c.xid)).where(table.c.experiment == experiments.c.id).scalar_subquery())
        for table in (decisions, outcomes, events)
    ]
    found = connection.execute(sa.select(*highest).select_from(experiments)).one()
    following = int(connection.execute(sa.text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")).scalar_one())
    shift = int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(eras.c.offset), 0))).scalar_one())
    return max((int(x) for x in found if x is not None), default=0), following + shift


def check_era(connection: Connection, where: str) -> None:
    """Refuse a dump that was restored on a server with smaller transaction numbers: new rows would look old."""
    if connection.dialect.name != "postgresql":
        return
    highest, following = newest(connection)
    if highest >= following:
        raise TooOldError(
            f"{where} was restored from another server, whose transaction numbers were higher. "
            "Run: doublesampling db upgrade"
        )
