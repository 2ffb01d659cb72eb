"""The latest outcome of each decision: the one join that every list of decisions uses."""

from typing import Any

import sqlalchemy as sa

from doublesampling.live.stores.schema import outcomes


def join_latest_outcome(decisions: Any) -> tuple[Any, Any]:
    """Return decisions joined with the latest revision of their outcome, and the alias of that revision.

    ``decisions`` is the table or a subquery of it. Decisions without an outcome keep their row.
    """
    latest = outcomes.alias("latest")
    newest = sa.select(sa.func.max(outcomes.c.revision)).where(outcomes.c.decision == decisions.c.id)
    revision = newest.correlate(decisions).scalar_subquery()
    joined = decisions.outerjoin(latest, (latest.c.decision == decisions.c.id) & (latest.c.revision == revision))
    return joined, latest


def is_pending(latest: Any) -> Any:
    """Return the SQL condition that a decision has no outcome, only an imputed one, or a withdrawn one."""
    return latest.c.revision.is_(None) | latest.c.imputed | (latest.c.kind == "withdrawn")


def is_pending_row(row: Any) -> bool:
    """Return the same for a row that was read."""
    return row.revision is None or bool(row.imputed) or row.kind == "withdrawn"


def latest_revisions(experiment: int) -> Any:
    """Return a subquery with the latest revision number of every decision that has an outcome.

    For aggregates over a whole experiment, where one grouped pass is quicker than a lookup per decision.
    """
    o = outcomes.c
    query = sa.select(o.decision, sa.func.max(o.revision).label("revision")).where(o.experiment == experiment)
    return query.group_by(o.decision).subquery()
