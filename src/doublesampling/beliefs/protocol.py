"""What every belief offers: the complete interface that decisions, simulations and live experiments use."""

from typing import Any, Protocol, TypeVar

from numpy.typing import ArrayLike

from doublesampling.beliefs.marginals import DrawnLaws, Marginals
from doublesampling.features import ContextLike, ContextsLike

S = TypeVar("S")


class Belief(Protocol[S]):
    """What a reward teaches about its arm, with states of type S. A belief never changes; neither do its states.

    To write one of your own, subclass ``OwnBelief``, which needs three methods and has all the others.
    """

    @property
    def arms(self) -> int:
        """The number of arms."""

    @property
    def dimension(self) -> int | None:
        """The length of a context; None for beliefs that take none."""

    @property
    def binary(self) -> bool:
        """Whether rewards are 0 or 1."""

    def prior(self) -> S:
        """Return the state before any observation."""

    def check_reward(self, reward: object) -> float:
        """Return a reward that this belief can absorb, or raise RewardError."""

    def update(self, state: S, arm: int, reward: float, context: ContextLike | None = None) -> S:
        """Return the state after one observation."""

    def update_batch(self, state: S, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None) -> S:
        """Return the state after a history: all of it, or an error and none of it."""

    def update_in_order(self, state: S, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None) -> S:
        """Return the state after a history, to the last bit that of one update after another."""

    def marginals(self, state: S, context: ContextLike | None = None) -> Marginals | DrawnLaws:
        """Return the law of each arm's expected reward."""

    def state_from_json(self, text: str | bytes) -> S:
        """Return the state that ``state.to_json()`` wrote."""


AnyBelief = Belief[Any]
