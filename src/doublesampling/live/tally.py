"""A running count of what was played against the propensities that were logged, read once and then only topped up."""

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

from doublesampling.live.book import Book
from doublesampling.live.identity import Incarnation
from doublesampling.live.schema import decisions

_SETTLED = datetime.timedelta(seconds=60)  # a gap in the numbers older than this is never filled
_MARKS = 512


@dataclass
class Tally:
    """Counts per arm up to some decision, of what was drawn: decisions that were voided later count too.

    ``marks`` holds the counts on the way, thinned out as they grow.
    """

    book: Book
    number: int = 0
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    expected: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    """The sum of the logged propensities: what the counts should be near."""
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
    """The id of the decision up to which was counted; where the store does not hold it, all is counted again."""

    def advance(self, most: int) -> None:
        """Read at most so many more decisions."""
        with self.lock:
            with self.book.store.reading() as connection:
                found = self.book.store.incarnation(connection)
                rows = self._read(connection, most)
                if found != self.incarnation or (self.last is not None and (not rows or rows[0].id != self.last)):
                    self._begin_again()
                    rows = self._read(connection, most)
                self.incarnation = found
            rows = rows[1:] if self.last is not None else rows
            self.complete = len(rows) < most
            long_ago = datetime.datetime.now(datetime.UTC) - _SETTLED
            settled, last = 0, self.number
            for row in rows:
                if row.number != last + 1 and row.at > long_ago:
                    break  # on PostgreSQL a smaller number may be committed a moment later
                settled, last = settled + 1, row.number
            if settled:
                self._count(rows[:settled])

    def _read(self, connection: Connection, most: int) -> Sequence[Any]:
        """The decision up to which was counted, and at most so many behind it."""
        columns = [decisions.c[name] for name in ("id", "number", "arm", "propensities", "at")]
        query = sa.select(*columns).where(decisions.c.experiment == self.book.id, decisions.c.number >= self.number)
        return connection.execute(query.order_by(decisions.c.number).limit(most + (self.last is not None))).all()

    def _begin_again(self) -> None:
        """Forget what was counted in a store that has been restored since."""
        fresh = Tally(self.book)
        for name in ("number", "counts", "expected", "variance", "judged", "played", "marks", "stride", "last"):
            setattr(self, name, getattr(fresh, name))

    def _count(self, rows: Sequence[Any]) -> None:
        shares = [json.loads(row.propensities) for row in rows]
        size = max(self.counts.size, max(len(each) for each in shares))
        for name in ("counts", "expected", "variance", "played"):
            grown = getattr(self, name)
            setattr(self, name, np.pad(grown, (0, size - grown.size)))
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

    def allocation(self) -> list[dict[str, Any]]:
        """Decisions per arm up to each mark, and up to now."""
        with self.lock:
            every = list(self.marks)
            if self.number and (not every or every[-1][0] != self.number):
                every.append((self.number, self.counts.tolist()))
        return [{"number": number, "counts": counts} for number, counts in every]

    def deviation(self, arms: int) -> list[dict[str, Any]]:
        """Per arm: how often it was played, how often its propensities foretold, and the distance in deviations."""
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
