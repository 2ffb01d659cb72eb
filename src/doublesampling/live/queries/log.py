"""The log of one experiment: outcome rows, events, decision counts and stored checkpoints."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from doublesampling.errors import DoubleSamplingError
from doublesampling.live.checkpoints import Checkpoint, OutcomeRow
from doublesampling.live.design import resize_belief
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.state import Event, apply_events
from doublesampling.live.stores.schema import checkpoints, decisions, events, outcomes
from doublesampling.live.visibility import Snapshot

IntArray = NDArray[np.int64]
_COLUMNS = [outcomes.c[name] for name in OutcomeRow._fields]


@dataclass(frozen=True)
class ExperimentLog:
    """The log of one experiment as one transaction sees it."""

    connection: Connection
    experiment: int
    belief: Any

    def rows(self, since: int, before: int | None = None) -> list[OutcomeRow]:
        """Return the outcomes with ``since <= xid < before``, in order."""
        query = sa.select(*_COLUMNS).where(outcomes.c.experiment == self.experiment, outcomes.c.xid >= since)
        query = query if before is None else query.where(outcomes.c.xid < before)
        found = self.connection.execute(query.order_by(outcomes.c.xid, outcomes.c.seq))
        return [OutcomeRow._make(row) for row in found]

    def events(self, since: int) -> list[Event]:
        """Return the events with ``xid >= since``, in order."""
        query = sa.select(events).where(events.c.experiment == self.experiment, events.c.xid >= since)
        found = self.connection.execute(query.order_by(events.c.revision))
        return [Event(row.xid, row.revision, row.kind, json.loads(row.content)) for row in found]

    def count_decisions(self, since: int, before: int, last: OutcomeRow | None) -> tuple[int, int, bool]:
        """Return the decisions in [since, before), those from ``before`` on, and whether the outcome ``last`` exists.

        One query for all three, because every ask runs it.
        """
        o = outcomes.c
        there = (sa.literal(1) == 1) if last is None else sa.exists().where(
            o.seq == last.seq, o.experiment == self.experiment, o.xid == last.xid, o.revision == last.revision,
            o.decision.is_not_distinct_from(last.decision),
        )  # fmt: skip
        query = sa.select(
            sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((decisions.c.xid < before, 1), else_=0)), 0), there
        ).where(decisions.c.experiment == self.experiment, decisions.c.xid >= since)
        every, settled, found = self.connection.execute(query).one()
        return int(settled), int(every) - int(settled), bool(found)

    def checkpoint_before(self, place: int) -> Checkpoint | None:
        """Return the latest stored checkpoint at or below a watermark; skip any that cannot be read."""
        query = sa.select(checkpoints).where(
            checkpoints.c.experiment == self.experiment, checkpoints.c.watermark <= place
        )
        for row in self.connection.execute(query.order_by(checkpoints.c.watermark.desc())):
            try:
                belief = resize_belief(self.belief, row.arms)
                return Checkpoint(row.watermark, belief.state_from_json(row.state), row.decisions)
            except DoubleSamplingError:
                continue
        return None

    def last_row_before(self, watermark: int) -> OutcomeRow | None:
        """Return the last outcome below a watermark."""
        query = sa.select(*_COLUMNS).where(outcomes.c.experiment == self.experiment, outcomes.c.xid < watermark)
        found = self.connection.execute(query.order_by(outcomes.c.xid.desc(), outcomes.c.seq.desc()).limit(1)).first()
        return None if found is None else OutcomeRow._make(found)


@dataclass(frozen=True)
class VisibleLog:
    """The part of a log that an earlier snapshot saw."""

    log: ExperimentLog
    snapshot: Snapshot

    def rows(self, since: int) -> list[OutcomeRow]:
        """Return the outcomes with ``xid >= since`` that the snapshot saw."""
        rows = self.log.rows(since, before=self.snapshot.xmax)
        return [row for row in rows if self.snapshot.sees(row.xid)]

    def checkpoint_before(self, place: int) -> Checkpoint | None:
        """Return the latest stored checkpoint at or below ``place`` that holds nothing the snapshot did not see."""
        return self.log.checkpoint_before(min(place, self.snapshot.xmin))


def arm_names(connection: Connection, ref: ExperimentRef) -> tuple[str, ...]:
    """Return the names of all arms that the experiment ever had."""
    return apply_events(ref.design, ExperimentLog(connection, ref.id, ref.design.belief).events(0)).arms


def history_counts(connection: Connection, experiment: int, arms: int) -> IntArray:
    """Return the outcomes from before the experiment, int array (arm)."""
    o, found = outcomes.c, np.zeros(arms, dtype=np.int64)
    query = sa.select(o.arm, sa.func.count()).where(o.experiment == experiment, o.decision.is_(None)).group_by(o.arm)
    for arm, count in connection.execute(query):
        found[arm] = count
    return found


def all_decisions(connection: Connection, experiment: int) -> Sequence[Any]:
    """Return every stored decision."""
    return connection.execute(sa.select(decisions).where(decisions.c.experiment == experiment)).all()


def decision_by_id(connection: Connection, decision: str) -> Any:
    """Return the row of a decision that exists."""
    return connection.execute(sa.select(decisions).where(decisions.c.id == decision)).one()


def decision_xids(connection: Connection, experiment: int) -> list[int]:
    """Return the transaction number of every decision, in ascending order."""
    query = sa.select(decisions.c.xid).where(decisions.c.experiment == experiment)
    return list(connection.execute(query.order_by(decisions.c.xid)).scalars())


def checkpoint_watermarks(connection: Connection, experiment: int) -> list[int]:
    """Return the watermarks of the stored checkpoints, in ascending order."""
    query = sa.select(checkpoints.c.watermark).where(checkpoints.c.experiment == experiment)
    return [int(found) for found in connection.execute(query.order_by(checkpoints.c.watermark)).scalars()]


def stored_checkpoints(connection: Connection, experiment: int) -> Sequence[Any]:
    """Return the rows of the stored checkpoints, in ascending order of their watermark."""
    query = sa.select(checkpoints).where(checkpoints.c.experiment == experiment)
    return connection.execute(query.order_by(checkpoints.c.watermark)).all()
