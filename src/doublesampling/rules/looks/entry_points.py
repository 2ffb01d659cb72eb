"""What Python calls of the looks: compiled for one law, right to 1e-9."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.cached import kept_for
from doublesampling.rules.looks.bundles import Known, LookRule, Report, Space, look_space, new_report
from doublesampling.rules.looks.look import take_look, with_margin
from doublesampling.rules.optimal_arm.regions import EXACT

FloatArray = NDArray[np.float64]


@functools.cache
def _take_look(law: int) -> Callable[..., int]:
    @kept_for(law)
    def look_at(look: int, rules: LookRule, known: Known, space: Space, report: Report) -> int:
        return take_look(law, look, rules, EXACT, known, space, report)

    return look_at


def look_at(law: int, look: int, rules: LookRule, known: Known) -> tuple[int, Report]:
    """Return what a look says and its probabilities; known.active and known.place change."""
    report = new_report(known.active.size)
    outcome = _take_look(law)(look, rules, known, look_space(known.active.size, False), report)
    return outcome, report


@functools.cache
def _with_margin(law: int) -> Callable[..., float]:
    @kept_for(law)
    def find(count: int, control: int, margin: float, fall: float, width: float, known: Known, space: Space) -> float:
        return with_margin(law, count, control, margin, (fall, width), known, space)

    return find


def probability_with_margin(
    law: int, parameters: FloatArray, control: int, margin: float, fineness: tuple[float, float] = EXACT
) -> float:
    """Return P(all arms lie within the margin), or P(none is above the control by it), from marginals (arm, 3).

    ``control`` is -1 for none. A fineness other than EXACT takes equal steps where they resolve the laws.
    """
    arms = parameters.shape[0]
    space = look_space(arms, fineness != EXACT)
    space.parameters[:] = parameters
    nothing = np.zeros(arms, dtype=np.int64)
    known = Known(parameters, np.empty((0, arms)), nothing, np.ones(arms, dtype=np.bool_), nothing[:2])
    assert law != laws.SAMPLED
    return _with_margin(law)(arms, control, margin, *fineness, known, space)
