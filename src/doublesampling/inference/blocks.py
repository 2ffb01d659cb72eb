"""Permuted blocks in a log: which decisions belong together, and the shares with which their block began.

In a permuted block, and in a burn-in, arms are drawn without replacement. The propensity that is logged is that given
the past, (slots of the arm that are left) / (all slots that are left): it becomes 0 where an arm's slots are used up.
Such a zero comes from the design. A zero that a policy chose comes from the outcomes, and cannot be analysed.
"""

import numpy as np
from numpy.typing import NDArray

from doublesampling.inference.decision_log import FloatArray, IntArray

_LONGEST = 10_000  # slots of a block
_EQUAL = 2e-6  # propensities in a file may be rounded


def block_shares(arms: IntArray, propensities: FloatArray) -> FloatArray:
    """Return the propensities at the first decision of each row's block, float array (row, arm).

    A row continues the block of the row before it where its propensities are those after a draw without replacement
    of the arm that was played there. Rows outside of blocks begin and end one.
    """
    if arms.size < 2 or (propensities > 0.0).all():
        return propensities
    slots = _slots_left(arms, propensities)
    begins = np.arange(arms.size)
    begins[_continues(slots, propensities)] = 0
    return propensities[np.maximum.accumulate(begins)]


def _slots_left(arms: IntArray, propensities: FloatArray) -> IntArray:
    """Return the slots of a block that are left at each row, 0 where the row before does not tell.

    With p before and q after a draw of arm k from r slots: q (r - 1) = p r - 1{k}.
    """
    before, after, played = propensities[:-1], propensities[1:], arms[:-1]
    rows = np.arange(played.size)
    fell = before[rows, played] - after[rows, played]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.round((1.0 - after[rows, played]) / fell)
    r = np.where((fell > _EQUAL) & (found >= 2) & (found <= _LONGEST), found, 0.0)
    drawn = before * r[:, None]
    whole = (np.abs(drawn - np.round(drawn)) < _EQUAL * np.maximum(r, 1.0)[:, None]).all(axis=1)
    drawn[rows, played] -= 1.0
    left = np.where(r > 0, r - 1.0, 0.0)
    fits = whole & (np.abs(drawn - after * left[:, None]).max(axis=1) < _EQUAL * np.maximum(r, 1.0))
    slots: IntArray = np.concatenate([[0], np.where(fits, left, 0.0)]).astype(np.int64)
    return slots


def _continues(slots: IntArray, propensities: FloatArray) -> NDArray[np.bool_]:
    """Return whether each row continues a block: the row before tells so, or one arm is left for several slots."""
    rows = np.arange(slots.size)
    latest = np.maximum.accumulate(np.where(slots > 0, rows, -1))
    changed = np.concatenate([[0], (np.abs(np.diff(propensities, axis=0)) > _EQUAL).any(axis=1).cumsum()])
    known = np.maximum(latest, 0)
    certain = propensities.max(axis=1) >= 1.0 - _EQUAL
    alone = certain & (latest >= 0) & (rows - known < slots[known]) & (changed == changed[known])
    return np.asarray((slots > 0) | alone)
