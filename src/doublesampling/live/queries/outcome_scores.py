"""Confidence sequences of one experiment, extended by new outcomes only.

Outcomes count in the order in which they were told, each with the propensities of its decision. An outcome that is
amended, withdrawn or voided later changes what was added before: then the sequence is computed again from the log.
"""

import copy
import json
import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import LogError
from doublesampling.inference.streaming import ConfidenceSequence
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.stores.identity import Incarnation
from doublesampling.live.stores.schema import decisions, outcomes

_POINTS = 512


class Point(NamedTuple):
    """A sequence after some outcomes."""

    outcomes: int
    estimate: float
    low: float
    high: float


@dataclass
class _Followed:
    """A sequence and points of its past, thinned out as their number grows."""

    sequence: ConfidenceSequence
    points: list[Point] = field(default_factory=list)
    stride: int = 1

    def add(self, row: Any) -> None:
        """Add one outcome."""
        shares = json.loads(row.propensities)
        if any(share is None for share in shares):
            raise LogError(
                f"Decision {row.number} has no propensities: its policy answers an arm only. A confidence sequence "
                "needs the propensity of every arm."
            )
        self.sequence.update(row.arm, row.reward, shares + [0.0] * (self.sequence.arms - len(shares)))
        if self.sequence.rows % self.stride == 0:
            self.points.append(self.latest)
        if len(self.points) > 2 * _POINTS:
            self.stride *= 2
            self.points = [point for point in self.points if point.outcomes % self.stride == 0]

    @property
    def latest(self) -> Point:
        """The current interval."""
        return Point(self.sequence.rows, self.sequence.estimate, *self.sequence.interval)


class OutcomeScores:
    """The confidence sequence of one contrast. ``make`` returns an empty one for a number of arms."""

    def __init__(self, ref: ExperimentRef, make: Callable[[int], ConfidenceSequence]) -> None:
        self.ref, self._make = ref, make
        self._lock = threading.Lock()
        self._incarnation: Incarnation | None = None
        self._watermark = 0
        self._settled: _Followed | None = None

    def read(self, arms: int) -> tuple[list[Point], str | None]:
        """Read new outcomes; return points of the sequence up to the latest one, and why it has no interval."""
        with self._lock, self.ref.store.reading() as connection:
            moment = self.ref.store.moment(connection, self.ref.id)
            xmin = moment.snapshot.xmin
            followed = self._settled
            lost = moment.incarnation != self._incarnation or xmin < self._watermark
            if followed is None or lost or arms != followed.sequence.arms:
                followed = self._restart(moment.incarnation, arms)
            rows = self._rows(connection, self._watermark)
            if any(row.revision > 1 for row in rows):  # of outcomes that may have been added already
                followed = self._restart(moment.incarnation, arms)
                rows = _latest_values(self._rows(connection, 0))
            rows = [row for row in rows if row.reward is not None]  # a voided decision may never have had an outcome
            settled = [row for row in rows if row.xid < xmin]
            for row in settled:
                followed.add(row)
            self._watermark = xmin
            shown = followed
            if len(settled) < len(rows):
                shown = copy.deepcopy(shown)
                for row in rows:
                    if row.xid >= xmin:
                        shown.add(row)
        points = list(shown.points)
        if shown.sequence.rows and (not points or points[-1].outcomes != shown.sequence.rows):
            points.append(shown.latest)
        return points, shown.sequence.reason

    def _restart(self, incarnation: Incarnation, arms: int) -> _Followed:
        self._incarnation, self._watermark, self._settled = incarnation, 0, _Followed(self._make(arms))
        return self._settled

    def _rows(self, connection: Connection, since: int) -> list[Any]:
        """Revisions of outcomes of decisions from a transaction on, in order, with the propensities of each."""
        o, d = outcomes.c, decisions.c
        columns = (o.xid, o.decision, o.revision, o.kind, o.arm, o.reward, o.place, d.propensities, d.number)
        query = (
            sa.select(*columns)
            .select_from(outcomes.join(decisions, o.decision == d.id))
            .where(o.experiment == self.ref.id, o.xid >= since)
            .order_by(o.xid, d.number, o.revision)
        )
        return list(connection.execute(query))


def _latest_values(rows: list[Any]) -> list[Any]:
    """The latest revision of each outcome, at the position of its first."""
    found: dict[str, Any] = {}
    for row in rows:
        found[row.decision] = row  # a dictionary keeps the position of the first
    return list(found.values())


def to_arrays(points: list[Point]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return outcomes, estimate, low and high as arrays (point)."""
    if not points:
        nothing = np.full(1, math.inf)
        return np.zeros(1, dtype=np.int64), np.full(1, math.nan), -nothing, nothing
    table = np.array(points, dtype=np.float64)
    return table[:, 0].astype(np.int64), table[:, 1], table[:, 2], table[:, 3]
