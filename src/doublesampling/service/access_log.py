"""The access log: who read results, exports or the audit trail, and who sent a value that differs from a stored one.

Rows are only added to the store. Requests do not wait for it: a thread writes the collected entries once a second. A
first read is written at once; repeated reads, as an open dashboard makes them, are counted and written every ten
minutes. Exports are written one by one.
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
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.schema import reads

log = logging.getLogger("doublesampling.service")
EVERY = 1.0
"""Seconds between two writes of the thread."""
WINDOW = datetime.timedelta(minutes=10)
_MOST = 10_000  # entries in memory; further ones are stored without their detail
_SINGLE = ("export", "audit", "contested")  # actions of which every one gets its own row

EntryKey = tuple[str, str, str | None, str | None]
"""Actor, action, experiment and detail."""


@dataclass
class _Entry:
    since: datetime.datetime
    at: datetime.datetime
    until: datetime.datetime
    count: int
    due: bool


class AccessLog:
    """Collects reads and writes them in the background."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock, self._stop = store, threading.Lock(), threading.Event()
        self._entries: dict[EntryKey, _Entry] = {}
        self._single: list[tuple[EntryKey, datetime.datetime]] = []
        self._thread: threading.Thread | None = None

    def note(self, actor: str, action: str, experiment: str | None, detail: str | None = None) -> None:
        """Add a read to the log, without waiting for the store."""
        now = datetime.datetime.now(datetime.UTC)
        with self._lock:
            if self._thread is None and not self._store.read_only and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="doublesampling-reads", daemon=True)
                self._thread.start()
            if action.startswith(_SINGLE):
                self._single.append(((actor, action, experiment, detail), now))
                return
            key = (actor, action, experiment, detail if len(self._entries) < _MOST else None)
            entry = self._entries.get(key)
            if entry is None:
                self._entries[key] = _Entry(now, now, now, 1, True)
            else:
                entry.at = now if entry.count == 0 else entry.at
                entry.until, entry.count = now, entry.count + 1

    def flush(self, everything: bool = False) -> None:
        """Write the entries that are due."""
        with self._lock:
            rows = list(self._take(datetime.datetime.now(datetime.UTC), everything))
        if not rows:
            return
        try:
            with self._store.writing() as connection:
                self._store.incarnation(connection)  # refuses another store
                connection.execute(sa.insert(reads), rows)
        except (DoubleSamplingError, sa.exc.SQLAlchemyError) as problem:
            for row in rows:  # fall back to the server's log
                log.error("access log: %s %s %s (%s)", row["actor"], row["action"], row["experiment"], problem)

    def _take(self, now: datetime.datetime, everything: bool) -> Iterable[dict[str, Any]]:
        for key, at in self._single:
            yield _row(key, at, at, 1)
        self._single = []
        for key, entry in list(self._entries.items()):
            over = now - entry.since >= WINDOW
            if entry.count and (entry.due or over or everything):
                yield _row(key, entry.at, entry.until, entry.count)
                entry.count, entry.due, entry.since = 0, False, now
            elif over:
                del self._entries[key]

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            self.flush()

    def close(self) -> None:
        """Write all entries, then stop."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
            self.flush(everything=True)


def _row(key: EntryKey, at: datetime.datetime, until: datetime.datetime, count: int) -> dict[str, Any]:
    actor, action, experiment, detail = key
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
    """Return entries, newest first, and the number before which the next page starts; None at the end."""
    query = sa.select(reads).order_by(reads.c.seq.desc()).limit(limit)
    if experiment is not None:
        query = query.where(reads.c.experiment == experiment)
    if before is not None:
        query = query.where(reads.c.seq < before)
    with store.reading() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    return rows, rows[-1]["seq"] if len(rows) == limit else None
