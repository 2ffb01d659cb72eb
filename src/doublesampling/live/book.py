"""An experiment's book: its place in a store, its design, and what this process remembers of it."""

import datetime
import getpass
import socket
import unicodedata
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from doublesampling import __version__
from doublesampling.errors import NotFoundError
from doublesampling.live.design import Design, check_text, design_from_json
from doublesampling.live.memory import Known, Memory
from doublesampling.live.schema import experiments
from doublesampling.live.store import Store


def default_actor() -> str:
    """Who is writing, where nobody says: user@host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a name for its user
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def signature(actor: str) -> dict[str, Any]:
    """Who, when, and with which version: carried by every row."""
    return {"actor": actor, "at": datetime.datetime.now(datetime.UTC), "version": __version__}


@dataclass(frozen=True)
class Book:
    """One experiment of a store."""

    store: Store
    id: int
    name: str
    design: Design
    created_at: datetime.datetime
    created_by: str
    actor: str
    memory: Memory

    def signed(self, actor: str | None) -> dict[str, Any]:
        """The signature of a row."""
        return signature(self.actor if actor is None else check_text("actor", actor))

    def look(self) -> Known:
        """What is known now."""
        with self.memory.lock, self.store.reading() as connection:
            return self.memory.look(connection)


def open_book(store: Store, name: str, actor: str | None) -> Book:
    """Find an experiment by its name; old stores hold names that are not normalized, which are found as they are."""
    called = check_text("name", name)
    forms = {called, str(name), unicodedata.normalize("NFD", called)}
    with store.reading() as connection:
        found = {r.name: r for r in connection.execute(sa.select(experiments).where(experiments.c.name.in_(forms)))}
        row = found.get(called) or next(iter(found.values()), None)
        if row is None:
            query = sa.select(experiments.c.name).order_by(experiments.c.name).limit(6)
            names = [repr(r.name) for r in connection.execute(query)]
    if row is None:
        there = f"It holds {', '.join(names[:5])}{' and others' * (len(names) > 5)}." if names else "It holds none."
        raise NotFoundError(f"{store.where} holds no experiment called {called!r}. {there}")
    design = design_from_json(row.design)
    who = default_actor() if actor is None else check_text("actor", actor)
    return Book(store, row.id, row.name, design, row.at, row.actor, who, Memory(store, row.id, row.name, row.design))
