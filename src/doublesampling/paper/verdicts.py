"""Verdicts on the paper's claims: the words, and when a run can support them."""

import math
from dataclasses import dataclass

import xarray as xr

from doublesampling.paper.measures import Estimate

REPRODUCED, NOTED, NOT = "reproduced", "reproduced with a note", "not reproduced as stated"
TOO_FEW = "too few realizations"
SURE = 4.0
"""Standard errors between ours and a published number from which on they disagree."""
SUPPORT = 2.0
"""A verdict stands only if moving the estimate by so many standard errors would not change it."""

Datasets = dict[str, xr.Dataset]


@dataclass(frozen=True)
class Finding:
    """What our runs say: the numbers, the verdict, and why."""

    ours: str
    verdict: str
    why: str


def number(estimate: Estimate, digits: int = 2) -> str:
    """Format an estimate with its error."""
    return f"{estimate.value:.{digits}f} ± {estimate.error:.{digits}f}"


def percent(estimate: Estimate) -> str:
    """Format a share with its error, in per cent."""
    return f"{100 * estimate.value:+.1f} ± {100 * estimate.error:.1f} %"


def holds(margin: Estimate) -> bool | None:
    """Say whether a margin is above zero, or None where its error leaves that open."""
    if not math.isfinite(margin.error) or abs(margin.value) <= SUPPORT * margin.error:
        return None
    return margin.value > 0.0


def all_hold(*margins: Estimate) -> bool | None:
    """Say whether every margin is above zero: False as soon as one is surely not, None while one is open."""
    found = [holds(margin) for margin in margins]
    return False if False in found else None if None in found else True


def within(estimate: Estimate, target: float, reach: float) -> Estimate:
    """Return the margin by which an estimate lies within a reach of a target."""
    return Estimate(reach - abs(estimate.value - target), estimate.error)


def too_few(ours: str) -> Finding:
    """Return the finding of a run that cannot support any verdict."""
    return Finding(ours, TOO_FEW, "The errors are too large for a verdict. Run a larger scale, or more realizations.")


def judged(ours: str, holding: bool | None, yes: str, no: str = "") -> Finding:
    """Return the finding of a claim that holds, does not, or is left open by the run."""
    if holding is None:
        return too_few(ours)
    return Finding(ours, REPRODUCED if holding else NOT, yes if holding else no)
