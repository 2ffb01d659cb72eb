"""Running counts of decisions per arm, compared with their logged propensities; only new decisions are read."""

import datetime
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from sqlalchemy.engine import Connection

from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.stores.identity import Incarnation
from doublesampling.live.stores.schema import decisions

_SETTLED = datetime.timedelta(seconds=60)  # a gap in the numbers that is older than this stays
_MARKS = 512


@dataclass
class AllocationCounts:
    """Counts per arm up to some decision; decisions that were voided later count too.

    ``marks`` holds intermediate counts, thinned out as their number grows.
    """

    ref: ExperimentRef
    number: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    expected: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """The sum of the logged propensities: the expected counts."""
    variance: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    judged: int = 0
    """Decisions with known propensities."""
    played: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Counts per arm over the judged decisions."""
    marks: list[tuple[int, list[int]]] = field(default_factory=list)
    stride: int = 1
    complete: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)
    incarnation: Incarnation | None = None
    last: str | None = None
    """The id of the last counted decision; where the store does not hold it, the count starts again."""

    def advance(self, most: int) -> None:
        """Count at most ``most`` further decisions."""
        with self.lock:
            with self.ref.store.reading() as connection:
                found = self.ref.store.incarnation(connection)
                rows = self._read(connection, most)
                if found != self.incarnation or (self.last is not None and (not rows or rows[0].id != self.last)):
                    self._reset()
                    rows = self._read(connection, most)
                self.incarnation = found
            rows = rows[1:] if self.last is not None else rows
            self.complete = len(rows) < most
            long_ago = datetime.datetime.now(datetime.UTC) - _SETTLED
            settled, last = 0, self.number
            for row in rows:
                if row.number != last + 1 and row.at > long_ago:
                    break  # on PostgreSQL, a smaller number may be committed later
                settled, last = settled + 1, row.number
            if settled:
                self._count(rows[:settled])

    def _read(self, connection: Connection, most: int) -> Sequence[Any]:
        """Return the last counted decision and at most ``most`` after it."""
        columns = [decisions.c[name] for name in ("id", "number", "arm", "propensities", "at")]
        query = sa.select(*columns).where(decisions.c.experiment == self.ref.id, decisions.c.number >= self.number)
        return connection.execute(query.order_by(decisions.c.number).limit(most + (self.last is not None))).all()

    def _reset(self) -> None:
        """Drop the counts of a store that has been restored since."""
        fresh = AllocationCounts(self.ref)
        for name in ("number", "counts", "expected", "variance", "judged", "played", "marks", "stride", "last"):
            setattr(self, name, getattr(fresh, name))

    def _count(self, rows: Sequence[Any]) -> None:
        shares = [json.loads(row.propensities) for row in rows]
        size = max(self.counts.size, max(len(each) for each in shares))
        for name in ("counts", "expected", "variance", "played"):
            old = getattr(self, name)
            setattr(self, name, np.pad(old, (0, size - old.size)))
        table = np.array([each + [0.0] * (size - len(each)) for each in shares], dtype=np.float64)  # null becomes nan
        chosen = np.zeros((len(rows), size), dtype=np.int64)
        chosen[np.arange(len(rows)), [row.arm for row in rows]] = 1
        known = ~np.isnan(table).any(axis=1)
        self.expected += table[known].sum(axis=0)
        self.variance += (table[known] * (1.0 - table[known])).sum(axis=0)
        self.played += chosen[known].sum(axis=0)
        self.judged += int(known.sum())
        sums = self.counts + chosen.cumsum(axis=0)
        self.counts, self.number, self.last = sums[-1], rows[-1].number, rows[-1].id
        self.marks += [(row.number, sums[i].tolist()) for i, row in enumerate(rows) if row.number % self.stride == 0]
        while len(self.marks) > 2 * _MARKS:
            self.stride *= 2
            self.marks = [mark for mark in self.marks if mark[0] % self.stride == 0]

    def history(self) -> list[dict[str, Any]]:
        """Return the decisions per arm up to each mark, and up to now."""
        with self.lock:
            every = list(self.marks)
            if self.number and (not every or every[-1][0] != self.number):
                every.append((self.number, self.counts.tolist()))
        return [{"number": number, "counts": counts} for number, counts in every]

    def deviation(self, arms: int) -> list[dict[str, Any]]:
        """Return per arm how often it was chosen, the expected count, and the difference in standard deviations."""
        with self.lock:
            size = self.counts.size
            rows: list[dict[str, Any]] = []
            for arm in range(arms):
                if arm >= size:
                    rows.append({"observed": 0, "expected": 0.0, "deviations": None})
                    continue
                spread = float(np.sqrt(self.variance[arm]))
                away = (int(self.played[arm]) - float(self.expected[arm])) / spread if spread > 1e-9 else None
                rows.append(
                    {
                        "observed": int(self.played[arm]),
                        "expected": float(self.expected[arm]),
                        "deviations": away,
                    }
                )
        return rows
