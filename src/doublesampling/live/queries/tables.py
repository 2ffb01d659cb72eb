"""The decisions of an experiment as a pandas table, and counts per arm for its summary."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling import checks
from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.queries.latest_outcome import is_pending, join_latest_outcome, latest_revisions
from doublesampling.live.queries.log import arm_names
from doublesampling.live.records import unpack
from doublesampling.live.stores.schema import decisions, outcomes

PER_ARM = ("propensities", "probability_optimal")
"""Columns that hold one number per arm, as JSON text."""


def decision_table(
    ref: ExperimentRef, *, after: int = 0, limit: int | None = None, waiting: bool = False
) -> pd.DataFrame:
    """Return one row per decision, with its latest outcome; with ``waiting``, only those that wait for one."""
    joined, latest = join_latest_outcome(decisions)
    told = (latest.c.reward, latest.c.kind, latest.c.imputed, latest.c.reason, latest.c.at.label("told_at"))
    query = (
        sa.select(decisions, *told, latest.c.revision)
        .select_from(joined)
        .where(
            decisions.c.experiment == ref.id,
            decisions.c.number > checks.integer("after", after, least=0, most=2**62),
        )
        .order_by(decisions.c.number)
    )
    if waiting:
        query = query.where(is_pending(latest))
    if limit is not None:
        query = query.limit(checks.integer("limit", limit, least=0))
    with ref.store.reading() as connection:
        rows = connection.execute(query).all()
        arms = arm_names(connection, ref)
    return to_frame(rows, arms)


def to_frame(rows: Any, arms: Sequence[str] | Mapping[int, str]) -> pd.DataFrame:
    """Return rows of decisions, with the names of their arms, as a table with fixed columns and types."""
    played = np.array([row.arm for row in rows], dtype=np.int64)
    propensities, probabilities = ([unpack(getattr(r, n)) for r in rows] for n in PER_ARM)
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


class LatestCount(NamedTuple):
    """How many decisions of an arm have a latest outcome of one kind, and the sum of its rewards."""

    arm: int
    kind: str
    imputed: bool
    size: int
    reward: float


class ArmCounts(NamedTuple):
    """Counts per arm index; an arm that is missing counts zero."""

    decisions: dict[int, int]
    history: dict[int, int]
    latest: list[LatestCount]


def arm_counts(connection: Connection, experiment: int) -> ArmCounts:
    """Return decisions, imported outcomes and latest outcomes per arm."""
    d, o, last = decisions.c, outcomes.c, latest_revisions(experiment)
    told = (
        sa.select(o.arm, o.kind, o.imputed, sa.func.count(), sa.func.coalesce(sa.func.sum(o.reward), 0.0))
        .select_from(outcomes.join(last, (o.decision == last.c.decision) & (o.revision == last.c.revision)))
        .group_by(o.arm, o.kind, o.imputed)
    )
    history = sa.select(o.arm, sa.func.count()).where(o.experiment == experiment, o.decision.is_(None)).group_by(o.arm)
    asked = sa.select(d.arm, sa.func.count()).where(d.experiment == experiment).group_by(d.arm)
    return ArmCounts(
        {arm: int(count) for arm, count in connection.execute(asked)},
        {arm: int(count) for arm, count in connection.execute(history)},
        [LatestCount(*row) for row in connection.execute(told)],
    )
