"""How a step of a realization is recorded: in the running moments of its column, and in its trajectory."""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.bundles import (
    ARM,
    CANDIDATES,
    CORRECT,
    NUMBER,
    OBSERVED,
    P_COLUMN,
    P_ROW,
    PAID,
    REGRET,
    Record,
    Step,
)
from doublesampling.rules.compiled import inlined, spliced
from doublesampling.rules.specialise import specialised

FloatArray = NDArray[np.float64]


@inlined
def _add(row: int, column: int, value: float, inverse: float, record: Record) -> None:
    """Update a mean and its squared deviations by one more realization (Welford); inverse is 1 / realizations."""
    change = value - record.means[row, column]
    record.means[row, column] += change * inverse
    record.squares[row, column] += change * (value - record.means[row, column])


@specialised(spliced)
def note(r: int, t: int, step: Step, p: FloatArray, column: int, record: Record) -> None:
    """Record step t of realization r; column is -1 where its moments are not wanted."""
    if column >= 0:
        inverse = 1.0 / (r + 1)
        _add(REGRET, column, step.regret, inverse, record)
        _add(OBSERVED, column, step.observed, inverse, record)
        correct = 1.0 if step.correct else 0.0
        record.means[CORRECT, column] += (correct - record.means[CORRECT, column]) * inverse
        record.means[NUMBER, column] += (step.number - record.means[NUMBER, column]) * inverse
        for a in range(p.size):
            record.means[P_ROW + a, column] += (p[a] - record.means[P_ROW + a, column]) * inverse
    if record.kept.shape[0] > 0:
        kept = record.kept[r, t]
        kept[ARM], kept[PAID], kept[CANDIDATES] = step.arm, step.paid, step.number
        for a in range(p.size):
            kept[P_COLUMN + a] = p[a]
