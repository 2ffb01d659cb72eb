"""Tables of an experiment: decisions with their outcomes, the posterior, a summary, files."""

import json
import math
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pandas as pd
import sqlalchemy as sa

from doublesampling import checks
from doublesampling.errors import missing_extra
from doublesampling.live.book import Book
from doublesampling.live.memory import Known, StoredLog, standing
from doublesampling.live.records import unpack
from doublesampling.live.schema import decisions, outcomes

FORMATS = ("parquet", "csv", "jsonl")


def table(book: Book, *, after: int = 0, limit: int | None = None, waiting: bool = False) -> pd.DataFrame:
    """One row per decision, with its latest outcome."""
    d, o = decisions.c, outcomes.alias("latest")
    newest = sa.select(sa.func.max(outcomes.c.revision)).where(outcomes.c.decision == d.id).correlate(decisions)
    joined = decisions.outerjoin(o, (o.c.decision == d.id) & (o.c.revision == newest.scalar_subquery()))
    query = (
        sa.select(decisions, o.c.reward, o.c.kind, o.c.imputed, o.c.reason, o.c.at.label("told_at"), o.c.revision)
        .select_from(joined)
        .where(d.experiment == book.id, d.number > checks.integer("after", after, least=0, most=2**62))
        .order_by(d.number)
    )
    if waiting:
        query = query.where((o.c.revision.is_(None)) | o.c.imputed | (o.c.kind == "withdrawn"))
    if limit is not None:
        query = query.limit(checks.integer("limit", limit, least=0))
    with book.store.reading() as connection:
        rows = connection.execute(query).all()
        arms = standing(book.design, StoredLog(connection, book.id, book.design.belief).events(0))[0]
    return _frame(rows, arms)


def _frame(rows: Any, arms: tuple[str, ...]) -> pd.DataFrame:
    played = np.array([row.arm for row in rows], dtype=np.int64)
    propensities, probabilities = ([unpack(getattr(r, n)) for r in rows] for n in _PER_ARM)
    columns = {
        "id": [row.id for row in rows],
        "number": np.array([row.number for row in rows], dtype=np.int64),
        "unit": pd.Series([row.unit for row in rows], dtype=object),
        "request_key": pd.Series([row.request_key for row in rows], dtype=object),
        "time": np.array([row.time for row in rows], dtype=np.int64),
        "asked_at": pd.Series([row.at for row in rows], dtype="datetime64[ns, UTC]"),
        "context": pd.Series([row.context for row in rows], dtype=object),
        "arm": played,
        "arm_name": [arms[arm] for arm in played],
        "propensity": np.array([p[a] for p, a in zip(propensities, played, strict=True)], dtype=np.float64),
        "probability": np.array([p[a] for p, a in zip(probabilities, played, strict=True)], dtype=np.float64),
        "propensities": [row.propensities for row in rows],
        "probability_optimal": [row.probability_optimal for row in rows],
        "candidates": np.array([row.candidates for row in rows], dtype=np.int64),
        "observations": np.array([row.observations for row in rows], dtype=np.int64),
        "reward": np.array([math.nan if row.reward is None else row.reward for row in rows], dtype=np.float64),
        "status": [row.kind or "waiting" for row in rows],
        "imputed": np.array([bool(row.imputed) for row in rows], dtype=bool),
        "revisions": np.array([row.revision or 0 for row in rows], dtype=np.int64),
        "reason": pd.Series([row.reason for row in rows], dtype=object),
        "told_at": pd.Series([row.told_at for row in rows], dtype="datetime64[ns, UTC]"),
        "digest": [row.digest for row in rows],
        "actor": [row.actor for row in rows],
        "version": [row.version for row in rows],
    }
    return pd.DataFrame(columns)


_PER_ARM = ("propensities", "probability_optimal")


def posterior(known: Known, context: Any) -> pd.DataFrame:
    """What is believed of each arm's expected reward, one row per arm."""
    laws = known.belief.marginals(known.state, context)
    active = list(known.active)
    best = np.zeros(len(known.arms))
    best[active] = (laws if len(active) == len(known.arms) else laws.only(active)).probability_optimal
    low, high = laws.quantile([0.025, 0.975])
    columns = {
        "mean": laws.mean,
        "sd": laws.sd,
        "low": low,
        "high": high,
        "probability_optimal": best,
        "observations": known.state.counts,
        "active": [i in known.active for i in range(len(known.arms))],
    }
    return pd.DataFrame(columns, index=pd.Index(known.arms, name="arm"))


