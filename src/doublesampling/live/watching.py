"""What a dashboard asks of a running experiment: each answer reads a bounded number of rows of any log."""

import datetime
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import NotFoundError, SettingError
from doublesampling.live.book import Book
from doublesampling.live.deciding import decide_at
from doublesampling.live.design import check_text, normalized
from doublesampling.live.memory import Known, StoredLog, standing
from doublesampling.live.schema import decisions, events, outcomes

_WINDOW = 5000  # decisions that one search for waiting ones looks at
_CHUNK = 500


def page(
    book: Book, *, after: int = 0, before: int | None = None, limit: int = 100, waiting: bool = False
) -> tuple[list[dict[str, Any]], int | None]:
    """Decisions with their latest outcome, and the number to go on from; None at the end.

    Upwards from ``after``, or, where ``before`` is given, downwards from there. A search for those that wait looks at
    a bounded stretch, so a page may be empty and still be followed by others.
    """
    stretch = _WINDOW if waiting else limit
    chosen = sa.select(decisions).where(decisions.c.experiment == book.id)
    if before is None:
        chosen = chosen.where(decisions.c.number > after).order_by(decisions.c.number)
    else:
        chosen = chosen.where(decisions.c.number < before).order_by(decisions.c.number.desc())
    d, o = chosen.limit(stretch).subquery("d"), outcomes.alias("o")
    newest = sa.select(sa.func.max(outcomes.c.revision)).where(outcomes.c.decision == d.c.id).scalar_subquery()
    joined = d.outerjoin(o, (o.c.decision == d.c.id) & (o.c.revision == newest))
    query = sa.select(d, *_latest(o)).select_from(joined)
    order = d.c.number if before is None else d.c.number.desc()
    with book.store.reading() as connection:
        rows = connection.execute(query.order_by(order)).all()
        arms = standing(book.design, StoredLog(connection, book.id, book.design.belief).events(0))[0]
    following = rows[-1].number if len(rows) == stretch else None
    if waiting:
        rows = [row for row in rows if row.revision is None or row.imputed or row.kind == "withdrawn"]
        if len(rows) > limit:
            rows, following = rows[:limit], rows[limit - 1].number
    return [_plain(row, arms) for row in rows], following


def waiting(
    book: Book,
    *,
    after: int = 0,
    limit: int = 50,
    search: str | None = None,
    actors: Sequence[str] | None = None,
    windows: int = 20,
) -> tuple[list[dict[str, Any]], int | None]:
    """Decisions without an outcome, the oldest first, and the number to go on from; None at the end.

    ``search`` is a part of the unit's name in any case, ``actors`` who asked. At most so many windows of the log are
    looked at, so a page may be empty and still be followed by others.
    """
    found: list[dict[str, Any]] = []
    part = None if search is None else normalized(search).casefold()
    with book.store.reading() as connection:
        arms = standing(book.design, StoredLog(connection, book.id, book.design.belief).events(0))[0]
        for _ in range(windows):
            end, size, query = _waiting_window(book, connection, after, actors)
            for row in connection.execute(query):
                if part is not None and part not in (row.unit or f"decision {row.number}").casefold():
                    continue
                found.append(_plain(row, arms))
                if len(found) == limit:
                    return found, row.number
            after = end
            if size < _WINDOW:
                return found, None
    return found, after


def _waiting_window(
    book: Book, connection: Connection, after: int, actors: Sequence[str] | None
) -> tuple[int, int, sa.Select[Any]]:
    """The last number and the size of a window of the log, and a query for those in it that wait."""
    chosen = sa.select(decisions).where(decisions.c.experiment == book.id, decisions.c.number > after)
    d, o = chosen.order_by(decisions.c.number).limit(_WINDOW).subquery("d"), outcomes.alias("o")
    end, size = connection.execute(sa.select(sa.func.max(d.c.number), sa.func.count()).select_from(d)).one()
    newest = sa.select(sa.func.max(outcomes.c.revision)).where(outcomes.c.decision == d.c.id).scalar_subquery()
    query = (
        sa.select(d, *_latest(o))
        .select_from(d.outerjoin(o, (o.c.decision == d.c.id) & (o.c.revision == newest)))
        .where(o.c.revision.is_(None) | o.c.imputed | (o.c.kind == "withdrawn"))
        .order_by(d.c.number)
    )
    if actors is not None:
        query = query.where(d.c.actor.in_(actors))
    return int(end or after), int(size), query


