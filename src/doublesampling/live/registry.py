"""Create an experiment in a store."""

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import NameTakenError
from doublesampling.live.design import Design, check_text
from doublesampling.live.queries.experiments import is_stored
from doublesampling.live.stores import upgrade
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.provenance import default_actor, provenance
from doublesampling.live.stores.schema import experiments


def create_experiment(store: Store, name: object, design: Design, actor: str | None) -> str:
    """Store a new experiment, create the tables where there are none, and return the experiment's name."""
    called = check_text("name", name)
    who = default_actor() if actor is None else check_text("actor", actor)
    upgrade.ensure(store)

    def work(connection: Connection) -> None:
        store.incarnation(connection)  # refuses another store
        if is_stored(connection, called):
            raise NameTakenError(
                f"An experiment called {called!r} exists in {store.where}. Load it, or choose another name."
            )
        row = {"name": called, "design": design.to_json()} | provenance(who)
        made = connection.execute(sa.insert(experiments).values(row).returning(experiments.c.id)).scalar_one()
        store.prepare(connection, made)

    store.attempt(work)
    return called
