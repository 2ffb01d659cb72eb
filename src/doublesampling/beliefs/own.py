"""Beliefs of your own: three methods in plain Python, and everything else that a belief offers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks, html
from doublesampling.beliefs.common import check_rewards
from doublesampling.beliefs.marginals import DrawnLaws, draws_that_fit
from doublesampling.errors import DrawsError, RewardError, StateError

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OwnState:
    """What a belief of your own has learned: a value of its own, and the observations per arm."""

    counts: NDArray[np.int64]
    value: Any

    @property
    def observations(self) -> int:
        """How many rewards have been absorbed, over all arms."""
        return int(self.counts.sum())

    def _repr_html_(self) -> str:
        """A table for a notebook: the observations of each arm, and the value."""
        rows = html.table(enumerate(self.counts.tolist()), ["arm", "observations"], caption="OwnState")
        return html.block(rows, html.line("value:", checks.shown(self.value)))

    def to_json(self) -> str:
        """Return the state as JSON text; the value must be made of numbers, texts, lists and dictionaries."""
        try:
            return json.dumps({"counts": self.counts.tolist(), "value": self.value}, allow_nan=False)
        except (TypeError, ValueError) as problem:
            raise StateError(
                f"The value of this state cannot be stored as JSON: {problem}. Use lists and numbers."
            ) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OwnState) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())


class OwnBelief:
    """A belief of your own. Subclass it, set ``arms``, and write ``start``, ``learn`` and ``draws``.

    It then works in ``decide``, ``simulate``, ``compare``, ``Experiment`` and replay, with every policy that needs no
    wins and losses. Values are made of numbers, texts, lists and dictionaries, so that they can be stored.

    >>> class Counting(OwnBelief):
    ...     def __init__(self, arms):
    ...         self.arms = arms
    ...     def start(self):
    ...         return [[1, 1] for _ in range(self.arms)]
    ...     def learn(self, value, arm, reward, context):
    ...         wins, losses = value[arm]
    ...         return value[:arm] + [[wins + reward, losses + 1 - reward]] + value[arm + 1:]
    ...     def draws(self, value, context, samples, rng):
    ...         wins, losses = np.array(value).T
    ...         return rng.beta(wins, losses, size=(samples, self.arms))
    >>> belief = Counting(arms=2)
    >>> belief.update(belief.prior(), arm=1, reward=1).value
    [[1, 1], [2.0, 1.0]]
    """

    arms: int
    dimension: int | None = None
    binary: bool = False
    many: ClassVar[int] = 1000
    """Draws where a policy asks for exact probabilities."""

    def start(self) -> Any:
        """Return the value before any observation."""
        raise NotImplementedError

    def learn(self, value: Any, arm: int, reward: float, context: Any) -> Any:
        """Return the value after one observation; never change the one that is given."""
        raise NotImplementedError

    def draws(self, value: Any, context: Any, samples: int, rng: np.random.Generator) -> ArrayLike:
        """Return posterior draws of the expected rewards, (sample, arm), by the generator that is given."""
        raise NotImplementedError

    def check_reward(self, reward: object) -> float:
        """Return a finite reward; override it to refuse others."""
        return checks.real("reward", reward, error=RewardError)

    def prior(self) -> OwnState:
        """Return the state before any observation."""
        return OwnState(np.zeros(self.arms, dtype=np.int64), self.start())

    def update(self, state: OwnState, arm: int, reward: float, context: Any = None) -> OwnState:
        """Return the state after one observation."""
        if not isinstance(state, OwnState):
            raise StateError(f"{type(self).__name__} needs an OwnState, got {checks.shown(state)}. Start from prior().")
        arm, reward = checks.arm_index(arm, self.arms), self.check_reward(reward)
        counts = state.counts.copy()
        counts[arm] += 1
        return OwnState(counts, self.learn(state.value, arm, reward, context))

    def update_batch(self, state: OwnState, arms: ArrayLike, rewards: ArrayLike, contexts: Any = None) -> OwnState:
        """Return the state after a history: all of it, or an error and none of it."""
        played = checks.arm_indices(arms, self.arms)
        paid = check_rewards(rewards, played)
        shown: Sequence[Any] = [None] * played.size if contexts is None else contexts
        for arm, reward, context in zip(played.tolist(), paid.tolist(), shown, strict=True):
            state = self.update(state, arm, reward, context)
        return state

    def update_in_order(self, state: OwnState, arms: ArrayLike, rewards: ArrayLike, contexts: Any = None) -> OwnState:
        """Return the state after a history, one observation after another."""
        return self.update_batch(state, arms, rewards, contexts)

    def marginals(self, state: OwnState, context: Any = None) -> "OwnLaws":
        """Return the laws of the expected rewards, known by draws."""
        return OwnLaws(self.many, self, state.value, context)

    def state_from_json(self, text: str | bytes) -> OwnState:
        """Return the state that ``state.to_json()`` wrote."""
        try:
            content = json.loads(text)
            counts, value = np.array(content["counts"], dtype=np.int64), content["value"]
        except (ValueError, TypeError, KeyError):
            raise StateError("This JSON does not hold an OwnState. Pass what state.to_json() returned.") from None
        if counts.shape != (self.arms,):
            raise StateError(f"counts must have shape ({self.arms},) for this belief, got {counts.shape}.")
        return OwnState(counts, value)


@dataclass(frozen=True, eq=False)
class OwnLaws(DrawnLaws):
    """The laws of a belief of your own, known by its draws."""

    belief: OwnBelief
    value: Any
    context: Any
    active: tuple[int, ...] | None = field(default=None)

    @property
    def arms(self) -> int:
        """The number of arms."""
        return self.belief.arms if self.active is None else len(self.active)

    def only(self, arms: ArrayLike) -> "OwnLaws":
        """Return the laws of some arms."""
        return OwnLaws(self.many, self.belief, self.value, self.context, tuple(np.asarray(arms).tolist()))

    def draws_at(self, samples: int, words: NDArray[np.uint64]) -> FloatArray:
        """Return posterior draws, float array (sample, arm), at a random address."""
        count = draws_that_fit(samples, self.belief.arms)
        rng = np.random.default_rng([int(word) for word in words])
        name = f"{type(self.belief).__name__}.draws"
        found = checks.array(name, self.belief.draws(self.value, self.context, count, rng), error=DrawsError)
        if found.shape != (count, self.belief.arms):
            raise DrawsError(f"{name} must return an array ({count}, {self.belief.arms}), got shape {found.shape}.")
        return found if self.active is None else np.ascontiguousarray(found[:, list(self.active)])
