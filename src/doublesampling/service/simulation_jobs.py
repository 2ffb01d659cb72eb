"""Simulations as rows of the store, so that every server of a store can show, stop and take over each of them.

The server that simulates a job says every few seconds that it lives. Where it has not done so for ``LEASE``, the next
server that is asked for the job takes it over and continues after the chunks that are stored.
"""

import datetime
import json
import logging
import secrets
import threading
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import DoubleSamplingError, NotFoundError
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.provenance import default_actor, provenance
from doublesampling.live.stores.schema import simulations
from doublesampling.service.problems import RefusedError

log = logging.getLogger("doublesampling.service")
BEAT = 5.0
"""Seconds after which a server says again that it lives."""
LEASE = datetime.timedelta(seconds=30)
"""How long a server may be silent before another one takes its simulations over."""
UNFINISHED = ("waiting", "running")
WAITING = 5
"""Simulations of a store that may wait or run at once."""
KEPT = 200
"""Simulations that a store keeps."""
_ATTEMPTS = 3  # servers that may begin a simulation: one that ends its server must not end them all
_LONG_AGO = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)
_job = simulations.c


@dataclass(frozen=True)
class Job:
    """A simulation as it is stored."""

    id: str
    experiment: str
    design: str
    request: dict[str, Any]
    status: str
    parts: list[dict[str, Any]]
    detail: str | None
    server: str
    attempts: int
    silent: datetime.timedelta
    """How long ago its server said that it lives."""

    @property
    def orphaned(self) -> bool:
        """Whether its server has gone before it was finished."""
        return self.status in UNFINISHED and self.silent > LEASE


class SimulationJobs:
    """The simulations of a store, as one server uses them."""

    def __init__(self, store: Store) -> None:
        self._store, self.server = store, secrets.token_hex(8)
        self._mine: set[str] = set()
        self._stop, self._lock = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self, experiment: str, design: str, request: dict[str, Any], actor: str | None) -> Job:
        """Store a new simulation of this server; raise RefusedError where too many wait."""

        def work(connection: Connection) -> Job:
            self._store.incarnation(connection)  # refuses another store
            now = _now(connection)
            query = sa.select(_job.id).where(_job.status.in_(UNFINISHED), _job.beat > now - LEASE)
            if len(connection.execute(query).all()) >= WAITING:
                raise RefusedError("too-many", f"{WAITING} simulations are waiting already. Try again later.")
            old = sa.select(_job.id).order_by(_job.at.desc(), _job.id).offset(KEPT - 1)
            connection.execute(sa.delete(simulations).where(_job.id.in_(connection.execute(old).scalars().all())))
            which = secrets.token_hex(8)
            row = {
                "id": which, "experiment": experiment, "design": design, "request": json.dumps(request),
                "status": "waiting", "parts": "[]", "detail": None, "server": self.server, "beat": now, "attempts": 1,
            }  # fmt: skip
            connection.execute(sa.insert(simulations).values(row | provenance(actor or default_actor())))
            return _find(connection, experiment, which)

        found = self._store.run_transaction(work)
        self._keep(found.id)
        return found

    def read(self, experiment: str, which: str) -> Job:
        """Return a simulation of an experiment."""
        with self._store.reading() as connection:
            return _find(connection, experiment, which)

    def stop(self, experiment: str, which: str) -> Job:
        """Stop a simulation, whichever server has it; return it."""

        def work(connection: Connection) -> Job:
            self._store.incarnation(connection)
            _find(connection, experiment, which)
            change = sa.update(simulations).where(_job.id == which, _job.status.in_(UNFINISHED))
            connection.execute(change.values(status="stopped"))
            return _find(connection, experiment, which)

        return self._store.run_transaction(work)

    def take_over(self, job: Job) -> bool:
        """Make an orphaned simulation one of this server; return False where it is not to be simulated here."""
        given_up = job.attempts >= _ATTEMPTS
        detail = f"{job.attempts} servers ended while they simulated it. Try fewer realizations." if given_up else None
        change = {"status": "failed" if given_up else "waiting", "detail": detail, "attempts": job.attempts + 1}

        def work(connection: Connection) -> bool:
            self._store.incarnation(connection)
            orphaned = (_job.server == job.server, _job.status.in_(UNFINISHED), _job.attempts == job.attempts)
            taken = sa.update(simulations).where(_job.id == job.id, *orphaned)
            return bool(connection.execute(taken.values(server=self.server, beat=_now(connection), **change)).rowcount)

        if not self._store.run_transaction(work) or given_up:
            return False
        self._keep(job.id)
        return True

    def save(self, which: str, status: str, parts: list[dict[str, Any]] | None = None, detail: str = "") -> bool:
        """Store how far a simulation of this server is; return False where it was stopped or taken over."""
        values: dict[str, Any] = {"status": status, "detail": detail or None}
        values |= {} if parts is None else {"parts": json.dumps(parts, allow_nan=False)}

        def work(connection: Connection) -> bool:
            self._store.incarnation(connection)
            mine = (_job.id == which, _job.server == self.server, _job.status.in_(UNFINISHED))
            change = sa.update(simulations).where(*mine).values(beat=_now(connection), **values)
            return bool(connection.execute(change).rowcount)

        return not self._stop.is_set() and self._store.run_transaction(work)

    def finish(self, which: str) -> None:
        """Say no more that a simulation lives."""
        with self._lock:
            self._mine.discard(which)

    def _keep(self, which: str) -> None:
        """Say every few seconds that a simulation lives, from now on."""
        with self._lock:
            self._mine.add(which)
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="doublesampling-beat", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(BEAT):
            self.beat()

    def beat(self, at: datetime.datetime | None = None) -> None:
        """Say now that the simulations of this server live; or until when they did."""
        with self._lock:
            which = sorted(self._mine)
        if not which:
            return

        def work(connection: Connection) -> None:
            self._store.incarnation(connection)
            mine = (_job.id.in_(which), _job.server == self.server, _job.status.in_(UNFINISHED))
            connection.execute(sa.update(simulations).where(*mine).values(beat=at or _now(connection)))

        try:
            self._store.run_transaction(work)
        except (DoubleSamplingError, sa.exc.SQLAlchemyError) as problem:
            log.warning("simulations may be taken over by another server: %s", problem)

    def close(self) -> None:
        """Leave unfinished simulations to other servers."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
        self.beat(_LONG_AGO)


def _now(connection: Connection) -> datetime.datetime:
    """Return the time by the clock that all servers of the store share."""
    if connection.dialect.name == "sqlite":
        return datetime.datetime.now(datetime.UTC)
    found: datetime.datetime = connection.execute(sa.text("SELECT clock_timestamp()")).scalar_one()
    return found


def _find(connection: Connection, experiment: str, which: str) -> Job:
    query = sa.select(simulations).where(_job.id == which, _job.experiment == experiment)
    row = connection.execute(query).first()
    if row is None:
        raise NotFoundError("No simulation of this experiment has this id. Old ones are deleted: start it again.")
    return Job(
        row.id, row.experiment, row.design, json.loads(row.request), row.status, json.loads(row.parts), row.detail,
        row.server, row.attempts, _now(connection) - row.beat,
    )  # fmt: skip
