"""The log of who read what: results, exports, the audit trail; and who told a value that another one had preceded.

Rows are only added to the store. Reads do not wait for them: a thread writes once a second what has gathered. A first
look is written at the next turn; the same look again and again, as an open page makes it, is counted and written every
ten minutes. Exports are written one by one.
"""

import datetime
import logging
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from doublesampling import __version__
from doublesampling.errors import DoubleSamplingError
from doublesampling.live.schema import reads
from doublesampling.live.store import Store

log = logging.getLogger("doublesampling.service")
EVERY = 1.0
"""Seconds between two turns of the thread."""
WINDOW = datetime.timedelta(minutes=10)
_MOST = 10_000  # entries in memory; beyond, details are left out
_SINGLY = ("export", "audit", "contested")  # actions of which every one has its own row

Place = tuple[str, str, str | None, str | None]
"""Who, what, in which experiment, and which detail of it."""


@dataclass
class _Entry:
    since: datetime.datetime
    at: datetime.datetime
    until: datetime.datetime
    count: int
    due: bool


class AccessLog:
    """Gathers reads and writes them in the background."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock, self._stop = store, threading.Lock(), threading.Event()
        self._entries: dict[Place, _Entry] = {}
        self._single: list[tuple[Place, datetime.datetime]] = []
        self._thread: threading.Thread | None = None

    def note(self, actor: str, action: str, experiment: str | None, detail: str | None = None) -> None:
        """Remember that somebody read something; takes no time."""
        now = datetime.datetime.now(datetime.UTC)
        with self._lock:
            if self._thread is None and not self._store.read_only and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="doublesampling-reads", daemon=True)
                self._thread.start()
            if action.startswith(_SINGLY):
                self._single.append(((actor, action, experiment, detail), now))
                return
            place = (actor, action, experiment, detail if len(self._entries) < _MOST else None)
            entry = self._entries.get(place)
            if entry is None:
                self._entries[place] = _Entry(now, now, now, 1, True)
            else:
                entry.at = now if entry.count == 0 else entry.at
                entry.until, entry.count = now, entry.count + 1

    def flush(self, everything: bool = False) -> None:
        """Write what is due."""
        with self._lock:
            rows = list(self._take(datetime.datetime.now(datetime.UTC), everything))
        if not rows:
            return
        try:
            with self._store.writing() as connection:
                self._store.incarnation(connection)  # refuses another store
                connection.execute(sa.insert(reads), rows)
        except (DoubleSamplingError, sa.exc.SQLAlchemyError) as problem:
            for row in rows:  # the server's log is the last place
                log.error("access log: %s %s %s (%s)", row["actor"], row["action"], row["experiment"], problem)

    def _take(self, now: datetime.datetime, everything: bool) -> Iterable[dict[str, Any]]:
        for place, at in self._single:
            yield _row(place, at, at, 1)
        self._single = []
        for place, entry in list(self._entries.items()):
            over = now - entry.since >= WINDOW
            if entry.count and (entry.due or over or everything):
                yield _row(place, entry.at, entry.until, entry.count)
                entry.count, entry.due, entry.since = 0, False, now
            elif over:
                del self._entries[place]

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            self.flush()

    def close(self) -> None:
        """Write everything, then stop."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
            self.flush(everything=True)


def _row(place: Place, at: datetime.datetime, until: datetime.datetime, count: int) -> dict[str, Any]:
    actor, action, experiment, detail = place
    return {
        "action": action,
        "experiment": experiment,
        "detail": detail,
        "count": count,
        "until": until,
        "actor": actor,
        "at": at,
        "version": __version__,
    }


def read(
    store: Store, *, experiment: str | None = None, before: int | None = None, limit: int = 100
) -> tuple[list[dict[str, Any]], int | None]:
    """Return entries, the newest first, and the number to go on from; None at the end."""
    query = sa.select(reads).order_by(reads.c.seq.desc()).limit(limit)
    if experiment is not None:
        query = query.where(reads.c.experiment == experiment)
    if before is not None:
        query = query.where(reads.c.seq < before)
    with store.reading() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    return rows, rows[-1]["seq"] if len(rows) == limit else None
