"""The experiments of a store: find one by name, list all."""

import json
import unicodedata
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import NotFoundError
from doublesampling.live.stores import upgrade
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.schema import experiments


def find_experiment(store: Store, given: str, name: str) -> Any:
    """Return the row of an experiment by its normalized name; raise NotFoundError that lists what there is.

    Old stores hold names that are not normalized, so the name as it was ``given`` is tried too.
    """
    forms = {name, given, unicodedata.normalize("NFD", name)}
    with store.reading() as connection:
        found = {r.name: r for r in connection.execute(sa.select(experiments).where(experiments.c.name.in_(forms)))}
        row = found.get(name) or next(iter(found.values()), None)
        if row is None:
            query = sa.select(experiments.c.name).order_by(experiments.c.name).limit(6)
            names = [repr(r.name) for r in connection.execute(query)]
    if row is None:
        there = f"It holds {', '.join(names[:5])}{' and others' * (len(names) > 5)}." if names else "It holds none."
        raise NotFoundError(f"{store.where} holds no experiment called {name!r}. {there}")
    return row


def is_stored(connection: Connection, name: str) -> bool:
    """Return whether an experiment has exactly this name."""
    return connection.execute(sa.select(experiments.c.id).where(experiments.c.name == name)).first() is not None


def experiment_by_id(connection: Connection, experiment: int) -> Any:
    """Return the row of an experiment, or None where it is not stored."""
    return connection.execute(sa.select(experiments).where(experiments.c.id == experiment)).one_or_none()


def list_experiments(store: Store) -> list[dict[str, Any]]:
    """Return the experiments of a store, oldest first: name, arms, created_at, created_by."""
    try:
        upgrade.check(store)
    except NotFoundError:
        return []
    with store.reading() as connection:
        rows = connection.execute(sa.select(experiments).order_by(experiments.c.id)).all()
    return [
        {
            "name": row.name,
            "arms": json.loads(row.design)["arms"],
            "created_at": row.at.isoformat(),
            "created_by": row.actor,
        }
        for row in rows
    ]
