"""One look of a trial: drop inferior arms, then superiority, equivalence and futility, in this order."""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.compiled import rule
from doublesampling.rules.looks import equal_steps, from_draws, panels
from doublesampling.rules.looks.bundles import (
    CONTINUE,
    EQUIVALENCE,
    FUTILITY,
    SUPERIORITY,
    Known,
    LookRule,
    Report,
    Space,
)
from doublesampling.rules.optimal_arm import quadrature
from doublesampling.rules.optimal_arm.regions import Fineness
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]


@rule
def gather(known: Known, space: Space) -> int:
    """Copy the marginals of the remaining arms, and which they are; returns how many there are."""
    count = 0
    for a in range(known.active.size):
        if known.active[a]:
            space.which[count] = a
            for i in range(3):
                space.parameters[count, i] = known.parameters[a, i]
            count += 1
    return count


@specialised(rule)
def fill_best(law: Constant, count: int, fineness: Fineness, known: Known, space: Space, out: FloatArray) -> None:
    """P(best) among the gathered arms: space.p by place, out by arm, nan for those that are not in."""
    for a in range(out.size):
        out[a] = math.nan
    if count == 1:
        space.p[0] = 1.0
    elif law == laws.SAMPLED:
        from_draws.fill_best(known.draws, space.which, space.p[:count])
    else:
        parameters, p = space.parameters[:count], space.p[:count]
        quadrature.probability_optimal(law, parameters, fineness, p, space.survey, space.panel)
    for i in range(count):
        out[space.which[i]] = space.p[i]


@specialised(rule)
def better_than(law: Constant, arm: int, control: int, fineness: Fineness, known: Known, space: Space) -> float:
    """P(an arm's expected reward is above the control's)."""
    if law == laws.SAMPLED:
        better = 0.0
        for m in range(known.draws.shape[0]):
            difference = known.draws[m, arm] - known.draws[m, control]
            better += 1.0 if difference > 0.0 else (0.5 if difference == 0.0 else 0.0)
        return better / known.draws.shape[0]
    for i in range(3):
        space.pair[0, i], space.pair[1, i] = known.parameters[arm, i], known.parameters[control, i]
    quadrature.probability_optimal(law, space.pair, fineness, space.p[:2], space.survey, space.panel)
    return space.p[0]


@specialised(rule)
def with_margin(
    law: Constant, count: int, control: int, margin: float, fineness: Fineness, known: Known, space: Space
) -> float:
    """P(all gathered arms lie within the margin), or P(none is above the control, a place among them, by it)."""
    if law == laws.SAMPLED:
        return from_draws.margin_from_draws(known.draws, space.which, count, control, margin)
    parameters, found = space.parameters[:count], math.nan
    if space.density.shape[1] > 0:
        found = equal_steps.margin_by_equal_steps(
            law, parameters, control, margin, fineness, space.survey, space.density[:count], space.lower[:count]
        )
    if math.isnan(found):
        found = panels.margin_by_panels(
            law, parameters, control, margin, fineness, space.survey, space.edges, space.work
        )
    return found


@specialised(rule)
def _among_equals(
    law: Constant, look: int, rules: LookRule, fineness: Fineness, known: Known, space: Space, report: Report
) -> int:
    """Without a control: drop arms that are hardly the best, and find one that surely is."""
    count = gather(known, space)
    best = 0
    for i in range(1, count):
        if space.p[i] > space.p[best]:
            best = i
    dropped = False
    for i in range(count):
        if i != best and space.p[i] < rules.inferiority[look]:  # nan: no arm is dropped
            known.active[space.which[i]] = False
            dropped = True
    if dropped:
        best_arm = space.which[best]
        count = gather(known, space)
        fill_best(law, count, fineness, known, space, report.remaining)
        best = 0
        for i in range(count):
            if space.which[i] == best_arm:
                best = i
    if count == 1 or space.p[best] > rules.superiority[look]:
        known.place[1] = space.which[best]
        return SUPERIORITY
    return CONTINUE


@specialised(rule)
def _against_control(
    law: Constant, look: int, rules: LookRule, fineness: Fineness, known: Known, space: Space, report: Report
) -> int:
    """With a control: drop arms that are hardly better than it, and find one that surely is."""
    while True:
        control, best, left = known.place[0], -1, 0
        for a in range(known.active.size):
            if not known.active[a] or a == control:
                continue
            report.better[a] = better_than(law, a, control, fineness, known, space)
            if report.better[a] < rules.inferiority[look]:
                known.active[a] = False
                continue
            left += 1
            if best < 0 or report.better[a] > report.better[best]:
                best = a
        if left == 0:  # nothing is left to be better than the control; one that was promoted has won
            known.place[1] = control
            return SUPERIORITY if known.place[2] == 1 else FUTILITY
        if not report.better[best] > rules.superiority[look]:
            return CONTINUE
        if not rules.promote:
            known.place[1] = best
            return SUPERIORITY
        known.active[control] = False
        known.place[0], known.place[2] = best, 1
        if left == 1:
            known.place[1] = best
            return SUPERIORITY


@specialised(rule)
def take_look(
    law: Constant, look: int, rules: LookRule, fineness: Fineness, known: Known, space: Space, report: Report
) -> int:
    """Return what a look says (bundles.py), and fill its report; known.active and known.place change."""
    count = gather(known, space)
    fill_best(law, count, fineness, known, space, report.best)
    enough = True
    for a in range(known.active.size):
        report.remaining[a], report.better[a] = report.best[a], math.nan
        enough = enough and (not known.active[a] or known.counts[a] >= rules.minimum)
    report.margins[0], report.margins[1] = math.nan, math.nan
    if not enough:
        return CONTINUE
    if known.place[0] < 0:
        found = _among_equals(law, look, rules, fineness, known, space, report)
    else:
        found = _against_control(law, look, rules, fineness, known, space, report)
        count = gather(known, space)
        fill_best(law, count, fineness, known, space, report.remaining)
    if found != CONTINUE:
        return found
    count = gather(known, space)
    if not math.isnan(rules.equivalence[look]):
        report.margins[0] = with_margin(law, count, -1, rules.equivalence_margin, fineness, known, space)
        if report.margins[0] > rules.equivalence[look]:
            known.place[1] = highest(report.remaining) if known.place[0] < 0 else known.place[0]
            return EQUIVALENCE
    if not math.isnan(rules.futility[look]):
        place = 0
        for i in range(count):
            if space.which[i] == known.place[0]:
                place = i
        report.margins[1] = with_margin(law, count, place, rules.futility_margin, fineness, known, space)
        if report.margins[1] > rules.futility[look]:
            known.place[1] = known.place[0]
            return FUTILITY
    return CONTINUE


@rule
def highest(values: FloatArray) -> int:
    """The arm of the highest value; nan is no value."""
    best = -1
    for a in range(values.size):
        if not math.isnan(values[a]) and (best < 0 or values[a] > values[best]):
            best = a
    return best
