"""Pages of decisions with their latest outcome. Every function reads a bounded number of rows of any log."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import NotFoundError, SettingError
from doublesampling.live.design import check_text, normalized
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.queries.latest_outcome import is_pending, is_pending_row, join_latest_outcome
from doublesampling.live.queries.log import arm_names
from doublesampling.live.stores.schema import decisions

WINDOW = 5000
"""How many decisions one search for pending ones reads."""
_CHUNK = 500  # numbers in one query: databases limit the length of a list

Page = tuple[list[dict[str, Any]], int | None]
"""Decisions, and the number of the decision after which the next page starts; None at the end."""


def page(
    ref: ExperimentRef, *, after: int = 0, before: int | None = None, limit: int = 100, waiting: bool = False
) -> Page:
    """Return a page of decisions with their latest outcome, and where the next page starts.

    The order is ascending from ``after``, or descending from ``before`` where that is given. With ``waiting``, only
    decisions that wait for an outcome are returned; the search reads a bounded window, so a page may be empty although
    more pages follow.
    """
    size = WINDOW if waiting else limit
    chosen = sa.select(decisions).where(decisions.c.experiment == ref.id)
    if before is None:
        chosen = chosen.where(decisions.c.number > after).order_by(decisions.c.number)
    else:
        chosen = chosen.where(decisions.c.number < before).order_by(decisions.c.number.desc())
    d = chosen.limit(size).subquery("d")
    joined, latest = join_latest_outcome(d)
    query = sa.select(d, *_outcome_columns(latest)).select_from(joined)
    order = d.c.number if before is None else d.c.number.desc()
    with ref.store.reading() as connection:
        rows = connection.execute(query.order_by(order)).all()
        arms = arm_names(connection, ref)
    following = rows[-1].number if len(rows) == size else None
    if waiting:
        rows = [row for row in rows if is_pending_row(row)]
        if len(rows) > limit:
            rows, following = rows[:limit], rows[limit - 1].number
    return [_to_dict(row, arms) for row in rows], following


def pending(
    ref: ExperimentRef,
    *,
    after: int = 0,
    limit: int = 50,
    search: str | None = None,
    actors: Sequence[str] | None = None,
    windows: int = 20,
) -> Page:
    """Return decisions that wait for an outcome, oldest first, and where the next page starts.

    ``search`` matches a part of the unit's name and ignores case; ``actors`` restricts who asked. At most ``windows``
    windows of the log are read, so a page may be empty although more pages follow.
    """
    found: list[dict[str, Any]] = []
    part = None if search is None else normalized(search).casefold()
    with ref.store.reading() as connection:
        arms = arm_names(connection, ref)
        for _ in range(windows):
            end, size, query = _pending_window(ref, connection, after, actors)
            for row in connection.execute(query):
                if part is not None and part not in (row.unit or f"decision {row.number}").casefold():
                    continue
                found.append(_to_dict(row, arms))
                if len(found) == limit:
                    return found, row.number
            after = end
            if size < WINDOW:
                return found, None
    return found, after


def _pending_window(
    ref: ExperimentRef, connection: Connection, after: int, actors: Sequence[str] | None
) -> tuple[int, int, sa.Select[Any]]:
    """Return the last number and the size of a window of the log, and a query for its pending decisions."""
    chosen = sa.select(decisions).where(decisions.c.experiment == ref.id, decisions.c.number > after)
    d = chosen.order_by(decisions.c.number).limit(WINDOW).subquery("d")
    end, size = connection.execute(sa.select(sa.func.max(d.c.number), sa.func.count()).select_from(d)).one()
    joined, latest = join_latest_outcome(d)
    query = sa.select(d, *_outcome_columns(latest)).select_from(joined).where(is_pending(latest)).order_by(d.c.number)
    if actors is not None:
        query = query.where(d.c.actor.in_(actors))
    return int(end or after), int(size), query


def _outcome_columns(latest: Any) -> list[Any]:
    """Return the columns of the latest outcome that a page shows."""
    names = ("reward", "kind", "imputed", "revision", "reason")
    return [*(latest.c[name] for name in names), latest.c.at.label("told_at"), latest.c.actor.label("told_by")]


def _to_dict(row: Any, arms: tuple[str, ...]) -> dict[str, Any]:
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


def decision_of_unit(ref: ExperimentRef, unit: str) -> str:
    """Return the id of the latest decision of a unit, in an experiment that decides once per unit."""
    if ref.design.units != "once":
        raise SettingError(
            "This experiment may decide several times for a unit, so a unit's name does not identify a decision. "
            "Tell the outcome by the decision's id."
        )
    d = decisions.c
    query = sa.select(d.id).where(d.experiment == ref.id, d.unit_once == check_text("unit", unit))
    with ref.store.reading() as connection:
        found = connection.execute(query.order_by(d.unit_round.desc()).limit(1)).scalar()
    if found is None:
        raise NotFoundError(f"No decision was made for the unit {unit[:100]!r}. Check the spelling.")
    return str(found)


def newest_number(ref: ExperimentRef) -> int:
    """Return the number of the latest decision, 0 where there is none."""
    query = sa.select(sa.func.max(decisions.c.number)).where(decisions.c.experiment == ref.id)
    with ref.store.reading() as connection:
        return int(connection.execute(query).scalar() or 0)


def sample(ref: ExperimentRef, points: int) -> list[dict[str, Any]]:
    """Return at most ``points`` decisions, evenly spaced from the first to the latest."""
    last = newest_number(ref)
    if last == 0:
        return []
    numbers = np.unique(np.linspace(1, last, min(points, last)).round().astype(int)).tolist()
    columns = [decisions.c[name] for name in ("number", "at", "arm", "probability_optimal", "candidates")]
    found: list[dict[str, Any]] = []
    with ref.store.reading() as connection:
        for start in range(0, len(numbers), _CHUNK):
            some = numbers[start : start + _CHUNK]
            query = sa.select(*columns).where(decisions.c.experiment == ref.id, decisions.c.number.in_(some))
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


def recent_contexts(ref: ExperimentRef, most: int) -> list[Any]:
    """Return the contexts of the latest ``most`` decisions that have one."""
    query = sa.select(decisions.c.context).where(decisions.c.experiment == ref.id, decisions.c.context.is_not(None))
    with ref.store.reading() as connection:
        rows = connection.execute(query.order_by(decisions.c.number.desc()).limit(most)).all()
    return [json.loads(row.context) for row in rows]
