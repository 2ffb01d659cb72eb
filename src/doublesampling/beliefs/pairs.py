"""What beliefs of two numbers per arm share: Beta and Gamma laws, learned one observation after another."""

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.beliefs.common import check_rewards, check_state
from doublesampling.beliefs.marginals import Marginals
from doublesampling.beliefs.states import PairState, state_from_json
from doublesampling.errors import RewardError
from doublesampling.features import ContextLike, ContextsLike
from doublesampling.rules import updates

FloatArray = NDArray[np.float64]


class Pairs:
    """A belief whose state holds two numbers per arm, named as its settings are."""

    law: ClassVar[int]
    dimension: ClassVar[None] = None
    binary: ClassVar[bool] = False
    state_kind: ClassVar[type[PairState]]
    arms: int
    discount: float

    def _check_pair(self, least: float, most: float) -> None:
        fix = object.__setattr__
        fix(self, "arms", checks.arm_count(self.arms))
        for name in self.state_kind.names():
            fix(self, name, checks.per_arm(name, getattr(self, name), self.arms, least=least, most=most))
        fix(self, "discount", checks.discount(self.discount))

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return dict.fromkeys(("counts", *self.state_kind.names()), (self.arms,))

    @cached_property
    def _prior_pair(self) -> tuple[FloatArray, FloatArray]:
        first, second = (np.ones(self.arms) * getattr(self, name) for name in self.state_kind.names())
        return first, second

    @cached_property
    def _learning(self) -> tuple[Any, ...]:
        """The names of the two numbers, the compiled update, and what it takes that no observation changes."""
        bounds = self.state_kind.bounds_array()
        return self.state_kind.names(), updates.learn_one(self.law), *self._prior_pair, self.discount, bounds

    def prior(self) -> Any:
        """Return the prior as a state, before any observation."""
        first, second = self._prior_pair
        return self._state(np.zeros(self.arms, dtype=np.int64), first.copy(), second.copy())

    def _state(self, counts: NDArray[np.int64], first: FloatArray, second: FloatArray) -> Any:
        parts: tuple[Any, ...] = (counts, first, second)
        return self.state_kind(**dict(zip(self._shapes, parts, strict=True)))

    def check_state(self, state: object) -> None:
        """Refuse a state of another kind or size."""
        check_state(self, state, self.state_kind, self._shapes)

    def check_reward(self, reward: object) -> float:
        """Return a reward as a number, or raise RewardError where this belief cannot learn from it."""
        raise NotImplementedError

    def _wrong(self, rewards: FloatArray) -> NDArray[np.bool_]:
        """Return which rewards this belief cannot learn from."""
        raise NotImplementedError

    def update(self, state: Any, arm: int, reward: float, context: ContextLike | None = None) -> Any:
        """Return the posterior after one observation."""
        self.check_state(state)
        arm, reward = checks.arm_index(arm, self.arms), self.check_reward(reward)
        checks.no_context(context)
        names, learn, *constants = self._learning
        counts, first, second = state.counts.copy(), getattr(state, names[0]).copy(), getattr(state, names[1]).copy()
        counts[arm] += 1
        if learn(first, second, arm, reward, *constants):
            return self.state_kind.checked({"counts": counts, names[0]: first, names[1]: second})
        return self._state(counts, first, second)  # says what is out of bounds

    def update_batch(
        self, state: Any, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None
    ) -> Any:
        """Return the posterior after many observations; if one of them is wrong, nothing is learned."""
        self.check_state(state)
        checks.no_context(contexts)
        played = checks.arm_indices(arms, self.arms)
        paid = check_rewards(rewards, played)
        for first in np.flatnonzero(self._wrong(paid))[:1]:
            try:
                self.check_reward(paid[first])
            except RewardError as problem:
                raise RewardError(f"At index {first}: {problem}") from None
        return self._learn(state, played, paid)

    def update_in_order(
        self, state: Any, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None
    ) -> Any:
        """Return the posterior after many observations, learned in order: bit for bit that of repeated updates."""
        return self.update_batch(state, arms, rewards, contexts)

    def _learn(self, state: Any, arms: NDArray[np.int64], rewards: FloatArray) -> Any:
        first, second = (part.copy() for part in state.pair)
        updates.pairs_follow(self.law, first, second, arms, rewards, *self._prior_pair, self.discount)
        return self._state(state.counts + np.bincount(arms, minlength=self.arms), first, second)

    def marginals(self, state: Any, context: ContextLike | None = None) -> Marginals:
        """Return the posterior distribution of each arm's expected reward."""
        self.check_state(state)
        checks.no_context(context)
        parameters = np.zeros((self.arms, 3))
        first, second = self.state_kind.names()
        parameters[:, 0], parameters[:, 1] = getattr(state, first), getattr(state, second)
        return Marginals(self.law, parameters)

    def state_from_json(self, text: str | bytes) -> Any:
        """Return the state that ``state.to_json()`` wrote."""
        return state_from_json(text, self.state_kind, self._shapes)
