"""Open the store at a URL; a process has one store object per URL."""

import os
import re
import threading
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy import exc

from doublesampling.errors import StorageError, missing_extra
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.postgres import PostgresStore
from doublesampling.live.stores.sqlite import SqliteStore

DEFAULT = "sqlite:///doublesampling.db"
_FORMS = "Write sqlite:///trial.db, or postgresql://user@host/database."

_stores: dict[str, Store] = {}
_lock = threading.Lock()


def _renew_locks() -> None:
    """Replace the lock in a forked child, where a thread of the parent may have held it."""
    global _lock
    _lock = threading.Lock()
    _stores.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_locks)


def locate(storage: str | None) -> sa.URL:
    """Return the URL of a store: the given one, DOUBLESAMPLING_STORAGE, or a file in the current folder."""
    text = storage if storage is not None else os.environ.get("DOUBLESAMPLING_STORAGE") or DEFAULT
    try:
        url = sa.make_url(text)
    except (exc.ArgumentError, ValueError, AttributeError):
        hidden = re.sub(r"//.*@", "//***@", str(text))  # it may contain a password
        raise StorageError(f"storage must be a URL, got {hidden!r}. {_FORMS}") from None
    if url.drivername in ("postgresql", "postgres"):
        url = url.set(drivername="postgresql+psycopg")
    return url


def open_store(storage: str | Store | None) -> Store:
    """Return the store at a URL, always the same object in one process."""
    if isinstance(storage, Store):
        return storage
    url = _fixed(locate(storage))
    key = url.render_as_string(hide_password=False)
    with _lock:
        if key not in _stores or _stores[key].replaced():  # holders of the old object are still refused
            _stores[key] = _make(url)
        return _stores[key]


def _fixed(url: sa.URL) -> sa.URL:
    """Return a URL that names the same file after the process has changed its folder."""
    file = url.database
    if not url.drivername.startswith("sqlite") or not file or file == ":memory:" or file.startswith("file:"):
        return url
    return url.set(database=str(Path(file).absolute()))


def close_stores() -> None:
    """Close every store of this process; the next ``open_store`` opens a new one."""
    with _lock:
        for store in _stores.values():
            store.close()
        _stores.clear()


def _make(url: sa.URL) -> Store:
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        return SqliteStore(url)
    if url.drivername == "postgresql+psycopg":
        try:
            import psycopg  # noqa: F401
        except ImportError:
            raise missing_extra("A postgresql:// store needs psycopg", "postgres") from None
        return PostgresStore(url)
    raise StorageError(f"storage of the kind {url.drivername!r} is not supported. {_FORMS}")
