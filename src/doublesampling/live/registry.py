"""The experiments of a store: made, listed, found by name."""

import json
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import NameTakenError, NotFoundError
from doublesampling.live import upgrade
from doublesampling.live.book import default_actor, signature
from doublesampling.live.design import Design, check_text
from doublesampling.live.schema import experiments
from doublesampling.live.store import Store


def create_experiment(store: Store, name: object, design: Design, actor: str | None) -> str:
    """Store a new experiment, and the tables where there are none; return its name."""
    called = check_text("name", name)
    who = default_actor() if actor is None else check_text("actor", actor)
    upgrade.ensure(store)

    def work(connection: Connection) -> None:
        store.incarnation(connection)
        taken = sa.select(experiments.c.id).where(experiments.c.name == called)
        if connection.execute(taken).first() is not None:
            raise NameTakenError(
                f"An experiment called {called!r} exists in {store.where}. Load it, or choose another name."
            )
        row = {"name": called, "design": design.to_json()} | signature(who)
        made = connection.execute(sa.insert(experiments).values(row).returning(experiments.c.id)).scalar_one()
        store.prepare(connection, made)

    store.attempt(work)
    return called


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
