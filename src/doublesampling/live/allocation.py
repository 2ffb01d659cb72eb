"""Preview the next decision of an experiment without storing it."""

from typing import Any

import numpy as np

from doublesampling.live.deciding import decide_at
from doublesampling.live.design import Design
from doublesampling.live.state import ExperimentState


def next_allocation(design: Design, current: ExperimentState, context: Any) -> tuple[list[float | None], int]:
    """Return each arm's probability of being chosen next, and the number of candidates. Nothing is stored."""
    time = current.decisions + 1
    made = decide_at(
        design.policy, current.belief, current.belief_state, current.active, context,
        seed=design.seed, number=time, time=time,
    )  # fmt: skip
    return [None if np.isnan(p) else float(p) for p in made.propensities], made.candidates
