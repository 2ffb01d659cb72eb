"""From a URL to the store behind it: one per process and URL."""

import os
import re
import threading

import sqlalchemy as sa
from sqlalchemy import exc

from doublesampling.errors import StorageError, missing_extra
from doublesampling.live.postgres import PostgresStore
from doublesampling.live.sqlite import SqliteStore
from doublesampling.live.store import Store

DEFAULT = "sqlite:///doublesampling.db"
_FORMS = "Write sqlite:///trial.db, or postgresql://user@host/database."

_stores: dict[str, Store] = {}
_keeping = threading.Lock()


def _renew_locks() -> None:
    """A forked child must not wait for a lock that a thread of its parent held."""
    global _keeping
    _keeping = threading.Lock()
    _stores.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def locate(storage: str | None) -> sa.URL:
    """The URL of a store: as given, or from DOUBLESAMPLING_STORAGE, or a file in the current folder."""
    text = storage if storage is not None else os.environ.get("DOUBLESAMPLING_STORAGE") or DEFAULT
    try:
        url = sa.make_url(text)
    except (exc.ArgumentError, ValueError, AttributeError):
        hidden = re.sub(r"//.*@", "//***@", str(text))  # there may be a password in it
        raise StorageError(f"storage must be a URL, got {hidden!r}. {_FORMS}") from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    return url


def open_store(storage: str | Store | None) -> Store:
    """The store at a URL; one per process and URL."""
    if isinstance(storage, Store):
        return storage
    url = locate(storage)
    key = url.render_as_string(hide_password=False)
    with _keeping:
        if key not in _stores or _stores[key].replaced():  # whoever holds the old one goes on being refused
            _stores[key] = _make(url)
        return _stores[key]


def _make(url: sa.URL) -> Store:
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return SqliteStore(url)
    if url.drivername == "postgresql+psycopg":
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise missing_extra("A postgresql:// store needs psycopg", "postgres") from None
        return PostgresStore(url)
    raise StorageError(f"storage of the kind {url.drivername!r} is not known. {_FORMS}")
