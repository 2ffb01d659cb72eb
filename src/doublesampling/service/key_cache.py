"""The keys as a running process knows them: read again every two seconds, and never forgotten in a dangerous way.

Keys are only ever added to a store, so a store with fewer keys than before was restored or replaced. A process that has
seen a key refuses to serve such a store without one, and a key that it has seen revoked stays revoked.
"""

import datetime
import hmac
import logging
import threading
import time

from doublesampling.live.store import Store
from doublesampling.service.keys import Key, digest, read
from doublesampling.service.problems import RefusedError

log = logging.getLogger("doublesampling.service")
_FRESH = 2.0  # seconds for which a process trusts what it knows of the keys
_LOST = (
    "The store has lost its keys, so nobody is let in: it was restored from an old copy, or replaced. "
    "Restore a copy that has them, or make a key on the server: doublesampling key create --role admin"
)
_NEEDED = (
    "The store has no keys, and this address may be reached from elsewhere, so nobody is let in. "
    "Make a key on the server: doublesampling key create --role admin"
)


class KeyCache:
    """The keys of a store. With ``required`` it is never served without a key."""

    def __init__(self, store: Store, required: bool = False) -> None:
        self._store, self._required, self._lock = store, required, threading.Lock()
        self._keys: dict[str, Key] = {}
        self._revoked: dict[str, datetime.datetime] = {}
        self._seen = False
        self._read_at = -1e9

    def stale(self) -> bool:
        """Whether the keys should be read again."""
        return time.monotonic() - self._read_at > _FRESH

    def refresh(self) -> None:
        """Read the keys, where another thread is not just doing so."""
        with self._lock:
            if not self.stale():
                return
            found = read(self._store)
            lost = self._keys.keys() - found.keys()
            if lost:
                log.error("%s has lost %d of its keys: it was restored or replaced.", self._store.where, len(lost))
            self._seen = self._seen or bool(found)
            for key in found.values():
                if key.revoked_at is not None:
                    self._revoked.setdefault(key.id, key.revoked_at)
            self._keys, self._read_at = found, time.monotonic()

    @property
    def keyless(self) -> bool:
        """Whether the store may be served without keys: none was ever seen, and none is required.

        Revoking the last key does not make a store keyless, and neither does losing them.
        """
        return not self._seen and not self._required

    def check(self) -> None:
        """Refuse to serve a store that has lost its keys, or has none where some are required."""
        if not self._keys and not self.keyless:
            raise RefusedError("no-keys", _LOST if self._seen else _NEEDED)

    def find(self, token: str) -> Key | None:
        """The key of this text, unless it was revoked or has expired."""
        given, found = digest(token), None
        for stored, key in self._keys.items():
            if hmac.compare_digest(stored, given):
                found = key
        now = datetime.datetime.now(datetime.UTC)
        if found is None or found.ended(now) or (found.id in self._revoked and self._revoked[found.id] <= now):
            return None
        return found
