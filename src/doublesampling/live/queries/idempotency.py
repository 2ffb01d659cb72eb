"""Earlier decisions and events that answer a repeated request: by its key within a scope, or by its unit."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import ConflictError
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.requests import Request
from doublesampling.live.stores.schema import decisions, events, outcomes

BEFORE_SCOPES = -1
"""``key_part`` of decisions that were stored before schema 3, when item i of ask_many("k") had the key "k/i"."""
_CHUNK = 500  # keys in one query: databases limit the length of a list


@dataclass
class EarlierDecisions:
    """Stored decisions, by key and by unit."""

    keys: dict[tuple[str, str, int], Any] = field(default_factory=dict)
    """By (scope, request_key, part)."""
    units: dict[str, Any] = field(default_factory=dict)
    """The latest decision of each unit, in an experiment that decides once per unit."""
    voided: set[str] = field(default_factory=set)
    """Ids of the voided ones."""

    def add(self, row: Any) -> None:
        """Add a decision."""
        if row.request_key is not None:
            self.keys[row.key_scope, row.request_key, row.key_part] = row
        if row.unit_once is not None:
            last = self.units.get(row.unit_once)
            if last is None or row.unit_round > last.unit_round:
                self.units[row.unit_once] = row

    def by_key(self, request: Request) -> Any:
        """Return the decision that was made for the key of this request, or None."""
        if request.request_key is None:
            return None
        found = self.keys.get((request.scope, request.request_key, request.part))
        old = request.request_key if request.part == 0 else f"{request.request_key}/{request.part - 1}"
        return found if found is not None else self.keys.get((request.scope, old, BEFORE_SCOPES))

    def by_unit(self, unit: str) -> Any:
        """Return the latest decision of a unit, or None."""
        return self.units.get(unit)

    def next_round(self, unit: str | None) -> int:
        """Return the ``unit_round`` of a new decision: how many voided decisions the unit has."""
        last = None if unit is None else self.units.get(unit)
        return 0 if last is None else int(last.unit_round) + 1


def find_earlier(ref: ExperimentRef, connection: Connection, requests: Sequence[Request]) -> EarlierDecisions:
    """Return the stored decisions that may answer some of the requests."""
    found = EarlierDecisions()
    keyed = [r for r in requests if r.request_key is not None]
    wanted = {str(r.request_key): None for r in keyed} | {f"{r.request_key}/0": None for r in keyed if r.part > 0}
    most = max((r.part for r in keyed), default=0)
    for row in _read(ref, connection, decisions.c.request_key, wanted, decisions.c.key_part <= most):
        found.add(row)
    old = {  # a batch was written as a whole: where its first item is stored, all are
        f"{r.request_key}/{r.part - 1}": None
        for r in keyed
        if r.part > 1 and (r.scope, f"{r.request_key}/0", BEFORE_SCOPES) in found.keys
    }
    for row in _read(ref, connection, decisions.c.request_key, old, decisions.c.key_part == BEFORE_SCOPES):
        found.add(row)
    if ref.design.units == "once":
        units = {r.unit: None for r in requests if r.unit is not None}
        for row in _read(ref, connection, decisions.c.unit_once, units):
            found.add(row)
    ids = [row.id for row in (*found.keys.values(), *found.units.values())]
    for start in range(0, len(ids), _CHUNK):
        query = sa.select(outcomes.c.decision).where(
            outcomes.c.decision.in_(ids[start : start + _CHUNK]), outcomes.c.kind == "voided"
        )
        found.voided.update(connection.execute(query).scalars())
    return found


def _read(ref: ExperimentRef, connection: Connection, column: Any, values: Iterable[Any], *more: Any) -> list[Any]:
    """Return the experiment's decisions whose column holds one of the values."""
    every, rows = list(values), list[Any]()
    for start in range(0, len(every), _CHUNK):
        some = every[start : start + _CHUNK]
        query = sa.select(decisions).where(decisions.c.experiment == ref.id, column.in_(some), *more)
        rows += connection.execute(query).all()
    return rows


def find_earlier_event(ref: ExperimentRef, connection: Connection, kind: str, request_key: str, scope: str) -> Any:
    """Return the content of the event that was stored with this key, or None where there is none."""
    same = (events.c.experiment == ref.id, events.c.request_key == request_key, events.c.key_scope == scope)
    found = connection.execute(sa.select(events.c.kind, events.c.content).where(*same)).first()
    if found is None:
        return None
    if found.kind != kind:
        raise ConflictError(
            f"request_key {request_key!r} was used for {found.kind!r}. Use a new key for a new request."
        )
    return json.loads(found.content)
