"""Gaussian rewards with weights that all arms share and weights of each arm: the hybrid linear model."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.beliefs.common import check_rewards, check_state
from doublesampling.beliefs.contexts import HUGE, TINY, TakesContext
from doublesampling.beliefs.gaussian import least_squares
from doublesampling.beliefs.joint import JointStudent
from doublesampling.beliefs.states import JointState, state_from_json
from doublesampling.checks import frozen, settings
from doublesampling.errors import RewardError, SettingError
from doublesampling.features import ContextLike, ContextsLike, Features
from doublesampling.rules import updates

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_MOST_WEIGHTS = 2000  # a state holds their square


@settings
class HybridLinearGaussian(TakesContext):
    """Rewards are z_a^T b + x^T w_a plus Gaussian noise: weights b that all arms share, and weights w_a of each arm.

    What is learned from one arm tells something of the others, so the arms depend on each other. ``shared`` and ``own``
    list the entries of the context that have a weight for all arms, and a weight per arm: numbers from 0 or, with
    ``features``, names of columns or fields. By default every entry has both, which draws the weights of all arms
    towards common ones. z_a are the shared entries; with ``attributes``, an array (arm, attribute) such as a dose, z_a
    also holds their products with every attribute of the arm.

    All weights are N(0, variance) at first, in units of the noise variance: ``shared_variance`` and ``own_variance``.
    ``noise`` is the standard deviation of the reward where it is known, else it is learned with an inverse gamma prior
    (``alpha``, ``beta``); it is the same for all arms. The probability of being the best is exact for two arms; for
    more it is a share of ``many`` posterior draws. Simulations play it in plain Python, more slowly than others.

    >>> belief = HybridLinearGaussian(arms=3, dimension=2, own=[0])
    >>> state = belief.update(belief.prior(), arm=0, reward=2.2, context=[1.0, 1.0])
    >>> belief.marginals(state, [1.0, 1.0]).mean.round(3).tolist()
    [2.129, 1.419, 1.419]
    """

    arms: int
    dimension: int = None  # type: ignore[assignment]
    shared: Sequence[int | str] | None = None
    own: Sequence[int | str] | None = None
    attributes: Any = None
    shared_variance: float = 10.0
    own_variance: float = 10.0
    alpha: float = 1.0
    beta: float = 1.0
    noise: float | None = None
    many: int = 2000
    features: Features | None = None
    binary: ClassVar[bool] = False

    def __post_init__(self) -> None:
        fix = object.__setattr__
        fix(self, "arms", checks.arm_count(self.arms))
        self._check_features()
        for name in ("shared", "own"):
            if getattr(self, name) is not None:
                fix(self, name, self._check_entries(name, getattr(self, name)))
        if self.attributes is not None:
            given = checks.array("attributes", self.attributes, error=SettingError)
            if given.ndim != 2 or given.shape[0] != self.arms or np.abs(given).max(initial=0.0) > HUGE:
                raise SettingError(f"attributes must be numbers, (arm, attribute) with {self.arms} rows.")
            fix(self, "attributes", frozen(given))
        for name in ("shared_variance", "own_variance", "beta"):
            fix(self, name, checks.within(name, getattr(self, name), TINY, HUGE))
        fix(self, "alpha", checks.within("alpha", self.alpha, 0.05, 1e12))
        if self.noise is not None:
            fix(self, "noise", checks.within("noise", self.noise, TINY, HUGE))
        fix(self, "many", checks.integer("many", self.many, least=100, most=10**7))
        if not self._own and self.attributes is None:
            raise SettingError("own is empty and arms have no attributes, so that no arm could be better than another.")
        if self.weights > _MOST_WEIGHTS:
            raise SettingError(
                f"{self.weights} weights are too many: at most {_MOST_WEIGHTS} fit in a joint posterior. List fewer "
                "entries in own=, or use LinearGaussian."
            )

    def _check_entries(self, what: str, given: Any) -> tuple[int | str, ...]:
        if isinstance(given, str) or not isinstance(given, (Sequence, np.ndarray)):
            raise SettingError(f"{what} must list entries of the context, such as [0, 2], got {checks.shown(given)}.")
        found = tuple(each if isinstance(each, str) else checks.integer(
            f"An entry of {what}", each, least=0, most=self.dimension - 1) for each in given)  # fmt: skip
        places = self._places(what, found)
        if len(set(places)) < len(places):
            raise SettingError(f"{what} must list different entries, got {checks.shown(given)}.")
        return found

    def _places(self, what: str, given: Sequence[int | str] | None) -> list[int]:
        """Return the numbers of the entries; a name is that of a column, or of a field with all its columns."""
        if given is None:
            return list(range(self.dimension))
        places: list[int] = []
        for each in given:
            if isinstance(each, str):
                names = self.features.names if self.features is not None else ()
                fields = {f.name: f.columns for f in self.features.fields} if self.features is not None else {}
                wanted = (each,) if each in names else fields.get(each)
                if wanted is None:
                    known = f"The columns are {', '.join(names)}." if names else "Names need features=."
                    raise SettingError(f"{what} has no column {each!r}. {known}")
                places += [names.index(name) for name in wanted]
            else:
                places.append(each)
        return places

    @cached_property
    def _shared(self) -> list[int]:
        return self._places("shared", self.shared)

    @cached_property
    def _own(self) -> list[int]:
        return self._places("own", self.own)

    @cached_property
    def _multipliers(self) -> FloatArray:
        """A one and the attributes of each arm, float array (arm, 1 + attribute)."""
        ones = np.ones((self.arms, 1))
        return ones if self.attributes is None else np.hstack([ones, np.array(self.attributes)])

    @property
    def weights(self) -> int:
        """How many weights there are, shared ones and those of all arms."""
        return len(self._shared) * int(self._multipliers.shape[1]) + self.arms * len(self._own)

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        size = self.weights
        return {"counts": (self.arms,), "mean": (size,), "root": (size, size), "alpha": (1,), "beta": (1,)}

    def design_rows(self, arms: IntArray, contexts: FloatArray) -> FloatArray:
        """Return what multiplies the weights, float array (observation, weight): shared ones, then arm after arm."""
        count, own = arms.size, self.arms * len(self._own)
        rows = np.zeros((count, self.weights))
        common = self._multipliers[arms][:, :, None] * contexts[:, None, self._shared]
        rows[:, : self.weights - own] = common.reshape(count, self.weights - own)
        apart = rows[:, self.weights - own :].reshape(count, self.arms, len(self._own))
        apart[np.arange(count), arms] = contexts[:, self._own]
        rows[:, self.weights - own :] = apart.reshape(count, own)
        return rows

    def prior(self) -> JointState:
        """Return the prior as a state, before any observation."""
        own = self.arms * len(self._own)
        variances = np.repeat([self.shared_variance, self.own_variance], [self.weights - own, own])
        counts, root = np.zeros(self.arms, dtype=np.int64), np.diag(np.sqrt(variances))
        return JointState(counts, np.zeros(self.weights), root, np.array([self.alpha]), np.array([self.beta]))

    def check_reward(self, reward: object) -> float:
        """Return a reward as a number, or raise RewardError where this belief cannot learn from it."""
        value = checks.real("reward", reward, error=RewardError)
        if abs(value) > HUGE:
            raise RewardError(f"reward must lie within 1e50 of 0, got {value:g}. Choose a larger unit.")
        return value

    def _history(
        self, state: JointState, arms: Any, rewards: Any, contexts: Any
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        check_state(self, state, JointState, self._shapes)
        played = checks.arm_indices(arms, self.arms)
        paid = check_rewards(rewards, played)
        for i in np.flatnonzero(np.abs(paid) > HUGE)[:1]:
            self.check_reward(paid[i])
        return played, paid, self.design_rows(played, self.check_contexts(contexts, played.size))

    def update(self, state: JointState, arm: int, reward: float, context: ContextLike | None = None) -> JointState:
        """Return the posterior after one observation."""
        arm, reward, x = checks.arm_index(arm, self.arms), self.check_reward(reward), self._context(context)
        return self.update_in_order(state, [arm], [reward], x[None])

    def update_in_order(
        self, state: JointState, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None
    ) -> JointState:
        """Return the posterior after many observations, learned in order: bit for bit that of repeated updates."""
        played, paid, rows = self._history(state, arms, rewards, contexts)
        mean, root, alpha, beta = (part.copy() for part in (state.mean, state.root, state.alpha, state.beta))
        one, nothing = np.zeros(played.size, dtype=np.int64), np.zeros((1, 1, 1))
        updates.nig_follow(mean[None], root[None], alpha, beta, one, rows, paid, False, nothing)
        return JointState(state.counts + np.bincount(played, minlength=self.arms), mean, root, alpha, beta)

    def update_batch(
        self, state: JointState, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None = None
    ) -> JointState:
        """Return the posterior after many observations; if one of them is wrong, nothing is learned."""
        played, paid, rows = self._history(state, arms, rewards, contexts)
        mean, root, residual = least_squares(state.mean, state.root, rows, paid)
        counts = state.counts + np.bincount(played, minlength=self.arms)
        return JointState(counts, mean, root, state.alpha + 0.5 * played.size, state.beta + 0.5 * residual)

    def marginals(self, state: JointState, context: ContextLike | None = None) -> JointStudent:
        """The joint law of the expected rewards at a context: Student, or normal where the noise is known."""
        check_state(self, state, JointState, self._shapes)
        x = np.tile(self._context(context), (self.arms, 1))
        rows = self.design_rows(np.arange(self.arms), x)
        alpha, beta = float(state.alpha[0]), float(state.beta[0])
        scale, freedom = (np.sqrt(beta / alpha), 2.0 * alpha) if self.noise is None else (self.noise, np.inf)
        # summed position by position: arms whose own entries are all zero get the same location to the last bit
        location = (rows * state.mean).sum(axis=1)
        return JointStudent(self.many, location, scale * (rows @ state.root), float(freedom))

    def state_from_json(self, text: str | bytes) -> JointState:
        """Return the state that ``state.to_json()`` wrote."""
        return state_from_json(text, JointState, self._shapes)
