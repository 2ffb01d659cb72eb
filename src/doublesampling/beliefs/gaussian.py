"""Gaussian rewards, with or without a context: each arm has a Normal-Inverse-Gamma law."""

import math
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.beliefs.common import check_rewards, check_state
from doublesampling.beliefs.contexts import HUGE, TINY, WithContext
from doublesampling.beliefs.marginals import Marginals
from doublesampling.beliefs.states import NormalInverseGammaState, state_from_json
from doublesampling.checks import PerArm, settings
from doublesampling.errors import RewardError
from doublesampling.features import ContextLike, ContextsLike, Features
from doublesampling.rules import laws, updates

FloatArray = NDArray[np.float64]


class _NormalInverseGamma:
    """What LinearGaussian and Gaussian share: NIG(u, V, alpha, beta) per arm, V kept as its square root."""

    law: ClassVar[int] = laws.STUDENT
    binary: ClassVar[bool] = False
    arms: int
    alpha: PerArm
    beta: PerArm
    noise: PerArm | None
    discount: float

    def _check_common(self) -> None:
        fix = object.__setattr__
        fix(self, "arms", checks.arm_count(self.arms))
        # below 0.05 the law of the expected reward reaches beyond the range of floating-point numbers
        fix(self, "alpha", checks.per_arm("alpha", self.alpha, self.arms, least=0.05, most=1e12))
        fix(self, "beta", checks.per_arm("beta", self.beta, self.arms, least=TINY, most=HUGE))
        fix(self, "discount", checks.discount(self.discount))
        if self.noise is not None:
            fix(self, "noise", checks.per_arm("noise", self.noise, self.arms, least=TINY, most=HUGE))

    @cached_property
    def _prior_mean(self) -> FloatArray:
        raise NotImplementedError

    @cached_property
    def _prior_root(self) -> FloatArray:
        raise NotImplementedError

    @cached_property
    def known_noise(self) -> FloatArray:
        """Return the noise of each arm, nan where it is learned; float array (arm)."""
        return np.ones(self.arms) * (np.nan if self.noise is None else self.noise)

    @cached_property
    def anchors(self) -> FloatArray:
        """Return the pseudo-observations that pull a forgetting posterior to its prior: rules.posterior.nig_forget."""
        arms, size = self._prior_mean.shape
        anchors = np.zeros((arms, size + 1, size + 2))
        # rows x_k with sum x_k x_k^T = (1 - discount) V_0^-1, each paid as the prior mean expects
        contexts = math.sqrt(1.0 - self.discount) * np.linalg.inv(self._prior_root)
        anchors[:, :size, :size] = contexts
        anchors[:, :size, size] = np.einsum("akd,ad->ak", contexts, self._prior_mean)
        anchors[:, size, 0], anchors[:, size, 1], anchors[:, size, 2] = self.discount, self.alpha, self.beta
        return anchors

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        arms, size = self._prior_mean.shape
        return {"counts": (arms,), "mean": (arms, size), "root": (arms, size, size), "alpha": (arms,), "beta": (arms,)}

    def _context(self, context: ContextLike | None) -> FloatArray:
        raise NotImplementedError

    def check_contexts(self, contexts: ContextsLike | None, count: int) -> FloatArray:
        """Return contexts as the rules take them, float array (observation, entry)."""
        raise NotImplementedError

    def prior(self) -> NormalInverseGammaState:
        """Return the prior as a state, before any observation."""
        counts, ones = np.zeros(self.arms, dtype=np.int64), np.ones(self.arms)
        mean, root = self._prior_mean.copy(), self._prior_root.copy()
        return NormalInverseGammaState(counts, mean, root, ones * self.alpha, ones * self.beta)

    def check_reward(self, reward: object) -> float:
        """Return a reward as a number, or raise RewardError where this belief cannot learn from it."""
        value = checks.real("reward", reward, error=RewardError)
        if abs(value) > HUGE:
            raise RewardError(f"reward must lie within 1e50 of 0, got {value:g}. Choose a larger unit.")
        return value

    def update(
        self, state: NormalInverseGammaState, arm: int, reward: float, context: ContextLike | None = None
    ) -> NormalInverseGammaState:
        """Return the posterior after one observation."""
        check_state(self, state, NormalInverseGammaState, self._shapes)
        arm, reward, x = checks.arm_index(arm, self.arms), self.check_reward(reward), self._context(context)
        return self._learn(state, np.array([arm]), np.array([reward]), x[None])

    def update_in_order(
        self,
        state: NormalInverseGammaState,
        arms: ArrayLike,
        rewards: ArrayLike,
        contexts: ContextsLike | None = None,
    ) -> NormalInverseGammaState:
        """Return the posterior after many observations, learned in order: bit for bit that of repeated updates."""
        return self._learn(state, *self._history(state, arms, rewards, contexts))

    def _history(
        self, state: NormalInverseGammaState, arms: ArrayLike, rewards: ArrayLike, contexts: ContextsLike | None
    ) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        check_state(self, state, NormalInverseGammaState, self._shapes)
        played = checks.arm_indices(arms, self.arms)
        paid = check_rewards(rewards, played)
        for i in np.flatnonzero(np.abs(paid) > HUGE)[:1]:
            self.check_reward(paid[i])
        return played, paid, self.check_contexts(contexts, played.size)

    def _learn(
        self, state: NormalInverseGammaState, arms: NDArray[np.int64], rewards: FloatArray, contexts: FloatArray
    ) -> NormalInverseGammaState:
        mean, root, alpha, beta = (part.copy() for part in (state.mean, state.root, state.alpha, state.beta))
        updates.nig_follow(mean, root, alpha, beta, arms, contexts, rewards, self.discount < 1.0, self.anchors)
        counts = state.counts + np.bincount(arms, minlength=self.arms)
        return NormalInverseGammaState(counts, mean, root, alpha, beta)

    def update_batch(
        self,
        state: NormalInverseGammaState,
        arms: ArrayLike,
        rewards: ArrayLike,
        contexts: ContextsLike | None = None,
    ) -> NormalInverseGammaState:
        """Return the posterior after many observations; if one of them is wrong, nothing is learned."""
        played, paid, x = self._history(state, arms, rewards, contexts)
        if self.discount < 1.0:  # how long ago each reward was matters
            return self._learn(state, played, paid, x)
        counts, mean, root = state.counts.copy(), state.mean.copy(), state.root.copy()
        alpha, beta = state.alpha.copy(), state.beta.copy()
        for arm in np.unique(played):
            mine = played == arm
            counts[arm] += int(mine.sum())
            alpha[arm] += 0.5 * int(mine.sum())
            mean[arm], root[arm], residual = least_squares(mean[arm], root[arm], x[mine], paid[mine])
            beta[arm] += 0.5 * residual
        return NormalInverseGammaState(counts, mean, root, alpha, beta)

    def marginals(self, state: NormalInverseGammaState, context: ContextLike | None = None) -> Marginals:
        """Return the posterior of each arm's expected reward at a context: Student t, normal where noise is known."""
        check_state(self, state, NormalInverseGammaState, self._shapes)
        x = self._context(context)
        return Marginals(
            self.law, updates.nig_marginals(state.mean, state.root, state.alpha, state.beta, self.known_noise, x)
        )

    def state_from_json(self, text: str | bytes) -> NormalInverseGammaState:
        """Return the state that ``state.to_json()`` wrote."""
        return state_from_json(text, NormalInverseGammaState, self._shapes)


