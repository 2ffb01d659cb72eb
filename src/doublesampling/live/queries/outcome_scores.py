"""What confidence sequences read: outcomes with the propensities of their decisions, and stored summaries."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.live.stores.schema import decisions, outcomes, sequences


def outcome_rows(connection: Connection, experiment: int, since: int) -> list[Any]:
    """Return revisions of outcomes of decisions from a transaction on, in order, with the propensities of each."""
    o, d = outcomes.c, decisions.c
    columns = (o.xid, o.decision, o.revision, o.kind, o.arm, o.reward, o.place, d.propensities, d.number)
    query = (
        sa.select(*columns)
        .select_from(outcomes.join(decisions, o.decision == d.id))
        .where(o.experiment == experiment, o.xid >= since)
        .order_by(o.xid, d.number, o.revision)
    )
    return list(connection.execute(query))


def stored_sequence(connection: Connection, experiment: int, settings: str) -> Any:
    """Return the stored summary of a sequence with these settings, with its watermark; None where there is none."""
    s = sequences.c
    query = sa.select(s.watermark, s.summary).where(s.experiment == experiment, s.settings == settings)
    return connection.execute(query).first()


def stored_settings(connection: Connection, experiment: int) -> list[str]:
    """Return the settings of all stored summaries of an experiment, the oldest first."""
    query = sa.select(sequences.c.settings).where(sequences.c.experiment == experiment)
    return list(connection.execute(query.order_by(sequences.c.at, sequences.c.settings)).scalars())
