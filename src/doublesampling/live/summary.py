"""Summaries of an experiment: posterior and next allocation of each arm, and the status in plain values."""

from typing import Any

import numpy as np
import pandas as pd

from doublesampling.live import own_classes
from doublesampling.live.deciding import decide_next
from doublesampling.live.design import Design
from doublesampling.live.queries.tables import arm_counts
from doublesampling.live.session import Session
from doublesampling.live.state import ExperimentState


def posterior(design: Design, current: ExperimentState, context: Any) -> pd.DataFrame:
    """Return the posterior of each arm's expected reward, one row per arm."""
    laws = current.belief.marginals(current.belief_state, design.check_context(context))
    active = list(current.active)
    best = np.zeros(len(current.arms))
    best[active] = (laws if len(active) == len(current.arms) else laws.only(active)).probability_optimal
    low, high = laws.quantile([0.025, 0.975])
    columns = {
        "mean": laws.mean,
        "sd": laws.sd,
        "low": low,
        "high": high,
        "probability_optimal": best,
        "observations": current.belief_state.counts,
        "active": [i in current.active for i in range(len(current.arms))],
    }
    return pd.DataFrame(columns, index=pd.Index(current.arms, name="arm"))


def next_allocation(design: Design, current: ExperimentState, context: Any) -> tuple[list[float | None], int]:
    """Return each arm's probability of being chosen next, and the number of candidates. Nothing is stored."""
    time = current.decisions + 1
    made = decide_next(design, current.basis, design.check_context(context), current.past, number=time, time=time)
    return [None if np.isnan(p) else float(p) for p in made.propensities], made.candidates


def summary(session: Session) -> dict[str, Any]:
    """Return the status of the experiment in plain values. ``decisions`` does not count voided ones."""
    with session.cache.lock, session.store.reading() as connection:
        current = session.cache.read(connection)
        counted = arm_counts(connection, session.id)
    told = [row for row in counted.latest if row.kind not in ("withdrawn", "voided")]
    voided = {row.arm: row.size for row in counted.latest if row.kind == "voided"}
    outcomes_told = sum(row.size for row in told)
    return {
        "name": session.name,
        "status": current.status,
        "created_at": session.created_at.isoformat(),
        "created_by": session.created_by,
        "belief": own_classes.show(session.design.belief),
        "policy": own_classes.show(session.design.policy),
        "allocation": None if session.design.allocation is None else repr(session.design.allocation),
        "stopping": None if session.design.stopping is None else repr(session.design.stopping),
        "stopped": current.stopped,
        "looks": len(current.looks),
        "participants": session.design.participants,
        "seed": session.design.seed,
        "units": session.design.units,
        "decisions": current.decisions,
        "outcomes": outcomes_told,
        "waiting": current.decisions - outcomes_told,
        "imputed": sum(row.size for row in told if row.imputed),
        "amended": sum(row.size for row in told if row.kind == "amended"),
        "withdrawn": sum(row.size for row in counted.latest if row.kind == "withdrawn"),
        "voided": sum(voided.values()),
        "history": sum(counted.history.values()),
        "arms": [
            {
                "arm": i,
                "name": name,
                "active": i in current.active,
                "decisions": counted.decisions.get(i, 0) - voided.get(i, 0),
                "outcomes": sum(row.size for row in told if row.arm == i),
                "total_reward": float(sum(row.reward for row in told if row.arm == i)),
                "voided": voided.get(i, 0),
                "history": counted.history.get(i, 0),
            }
            for i, name in enumerate(current.arms)
        ],
    }