def _latest(o: Any) -> list[Any]:
    """What a row of the log shows of the latest outcome."""
    names = ("reward", "kind", "imputed", "revision", "reason")
    return [*(o.c[name] for name in names), o.c.at.label("told_at"), o.c.actor.label("told_by")]


def decision_of_unit(book: Book, unit: str) -> str:
    """The id of the decision of a unit that is asked once."""
    if book.design.units != "once":
        raise SettingError("Here a unit may be asked many times, so its name names no decision. Tell by the id.")
    d = decisions.c
    query = sa.select(d.id).where(d.experiment == book.id, d.unit_once == check_text("unit", unit))
    with book.store.reading() as connection:
        found = connection.execute(query.order_by(d.unit_round.desc()).limit(1)).scalar()
    if found is None:
        raise NotFoundError(f"No decision was made for the unit {unit[:100]!r}. Check how it is written.")
    return str(found)


def _plain(row: Any, arms: tuple[str, ...]) -> dict[str, Any]:
    propensities, probabilities = json.loads(row.propensities), json.loads(row.probability_optimal)
    return {
        "id": row.id,
        "number": row.number,
        "unit": row.unit,
        "context": None if row.context is None else json.loads(row.context),
        "asked_at": row.at,
        "arm": row.arm,
        "arm_name": arms[row.arm],
        "propensity": propensities[row.arm],
        "probability": probabilities[row.arm],
        "candidates": row.candidates,
        "observations": row.observations,
        "status": row.kind or "waiting",
        "reward": row.reward,
        "imputed": bool(row.imputed),
        "revisions": row.revision or 0,
        "reason": row.reason,
        "told_at": row.told_at,
        "actor": row.actor,
        "told_by": row.told_by,
    }


def newest_number(book: Book) -> int:
    """The number of the latest decision, 0 where there is none."""
    query = sa.select(sa.func.max(decisions.c.number)).where(decisions.c.experiment == book.id)
    with book.store.reading() as connection:
        return int(connection.execute(query).scalar() or 0)


def sample(book: Book, points: int) -> list[dict[str, Any]]:
    """Some decisions, evenly spread from the first to the latest; all of them where there are no more than that."""
    last = newest_number(book)
    if last == 0:
        return []
    numbers = np.unique(np.linspace(1, last, min(points, last)).round().astype(int)).tolist()
    columns = [decisions.c[name] for name in ("number", "at", "arm", "probability_optimal", "candidates")]
    found: list[dict[str, Any]] = []
    with book.store.reading() as connection:
        for start in range(0, len(numbers), _CHUNK):
            some = numbers[start : start + _CHUNK]
            query = sa.select(*columns).where(decisions.c.experiment == book.id, decisions.c.number.in_(some))
            found += [
                {
                    "number": row.number,
                    "asked_at": row.at,
                    "arm": row.arm,
                    "probability_optimal": json.loads(row.probability_optimal),
                    "candidates": row.candidates,
                }
                for row in connection.execute(query.order_by(decisions.c.number))
            ]
    return found


