"""Activity of an experiment: outcome delays, timeline events, imported history and the time of the last write."""

import datetime
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.queries.latest_outcome import join_latest_outcome
from doublesampling.live.stores.schema import decisions, events, outcomes

_WINDOW = 5000  # latest decisions over which delays are computed


def delays(ref: ExperimentRef, now: datetime.datetime) -> dict[str, Any]:
    """Return how long outcomes took, and the age of decisions without one, over the latest decisions."""
    chosen = sa.select(decisions.c.id, decisions.c.at).where(decisions.c.experiment == ref.id)
    d = chosen.order_by(decisions.c.number.desc()).limit(_WINDOW).subquery("d")
    first = outcomes.alias("first")
    joined, latest = join_latest_outcome(d)
    joined = joined.outerjoin(first, (first.c.decision == d.c.id) & (first.c.revision == 1))
    query = sa.select(d.c.at, first.c.at.label("told_at"), latest.c.kind).select_from(joined)
    with ref.store.reading() as connection:
        rows = [row for row in connection.execute(query) if row.kind != "voided"]
    without_outcome = (None, "withdrawn")
    took = [(row.told_at - row.at).total_seconds() for row in rows if row.kind not in without_outcome]
    ages = [(now - row.at).total_seconds() for row in rows if row.kind in without_outcome]
    return {
        "looked_at": len(rows),
        "waiting": len(ages),
        "delay_median": _quantile(took, 0.5),
        "delay_p90": _quantile(took, 0.9),
        "age_median": _quantile(ages, 0.5),
        "age_most": _quantile(ages, 1.0),
    }


def _quantile(values: Sequence[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if values else None


def history_count(ref: ExperimentRef) -> int:
    """Return how many outcomes from before the experiment were imported."""
    query = sa.select(events.c.content).where(events.c.experiment == ref.id, events.c.kind == "history")
    with ref.store.reading() as connection:
        return sum(int(json.loads(row.content)["count"]) for row in connection.execute(query))


def timeline(ref: ExperimentRef, corrections: Sequence[Any], most: int = 200) -> list[dict[str, Any]]:
    """Return events and corrections in order of time, each with the number of the latest decision before it."""
    found = []
    with ref.store.reading() as connection:
        query = sa.select(events).where(events.c.experiment == ref.id).order_by(events.c.revision.desc()).limit(most)
        for row in connection.execute(query):
            content = json.loads(row.content)
            parts = (
                content.get("arm"),
                f"{content['count']} outcomes" if "count" in content else None,
                content.get("reason"),
            )
            found.append((row.xid, row.kind, row.at, ": ".join(str(part) for part in parts if part), row.actor))
        for each in corrections:
            found.append((each.xid, each.kind, each.at, each.reason or "", each.actor))
        found = sorted(found, key=lambda each: each[0])[-most:]
        numbers = _numbers_before(ref, connection, [each[0] for each in found])
    return [
        {"kind": kind, "number": numbers[xid], "at": at, "text": f"{text} ({actor})" if text else actor}
        for xid, kind, at, text, actor in found
    ]


def _numbers_before(ref: ExperimentRef, connection: Connection, xids: Sequence[int]) -> dict[int, int]:
    """Return the number of the latest decision before each transaction, 0 where there is none."""
    numbers = {}
    for xid in sorted(set(xids)):
        query = sa.select(decisions.c.number).where(decisions.c.experiment == ref.id, decisions.c.xid < xid)
        numbers[xid] = int(connection.execute(query.order_by(decisions.c.xid.desc()).limit(1)).scalar() or 0)
    return numbers


def last_activity(ref: ExperimentRef) -> datetime.datetime | None:
    """Return when the latest decision, outcome or event was written; None where there is none."""
    queries = [
        sa.select(table.c.at).where(table.c.experiment == ref.id).order_by(table.c.xid.desc()).limit(1)
        for table in (decisions, outcomes, events)
    ]
    with ref.store.reading() as connection:
        found = [connection.execute(query).scalar() for query in queries]
    return max((at for at in found if at is not None), default=None)
