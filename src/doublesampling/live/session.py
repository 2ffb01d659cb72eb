"""A session: an experiment that this process has open, with its design, default actor and cached state."""

import datetime
from dataclasses import dataclass
from typing import Any

from doublesampling.live.design import check_text, design_from_json
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.queries.experiments import find_experiment
from doublesampling.live.state import ExperimentState
from doublesampling.live.state_cache import StateCache
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.provenance import default_actor, provenance


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

    def read_state(self) -> ExperimentState:
        """Return the current state of the experiment."""
        with self.cache.lock, self.store.reading() as connection:
            return self.cache.read(connection)


def open_session(store: Store, name: str, actor: str | None) -> Session:
    """Return a session of the experiment with this name."""
    row = find_experiment(store, str(name), check_text("name", name))
    who = default_actor() if actor is None else check_text("actor", actor)
    cache = StateCache(store, row.id, row.name, row.design)
    return Session(store, row.id, row.name, design_from_json(row.design), row.at, row.actor, who, cache)
