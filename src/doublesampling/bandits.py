"""Bandits: simulated worlds that pay rewards. Frozen settings, checked at birth."""

from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.beliefs.marginals import address_words
from doublesampling.checks import settings
from doublesampling.errors import SettingError
from doublesampling.rules import doors
from doublesampling.rules.draws import REWARD

FloatArray = NDArray[np.float64]


@settings
class BernoulliBandit:
    """Each arm pays 1 with its own probability, else 0.

    >>> BernoulliBandit([0.4, 0.8]).arms
    2
    """

    probabilities: Any = field(kw_only=False)

    def __post_init__(self) -> None:
        given = checks.array("probabilities", self.probabilities, error=SettingError)
        if given.ndim != 1 or given.size < 2:
            came = checks.shown(self.probabilities)
            raise SettingError(f"probabilities must list one number per arm, two arms at least, got {came}.")
        found = tuple(checks.within(f"probabilities[{i}]", float(p), 0.0, 1.0) for i, p in enumerate(given))
        object.__setattr__(self, "probabilities", found)

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return len(self.probabilities)

    def reward(self, arm: int, *, seed: int, time: int, realization: int = 0) -> float:
        """What the arm pays at a time: the same, whichever policy asks."""
        arm = checks.arm_index(arm, self.arms)
        words = address_words(checks.seed(seed), checks.time(time), realization=realization)
        return float(doors.uniform_at(words, REWARD, np.uint64(arm)) < self.probabilities[arm])
