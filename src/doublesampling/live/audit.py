"""The audit trail of an experiment: everything that was stored, in order, with who, when and why."""

import datetime
import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.errors import SettingError
from doublesampling.live.book import Book
from doublesampling.live.memory import StoredLog, standing
from doublesampling.live.schema import decisions, events, experiments, outcomes

if TYPE_CHECKING:
    import pandas as pd

_EVENT, _ASKED, _OUTCOME = 0, 1, 2  # the order of rows that one transaction wrote
Place = tuple[int, int, int]
"""Where an entry stands: its transaction, the kind of row, and the row's number."""


@dataclass(frozen=True)
class AuditEntry:
    """One entry of the audit trail."""

    cursor: str
    """Where the entry stands; hand it to ``after`` to go on behind it."""
    at: datetime.datetime
    actor: str
    kind: str
    """created, asked, told, imputed, amended, withdrawn, voided, pause, resume, drop_arm, add_arm, history (an import)
    or history_outcome (one outcome of an import)."""
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
    """What else was stored: the design, the request key, the size of an import."""
    version: str = ""
    """The version of the package that wrote it."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**self.__dict__, "at": self.at.isoformat()}


def read(book: Book, after: str | None = None, limit: int | None = None) -> tuple[list[AuditEntry], str | None]:
    """Return entries behind a cursor, and the cursor to go on from; None at the end.

    Walking page by page finds everything that was stored when the walk began.
    """
    place = (-1, -1, -1) if after is None else _place(after)
    most = None if limit is None else checks.integer("limit", limit, least=1, most=1_000_000)
    with book.store.reading() as connection:
        arms = standing(book.design, StoredLog(connection, book.id, book.design.belief).events(0))[0]
        sources = (_created(book, connection, place), _events(book, connection, place, most),
                   _asked(book, connection, place, most), _outcomes(book, connection, place, most))  # fmt: skip
        merged = heapq.merge(*sources, key=lambda pair: pair[0])
        found = [_entry(*pair, arms) for _, pair in zip(range(most), merged, strict=False)] if most else [
            _entry(*pair, arms) for pair in merged
        ]  # fmt: skip
    return found, found[-1].cursor if found and len(found) == most else None


def frame(book: Book, after: str | None = None, limit: int | None = None) -> "pd.DataFrame":
    """Return the entries as a table; ``detail`` is JSON text."""
    import pandas as pd

    entries = read(book, after, limit)[0]
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


def _place(cursor: str) -> Place:
    parts = cursor.split(".") if isinstance(cursor, str) else []
    if len(parts) != 3 or not all(part.isdecimal() and len(part) < 20 for part in parts):
        raise SettingError(f"after must be the cursor of an audit entry, got {checks.shown(cursor)}.")
    return int(parts[0]), int(parts[1]), int(parts[2])


def _entry(place: Place, known: dict[str, Any], arms: tuple[str, ...]) -> AuditEntry:
    arm = known.get("arm")
    name = known.pop("arm_name", None) if arm is None else arms[arm]
    return AuditEntry(cursor=".".join(map(str, place)), arm_name=name, **known)


def _behind(table: sa.Table, rank: int, column: Any, place: Place, limit: int | None) -> Any:
    """A selection of one table's rows behind a place, in order."""
    xid, last_rank, seq = place
    behind = table.c.xid > xid if rank < last_rank else table.c.xid >= xid
    chosen = sa.select(table).where(behind)
    if rank == last_rank:
        chosen = chosen.where(sa.not_((table.c.xid == xid) & (column <= seq)))
    return chosen.order_by(table.c.xid, column).limit(limit)


def _signed(row: Any) -> dict[str, Any]:
    return {"at": row.at, "actor": row.actor, "version": row.version}


def _created(book: Book, connection: Connection, place: Place) -> Iterator[tuple[Place, dict[str, Any]]]:
    first = (0, 0, 0)
    if place < first:
        row = connection.execute(sa.select(experiments).where(experiments.c.id == book.id)).one()
        yield first, {"kind": "created", "detail": json.loads(row.design)} | _signed(row)


def _events(
    book: Book, connection: Connection, place: Place, limit: int | None
) -> Iterator[tuple[Place, dict[str, Any]]]:
    query = _behind(events, _EVENT, events.c.seq, place, limit).where(events.c.experiment == book.id)
    for row in connection.execute(query):
        content = json.loads(row.content)
        known = {"kind": row.kind, "revision": row.revision, "reason": content.pop("reason", None)} | _signed(row)
        if "arm" in content:
            known["arm_name"] = content.pop("arm")
        detail = content | _keyed(row)
        yield (row.xid, _EVENT, row.seq), known | {"detail": detail or None}


def _keyed(row: Any) -> dict[str, Any]:
    if row.request_key is None:
        return {}
    return {"request_key": row.request_key} | ({"scope": row.key_scope} if row.key_scope else {})


def _asked(
    book: Book, connection: Connection, place: Place, limit: int | None
) -> Iterator[tuple[Place, dict[str, Any]]]:
    query = _behind(decisions, _ASKED, decisions.c.number, place, limit).where(decisions.c.experiment == book.id)
    for row in connection.execute(query):
        known = {"kind": "asked", "decision": row.id, "number": row.number, "unit": row.unit, "arm": row.arm}
        yield (row.xid, _ASKED, row.number), known | {"detail": _keyed(row) or None} | _signed(row)


def _outcomes(
    book: Book, connection: Connection, place: Place, limit: int | None
) -> Iterator[tuple[Place, dict[str, Any]]]:
    o = _behind(outcomes, _OUTCOME, outcomes.c.seq, place, limit).where(outcomes.c.experiment == book.id).subquery()
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
        yield (row.xid, _OUTCOME, row.seq), known | _signed(row)
