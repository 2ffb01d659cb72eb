"""Eras: offsets for PostgreSQL's transaction numbers, which start again after a restore on another server."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import TooOldError
from doublesampling.live.stores.provenance import provenance
from doublesampling.live.stores.schema import decisions, eras, events, experiments, outcomes


def highest_xid(connection: Connection) -> tuple[int, int]:
    """Return the highest transaction number in the store, and the next one of the server with its offset."""
    highest = [  # per experiment, because the index starts with that column
        sa.func.max(sa.select(sa.func.max(table.c.xid)).where(table.c.experiment == experiments.c.id).scalar_subquery())
        for table in (decisions, outcomes, events)
    ]
    found = connection.execute(sa.select(*highest).select_from(experiments)).one()
    following = int(connection.execute(sa.text("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")).scalar_one())
    shift = int(connection.execute(sa.select(sa.func.coalesce(sa.func.max(eras.c.offset), 0))).scalar_one())
    return max((int(x) for x in found if x is not None), default=0), following + shift


def check_era(connection: Connection, where: str) -> None:
    """Raise TooOldError where the server's transaction numbers are smaller than stored ones: new rows look old."""
    if connection.dialect.name != "postgresql":
        return
    highest, following = highest_xid(connection)
    if highest >= following:
        raise TooOldError(
            f"{where} was restored from another server, whose transaction numbers were higher. "
            "Run: doublesampling db upgrade"
        )


def begin_era(connection: Connection) -> None:
    """Start a new era where the server's transaction numbers are smaller than stored ones."""
    if connection.dialect.name != "postgresql":
        return
    highest, following = highest_xid(connection)
    if highest >= following:
        connection.execute(sa.insert(eras).values({"offset": highest} | provenance("db upgrade")))
