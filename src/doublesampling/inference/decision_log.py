"""Logged decisions with the propensities of all arms, checked once, as every estimate here needs them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.errors import ArmError, LogError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Contrast = int | str | Sequence[int | str]
"""Two arms, whose difference is estimated, or one arm; an arm is its index or its name."""

ROUNDING = 1e-6
"""Propensities of a row may differ from a sum of 1 by this much."""


@dataclass(frozen=True, eq=False)
class DecisionLog:
    """Decisions in the order in which they were made.

    names : the arms
    arms : int array (row), the arm that was played
    rewards : float array (row), nan where the outcome is not known
    propensities : float array (row, arm); 0 where an arm was not available
    contexts : float array (row, number) or None
    known : int array (row), the position of the first decision that knew the outcome of this row; the number of rows
        where none did
    """

    names: tuple[str, ...]
    arms: IntArray
    rewards: FloatArray
    propensities: FloatArray
    known: IntArray
    contexts: FloatArray | None = None
    pending: int = 0
    """Rows whose outcome is still awaited."""
    imputed: int = 0
    """Rows whose outcome is imputed; they are used."""
    voided: int = 0
    """Decisions that were not carried out, and are left out."""
    shares: FloatArray | None = None
    """Propensities at the start of each row's permuted block, float array (row, arm); None: those of the row."""

    @property
    def available(self) -> NDArray[np.bool_]:
        """Whether each arm could be drawn in each row's block, bool array (row, arm): its propensity may be 0 in it."""
        return (self.propensities if self.shares is None else self.shares) > 0.0

    @property
    def observed(self) -> NDArray[np.bool_]:
        """Whether the outcome of each row is known."""
        return ~np.isnan(self.rewards)

    @property
    def missing(self) -> int:
        """Rows whose outcome is not known and not awaited."""
        return int(np.isnan(self.rewards).sum()) - self.pending

    @property
    def adaptive(self) -> bool:
        """Whether the propensities change from row to row, or from block to block."""
        shares = self.propensities if self.shares is None else self.shares
        return bool((np.ptp(shares, axis=0) > 1e-9).any())

    def arm(self, which: object) -> int:
        """Return the index of an arm given by its index or name."""
        if isinstance(which, str):
            if which in self.names:
                return self.names.index(which)
            raise ArmError(f"The log has no arm {which!r}. It has {', '.join(map(repr, self.names))}.")
        hint = f"The log has {len(self.names)} arms, counted from 0: {', '.join(map(repr, self.names))}."
        return checks.integer("arm", which, least=0, most=len(self.names) - 1, hint=hint, error=ArmError)

    def contrast(self, given: object) -> tuple[int, ...]:
        """Return the indices of a contrast: two different arms, or one."""
        if isinstance(given, str) or not isinstance(given, (tuple, list, np.ndarray)):
            return (self.arm(given),)
        arms = tuple(self.arm(each.item() if isinstance(each, np.generic) else each) for each in given)
        if len(arms) not in (1, 2):
            raise ArmError(f"contrast must name two arms, or one, got {checks.shown(given)}.")
        if len(arms) == 2 and arms[0] == arms[1]:
            raise ArmError(f"contrast must name two different arms, got {checks.shown(given)}.")
        return arms

    def title(self, contrast: tuple[int, ...]) -> str:
        """Return a contrast in words, such as '20 mg - placebo'."""
        return " - ".join(self.names[arm] for arm in contrast)


def check_propensities(propensities: FloatArray, arms: IntArray, called: str = "propensity") -> None:
    """Raise LogError at the first row whose propensities are not a law, or exclude the arm that was played."""
    for row in np.flatnonzero(~np.isfinite(propensities).all(axis=1))[:1]:
        raise LogError(
            f"Row {row + 1}: the {called} of an arm is missing or not finite. These estimates need the propensity of "
            "every arm at every decision; policies that answer only an arm do not log them."
        )
    low, high = propensities.min(axis=1), propensities.max(axis=1)
    for row in np.flatnonzero((low < 0.0) | (high > 1.0 + ROUNDING))[:1]:
        shown = ", ".join(f"{p:g}" for p in propensities[row])
        raise LogError(f"Row {row + 1}: the {called} of each arm must lie between 0 and 1, got {shown}.")
    sums = propensities.sum(axis=1)
    for row in np.flatnonzero(np.abs(sums - 1.0) > ROUNDING)[:1]:
        shown = ", ".join(f"{p:g}" for p in propensities[row])
        raise LogError(
            f"Row {row + 1}: the propensities of all arms must sum to 1, got {shown} (sum {sums[row]:g}). "
            "Give one column per arm, propensity_0, propensity_1, ..."
        )
    for row in np.flatnonzero(propensities[np.arange(arms.size), arms] <= 0.0)[:1]:
        raise LogError(
            f"Row {row + 1}: arm {arms[row]} was played with propensity 0, which cannot be. "
            "Are the propensity columns in the order of the arms?"
        )
