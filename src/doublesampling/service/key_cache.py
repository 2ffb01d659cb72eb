"""A cache of API keys that is refreshed every two seconds and fails closed.

Keys are only added to a store, so a store with fewer keys than before was restored or replaced. A process that has seen
a key refuses to serve such a store without keys, and a key that it has seen revoked stays revoked.
"""

import datetime
import hmac
import logging
import threading
import time

from doublesampling.live.stores.contract import Store
from doublesampling.service.keys import Key, digest, read
from doublesampling.service.problems import RefusedError

log = logging.getLogger("doublesampling.service")
_FRESH = 2.0  # seconds for which cached keys are valid
_LOST = (
    "The store has lost its keys, so all requests are refused: it was restored from an old copy, or replaced. "
    "Restore a copy with the keys, or create a key on the server: doublesampling key create --role admin"
)
_NEEDED = (
    "The store has no keys, and other machines can reach this address, so all requests are refused. "
    "Create a key on the server: doublesampling key create --role admin"
)


class KeyCache:
    """The API keys of a store. With ``required``, the store is never served without a key."""

    def __init__(self, store: Store, required: bool = False) -> None:
        self._store, self._required, self._lock = store, required, threading.Lock()
        self._keys: dict[str, Key] = {}
        self._revoked: dict[str, datetime.datetime] = {}
        self._seen = False
        self._read_at = -1e9

    def stale(self) -> bool:
        """Return whether the keys must be read again."""
        return time.monotonic() - self._read_at > _FRESH

    def refresh(self) -> None:
        """Read the keys, unless another thread has just done so."""
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
        """Raise RefusedError where the store has lost its keys, or has none although they are required."""
        if not self._keys and not self.keyless:
            raise RefusedError("no-keys", _LOST if self._seen else _NEEDED)

    def find(self, token: str) -> Key | None:
        """Return the key with this token; None where it is unknown, revoked or expired."""
        given, found = digest(token), None
        for stored, key in self._keys.items():
            if hmac.compare_digest(stored, given):
                found = key
        now = datetime.datetime.now(datetime.UTC)
        if found is None or found.ended(now) or (found.id in self._revoked and self._revoked[found.id] <= now):
            return None
        return found
