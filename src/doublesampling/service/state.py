"""The state of a running service: store, API keys, writer, open experiments, caches and threads."""

import asyncio
import logging
import threading
import time
from typing import Any

import sqlalchemy as sa

from doublesampling.beliefs import BetaBernoulli
from doublesampling.errors import NotFoundError, StorageError
from doublesampling.live.contexts import neutral_context
from doublesampling.live.experiment import Experiment
from doublesampling.live.group_commit import Writer
from doublesampling.live.queries.experiments import is_stored
from doublesampling.live.stores import open_store, upgrade
from doublesampling.live.unavailable import NotImportedError
from doublesampling.service.access_log import AccessLog
from doublesampling.service.counters import Counters
from doublesampling.service.key_cache import KeyCache
from doublesampling.service.metrics import Metrics
from doublesampling.service.pending_start import PendingStart
from doublesampling.service.pools import Pools
from doublesampling.service.response_cache import ResponseCache
from doublesampling.service.simulation_jobs import SimulationJobs
from doublesampling.service.version_cache import VersionCache

log = logging.getLogger("doublesampling.service")
_WARM = 20  # latest experiments that are opened at the start
_HEALTH = 1.0  # seconds for which a health check is reused
_TIMEOUT = 5.0  # seconds after which a store that does not answer counts as broken


class ServiceState(Pools):
    """Everything that one process of the service holds."""

    def __init__(self, storage: str | None, require_keys: bool = False) -> None:
        super().__init__()
        self.store = open_store(storage)
        upgrade.ensure(self.store)
        self.key_cache = KeyCache(self.store, require_keys)
        self.key_cache.refresh()
        self.writer, self.metrics = Writer(), Metrics()
        self.jobs: dict[str, Any] = {}
        """Replays that are running or done."""
        self.simulation_jobs = SimulationJobs(self.store)
        self.responses, self.long_responses, self.counters = ResponseCache(), VersionCache(), Counters()
        self.access_log = AccessLog(self.store)
        self.pending_start = PendingStart()
        self._version = self.store.version
        self._health: asyncio.Future[None] | None = None
        self._checked_at = 0.0
        self._open: dict[str, Experiment] = {}
        self._lock = threading.Lock()

    def open(self, name: str) -> Experiment:
        """Return an experiment by its name; it stays open until the store is restored."""
        found = self._open.get(name)
        if found is not None:
            return found
        with self.store.reading() as connection:
            stored = is_stored(connection, name)
        if not stored:
            raise NotFoundError(
                f"No experiment is called {name[:100]!r}. GET /v1/experiments lists them "
                "(in Python: connection.list())."
            )
        with self._lock:
            return self._open.setdefault(name, Experiment.load(name, storage=self.store))

    async def experiment(self, name: str) -> Experiment:
        """Return an experiment by its name, from the event loop."""
        if self.store.version != self._version:
            self.clear()
        found = self._open.get(name)
        return found if found is not None else await self.opening(self.open, name)

    async def check_health(self) -> None:
        """Raise where the store cannot be used. The store is checked at most once a second."""
        self.key_cache.check()
        if self._health is None or (self._health.done() and time.monotonic() - self._checked_at > _HEALTH):
            self._checked_at = time.monotonic()
            self._health = asyncio.ensure_future(self.control(self._check_store))
        try:
            await asyncio.wait_for(asyncio.shield(self._health), _TIMEOUT)
        except TimeoutError:
            raise StorageError(f"{self.store.where} has not answered for {_TIMEOUT:g} s.") from None

    def _check_store(self) -> None:
        if self.store.read_only:
            with self.store.reading() as connection:
                connection.execute(sa.text("SELECT 1"))
        else:
            self.store.check_writable()

    def clear(self) -> None:
        """Drop everything that was derived from a store which has been restored since."""
        with self._lock:
            self._version = self.store.version
            for held in (self._open, self.jobs, self.pending_start.found):
                held.clear()
        self.counters.clear()
        self.responses.clear()
        self.long_responses.clear()

    def warm_up(self) -> None:
        """Load libraries, compiled rules and the latest experiments, so that the first request is quick."""
        laws = BetaBernoulli(arms=2).marginals(BetaBernoulli(arms=2).prior())
        laws.quantile([0.5])  # compiles also where there is no experiment yet
        try:
            for listed in Experiment.list(self.store)[-_WARM:]:
                self._warm_up_one(listed["name"])
        except Exception:
            log.exception("warming up failed; requests will report the reason")

    def _warm_up_one(self, name: str) -> None:
        from doublesampling.live.summary import posterior

        experiment = self.open(name)
        current = experiment.state
        try:
            posterior(experiment.design, current, neutral_context(current.belief))
        except NotImportedError as problem:
            log.warning("experiment %r can be read but not decided: %s", name, problem)

    def close(self) -> None:
        """Write what is waiting, then release the threads and the store."""
        self.counters.close()
        self.writer.close()
        self.access_log.close()
        self.simulation_jobs.close()
        super().close()
        self.store.close()
