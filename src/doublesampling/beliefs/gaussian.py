"""Gaussian rewards, with or without a context: each arm has a Normal-Inverse-Gamma law."""

import math
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from doublesampling import checks
from doublesampling.beliefs.common import check_rewards, check_state
from doublesampling.beliefs.marginals import Marginals
from doublesampling.beliefs.states import NormalInverseGammaState, state_from_json
from doublesampling.checks import PerArm, frozen, settings
from doublesampling.errors import ContextError, RewardError, SettingError
from doublesampling.rules import belief as rules
from doublesampling.rules import doors

FloatArray = NDArray[np.float64]

# no product of a few such numbers leaves the range of floating-point numbers
_TINY, _HUGE = 1e-50, 1e50


class _NormalInverseGamma:
    """What LinearGaussian and Gaussian share: NIG(u, V, alpha, beta) per arm, V kept as its square root."""

    family: ClassVar[int] = rules.STUDENT
    arms: int
    alpha: PerArm
    beta: PerArm
    noise: PerArm | None

    def _check_common(self) -> None:
        fix = object.__setattr__
        fix(self, "arms", checks.arm_count(self.arms))
        # below 0.05 the law of the expected reward reaches beyond the range of floating-point numbers
        fix(self, "alpha", checks.per_arm("alpha", self.alpha, self.arms, least=0.05, most=1e12))
        fix(self, "beta", checks.per_arm("beta", self.beta, self.arms, least=_TINY, most=_HUGE))
        if self.noise is not None:
            fix(self, "noise", checks.per_arm("noise", self.noise, self.arms, least=_TINY, most=_HUGE))

    @cached_property
    def _prior_mean(self) -> FloatArray:
        raise NotImplementedError

    @cached_property
    def _prior_root(self) -> FloatArray:
        raise NotImplementedError

    @cached_property
    def known_noise(self) -> FloatArray:
        """The noise of each arm, nan where it is learned; float array (arm)."""
        return np.ones(self.arms) * (np.nan if self.noise is None else self.noise)

    @cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        arms, size = self._prior_mean.shape
        return {"counts": (arms,), "mean": (arms, size), "root": (arms, size, size), "alpha": (arms,), "beta": (arms,)}

    def _context(self, context: ArrayLike | None) -> FloatArray:
        raise NotImplementedError

    def _contexts(self, contexts: ArrayLike | None, count: int) -> FloatArray:
        raise NotImplementedError

    def prior(self) -> NormalInverseGammaState:
        """The state before any observation."""
        counts, ones = np.zeros(self.arms, dtype=np.int64), np.ones(self.arms)
        mean, root = self._prior_mean.copy(), self._prior_root.copy()
        return NormalInverseGammaState(counts, mean, root, ones * self.alpha, ones * self.beta)

    def check_reward(self, reward: object) -> float:
        """A reward that this belief can absorb."""
        value = checks.real("reward", reward, error=RewardError)
        if abs(value) > _HUGE:
            raise RewardError(f"reward must lie within 1e50 of 0, got {value:g}. Choose a larger unit.")
        return value

    def update(
        self, state: NormalInverseGammaState, arm: int, reward: float, context: ArrayLike | None = None
    ) -> NormalInverseGammaState:
        """The state after one observation (sequential update)."""
        check_state(self, state, NormalInverseGammaState, self._shapes)
        arm, reward, x = checks.arm_index(arm, self.arms), self.check_reward(reward), self._context(context)
        counts, mean, root = state.counts.copy(), state.mean.copy(), state.root.copy()
        alpha, beta = state.alpha.copy(), state.beta.copy()
        counts[arm] += 1
        alpha[arm], beta[arm] = doors.nig_observe(mean[arm], root[arm], alpha[arm], beta[arm], x, reward)
        return NormalInverseGammaState(counts, mean, root, alpha, beta)

    def update_batch(
        self,
        state: NormalInverseGammaState,
        arms: ArrayLike,
        rewards: ArrayLike,
        contexts: ArrayLike | None = None,
    ) -> NormalInverseGammaState:
        """The state after a history (batch update): all of it, or an error and none of it."""
        check_state(self, state, NormalInverseGammaState, self._shapes)
        played = checks.arm_indices(arms, self.arms)
        paid = check_rewards(rewards, played)
        for i in np.flatnonzero(np.abs(paid) > _HUGE)[:1]:
            self.check_reward(paid[i])
        x = self._contexts(contexts, played.size)
        counts, mean, root = state.counts.copy(), state.mean.copy(), state.root.copy()
        alpha, beta = state.alpha.copy(), state.beta.copy()
        for arm in np.unique(played):
            mine = played == arm
            counts[arm] += int(mine.sum())
            alpha[arm] += 0.5 * int(mine.sum())
            mean[arm], root[arm], residual = _least_squares(mean[arm], root[arm], x[mine], paid[mine])
            beta[arm] += 0.5 * residual
        return NormalInverseGammaState(counts, mean, root, alpha, beta)

    def marginals(self, state: NormalInverseGammaState, context: ArrayLike | None = None) -> Marginals:
        """The law of each arm's expected reward at a context: Student t, or normal where the noise is known."""
        check_state(self, state, NormalInverseGammaState, self._shapes)
        x = self._context(context)
        return Marginals(
            self.family, doors.nig_marginals(state.mean, state.root, state.alpha, state.beta, self.known_noise, x)
        )

    def state_from_json(self, text: str | bytes) -> NormalInverseGammaState:
        """Read a state that ``state.to_json()`` wrote."""
        return state_from_json(text, NormalInverseGammaState, self._shapes)


def _upper_root(matrices: FloatArray) -> FloatArray:
    """Upper triangular S with S S^T = V: the Cholesky factor of V with its axes counted backwards."""
    return np.asarray(np.linalg.cholesky(matrices[:, ::-1, ::-1])[:, ::-1, ::-1], dtype=np.float64)


