"""Rewards of 0 or 1: each arm's success probability has a Beta law."""

from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from doublesampling import checks
from doublesampling.beliefs.common import check_rewards, check_state
from doublesampling.beliefs.marginals import Marginals
from doublesampling.beliefs.states import BetaState, state_from_json
from doublesampling.checks import PerArm, settings
from doublesampling.errors import RewardError
from doublesampling.rules import belief as rules
from doublesampling.rules.compiled import plain

_FEWEST, _MOST = 1e-6, 1e12  # prior counts outside could not be told from certainty in double precision


@settings
class BetaBernoulli:
    """Rewards are 0 or 1; each arm's success probability has a Beta(alpha, beta) law.

    alpha and beta are one number for all arms, or one per arm. With ``fractional=True`` a reward strictly between
    0 and 1 counts as that share of a success.

    >>> belief = BetaBernoulli(arms=2)
    >>> state = belief.update(belief.prior(), arm=1, reward=1)
    >>> state.alpha.tolist(), state.beta.tolist()
    ([1.0, 2.0], [1.0, 1.0])
    """

    arms: int
    alpha: PerArm = 1.0
    beta: PerArm = 1.0
    fractional: bool = False
    family: ClassVar[int] = rules.BETA

    def __post_init__(self) -> None:
        fix = object.__setattr__
        fix(self, "arms", checks.arm_count(self.arms))
        for name in ("alpha", "beta"):
            fix(self, name, checks.per_arm(name, getattr(self, name), self.arms, least=_FEWEST, most=_MOST))
        fix(self, "fractional", checks.flag("fractional", self.fractional))

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("counts", "alpha", "beta"), (self.arms,))

    def prior(self) -> BetaState:
        """The state before any observation."""
        ones = np.ones(self.arms)
        return BetaState(np.zeros(self.arms, dtype=np.int64), ones * self.alpha, ones * self.beta)

    def check_reward(self, reward: object) -> float:
        """A reward that this belief can absorb."""
        value = checks.real("reward", reward, wanted="0 or 1", error=RewardError)
        if not 0.0 <= value <= 1.0:
            raise RewardError(f"reward must be 0 or 1, got {value:g}. For other rewards use Gaussian.")
        if not self.fractional and value not in (0.0, 1.0):
            raise RewardError(f"reward must be 0 or 1, got {value:g}. To count shares, set fractional=True.")
        return value

    def update(self, state: BetaState, arm: int, reward: float, context: ArrayLike | None = None) -> BetaState:
        """The state after one observation (sequential update)."""
        check_state(self, state, BetaState, self._shapes)
        arm, reward = checks.arm_index(arm, self.arms), self.check_reward(reward)
        checks.no_context(context)
        counts, alpha, beta = state.counts.copy(), state.alpha.copy(), state.beta.copy()
        counts[arm] += 1
        alpha[arm], beta[arm] = plain(rules.beta_update)(alpha[arm], beta[arm], reward)
        return BetaState(counts, alpha, beta)

    def update_batch(
        self, state: BetaState, arms: ArrayLike, rewards: ArrayLike, contexts: ArrayLike | None = None
    ) -> BetaState:
        """The state after a history (batch update): all of it, or an error and none of it."""
        check_state(self, state, BetaState, self._shapes)
        checks.no_context(contexts)
        played = checks.arm_indices(arms, self.arms)
        paid = check_rewards(rewards, played)
        allowed = (paid >= 0.0) & (paid <= 1.0) if self.fractional else (paid == 0.0) | (paid == 1.0)
        if not allowed.all():
            first = int(np.flatnonzero(~allowed)[0])
            try:
                self.check_reward(paid[first])
            except RewardError as problem:
                raise RewardError(f"At index {first}: {problem}") from None
        wins = np.bincount(played, weights=paid, minlength=self.arms)
        losses = np.bincount(played, weights=1.0 - paid, minlength=self.arms)
        counts = np.bincount(played, minlength=self.arms)
        return BetaState(state.counts + counts, state.alpha + wins, state.beta + losses)

    def marginals(self, state: BetaState, context: ArrayLike | None = None) -> Marginals:
        """The law of each arm's success probability."""
        check_state(self, state, BetaState, self._shapes)
        checks.no_context(context)
        parameters = np.zeros((self.arms, 3))
        parameters[:, 0] = state.alpha
        parameters[:, 1] = state.beta
        return Marginals(self.family, parameters)

    def state_from_json(self, text: str | bytes) -> BetaState:
        """Read a state that ``state.to_json()`` wrote."""
        return state_from_json(text, BetaState, self._shapes)