def delays(book: Book, now: datetime.datetime) -> dict[str, Any]:
    """How long outcomes took, and how long others have been waited for, over the latest decisions."""
    chosen = sa.select(decisions.c.id, decisions.c.at).where(decisions.c.experiment == book.id)
    d = chosen.order_by(decisions.c.number.desc()).limit(_WINDOW).subquery("d")
    first, last = outcomes.alias("first"), outcomes.alias("last")
    newest = sa.select(sa.func.max(outcomes.c.revision)).where(outcomes.c.decision == d.c.id).scalar_subquery()
    query = sa.select(d.c.at, first.c.at.label("told_at"), last.c.kind).select_from(
        d.outerjoin(first, (first.c.decision == d.c.id) & (first.c.revision == 1)).outerjoin(
            last, (last.c.decision == d.c.id) & (last.c.revision == newest)
        )
    )
    with book.store.reading() as connection:
        rows = [row for row in connection.execute(query) if row.kind != "voided"]
    waits = (None, "withdrawn")
    took = [(row.told_at - row.at).total_seconds() for row in rows if row.kind not in waits]
    ages = [(now - row.at).total_seconds() for row in rows if row.kind in waits]
    return {
        "looked_at": len(rows),
        "waiting": len(ages),
        "delay_median": _quantile(took, 0.5),
        "delay_p90": _quantile(took, 0.9),
        "age_median": _quantile(ages, 0.5),
        "age_most": _quantile(ages, 1.0),
    }


def _quantile(values: Sequence[float], share: float) -> float | None:
    return float(np.quantile(values, share)) if values else None


def history_count(book: Book) -> int:
    """How many outcomes from before the experiment were added."""
    query = sa.select(events.c.content).where(events.c.experiment == book.id, events.c.kind == "history")
    with book.store.reading() as connection:
        return sum(int(json.loads(row.content)["count"]) for row in connection.execute(query))


def recent_contexts(book: Book, most: int) -> list[list[float]]:
    """The contexts of the latest decisions."""
    query = sa.select(decisions.c.context).where(decisions.c.experiment == book.id, decisions.c.context.is_not(None))
    with book.store.reading() as connection:
        rows = connection.execute(query.order_by(decisions.c.number.desc()).limit(most)).all()
    return [json.loads(row.context) for row in rows]


def happenings(book: Book, changes: Sequence[Any], most: int = 200) -> list[dict[str, Any]]:
    """Events and corrections in the order of time, each with the number of the latest decision before it."""
    found = []
    with book.store.reading() as connection:
        query = sa.select(events).where(events.c.experiment == book.id).order_by(events.c.revision.desc()).limit(most)
        for row in connection.execute(query):
            content = json.loads(row.content)
            parts = (
                content.get("arm"),
                f"{content['count']} outcomes" if "count" in content else None,
                content.get("reason"),
            )
            found.append((row.xid, row.kind, row.at, ": ".join(str(part) for part in parts if part), row.actor))
        for change in changes:
            found.append((change.xid, change.kind, change.at, change.reason or "", change.actor))
        found = sorted(found, key=lambda each: each[0])[-most:]
        numbers = _numbers_before(book, connection, [each[0] for each in found])
    return [
        {"kind": kind, "number": numbers[xid], "at": at, "text": f"{text} ({actor})" if text else actor}
        for xid, kind, at, text, actor in found
    ]


def _numbers_before(book: Book, connection: Connection, xids: Sequence[int]) -> dict[int, int]:
    """The number of the latest decision before each transaction, 0 where there is none."""
    numbers = {}
    for xid in sorted(set(xids)):
        query = sa.select(decisions.c.number).where(decisions.c.experiment == book.id, decisions.c.xid < xid)
        numbers[xid] = int(connection.execute(query.order_by(decisions.c.xid.desc()).limit(1)).scalar() or 0)
    return numbers


def last_activity(book: Book) -> datetime.datetime | None:
    """When the latest decision, outcome or event was written; None where there is none."""
    queries = [
        sa.select(table.c.at).where(table.c.experiment == book.id).order_by(table.c.xid.desc()).limit(1)
        for table in (decisions, outcomes, events)
    ]
    with book.store.reading() as connection:
        found = [connection.execute(query).scalar() for query in queries]
    return max((at for at in found if at is not None), default=None)


def next_allocation(book: Book, known: Known, context: Any) -> tuple[list[float | None], int]:
    """With which probability each arm would come next, and how many candidates would be drawn. Nothing is decided."""
    time = known.decisions + 1
    made = decide_at(
        book.design.policy, known.belief, known.state, known.active, context,
        seed=book.design.seed, number=time, time=time,
    )  # fmt: skip
    return [None if np.isnan(p) else float(p) for p in made.propensities], made.candidates
