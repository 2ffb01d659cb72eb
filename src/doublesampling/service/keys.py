"""Keys of the service: made once, stored as digests, revoked by a row. A store without keys has no default password.

A key is 256 random bits, so SHA-256 is enough: a slow hash protects secrets that can be guessed, and these cannot.
"""

import datetime
import hashlib
import hmac
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import ConflictError, NotFoundError
from doublesampling.live.book import default_actor, signature
from doublesampling.live.design import check_text
from doublesampling.live.schema import experiments, keys
from doublesampling.live.store import Store

ROLES = ("reader", "writer", "admin")
_FRESH = 2.0  # seconds for which a process trusts what it knows of the keys


@dataclass(frozen=True)
class Key:
    """Whom a key belongs to, and what it may do."""

    id: str
    role: str
    experiment: str | None
    """The only experiment that it opens; None for all."""
    label: str | None
    made_at: datetime.datetime
    revoked: bool = False

    @property
    def actor(self) -> str:
        """Who is written beside a row."""
        return f"key {self.id}" + (f" ({self.label})" if self.label else "")

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; the key itself is not known any more."""
        return {**self.__dict__, "made_at": self.made_at.isoformat()}


def digest(token: str) -> str:
    """What is stored of a key."""
    return hashlib.sha256(token.encode()).hexdigest()


def create(store: Store, role: str, experiment: str | None = None, label: str | None = None) -> tuple[Key, str]:
    """Make a key; its text is handed out here and never again."""
    checks.one_of("role", role, ROLES)
    named = None if experiment is None else check_text("experiment", experiment)
    called = None if label is None else check_text("label", label)
    token, name = f"ds_{secrets.token_urlsafe(32)}", secrets.token_hex(4)
    row = {"key": name, "kind": "made", "digest": digest(token), "role": role, "experiment": named, "label": called}
    signed = signature(default_actor())

    def work(connection: Connection) -> None:
        known = sa.select(experiments.c.id).where(experiments.c.name == named)
        if named is not None and connection.execute(known).first() is None:
            raise NotFoundError(f"{store.where} holds no experiment called {named!r}. Create it first.")
        connection.execute(sa.insert(keys).values(row | signed))

    store.attempt(work)
    return Key(name, role, named, called, signed["at"]), token


def revoke(store: Store, name: str) -> None:
    """End a key, for good."""

    def work(connection: Connection) -> None:
        kinds = set(connection.execute(sa.select(keys.c.kind).where(keys.c.key == name)).scalars())
        if not kinds:
            raise NotFoundError(f"No key has the id {name!r}. `doublesampling key list` shows them.")
        if "revoked" in kinds:
            raise ConflictError(f"Key {name!r} was revoked before. Nothing is left to do.")
        connection.execute(sa.insert(keys).values({"key": name, "kind": "revoked"} | signature(default_actor())))

    store.attempt(work)


def read(store: Store) -> dict[str, Key]:
    """Every key that was ever made, by its digest."""
    with store.reading() as connection:
        rows = connection.execute(sa.select(keys).order_by(keys.c.seq)).all()
    ended = {row.key for row in rows if row.kind == "revoked"}
    return {
        row.digest: Key(row.key, row.role, row.experiment, row.label, row.at, row.key in ended)
        for row in rows
        if row.kind == "made"
    }


class Ring:
    """The keys as a process knows them, read again every two seconds: a revoked key dies within that time."""

    def __init__(self, store: Store) -> None:
        self._store, self._lock = store, threading.Lock()
        self._keys: dict[str, Key] = {}
        self._read_at = -1e9

    def stale(self) -> bool:
        """Whether the keys should be read again."""
        return time.monotonic() - self._read_at > _FRESH

    def refresh(self) -> None:
        """Read the keys, where another thread is not just doing so."""
        with self._lock:
            if self.stale():
                self._keys, self._read_at = read(self._store), time.monotonic()

    @property
    def empty(self) -> bool:
        """Whether no key was ever made. Revoking the last one does not open the door again."""
        return not self._keys

    def find(self, token: str) -> Key | None:
        """The key of this text, unless it was revoked."""
        given = digest(token)
        for stored, key in self._keys.items():
            if hmac.compare_digest(stored, given):
                return None if key.revoked else key
        return None