class _Latest(NamedTuple):
    """How many decisions of an arm have a latest revision of one kind, and what these add up to."""

    arm: int
    kind: str
    imputed: bool
    size: int
    reward: float


def summary(book: Book) -> dict[str, Any]:
    """Return how the experiment stands, in plain values. ``decisions`` does not count those that were voided."""
    d, o = decisions.c, outcomes.c
    latest = sa.select(o.decision, sa.func.max(o.revision).label("revision")).where(o.experiment == book.id)
    last = latest.group_by(o.decision).subquery()
    told = (
        sa.select(o.arm, o.kind, o.imputed, sa.func.count(), sa.func.coalesce(sa.func.sum(o.reward), 0.0))
        .select_from(outcomes.join(last, (o.decision == last.c.decision) & (o.revision == last.c.revision)))
        .group_by(o.arm, o.kind, o.imputed)
    )
    history = sa.select(o.arm, sa.func.count()).where(o.experiment == book.id, o.decision.is_(None)).group_by(o.arm)
    per_arm = sa.select(d.arm, sa.func.count()).where(d.experiment == book.id).group_by(d.arm)
    with book.memory.lock, book.store.reading() as connection:
        known = book.memory.look(connection)
        asked = {arm: int(count) for arm, count in connection.execute(per_arm)}
        past = {arm: int(count) for arm, count in connection.execute(history)}
        latest_ones = [_Latest(*row) for row in connection.execute(told)]
    ends = [row for row in latest_ones if row.kind not in ("withdrawn", "voided")]
    voided = {row.arm: row.size for row in latest_ones if row.kind == "voided"}
    outcomes_told = sum(row.size for row in ends)
    return {
        "name": book.name,
        "status": "paused" if known.paused else "running",
        "created_at": book.created_at.isoformat(),
        "created_by": book.created_by,
        "belief": repr(book.design.belief),
        "policy": repr(book.design.policy),
        "seed": book.design.seed,
        "units": book.design.units,
        "decisions": known.decisions,
        "outcomes": outcomes_told,
        "waiting": known.decisions - outcomes_told,
        "imputed": sum(row.size for row in ends if row.imputed),
        "amended": sum(row.size for row in ends if row.kind == "amended"),
        "withdrawn": sum(row.size for row in latest_ones if row.kind == "withdrawn"),
        "voided": sum(voided.values()),
        "history": sum(past.values()),
        "arms": [
            {
                "arm": i,
                "name": name,
                "active": i in known.active,
                "decisions": asked.get(i, 0) - voided.get(i, 0),
                "outcomes": sum(row.size for row in ends if row.arm == i),
                "total_reward": float(sum(row.reward for row in ends if row.arm == i)),
                "voided": voided.get(i, 0),
                "history": past.get(i, 0),
            }
            for i, name in enumerate(known.arms)
        ],
    }


_JSON = (*_PER_ARM, "context", "detail")  # columns of JSON text
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _write(frame: pd.DataFrame, form: str, target: Path | IO[bytes]) -> None:
    """Write a table. In CSV, texts that a spreadsheet would take for formulas get an apostrophe before them."""
    if form == "csv":
        texts = {name: frame[name].map(_plain_text) for name in frame.columns if _is_text(frame[name])}
        frame.assign(**texts).to_csv(target, index=False)
    elif form == "jsonl":
        columns = [name for name in _JSON if name in frame]
        frame = frame.assign(**{n: [None if v is None else json.loads(v) for v in frame[n]] for n in columns})
        frame.to_json(target, orient="records", lines=True, date_format="iso", date_unit="us", double_precision=15)
    else:
        try:
            frame.to_parquet(target, index=False)
        except ImportError:
            raise missing_extra("Parquet files need pyarrow", "data") from None


def _is_text(column: pd.Series) -> bool:
    return bool(pd.api.types.is_object_dtype(column) or pd.api.types.is_string_dtype(column))


def _plain_text(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
