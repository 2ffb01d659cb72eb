"""The audit trail of an experiment: every stored row in order, with actor, time and reason."""

import datetime
import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.queries.log import arm_names
from doublesampling.live.stores.schema import decisions, events, experiments, outcomes

if TYPE_CHECKING:
    import pandas as pd

_EVENT, _ASKED, _OUTCOME = 0, 1, 2  # the order of rows that one transaction wrote
Position = tuple[int, int, int]
"""The position of an entry: its transaction, the rank of its table, and the row's number."""


@dataclass(frozen=True)
class AuditEntry:
    """One entry of the audit trail."""

    cursor: str
    """The position of the entry; pass it as ``after`` to get the entries that follow."""
    at: datetime.datetime
    actor: str
    kind: str
    """created, asked, told, imputed, amended, withdrawn, voided, pause, resume, drop_arm, add_arm, look, history (an
    import) or history_outcome (one outcome of an import)."""
    decision: str | None = None
    number: int | None = None
    unit: str | None = None
    arm: int | None = None
    arm_name: str | None = None
    revision: int | None = None
    """Counts the outcomes of one decision, and the events of the experiment, each from 1."""
    reward: float | None = None
    previous: float | None = None
    """The reward that this entry supersedes."""
    imputed: bool = False
    reason: str | None = None
    detail: dict[str, Any] | None = None
    """Other stored content: the design, the request key, the size of an import."""
    version: str = ""
    """The version of the package that wrote it."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**self.__dict__, "at": self.at.isoformat()}


def read(ref: ExperimentRef, after: str | None = None, limit: int | None = None) -> tuple[list[AuditEntry], str | None]:
    """Return the entries after a cursor, and the cursor of the next page; None at the end.

    Reading page by page returns everything that was stored when the first page was read.
    """
    position = (-1, -1, -1) if after is None else _parse_cursor(after)
    most = None if limit is None else checks.integer("limit", limit, least=1, most=1_000_000)
    with ref.store.reading() as connection:
        arms = arm_names(connection, ref)
        sources = (_created(ref, connection, position), _events(ref, connection, position, most),
                   _asked(ref, connection, position, most), _outcomes(ref, connection, position, most))  # fmt: skip
        merged = heapq.merge(*sources, key=lambda pair: pair[0])
        found = [_entry(*pair, arms) for _, pair in zip(range(most), merged, strict=False)] if most else [
            _entry(*pair, arms) for pair in merged
        ]  # fmt: skip
    return found, found[-1].cursor if found and len(found) == most else None


def to_frame(ref: ExperimentRef, after: str | None = None, limit: int | None = None) -> "pd.DataFrame":
    """Return the entries after a cursor as a table; ``detail`` is JSON text."""
    return entries_to_frame(read(ref, after, limit)[0])


def entries_to_frame(entries: Sequence[AuditEntry]) -> "pd.DataFrame":
    """Return entries as a table with fixed columns and types."""
    import pandas as pd

    table = pd.DataFrame([entry.__dict__ for entry in entries], columns=[part.name for part in fields(AuditEntry)])
    table["at"] = pd.Series([entry.at for entry in entries], dtype="datetime64[ns, UTC]")
    table["detail"] = pd.Series(
        [None if e.detail is None else json.dumps(e.detail, ensure_ascii=False) for e in entries], dtype=object
    )
    for name in ("number", "arm", "revision"):
        table[name] = table[name].astype("Int64")
    for name in ("reward", "previous"):
        table[name] = table[name].astype("float64")
    return table


def _parse_cursor(cursor: str) -> Position:
    parts = cursor.split(".") if isinstance(cursor, str) else []
    if len(parts) != 3 or not all(part.isdecimal() and len(part) < 20 for part in parts):
        raise SettingError(f"after must be the cursor of an audit entry, got {checks.shown(cursor)}.")
    return int(parts[0]), int(parts[1]), int(parts[2])


def _entry(position: Position, known: dict[str, Any], arms: tuple[str, ...]) -> AuditEntry:
    arm = known.get("arm")
    name = known.pop("arm_name", None) if arm is None else arms[arm]
    return AuditEntry(cursor=".".join(map(str, position)), arm_name=name, **known)


def _after(table: sa.Table, rank: int, column: Any, position: Position, limit: int | None) -> Any:
    """Return a query for the rows of one table after a position, in order."""
    xid, last_rank, seq = position
    later = table.c.xid > xid if rank < last_rank else table.c.xid >= xid
    chosen = sa.select(table).where(later)
    if rank == last_rank:
        chosen = chosen.where(sa.not_((table.c.xid == xid) & (column <= seq)))
    return chosen.order_by(table.c.xid, column).limit(limit)


def _provenance(row: Any) -> dict[str, Any]:
    return {"at": row.at, "actor": row.actor, "version": row.version}


def _created(
    ref: ExperimentRef, connection: Connection, position: Position
) -> Iterator[tuple[Position, dict[str, Any]]]:
    first = (0, 0, 0)
    if position < first:
        row = connection.execute(sa.select(experiments).where(experiments.c.id == ref.id)).one()
        yield first, {"kind": "created", "detail": json.loads(row.design)} | _provenance(row)


def _events(
    ref: ExperimentRef, connection: Connection, position: Position, limit: int | None
) -> Iterator[tuple[Position, dict[str, Any]]]:
    query = _after(events, _EVENT, events.c.seq, position, limit).where(events.c.experiment == ref.id)
    for row in connection.execute(query):
        content = json.loads(row.content)
        known = {"kind": row.kind, "revision": row.revision, "reason": content.pop("reason", None)} | _provenance(row)
        if "arm" in content:
            known["arm_name"] = content.pop("arm")
        detail = content | _request_key(row)
        yield (row.xid, _EVENT, row.seq), known | {"detail": detail or None}


def _request_key(row: Any) -> dict[str, Any]:
    if row.request_key is None:
        return {}
    return {"request_key": row.request_key} | ({"scope": row.key_scope} if row.key_scope else {})


def _asked(
    ref: ExperimentRef, connection: Connection, position: Position, limit: int | None
) -> Iterator[tuple[Position, dict[str, Any]]]:
    query = _after(decisions, _ASKED, decisions.c.number, position, limit).where(decisions.c.experiment == ref.id)
    for row in connection.execute(query):
        known = {"kind": "asked", "decision": row.id, "number": row.number, "unit": row.unit, "arm": row.arm}
        yield (row.xid, _ASKED, row.number), known | {"detail": _request_key(row) or None} | _provenance(row)


def _outcomes(
    ref: ExperimentRef, connection: Connection, position: Position, limit: int | None
) -> Iterator[tuple[Position, dict[str, Any]]]:
    o = _after(outcomes, _OUTCOME, outcomes.c.seq, position, limit).where(outcomes.c.experiment == ref.id).subquery()
    d = decisions
    joined = o.outerjoin(d, d.c.id == o.c.decision)
    query = sa.select(o, d.c.number, d.c.unit).select_from(joined).order_by(o.c.xid, o.c.seq)
    for row in connection.execute(query):
        known = {
            "kind": "history_outcome" if row.kind == "history" else row.kind,
            "decision": row.decision,
            "number": row.number,
            "unit": row.unit,
            "arm": row.arm,
            "revision": None if row.decision is None else row.revision,
            "reward": row.reward,
            "previous": row.previous,
            "imputed": row.imputed,
            "reason": row.reason,
        }
        yield (row.xid, _OUTCOME, row.seq), known | _provenance(row)
