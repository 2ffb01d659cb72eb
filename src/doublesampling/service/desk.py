"""What a running service holds: store, keys, writer, open experiments, and its threads."""

import asyncio
import logging
import threading
import time
from typing import Any

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray

from doublesampling.beliefs import BetaBernoulli
from doublesampling.errors import NotFoundError, StorageError
from doublesampling.live import upgrade
from doublesampling.live.book import Book
from doublesampling.live.experiment import Experiment
from doublesampling.live.groups import Writer
from doublesampling.live.opening import open_store
from doublesampling.live.outcome_counts import Counts, OutcomeCounts
from doublesampling.live.schema import experiments
from doublesampling.live.tally import Tally
from doublesampling.service.access_log import AccessLog
from doublesampling.service.cache import AnswerCache
from doublesampling.service.key_cache import KeyCache
from doublesampling.service.metrics import Metrics
from doublesampling.service.pools import Pools
from doublesampling.service.waiting import WaitingFrom

log = logging.getLogger("doublesampling.service")
_BITE = 4000  # decisions that one request adds to a tally
_PATIENCE = 2.0  # seconds before a long log is counted in the background
_WARM = 20
_SHORT = 20_000  # outcomes that are counted while somebody waits
_HEALTH = 1.0  # seconds for which a look at the store is believed
_HANGS = 5.0  # seconds after which a store that does not answer counts as broken


class Desk(Pools):
    """What one process holds."""

    def __init__(self, storage: str | None, require_keys: bool = False) -> None:
        super().__init__()
        self.store = open_store(storage)
        upgrade.ensure(self.store)
        self.ring = KeyCache(self.store, require_keys)
        self.ring.refresh()
        self.writer, self.metrics = Writer(), Metrics()
        self.jobs: dict[str, Any] = {}
        """Simulations and replays under way or done, by their id."""
        self._version = self.store.version
        self._health: asyncio.Future[None] | None = None
        self._looked_at = 0.0
        self._open: dict[str, Experiment] = {}
        self._tallies: dict[str, Tally] = {}
        self._counts: dict[str, OutcomeCounts] = {}
        self._reading: set[OutcomeCounts] = set()
        self.answers = AnswerCache()
        self.reads = AccessLog(self.store)
        self.waiting = WaitingFrom()
        self._lock, self._counting, self._closed = threading.Lock(), set[str](), False

    def open(self, name: str) -> Experiment:
        """An experiment by its name; it stays open until the store is restored."""
        found = self._open.get(name)
        if found is not None:
            return found
        with self.store.reading() as connection:
            there = connection.execute(sa.select(experiments.c.id).where(experiments.c.name == name)).first()
        if there is None:
            raise NotFoundError(f"No experiment is called {name[:100]!r}. GET /v1/experiments lists them.")
        with self._lock:
            return self._open.setdefault(name, Experiment.load(name, storage=self.store))

    async def experiment(self, name: str) -> Experiment:
        """The same, from the event loop."""
        if self.store.version != self._version:
            self.forget()
        found = self._open.get(name)
        return found if found is not None else await self.opening(self.open, name)

    async def check_health(self) -> None:
        """Raise where the store cannot be used. It is looked at once a second at most, however often somebody asks."""
        self.ring.check()
        if self._health is None or (self._health.done() and time.monotonic() - self._looked_at > _HEALTH):
            self._looked_at = time.monotonic()
            self._health = asyncio.ensure_future(self.control(self._try_store))
        try:
            await asyncio.wait_for(asyncio.shield(self._health), _HANGS)
        except TimeoutError:
            raise StorageError(f"{self.store.where} has not answered for {_HANGS:g} s.") from None

    def _try_store(self) -> None:
        if self.store.read_only:
            with self.store.reading() as connection:
                connection.execute(sa.text("SELECT 1"))
        else:
            self.store.check_writable()

    def forget(self) -> None:
        """Drop everything that was derived from a store that has been restored since."""
        with self._lock:
            self._version = self.store.version
            for held in (self._open, self._tallies, self._counts, self.jobs, self.waiting.found):
                held.clear()
        self.answers.clear()

    def tally(self, book: Book) -> Tally:
        """The running count of an experiment. A long log is counted in the background: nobody waits for it."""
        with self._lock:
            tally = self._tallies.setdefault(book.name, Tally(book))
        if tally.complete or book.name not in self._counting:  # otherwise a thread is at it
            tally.advance(_BITE)
        with self._lock:
            if not tally.complete and book.name not in self._counting:
                self._counting.add(book.name)
                threading.Thread(target=self._count, args=(tally,), daemon=True).start()
        return tally

    def _count(self, tally: Tally) -> None:
        time.sleep(_PATIENCE)  # whoever has just come sees the page first
        try:
            while not tally.complete and not self._closed:
                begun = time.monotonic()
                tally.advance(_BITE)
                time.sleep(2.0 * (time.monotonic() - begun))  # a third of the time: requests come first
        except Exception:
            log.exception("counting %s failed", tally.book.name)
        finally:
            self._counting.discard(tally.book.name)

    def counts(self, book: Book, arms: int) -> Counts | None:
        """Outcomes per arm; None while a long log is read for the first time, in the background."""
        with self._lock:
            counts = self._counts.setdefault(book.name, OutcomeCounts(book))
        if counts.begun or book.look().state.observations <= _SHORT:
            return counts.read(arms)
        with self._lock:
            if counts not in self._reading:
                self._reading.add(counts)
                threading.Thread(target=self._read_counts, args=(counts,), daemon=True).start()
        return None

    def _read_counts(self, counts: OutcomeCounts) -> None:
        time.sleep(_PATIENCE)
        try:
            counts.read(0)
        except Exception:
            log.exception("counting the outcomes of %s failed", counts.book.name)
        finally:
            self._reading.discard(counts)

    def assigned(self, book: Book, arms: int) -> NDArray[np.int64] | None:
        """Decisions per arm, voided ones included; None while a long log is still being counted."""
        tally = self.tally(book)
        if not tally.complete:
            return None
        counts = tally.counts
        return np.pad(counts, (0, max(arms - counts.size, 0)))[:arms]

    def warm_up(self) -> None:
        """Load what the first visitor would have to wait for: libraries, compiled rules, and the latest experiments."""
        from doublesampling.live.reading import posterior

        laws = BetaBernoulli(arms=2).marginals(BetaBernoulli(arms=2).prior())
        laws.quantile([0.5])  # also where there is no experiment yet
        try:
            for listed in Experiment.list(self.store)[-_WARM:]:
                known = self.open(listed["name"]).known
                posterior(known, [1.0] * known.belief.dimension if hasattr(known.belief, "dimension") else None)
        except Exception:
            log.exception("warming up failed; requests will say why")

    def close(self) -> None:
        """Write what is waiting, then let go."""
        self._closed = True
        self.writer.close()
        self.reads.close()
        super().close()
        self.store.close()
