"""Running counts of outcomes per arm, and the latest corrections; only new outcomes are read."""

import datetime
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.stores.identity import Incarnation
from doublesampling.live.stores.schema import outcomes

_CORRECTIONS = 200  # corrections that are kept
_KINDS = ("amended", "withdrawn", "voided")


class Correction(NamedTuple):
    """A correction of an outcome, or a decision that was voided."""

    xid: int
    kind: str
    decision: str
    reason: str | None
    actor: str
    at: datetime.datetime


@dataclass(frozen=True)
class Counts:
    """Counts per arm, float arrays (arm): outcomes of decisions and their sum, the same for history, and voided."""

    outcomes: NDArray[np.float64]
    total: NDArray[np.float64]
    history: NDArray[np.float64]
    history_total: NDArray[np.float64]
    voided: NDArray[np.float64]
    withdrawals: int
    """Over all arms."""
    corrections: tuple[Correction, ...]


class OutcomeCounts:
    """The counts of one experiment. Settled rows are counted once; rows that may still change are read each time."""

    def __init__(self, ref: ExperimentRef) -> None:
        self.ref = ref
        self._lock = threading.Lock()
        self._incarnation: Incarnation | None = None
        self._watermark = 0
        self._settled = np.zeros((0, 6))
        self._kept: deque[Correction] = deque(maxlen=_CORRECTIONS)

    @property
    def begun(self) -> bool:
        """Whether the log was read before, so that the next read is quick."""
        return self._watermark > 0

    def read(self, arms: int) -> Counts:
        """Return the current counts of the first ``arms`` arms."""
        with self._lock, self.ref.store.reading() as connection:
            moment = self.ref.store.moment(connection, self.ref.id)
            xmin = moment.snapshot.xmin
            if moment.incarnation != self._incarnation:  # the store was restored
                self._incarnation = moment.incarnation
                self._watermark, self._settled = 0, np.zeros((0, 6))
                self._kept.clear()
            if xmin > self._watermark:
                self._settled = _added(self._settled, self._sums(connection, self._watermark, xmin))
                self._kept.extend(self._corrections(connection, self._watermark, xmin))
                self._watermark = xmin
            every = _added(self._settled, self._sums(connection, xmin, None))
            corrections = (*self._kept, *self._corrections(connection, xmin, None))
        table = _added(np.zeros((arms, 6)), every)
        known, total, history, history_total, voided, _ = table[:arms].T
        return Counts(known, total, history, history_total, voided, int(every[:, 5].sum()), corrections[-_CORRECTIONS:])

    def _where(self, since: int, before: int | None) -> Any:
        found = (outcomes.c.experiment == self.ref.id) & (outcomes.c.xid >= since)
        return found if before is None else found & (outcomes.c.xid < before)

    def _sums(self, connection: Connection, since: int, before: int | None) -> NDArray[np.float64]:
        """Return counts and sums per arm, float array (arm, 6); a revision subtracts what it supersedes."""
        o = outcomes.c
        known = sa.case((o.reward.is_(None), 0), else_=1) - sa.case((o.previous.is_(None), 0), else_=1)
        gained = sa.func.coalesce(o.reward, 0.0) - sa.func.coalesce(o.previous, 0.0)
        past = sa.case((o.decision.is_(None), 1), else_=0)
        query = (
            sa.select(
                o.arm,
                sa.func.sum(known * (1 - past)),
                sa.func.sum(gained * (1 - past)),
                sa.func.sum(known * past),
                sa.func.sum(gained * past),
                sa.func.sum(sa.case((o.kind == "voided", 1), else_=0)),
                sa.func.sum(sa.case((o.kind == "withdrawn", 1), else_=0)),
            )
            .where(self._where(since, before))
            .group_by(o.arm)
        )
        rows = [tuple(row) for row in connection.execute(query)]
        table = np.zeros((max((row[0] for row in rows), default=-1) + 1, 6))
        for arm, *sums in rows:
            table[arm] = [float(value) for value in sums]
        return table

    def _corrections(self, connection: Connection, since: int, before: int | None) -> list[Correction]:
        o = outcomes.c
        query = sa.select(o.xid, o.kind, o.decision, o.reason, o.actor, o.at).where(
            self._where(since, before), o.kind.in_(_KINDS)
        )
        found = connection.execute(query.order_by(o.xid.desc(), o.seq.desc()).limit(_CORRECTIONS)).all()
        return [Correction(*row) for row in reversed(found)]


def _added(one: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of two tables, of which one may have fewer arms."""
    size = max(len(one), len(other))
    return np.pad(one, ((0, size - len(one)), (0, 0))) + np.pad(other, ((0, size - len(other)), (0, 0)))
