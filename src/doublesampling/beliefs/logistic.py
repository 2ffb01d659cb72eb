"""Rewards of 0 or 1 with a context: logistic regression, its weights normal by Laplace's method."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.beliefs.common import check_rewards, check_state
from doublesampling.beliefs.contexts import WithContext
from doublesampling.beliefs.marginals import Marginals
from doublesampling.beliefs.states import NormalState, state_from_json
from doublesampling.checks import settings
from doublesampling.errors import RewardError
from doublesampling.features import ContextLike, ContextsLike, Features
from doublesampling.rules import laws, updates

FloatArray = NDArray[np.float64]


@settings
class Logistic(WithContext):
    """Logistic regression per arm: rewards are 1 with log odds x^T w_a, else 0; the prior of w_a is normal.

    ``mean`` and ``covariance`` of the prior are given as in LinearGaussian, in units of log odds; ``features`` too, for
    contexts that are records. The posterior is approximated by Laplace's method after each observation: a normal
    distribution at the new mode with the curvature found there. It is not conjugate, so the order of the observations
    matters a little, and many observations are learned in order.

    >>> belief = Logistic(arms=2, dimension=2)
    >>> state = belief.update(belief.prior(), arm=0, reward=1, context=[1.0, 0.0])
    >>> state.mean[0].round(3).tolist()
    [0.401, 0.0]
    """

    arms: int
    dimension: int = None  # type: ignore[assignment]
    mean: Any = 0.0
    covariance: Any = 1.0
    features: Features | None = None
    law: ClassVar[int] = laws.LOGISTIC
    binary: ClassVar[bool] = True
    discount: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", checks.arm_count(self.arms))
        self._check_context_settings()

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        arms, size = self.arms, self.dimension
        return {"counts": (arms,), "mean": (arms, size), "root": (arms, size, size)}

    def prior(self) -> NormalState:
        """Return the prior as a state, before any observation."""
        return NormalState(np.zeros(self.arms, dtype=np.int64), self._prior_mean.copy(), self._prior_root.copy())

    def check_reward(self, reward: object) -> float:
        """Return a reward as a number, or raise RewardError where this belief cannot learn from it."""
        value = checks.real("reward", reward, wanted="0 or 1", error=RewardError)
        if value not in (0.0, 1.0):
            raise RewardError(f"reward must be 0 or 1, got {value:g}. For other rewards use LinearGaussian.")
        return value

    def update(self, state: NormalState, arm: int, reward: float, context: ContextLike | None = None) -> NormalState:
        """Return the posterior after one observation."""
        arm, reward, x = checks.arm_index(arm, self.arms), self.check_reward(reward), self._context(context)
        return self.update_batch(state, [arm], [reward], x[None])

    def update_batch(
        self, state: NormalState, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None
    ) -> NormalState:
        """Return the posterior after many observations, learned in order; if one is wrong, nothing is learned."""
        check_state(self, state, NormalState, self._shapes)
        played = checks.arm_indices(arms, self.arms)
        paid = check_rewards(rewards, played)
        for first in np.flatnonzero((paid != 0.0) & (paid != 1.0))[:1]:
            raise RewardError(f"At index {first}: reward must be 0 or 1, got {paid[first]:g}.")
        x = self.check_contexts(contexts, played.size)
        mean, root = state.mean.copy(), state.root.copy()
        updates.logistic_follow(mean, root, played, x, paid)
        return NormalState(state.counts + np.bincount(played, minlength=self.arms), mean, root)

    def update_in_order(
        self, state: NormalState, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None
    ) -> NormalState:
        """Return the posterior after many observations, learned in order: bit for bit that of repeated updates."""
        return self.update_batch(state, arms, rewards, contexts)

    def marginals(self, state: NormalState, context: ContextLike | None = None) -> Marginals:
        """Return the posterior of each arm's success probability at a context, as that of its log odds."""
        check_state(self, state, NormalState, self._shapes)
        x, ones = self._context(context), np.ones(self.arms)
        return Marginals(self.law, updates.nig_marginals(state.mean, state.root, ones, ones, ones, x))

    def state_from_json(self, text: str | bytes) -> NormalState:
        """Return the state that ``state.to_json()`` wrote."""
        return state_from_json(text, NormalState, self._shapes)
