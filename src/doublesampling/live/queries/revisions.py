"""Decisions with every revision of their outcome, for writing the next revision."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import NotFoundError, OtherExperimentError, VoidedError
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.stores.schema import decisions, experiments, outcomes
from doublesampling.live.visibility import Snapshot

_CHUNK = 500  # ids in one query: databases limit the length of a list


def check_id(decision: object) -> str:
    """Return the id of a decision as ``ask`` returned it."""
    if not isinstance(decision, str) or not decision:
        raise NotFoundError(
            f"decision must be the id that ask returned, a non-empty text, got {checks.shown(decision)}."
        )
    return decision


class DecisionRevisions:
    """Some decisions and the revisions of their outcomes, in order, as one transaction sees them."""

    def __init__(self, ref: ExperimentRef, connection: Connection, ids: Sequence[str]) -> None:
        ref.store.incarnation(connection)  # refuses another store
        self._ref, self._connection = ref, connection
        self._asked: dict[str, Any] = {}
        self._revisions: dict[str, list[Any]] = {}
        for start in range(0, len(ids), _CHUNK):
            some = list(ids[start : start + _CHUNK])
            columns = (decisions.c.id, decisions.c.experiment, decisions.c.arm, decisions.c.context)
            for row in connection.execute(sa.select(*columns).where(decisions.c.id.in_(some))):
                self._asked[row.id] = row
            query = sa.select(outcomes).where(outcomes.c.decision.in_(some)).order_by(outcomes.c.revision)
            for found in connection.execute(query).mappings():
                self._revisions.setdefault(found["decision"], []).append(dict(found))

    def find(self, decision: str) -> tuple[Any, list[Any]]:
        """Return a decision of this experiment and its revisions."""
        if decision not in self._asked:
            raise NotFoundError(
                f"No decision has the id {checks.shown(decision)}. Use the id that ask returned, not the unit; pending "
                "lists them."
            )
        if self._asked[decision].experiment != self._ref.id:
            query = sa.select(experiments.c.name).where(experiments.c.id == self._asked[decision].experiment)
            other = self._connection.execute(query).scalar()
            raise OtherExperimentError(
                f"Decision {decision!r} belongs to experiment {other!r}, not to {self._ref.name!r}. Load that one."
            )
        return self._asked[decision], self._revisions.setdefault(decision, [])

    def find_open(self, decision: str) -> tuple[Any, list[Any]]:
        """Return the same for a decision that was not voided; raise VoidedError otherwise."""
        asked, earlier = self.find(decision)
        if earlier and earlier[-1]["kind"] == "voided":
            raise VoidedError(
                f"Decision {decision!r} was voided ({earlier[-1]['reason']}), so it has no outcome. Nothing was stored."
            )
        return asked, earlier


def count_retracted_since(connection: Connection, experiment: int, seen: Snapshot) -> int:
    """Return how many outcomes counted in an earlier snapshot and were withdrawn or voided since."""
    o = outcomes.c
    retracted = sa.select(o.decision).where(o.experiment == experiment, o.kind.in_(("withdrawn", "voided")))
    query = sa.select(o.decision, o.xid, o.reward).where(o.decision.in_(retracted)).order_by(o.decision, o.revision)
    then: dict[str, Any] = {}
    now: dict[str, Any] = {}
    for row in connection.execute(query):
        now[row.decision] = row.reward
        if seen.sees(row.xid):
            then[row.decision] = row.reward
    return sum(reward is not None and now[decision] is None for decision, reward in then.items())
