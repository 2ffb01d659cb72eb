"""When an estimate may be trusted: refuse vanishing propensities, and say in words what a result rests on."""

import math
from typing import Any, NamedTuple

import numpy as np

from doublesampling.errors import PropensityError
from doublesampling.inference.decision_log import DecisionLog, IntArray

FEWEST_OUTCOMES = 5
"""Outcomes of an arm below which no interval is given."""
ENOUGH = 10.0
"""Decisions that a floor gives each arm at least, in expectation, where coverage was measured to hold."""


class Support(NamedTuple):
    """The rows on which an estimate rests."""

    rows: IntArray
    """Row numbers, with an outcome and with every arm of the contrast available."""
    least: float
    """The least propensity above 0 of an arm of the contrast in these rows."""
    unavailable: int
    """Rows with an outcome where an arm of the contrast was not available."""
    used_up: int = 0
    """Rows of the support in which an arm of the contrast had propensity 0 because its slots of a block were used."""


def enough_floor(rows: int, arms: int) -> float:
    """Return the floor that would have given every arm ``ENOUGH`` decisions in expectation, rounded up."""
    wanted = min(ENOUGH / rows, 1.0 / arms)
    digits = 1 - math.floor(math.log10(wanted))
    return min(math.ceil(wanted * 10.0**digits - 1e-9) / 10.0**digits, 1.0 / arms)


def find_support(log: DecisionLog, arms: tuple[int, ...], naive: bool = False) -> Support:
    """Return the rows that an estimate may use; raise PropensityError where they cannot carry one.

    Naive means use every row with an outcome: they are for comparison, and hold what they hold.
    """
    shares = log.propensities[:, list(arms)]
    open_ = log.available[:, list(arms)].all(axis=1) | naive
    rows = np.flatnonzero(open_ & log.observed)
    unavailable = int((log.observed & ~open_).sum())
    title, floor = log.title(arms), enough_floor(log.arms.size, len(log.names))
    remedy = (
        f"A floor of {floor:g} under the propensity of every arm would have been enough for {log.arms.size} decisions "
        f"(ds.Allocation(floor={floor:g}))."
    )
    if unavailable and not _one_stretch(open_):
        raise PropensityError(
            f"An arm of {title} had propensity 0 in {unavailable} rows, off and on: these decisions tell nothing about "
            f"it, and why they came lies in the data, so no estimate from this log is valid. {remedy}"
        )
    for arm in arms:
        known = int((log.arms[rows] == arm).sum())
        if known < FEWEST_OUTCOMES:
            raise PropensityError(
                f"Arm {log.names[arm]!r} has {known} usable outcomes, fewer than {FEWEST_OUTCOMES}: too few for an "
                f"interval. {remedy}"
            )
    mine = shares[rows]
    return Support(rows, float(mine[mine > 0.0].min()), unavailable, int((mine == 0.0).any(axis=1).sum()))


def check_propensities_last(log: DecisionLog, arms: tuple[int, ...], support: Support) -> None:
    """Raise PropensityError where an arm's propensity falls below one expected decision in the whole log.

    An arm that became unavailable must have had more until then: otherwise its propensity may have vanished to 0.
    """
    needed = 1.0 / support.rows.size
    if support.unavailable:
        needed = max(needed, 0.5 * min(ENOUGH / log.arms.size, 1.0 / len(log.names)))
    if support.least >= needed * (1.0 - 1e-9):
        return
    shares = log.propensities[support.rows][:, list(arms)]
    shares = np.where(shares > 0.0, shares, np.inf)
    row, column = np.unravel_index(int(shares.argmin()), shares.shape)
    floor = enough_floor(log.arms.size, len(log.names))
    raise PropensityError(
        f"The propensity of arm {log.names[arms[int(column)]]!r} falls to {support.least:.2g} (row "
        f"{support.rows[row] + 1} of {log.arms.size}), below {needed:.2g}. The log all but stops playing "
        "this arm, for reasons that lie in its own outcomes: estimates are skewed and no interval holds its level. "
        f"A floor of {floor:g} under the propensity of every arm would have been enough for {log.arms.size} decisions "
        f"(ds.Allocation(floor={floor:g})). From this log, only ds.sequence(..., method='empirical-bernstein') is "
        "valid."
    )


def _one_stretch(open_: Any) -> bool:
    """Whether the rows in which all arms were available follow each other: an arm was added, or dropped for good."""
    changes = np.flatnonzero(np.diff(np.concatenate([[0], open_.astype(np.int8), [0]])))
    return changes.size <= 2
