"""Confidence sequences of one experiment, extended by new outcomes only and kept in the store.

Outcomes count in the order in which they were told, each with the propensities of its decision. The table
``ds_sequences`` holds, per contrast and settings, the sums after every row with ``xid`` below a watermark, so that a
new process reads only the rows after it. An outcome that is amended, withdrawn or voided later changes what was added
before: then the sequence is computed again from the log. The table is a cache and may be emptied at any time.
"""

import copy
import datetime
import json
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import DoubleSamplingError, LogError
from doublesampling.inference.streaming import ConfidenceSequence
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.queries.outcome_scores import outcome_rows, stored_sequence, stored_settings
from doublesampling.live.stores.identity import Incarnation, Moment
from doublesampling.live.stores.schema import sequences

EVERY = 1000
"""Outcomes between two writes of a summary."""
MOST = 200
"""Stored summaries of one experiment."""
_POINTS = 512


class Point(NamedTuple):
    """A sequence after some outcomes."""

    outcomes: int
    estimate: float
    low: float
    high: float


@dataclass
class Summary:
    """A sequence and points of its past, thinned out as their number grows."""

    sequence: ConfidenceSequence
    points: list[Point] = field(default_factory=list)
    stride: int = 1

    def add(self, row: Any) -> None:
        """Add one outcome, in constant time."""
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

    def to_json(self) -> str:
        """Return the summary as text, which ``from_json`` reads back exactly."""
        return json.dumps({"sums": self.sequence.to_dict(), "points": self.points, "stride": self.stride})

    @classmethod
    def from_json(cls, text: str, empty: ConfidenceSequence) -> Self:
        """Return the summary that ``to_json`` wrote of a sequence with the settings of an empty one."""
        content = json.loads(text)
        empty.restore(content["sums"])
        return cls(empty, [Point(*point) for point in content["points"]], int(content["stride"]))


class SequenceCache:
    """The confidence sequence of one contrast. ``make`` returns an empty one for a number of arms.

    ``settings`` tells it apart from the other sequences of the experiment.
    """

    def __init__(self, ref: ExperimentRef, settings: str, make: Callable[[int], ConfidenceSequence]) -> None:
        self.ref, self._settings, self._make = ref, settings, make
        self._lock = threading.Lock()
        self._known: tuple[Incarnation, int] | None = None
        self._watermark, self._unsaved = 0, 0
        self._settled: Summary | None = None

    def read(self, names: Sequence[str]) -> tuple[list[Point], str | None]:
        """Read new outcomes; return points of the sequence up to the latest one, and why it has no interval.

        ``names`` are those of all arms that the experiment has.
        """
        with self._lock:
            with self.ref.store.reading() as connection:
                shown = self._read(connection, len(names))
            self._save()
        points = list(shown.points)
        if shown.sequence.rows and (not points or points[-1].outcomes != shown.sequence.rows):
            points.append(shown.latest)
        return points, shown.sequence.reason_among(names)

    def _read(self, connection: Connection, arms: int) -> Summary:
        moment = self.ref.store.moment(connection, self.ref.id)
        xmin = moment.snapshot.xmin
        known, summary = (moment.incarnation, self.ref.store.version), self._settled
        if known != self._known or xmin < self._watermark or summary is None:
            summary = self._load(connection, moment, arms)
            self._known = known
        elif arms > summary.sequence.arms:
            summary = Summary.from_json(summary.to_json(), self._make(arms))
        rows = outcome_rows(connection, self.ref.id, self._watermark)
        if any(row.revision > 1 and row.place < self._watermark for row in rows):  # of outcomes that were added
            summary, self._watermark, self._unsaved = Summary(self._make(arms)), 0, EVERY
            rows = outcome_rows(connection, self.ref.id, 0)
        rows = [row for row in _latest_values(rows) if row.reward is not None]  # withdrawn, or voided
        settled = [row for row in rows if row.xid < xmin]
        self._settled = None  # where an outcome is refused, the next read starts again
        for row in settled:
            summary.add(row)
        self._settled, self._watermark, self._unsaved = summary, xmin, self._unsaved + len(settled)
        if len(settled) == len(rows):
            return summary
        shown = copy.deepcopy(summary)
        for row in rows:
            if row.xid >= xmin:
                shown.add(row)
        return shown

    def _load(self, connection: Connection, moment: Moment, arms: int) -> Summary:
        """Return the stored summary, or an empty one where there is none that fits."""
        self._watermark, self._unsaved = 0, 0
        found = stored_sequence(connection, self.ref.id, self._settings)
        if found is not None and found.watermark <= moment.snapshot.xmin:
            try:
                summary = Summary.from_json(found.summary, self._make(arms))
            except (ValueError, KeyError, TypeError, DoubleSamplingError):  # written by another version
                return Summary(self._make(arms))
            self._watermark = int(found.watermark)
            return summary
        return Summary(self._make(arms))

    def _save(self) -> None:
        """Store the summary where enough outcomes are new."""
        if self._settled is None or self._known is None or self._unsaved < EVERY or self.ref.store.read_only:
            return
        self._unsaved = 0
        key = {"experiment": self.ref.id, "settings": self._settings}
        row = {"watermark": self._watermark, "summary": self._settled.to_json(), "at": _now()}
        try:
            with self.ref.store.writing() as connection:
                if self.ref.store.incarnation(connection) == self._known[0]:  # a restored store never held these rows
                    _replace(connection, key, row)
        except (DoubleSamplingError, sa.exc.SQLAlchemyError):
            return  # a summary only saves time: the sequence is right without it


def _replace(connection: Connection, key: dict[str, Any], row: dict[str, Any]) -> None:
    """Write a summary over an older one; delete the oldest of other settings where there are too many."""
    found = stored_sequence(connection, key["experiment"], key["settings"])
    if found is not None and found.watermark >= row["watermark"]:
        return
    every = stored_settings(connection, key["experiment"])
    gone = [key["settings"], *every[: max(len(every) - MOST + 1, 0)]]
    s = sequences.c
    connection.execute(sa.delete(sequences).where(s.experiment == key["experiment"], s.settings.in_(gone)))
    connection.execute(sa.insert(sequences).values(key | row))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


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
