"""Running counts of open experiments; a long log is counted in the background, so that no request waits for it."""

import logging
import threading
import time

import numpy as np
from numpy.typing import NDArray

from doublesampling.live.queries.allocation_counts import AllocationCounts
from doublesampling.live.queries.outcome_counts import Counts, OutcomeCounts
from doublesampling.live.session import Session

log = logging.getLogger("doublesampling.service")
_CHUNK = 4000  # decisions that one request adds to a count
_DELAY = 2.0  # seconds before a long log is counted in the background: the first page is answered before
_SHORT = 20_000  # outcomes that are counted within a request


class Counters:
    """The counts of every open experiment, by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._allocations: dict[str, AllocationCounts] = {}
        self._outcomes: dict[str, OutcomeCounts] = {}
        self._counting: set[str] = set()
        self._reading: set[OutcomeCounts] = set()
        self._closed = False

    def allocation(self, session: Session) -> AllocationCounts:
        """Return the counts of decisions per arm; ``complete`` is False while a long log is being counted."""
        with self._lock:
            counts = self._allocations.setdefault(session.name, AllocationCounts(session))
        if counts.complete or session.name not in self._counting:  # otherwise a thread is counting
            counts.advance(_CHUNK)
        with self._lock:
            if not counts.complete and session.name not in self._counting:
                self._counting.add(session.name)
                threading.Thread(target=self._count, args=(counts,), daemon=True).start()
        return counts

    def _count(self, counts: AllocationCounts) -> None:
        time.sleep(_DELAY)
        try:
            while not counts.complete and not self._closed:
                begun = time.monotonic()
                counts.advance(_CHUNK)
                time.sleep(2.0 * (time.monotonic() - begun))  # use a third of the time: requests come first
        except Exception:
            log.exception("counting the decisions of %s failed", counts.ref.name)
        finally:
            self._counting.discard(counts.ref.name)

    def outcomes(self, session: Session, arms: int) -> Counts | None:
        """Return the outcomes per arm; None while a long log is being read for the first time."""
        with self._lock:
            counts = self._outcomes.setdefault(session.name, OutcomeCounts(session))
        if counts.begun or session.read_state().belief_state.observations <= _SHORT:
            return counts.read(arms)
        with self._lock:
            if counts not in self._reading:
                self._reading.add(counts)
                threading.Thread(target=self._read_outcomes, args=(counts,), daemon=True).start()
        return None

    def _read_outcomes(self, counts: OutcomeCounts) -> None:
        time.sleep(_DELAY)
        try:
            counts.read(0)
        except Exception:
            log.exception("counting the outcomes of %s failed", counts.ref.name)
        finally:
            self._reading.discard(counts)

    def assigned(self, session: Session, arms: int) -> NDArray[np.int64] | None:
        """Return the decisions per arm, voided ones included; None while a long log is being counted."""
        counts = self.allocation(session)
        if not counts.complete:
            return None
        return np.pad(counts.counts, (0, max(arms - counts.counts.size, 0)))[:arms]

    def clear(self) -> None:
        """Drop every count, because the store was restored."""
        with self._lock:
            self._allocations.clear()
            self._outcomes.clear()

    def close(self) -> None:
        """Stop counting in the background."""
        self._closed = True
