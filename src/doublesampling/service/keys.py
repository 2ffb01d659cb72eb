"""API keys of the service: create, revoke and rotate. There is no default key, and only digests are stored.

A key is 256 random bits, so SHA-256 is enough: a slow hash protects secrets that can be guessed, and these cannot.
"""

import datetime
import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import ConflictError, NotFoundError, SettingError
from doublesampling.live.design import check_text
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.provenance import default_actor, provenance
from doublesampling.live.stores.schema import experiments, keys
from doublesampling.service.scopes import ROLES, check_scopes, format_scopes

_NEVER = datetime.datetime.max.replace(tzinfo=datetime.UTC)


@dataclass(frozen=True)
class Key:
    """An API key, its label and what it may do."""

    id: str
    role: str
    experiment: str | None
    """The only experiment that it is valid for; None for all."""
    label: str | None
    made_at: datetime.datetime
    scopes: frozenset[str] = frozenset()
    expires_at: datetime.datetime | None = None
    replaces: tuple[str, ...] = ()
    """The ids of the keys that it was rotated from, the oldest last."""
    revoked_at: datetime.datetime | None = None
    """When it ends or ended because it was revoked or rotated."""

    @property
    def actor(self) -> str:
        """The actor that is stored with rows."""
        return self._named(self.id)

    @property
    def actors(self) -> tuple[str, ...]:
        """The actor, and the actors of the keys that it was rotated from."""
        return tuple(self._named(each) for each in (self.id, *self.replaces))

    @property
    def owner(self) -> str:
        """The owner of its idempotency keys: the oldest key of its rotations."""
        return (self.id, *self.replaces)[-1]

    def _named(self, name: str) -> str:
        return f"key {name}" + (f" ({self.label})" if self.label else "")

    @property
    def revoked(self) -> bool:
        """Whether it was revoked, or rotated and the overlap is over."""
        return self.revoked_at is not None and self.revoked_at <= datetime.datetime.now(datetime.UTC)

    def ended(self, now: datetime.datetime) -> bool:
        """Return whether it is revoked or expired."""
        return now >= min(self.revoked_at or _NEVER, self.expires_at or _NEVER)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; the token itself is not stored."""
        now = datetime.datetime.now(datetime.UTC)
        return {
            "id": self.id,
            "role": self.role,
            "scopes": format_scopes(self.scopes).split(","),
            "experiment": self.experiment,
            "label": self.label,
            "made_at": self.made_at.isoformat(),
            "expires_at": None if self.expires_at is None else self.expires_at.isoformat(),
            "replaces": list(self.replaces[:1]),
            "revoked": self.revoked,
            "expired": self.expires_at is not None and self.expires_at <= now,
        }


def digest(token: str) -> str:
    """Return the digest of a token, which is what is stored."""
    return hashlib.sha256(token.encode()).hexdigest()


def _check_expiry(expires: datetime.datetime | None, now: datetime.datetime) -> None:
    if expires is not None and expires <= now:
        raise SettingError(f"A key must expire in the future, got {expires:%Y-%m-%d %H:%M} UTC.")


def create(
    store: Store,
    role: str | None = None,
    experiment: str | None = None,
    label: str | None = None,
    *,
    scopes: str | None = None,
    expires: datetime.datetime | None = None,
) -> tuple[Key, str]:
    """Create a key; return it with its token, which cannot be read again later."""
    name, allowed = check_scopes(role, scopes)
    named = None if experiment is None else check_text("experiment", experiment)
    called = None if label is None else check_text("label", label)
    signed = provenance(default_actor())
    _check_expiry(expires, signed["at"])
    token = f"ds_{secrets.token_urlsafe(32)}"
    key = Key(secrets.token_hex(4), name, named, called, signed["at"], allowed, expires)

    def work(connection: Connection) -> None:
        store.incarnation(connection)  # refuses another store
        known = sa.select(experiments.c.id).where(experiments.c.name == named)
        if named is not None and connection.execute(known).first() is None:
            raise NotFoundError(f"{store.where} holds no experiment called {named!r}. Create it first.")
        _insert(connection, key, token, signed)

    store.run_transaction(work)
    return key, token


def _insert(connection: Connection, key: Key, token: str, signed: dict[str, Any]) -> None:
    row = {
        "key": key.id,
        "kind": "made",
        "digest": digest(token),
        "role": key.role,
        "experiment": key.experiment,
        "label": key.label,
        "expires": key.expires_at,
        "scopes": format_scopes(key.scopes),
        "replaces": key.replaces[0] if key.replaces else None,
    }
    connection.execute(sa.insert(keys).values(row | signed))


def _find(connection: Connection, name: str) -> Key:
    """Return a key by its id; raise where it is unknown or was revoked."""
    found = next((key for key in _from_rows(connection).values() if key.id == name), None)
    if found is None:
        raise NotFoundError(f"No key has the id {name!r}. `doublesampling key list` shows them.")
    if found.revoked_at is not None:
        raise ConflictError(f"Key {name!r} was revoked or rotated before. Nothing was changed.")
    return found


def revoke(store: Store, name: str) -> None:
    """Revoke a key permanently."""
    signed = provenance(default_actor())

    def work(connection: Connection) -> None:
        store.incarnation(connection)
        _find(connection, name)
        connection.execute(sa.insert(keys).values({"key": name, "kind": "revoked"} | signed))

    store.run_transaction(work)


def rotate(
    store: Store, name: str, *, overlap: datetime.timedelta, expires: datetime.datetime | None = None
) -> tuple[Key, str]:
    """Create a key that replaces another, which ends after the overlap. Both own the same units."""
    signed = provenance(default_actor())
    now = signed["at"]
    _check_expiry(expires, now)
    token, fresh = f"ds_{secrets.token_urlsafe(32)}", secrets.token_hex(4)

    def work(connection: Connection) -> Key:
        store.incarnation(connection)
        old = _find(connection, name)
        if old.ended(now):
            raise ConflictError(f"Key {name!r} has expired. Create a new one: doublesampling key create")
        key = Key(
            fresh, old.role, old.experiment, old.label, now, old.scopes, expires or old.expires_at,
            (old.id, *old.replaces),
        )  # fmt: skip
        _insert(connection, key, token, signed)
        ends = {"key": name, "kind": "revoked", "expires": now + overlap}
        connection.execute(sa.insert(keys).values(ends | signed))
        return key

    return store.run_transaction(work), token


def read(store: Store) -> dict[str, Key]:
    """Return every key that was ever created, by its digest."""
    with store.reading() as connection:
        store.incarnation(connection)  # refuses another store
        return _from_rows(connection)


def _from_rows(connection: Connection) -> dict[str, Key]:
    rows = connection.execute(sa.select(keys).order_by(keys.c.seq)).all()
    ended = {row.key: row.expires or row.at for row in rows if row.kind == "revoked"}
    chains: dict[str, tuple[str, ...]] = {}
    found = {}
    for row in rows:
        if row.kind != "made":
            continue
        before = () if row.replaces is None else (row.replaces, *chains.get(row.replaces, ()))
        chains[row.key] = before
        scopes = ROLES.get(row.role, frozenset()) if row.scopes is None else frozenset(row.scopes.split(","))
        found[row.digest] = Key(
            row.key, row.role, row.experiment, row.label, row.at, scopes, row.expires, before, ended.get(row.key)
        )
    return found