def least_squares(
    mean: FloatArray, root: FloatArray, contexts: FloatArray, rewards: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """The paper's batch update of u and V, and what it adds to 2 beta.

    In the coordinates w = u + root v the posterior of v is a ridge regression: a QR decomposition of the data under
    the identity solves it without ever forming or inverting V.
    """
    size = mean.size
    table = np.hstack([np.eye(size + 1, size), np.zeros((size + 1, 1))])
    for start in range(0, len(rewards), 65536):  # a bounded piece of the history at a time
        rows = slice(start, start + 65536)
        left = rewards[rows] - contexts[rows] @ mean
        stacked = np.vstack([table, np.column_stack([contexts[rows] @ root, left])])
        table = np.asarray(np.linalg.qr(stacked, mode="r"))
    triangle, projected = table[:size, :size], table[:size, size]
    new_root: FloatArray = np.triu(np.linalg.solve(triangle.T, root.T).T)
    return mean + new_root @ projected, new_root, float(table[size, size] ** 2)


@settings
class LinearGaussian(WithContext, _NormalInverseGamma):
    """Linear regression per arm: rewards are x^T w_a plus Gaussian noise; the prior is Normal-Inverse-Gamma.

    ``mean`` is u_0: one number, one per dimension, or (arm, dimension). ``covariance`` is V_0, in units of the noise
    variance: one number (times the identity), a matrix, or one matrix per arm. ``noise`` is the standard deviation of
    the reward where it is known (alpha and beta then do not matter); None learns it. A ``discount`` below 1 forgets:
    before each observation every arm's posterior fades towards its prior by this factor, for worlds that drift.

    The default prior, ``mean=0`` and ``covariance=10``, expects nothing of a weight and is soon convinced. The paper's
    prior, ``mean=1`` and ``covariance=1``, is ``LinearGaussian.as_published(arms=2, dimension=2)``; it suits the
    paper's problems and few others (docs/how-to/rewards.md has regrets with both).

    Contexts are used as they come: x^T w has no constant of its own, so put a 1 first if arms differ by an intercept;
    scale numbers to about mean 0 and standard deviation 1; give categories one column each of 0 and 1 (one-hot). With
    ``features=ds.Features(...)`` contexts may be records, and all of this is done for you (docs/how-to/features.md).

    >>> belief = LinearGaussian(arms=2, dimension=2)
    >>> state = belief.update(belief.prior(), arm=0, reward=1.1, context=[1.0, 0.0])
    >>> state.mean[0].round(6).tolist()
    [1.0, 0.0]
    """

    arms: int
    dimension: int = None  # type: ignore[assignment]
    mean: Any = 0.0
    covariance: Any = 10.0
    alpha: PerArm = 1.0
    beta: PerArm = 1.0
    noise: PerArm | None = None
    discount: float = 1.0
    features: Features | None = None

    def __post_init__(self) -> None:
        self._check_common()
        self._check_context_settings()

    @classmethod
    def as_published(cls, *, arms: int, dimension: int, **changes: Any) -> Self:
        """Make the belief with the paper's prior: u_0 = 1 in every entry, V_0 = I, alpha_0 = beta_0 = 1."""
        return cls(arms=arms, dimension=dimension, **({"mean": 1.0, "covariance": 1.0} | changes))


@settings
class Gaussian(_NormalInverseGamma):
    """Rewards are Gaussian with unknown mean, and unknown or known noise: LinearGaussian without a context.

    ``variance`` is that of the mean's prior, in units of the noise variance; ``discount`` as in LinearGaussian. The
    default prior, ``mean=0`` and ``variance=10``, is soon convinced of a mean far from 0 (docs/how-to/rewards.md).

    >>> belief = Gaussian(arms=2)
    >>> belief.marginals(belief.update(belief.prior(), arm=1, reward=3.3)).mean.round(6).tolist()
    [0.0, 3.0]
    """

    arms: int
    mean: PerArm = 0.0
    variance: PerArm = 10.0
    alpha: PerArm = 1.0
    beta: PerArm = 1.0
    noise: PerArm | None = None
    discount: float = 1.0
    dimension: ClassVar[None] = None

    def __post_init__(self) -> None:
        self._check_common()
        object.__setattr__(self, "mean", checks.per_arm("mean", self.mean, self.arms, least=-HUGE, most=HUGE))
        found = checks.per_arm("variance", self.variance, self.arms, least=TINY, most=HUGE)
        object.__setattr__(self, "variance", found)

    @cached_property
    def _prior_mean(self) -> FloatArray:
        return (np.ones(self.arms) * self.mean)[:, None]

    @cached_property
    def _prior_root(self) -> FloatArray:
        return np.sqrt(np.ones(self.arms) * self.variance)[:, None, None]

    def _context(self, context: ContextLike | None) -> FloatArray:
        checks.no_context(context)
        return np.ones(1)

    def check_contexts(self, contexts: ContextsLike | None, count: int) -> FloatArray:
        """Return the constant 1 that this belief sees at every observation."""
        checks.no_context(contexts)
        return np.ones((count, 1))
