"""Counts and waiting times: each arm's rate has a Gamma law."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.beliefs.pairs import Pairs
from doublesampling.beliefs.states import GammaState
from doublesampling.checks import PerArm, settings
from doublesampling.errors import RewardError, SettingError
from doublesampling.rules import laws

_LEAST, _MOST = 1e-6, 1e12
_LARGEST_COUNT, _LARGEST_TIME = 1e9, 1e50


@settings
class GammaPoisson(Pairs):
    """Rewards are counts, 0, 1, 2, ...; each arm's mean count has a Gamma(shape, rate) law.

    shape and rate are one number for all arms, or one per arm; the prior mean is shape / rate. Choose it no lower than
    the best arm may pay (docs/how-to/rewards.md shows why); the default expects 10, give or take 10. ``discount`` as in
    BetaBernoulli.

    >>> belief = GammaPoisson(arms=2)
    >>> belief.marginals(belief.update(belief.prior(), arm=1, reward=5)).mean.round(3).tolist()
    [10.0, 5.455]
    """

    arms: int
    shape: PerArm = 1.0
    rate: PerArm = 0.1
    discount: float = 1.0
    law: ClassVar[int] = laws.GAMMA
    state_kind: ClassVar[type[GammaState]] = GammaState

    def __post_init__(self) -> None:
        self._check_pair(_LEAST, _MOST)

    def check_reward(self, reward: object) -> float:
        """Return a reward as a number, or raise RewardError where this belief cannot learn from it."""
        wanted = "a count, 0, 1, 2, ..."
        value = checks.real("reward", reward, wanted=wanted, error=RewardError)
        if self._wrong(np.array([value])).any():
            raise RewardError(f"reward must be {wanted} up to 1e9, got {value!r}. For other rewards use Gaussian.")
        return value

    def _wrong(self, rewards: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.asarray((rewards < 0.0) | (rewards != np.floor(rewards)) | (rewards > _LARGEST_COUNT))


@settings
class GammaExponential(Pairs):
    """Rewards are waiting times above 0; one over each arm's mean has a Gamma(shape, rate) law.

    shape and rate are one number for all arms, or one per arm; the prior mean of the expected reward is
    rate / (shape - 1), so shape must be above 1. Choose it no lower than the best arm may pay (docs/how-to/rewards.md
    shows why); the default expects 10. ``discount`` as in BetaBernoulli.

    >>> belief = GammaExponential(arms=2)
    >>> belief.marginals(belief.update(belief.prior(), arm=1, reward=5.0)).mean.tolist()
    [10.0, 7.5]
    """

    arms: int
    shape: PerArm = 2.0
    rate: PerArm = 10.0
    discount: float = 1.0
    law: ClassVar[int] = laws.INVERSE_GAMMA
    state_kind: ClassVar[type[GammaState]] = GammaState

    def __post_init__(self) -> None:
        self._check_pair(_LEAST, _MOST)
        if np.min(self.shape) <= 1.0:
            raise SettingError(f"shape must be above 1, got {checks.shown(self.shape)}. Else no mean is expected.")

    def check_reward(self, reward: object) -> float:
        """Return a reward as a number, or raise RewardError where this belief cannot learn from it."""
        wanted = "a time above 0"
        value = checks.real("reward", reward, wanted=wanted, error=RewardError)
        if self._wrong(np.array([value])).any():
            raise RewardError(f"reward must be {wanted}, at most 1e50, got {value:g}. For other rewards use Gaussian.")
        return value

    def _wrong(self, rewards: NDArray[np.float64]) -> NDArray[np.bool_]:
        return (rewards <= 0.0) | (rewards > _LARGEST_TIME)
