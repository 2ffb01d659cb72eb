"""Rewards in categories, each of a known value: each arm's probabilities have a Dirichlet law."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.beliefs.common import check_rewards, check_state
from doublesampling.beliefs.marginals import DirichletMeans
from doublesampling.beliefs.states import DirichletState, state_from_json
from doublesampling.checks import frozen, settings
from doublesampling.errors import RewardError, SettingError
from doublesampling.features import ContextLike, ContextsLike
from doublesampling.rules import updates

FloatArray = NDArray[np.float64]


@settings
class DirichletCategorical:
    """Rewards are one of a few ``values``; the prior of each arm's probabilities is Dirichlet(concentration).

    ``concentration`` is one number, one per category, or (arm, category). ``discount`` as in BetaBernoulli. The mean
    value has no density of its own: decisions sample it, as the paper does, and settings that ask for exact
    probabilities (``samples=None``, Thompson sampling's propensities) get those of ten thousand samples; ``simulate``
    takes a thousand for policies that do not say how many.

    >>> belief = DirichletCategorical(arms=2, values=[0, 1, 10])
    >>> belief.marginals(belief.update(belief.prior(), arm=1, reward=10)).mean.round(3).tolist()
    [3.667, 5.25]
    """

    arms: int
    values: Sequence[float]
    concentration: Any = 1.0
    discount: float = 1.0
    many: ClassVar[int] = 10_000
    dimension: ClassVar[None] = None
    binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        fix = object.__setattr__
        fix(self, "arms", checks.arm_count(self.arms))
        given = checks.different_numbers("values", self.values)
        fix(self, "values", frozen(given))
        weights = checks.array("concentration", self.concentration, error=SettingError)
        shape = (self.arms, given.size)
        if weights.shape not in ((), shape[1:], shape):
            raise SettingError(f"concentration must be one number or have shape {shape[1:]} or {shape}.")
        if weights.min() < 1e-6 or weights.max() > 1e12:
            raise SettingError(f"concentration must be from 1e-06 to 1e+12, got {checks.shown(self.concentration)}.")
        fix(self, "concentration", frozen(weights))
        fix(self, "discount", checks.discount(self.discount))

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"counts": (self.arms,), "concentration": (self.arms, len(self.values))}

    @cached_property
    def _prior(self) -> FloatArray:
        return np.array(np.broadcast_to(np.asarray(self.concentration), self._shapes["concentration"]))

    def prior(self) -> DirichletState:
        """Return the prior as a state, before any observation."""
        return DirichletState(np.zeros(self.arms, dtype=np.int64), self._prior.copy())

    def check_reward(self, reward: object) -> float:
        """Return a reward as a number, or raise RewardError where this belief cannot learn from it."""
        value = checks.real("reward", reward, wanted="one of the values", error=RewardError)
        if value not in self.values:
            raise RewardError(f"reward must be one of {self.values}, got {value:g}. Name every value at the start.")
        return value

    def update(
        self, state: DirichletState, arm: int, reward: float, context: ContextLike | None = None
    ) -> DirichletState:
        """Return the posterior after one observation."""
        checks.no_context(context)
        return self.update_batch(state, [checks.arm_index(arm, self.arms)], [self.check_reward(reward)])

    def update_batch(
        self, state: DirichletState, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None
    ) -> DirichletState:
        """Return the posterior after many observations; if one of them is wrong, nothing is learned."""
        check_state(self, state, DirichletState, self._shapes)
        checks.no_context(contexts)
        played = checks.arm_indices(arms, self.arms)
        paid = check_rewards(rewards, played)
        hits = paid[:, None] == np.array(self.values)
        for first in np.flatnonzero(~hits.any(axis=1))[:1]:
            raise RewardError(f"At index {first}: reward must be one of {self.values}, got {paid[first]:g}.")
        weights = state.concentration.copy()
        updates.categories_follow(weights, self._prior, self.discount, played, hits.argmax(axis=1))
        return DirichletState(state.counts + np.bincount(played, minlength=self.arms), weights)

    def update_in_order(
        self, state: DirichletState, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None
    ) -> DirichletState:
        """Return the posterior after many observations, learned in order: bit for bit that of repeated updates."""
        return self.update_batch(state, arms, rewards, contexts)

    def marginals(self, state: DirichletState, context: ContextLike | None = None) -> DirichletMeans:
        """Return the posterior distribution of each arm's mean value."""
        check_state(self, state, DirichletState, self._shapes)
        checks.no_context(context)
        return DirichletMeans(self.many, state.concentration, np.array(self.values))

    def state_from_json(self, text: str | bytes) -> DirichletState:
        """Return the state that ``state.to_json()`` wrote."""
        return state_from_json(text, DirichletState, self._shapes)
