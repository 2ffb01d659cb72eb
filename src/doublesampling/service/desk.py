"""The desk: what a running service holds: store, keys, writer, open experiments, and threads for reading."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from doublesampling.errors import NotFoundError
from doublesampling.live import upgrade
from doublesampling.live.book import Book
from doublesampling.live.experiment import Experiment
from doublesampling.live.groups import Writer
from doublesampling.live.opening import open_store
from doublesampling.live.tally import Tally
from doublesampling.service.keys import Ring
from doublesampling.service.metrics import Metrics

T = TypeVar("T")
log = logging.getLogger("doublesampling.service")
_BITE = 4000  # decisions that one request adds to a tally
_PATIENCE = 2.0  # seconds before a long log is counted in the background
_WARM = 20
_THREADS = 4  # for reading: more would only take turns at the interpreter


class Slow:
    """One thread for what takes minutes. A server that is stopped does not wait for it: it only reads."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="doublesampling-slow", daemon=True).start()

    def submit(self, work: Callable[[], None]) -> None:
        """Do this after what was submitted before. It must catch its own errors."""
        self._waiting.put(work)

    def _run(self) -> None:
        while True:
            self._waiting.get()()


class Desk:
    """One per process. Databases are only touched from threads, never from the event loop."""

    def __init__(self, storage: str | None) -> None:
        self.store = open_store(storage)
        upgrade.ensure(self.store)
        self.ring = Ring(self.store)
        self.ring.refresh()
        self.writer, self.metrics = Writer(), Metrics()
        self.jobs: dict[str, Any] = {}
        """Simulations and replays under way or done, by their id."""
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="doublesampling-reader")
        self.slow = Slow()
        self._open: dict[str, Experiment] = {}
        self._tallies: dict[str, Tally] = {}
        self._lock, self._counting, self._closed = threading.Lock(), set[str](), False

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something that reads or writes the store, in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def open(self, name: str) -> Experiment:
        """An experiment by its name; it stays open, because nothing is ever deleted."""
        found = self._open.get(name)
        if found is not None:
            return found
        if not any(listed["name"] == name for listed in Experiment.list(self.store)):
            raise NotFoundError(f"No experiment is called {name[:100]!r}. GET /v1/experiments lists them.")
        with self._lock:
            return self._open.setdefault(name, Experiment.load(name, storage=self.store))

    async def experiment(self, name: str) -> Experiment:
        """The same, from the event loop."""
        found = self._open.get(name)
        return found if found is not None else await self.run(self.open, name)

    def tally(self, book: Book) -> Tally:
        """The running count of an experiment. A long log is counted in the background: nobody waits for it."""
        with self._lock:
            tally = self._tallies.setdefault(book.name, Tally(book))
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

    def warm_up(self) -> None:
        """Load what the first visitor would have to wait for: libraries, compiled rules, and the latest experiments."""
        from doublesampling.live.reading import posterior

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
        self._threads.shutdown(wait=False, cancel_futures=True)
        self.store.close()
