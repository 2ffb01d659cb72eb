"""Rewards of 0 or 1: each arm's success probability has a Beta law."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.beliefs.pairs import Pairs
from doublesampling.beliefs.states import BetaState
from doublesampling.checks import PerArm, settings
from doublesampling.errors import RewardError
from doublesampling.rules import laws

_FEWEST, _MOST = 1e-6, 1e12  # prior counts outside could not be told from certainty in double precision


@settings
class BetaBernoulli(Pairs):
    """Rewards are 0 or 1; each arm's success probability has a Beta(alpha, beta) law.

    alpha and beta are one number for all arms, or one per arm. With ``fractional=True`` a reward strictly between
    0 and 1 counts as that share of a success. A ``discount`` below 1 forgets: before each observation, what was learned
    of every arm shrinks by this factor, for worlds that drift.

    >>> belief = BetaBernoulli(arms=2)
    >>> state = belief.update(belief.prior(), arm=1, reward=1)
    >>> state.alpha.tolist(), state.beta.tolist()
    ([1.0, 2.0], [1.0, 1.0])
    """

    arms: int
    alpha: PerArm = 1.0
    beta: PerArm = 1.0
    fractional: bool = False
    discount: float = 1.0
    law: ClassVar[int] = laws.BETA
    binary: ClassVar[bool] = True
    state_kind: ClassVar[type[BetaState]] = BetaState

    def __post_init__(self) -> None:
        self._check_pair(_FEWEST, _MOST)
        object.__setattr__(self, "fractional", checks.flag("fractional", self.fractional))

    def check_reward(self, reward: object) -> float:
        """Return a reward as a number, or raise RewardError where this belief cannot learn from it."""
        value = checks.real("reward", reward, wanted="0 or 1", error=RewardError)
        if not 0.0 <= value <= 1.0:
            raise RewardError(f"reward must be 0 or 1, got {value:g}. For other rewards use Gaussian.")
        if not self.fractional and value not in (0.0, 1.0):
            raise RewardError(f"reward must be 0 or 1, got {value:g}. To count shares, set fractional=True.")
        return value

    def _wrong(self, rewards: NDArray[np.float64]) -> NDArray[np.bool_]:
        if self.fractional:
            return np.asarray((rewards < 0.0) | (rewards > 1.0))
        return np.asarray((rewards != 0.0) & (rewards != 1.0))
