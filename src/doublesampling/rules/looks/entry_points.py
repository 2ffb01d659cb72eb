"""What Python calls of the looks, compiled for one law."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.cached import kept_for
from doublesampling.rules.looks.bundles import (
    CONTINUE,
    DUE,
    ENDED,
    FINAL,
    LOOKS,
    MAXIMUM,
    OUTCOME,
    RENEW,
    RUNNING,
    STATUS,
    Batch,
    Known,
    LookRule,
    Report,
    Space,
    look_space,
    new_batch,
)
from doublesampling.rules.looks.look import fill_best, gather, highest, take_look
from doublesampling.rules.optimal_arm.regions import EXACT

FloatArray = NDArray[np.float64]


@functools.cache
def take_looks(law: int) -> Callable[[LookRule, float, float, Batch, Space], None]:
    """Return the function that takes the looks that are due in several trials, and ends those that are over.

    It takes the rule, the fineness of the quadrature, the trials, and work space, quick or exact.
    """

    @kept_for(law)
    def take(rules: LookRule, fall: float, width: float, batch: Batch, space: Space) -> None:
        fineness = (fall, width)
        for r in range(batch.progress.shape[0]):
            at = batch.progress[r]
            if at[STATUS] != DUE and at[STATUS] != FINAL:
                continue
            known = Known(batch.parameters[r], batch.draws[r], batch.counts[r], batch.active[r], batch.place[r])
            report = Report(batch.best[r], batch.remaining[r], batch.better[r], batch.margins[r])
            outcome = CONTINUE
            if at[LOOKS] < rules.superiority.size:
                # at the end, outcomes that were lost may leave looks: the last one is taken
                look = at[LOOKS] if at[STATUS] == DUE else rules.superiority.size - 1
                outcome = take_look(law, look, rules, fineness, known, space, report)
                at[LOOKS] += 1
                at[RENEW] = 1
            if at[STATUS] == FINAL and outcome == CONTINUE:
                outcome = MAXIMUM
                fill_best(law, gather(known, space), fineness, known, space, report.remaining)
                known.place[1] = highest(report.remaining)
            at[OUTCOME] = outcome
            at[STATUS] = RUNNING if outcome == CONTINUE else ENDED

    return take


def look_at(law: int, rules: LookRule, batch: Batch) -> None:
    """Take one look, right to 1e-9."""
    batch.progress[0, STATUS] = DUE
    take_looks(law)(rules, *EXACT, batch, look_space(batch.counts.shape[1], False))


def probability_with_margin(
    law: int, parameters: FloatArray, control: int, margin: float, fineness: tuple[float, float] = EXACT
) -> float:
    """Return P(all arms lie within the margin), or P(none is above the control by it), from marginals (arm, 3).

    ``control`` is -1 for none. A fineness other than EXACT takes equal steps where they resolve the laws.
    """
    arms, never, always = parameters.shape[0], np.full(1, np.nan), np.full(1, 2.0)
    within, none = (always, never) if control < 0 else (never, always)
    batch = new_batch(1, arms, 0)
    batch.parameters[0], batch.place[0, 0], batch.progress[0, STATUS] = parameters, control, DUE
    rules = LookRule(never, never, within, none, margin, margin, False, 0)
    take_looks(law)(rules, *fineness, batch, look_space(arms, fineness != EXACT))
    return float(batch.margins[0, 0 if control < 0 else 1])