def _least_squares(
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
class LinearGaussian(_NormalInverseGamma):
    """Rewards are x^T w_a plus Gaussian noise; (w_a, sigma_a^2) has a Normal-Inverse-Gamma law.

    ``mean`` is u_0: one number, one per dimension, or (arm, dimension). ``covariance`` is V_0, in units of the noise
    variance: one number (times the identity), a matrix, or one matrix per arm. ``noise`` is the standard deviation of
    the reward where it is known (alpha and beta then do not matter); None learns it.

    >>> belief = LinearGaussian(arms=2, dimension=2)
    >>> state = belief.update(belief.prior(), arm=0, reward=0.5, context=[1.0, 0.0])
    >>> state.mean[0].tolist()
    [0.75, 1.0]
    """

    arms: int
    dimension: int
    mean: Any = 1.0
    covariance: Any = 1.0
    alpha: PerArm = 1.0
    beta: PerArm = 1.0
    noise: PerArm | None = None

    def __post_init__(self) -> None:
        fix = object.__setattr__
        self._check_common()
        fix(self, "dimension", checks.integer("dimension", self.dimension, least=1, most=10_000))
        for name in ("mean", "covariance"):
            given = checks.array(name, getattr(self, name), error=SettingError)
            if given.size and np.abs(given).max() > _HUGE:
                raise SettingError(f"{name} must lie within 1e50 of 0. Choose a larger unit.")
            fix(self, name, frozen(given))
        _ = self._prior_mean, self._prior_root

    @cached_property
    def _prior_mean(self) -> FloatArray:
        return _spread("mean", self.mean, (self.arms, self.dimension))

    @cached_property
    def _prior_root(self) -> FloatArray:
        shape = (self.arms, self.dimension, self.dimension)
        given = np.asarray(self.covariance)
        matrices = _spread("covariance", given * np.eye(self.dimension) if given.ndim == 0 else given, shape)
        scale = np.sqrt(np.abs(np.einsum("aii->ai", matrices)))
        flipped = matrices.swapaxes(1, 2)
        if (np.abs(matrices - flipped) > 1e-8 * scale[:, :, None] * scale[:, None, :]).any():
            raise SettingError("covariance must be symmetric.")
        try:
            if scale.min() < math.sqrt(_TINY):
                raise np.linalg.LinAlgError
            return _upper_root(0.5 * (matrices + flipped))
        except np.linalg.LinAlgError:
            raise SettingError(
                f"covariance must be positive definite, got {checks.shown(self.covariance)}. "
                "Every eigenvalue must be above zero."
            ) from None

    def _context(self, context: ArrayLike | None) -> FloatArray:
        if context is None:
            raise ContextError(f"A context of {self.dimension} numbers is needed. Pass context=[...].")
        given = checks.array("context", context, error=ContextError)
        if given.shape != (self.dimension,):
            raise ContextError(f"context must hold {self.dimension} numbers, got shape {given.shape}.")
        return _bounded(given)

    def _contexts(self, contexts: ArrayLike | None, count: int) -> FloatArray:
        if contexts is None:
            raise ContextError(f"contexts are needed, {self.dimension} numbers per observation.")
        given = checks.array("contexts", contexts, error=ContextError)
        if count == 0 and given.size == 0:
            return np.empty((0, self.dimension))
        if given.shape != (count, self.dimension):
            raise ContextError(f"contexts must have shape ({count}, {self.dimension}), got {given.shape}.")
        return _bounded(given)


@settings
class Gaussian(_NormalInverseGamma):
    """Rewards are Gaussian with unknown mean, and unknown or known noise: LinearGaussian without a context.

    ``variance`` is that of the mean's prior, in units of the noise variance.

    >>> belief = Gaussian(arms=2, mean=0.0)
    >>> belief.marginals(belief.update(belief.prior(), arm=1, reward=3.0)).mean.tolist()
    [0.0, 1.5]
    """

    arms: int
    mean: PerArm = 1.0
    variance: PerArm = 1.0
    alpha: PerArm = 1.0
    beta: PerArm = 1.0
    noise: PerArm | None = None

    def __post_init__(self) -> None:
        self._check_common()
        object.__setattr__(self, "mean", checks.per_arm("mean", self.mean, self.arms, least=-_HUGE, most=_HUGE))
        found = checks.per_arm("variance", self.variance, self.arms, least=_TINY, most=_HUGE)
        object.__setattr__(self, "variance", found)

    @cached_property
    def _prior_mean(self) -> FloatArray:
        return (np.ones(self.arms) * self.mean)[:, None]

    @cached_property
    def _prior_root(self) -> FloatArray:
        return np.sqrt(np.ones(self.arms) * self.variance)[:, None, None]

    def _context(self, context: ArrayLike | None) -> FloatArray:
        checks.no_context(context)
        return np.ones(1)

    def _contexts(self, contexts: ArrayLike | None, count: int) -> FloatArray:
        checks.no_context(contexts)
        return np.ones((count, 1))


def _spread(name: str, values: Any, shape: tuple[int, ...]) -> FloatArray:
    """A setting given for all arms, or per arm, laid out per arm."""
    given = np.asarray(values, dtype=np.float64)
    if given.ndim and given.shape not in (shape, shape[1:]):
        raise SettingError(f"{name} must have shape {shape[1:]} or {shape}, got {given.shape}.")
    return np.array(np.broadcast_to(given, shape))


def _bounded(contexts: FloatArray) -> FloatArray:
    if contexts.size and np.abs(contexts).max() > _HUGE:
        raise ContextError("contexts must lie within 1e50 of 0. Choose a larger unit.")
    return np.ascontiguousarray(contexts)
