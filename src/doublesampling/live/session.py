"""Sessions: create an experiment in a store, or open one with its design, default actor and cached state."""

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import NameTakenError
from doublesampling.live.design import Design, check_text, design_from_json
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.own_classes import check_allowed
from doublesampling.live.queries.experiments import find_experiment, is_stored
from doublesampling.live.state import ExperimentState
from doublesampling.live.state_cache import StateCache
from doublesampling.live.stores import upgrade
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.provenance import default_actor, provenance
from doublesampling.live.stores.schema import events, experiments


@dataclass(frozen=True)
class Session(ExperimentRef):
    """One open experiment. ``Experiment.session`` hands it to the rest of the package."""

    created_at: datetime.datetime
    created_by: str
    actor: str
    cache: StateCache

    def provenance(self, actor: str | None) -> dict[str, Any]:
        """Return the actor, time and version columns of a row; the session's own actor where None is given."""
        return provenance(self.actor if actor is None else check_text("actor", actor))

    def write_event(
        self,
        connection: Connection,
        current: ExperimentState,
        kind: str,
        content: dict[str, Any],
        keyed: tuple[str | None, str] = (None, ""),
        actor: str | None = None,
    ) -> int:
        """Append an event and return the number of the transaction; ``keyed`` are a request key and its scope.

        Events are numbered, so that two concurrent ones cannot both be written from the same state.
        """
        xid = self.store.draw_xid(connection, self.id)
        event = {
            "experiment": self.id,
            "revision": current.events + 1,
            "kind": kind,
            "content": json.dumps(content, ensure_ascii=False, allow_nan=False),
            "request_key": keyed[0],
            "key_scope": keyed[1],
            "xid": xid,
        }
        connection.execute(sa.insert(events).values(event | self.provenance(actor)))
        return xid

    def read_state(self) -> ExperimentState:
        """Return the current state of the experiment."""
        with self.cache.lock, self.store.reading() as connection:
            return self.cache.read(connection)


def open_session(store: Store, name: str, actor: str | None, allow_import: Sequence[str] | None = None) -> Session:
    """Return a session of the experiment with this name; see own_classes.py for ``allow_import``."""
    allowed = check_allowed(allow_import)
    row = find_experiment(store, str(name), check_text("name", name))
    who = default_actor() if actor is None else check_text("actor", actor)
    design = design_from_json(row.design, allowed)
    cache = StateCache(store, row.id, row.name, row.design, design)
    return Session(store, row.id, row.name, design, row.at, row.actor, who, cache)


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

    store.run_transaction(work)
    return called
