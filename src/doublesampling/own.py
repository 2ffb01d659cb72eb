"""Your own belief, played against your own world, in plain Python and on as many processes as you like.

Everything that double sampling needs from a belief is draws of every arm's expected reward. A class with the four
members of ``OwnBelief`` can decide (``decide_from_draws``) and be simulated here; it is orders of magnitude slower than
``simulate``, whose beliefs are compiled, and asks for nothing but Python.
"""

from concurrent.futures import Executor
from typing import Any, NamedTuple, Protocol

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.bandits import BernoulliBandit, GaussianBandit
from doublesampling.decision import decide_from_draws
from doublesampling.errors import DrawsError, SettingError
from doublesampling.given import FEWEST_DRAWS, check_policy, name_policies

FloatArray = NDArray[np.float64]


class OwnBelief(Protocol):
    """What a belief of your own has to know."""

    arms: int

    def prior(self) -> Any:
        """The state before any observation."""

    def update(self, state: Any, arm: int, reward: float, context: Any) -> Any:
        """The state after one observation; states are never changed in place."""

    def draws(self, state: Any, context: Any, samples: int, seed: int) -> FloatArray:
        """Posterior draws of the expected rewards, float array (sample, arm); the same seed gives the same draws."""


class Moment(NamedTuple):
    """One step of a world: what is shown, what each arm is worth, and what each would pay."""

    context: Any
    means: FloatArray
    rewards: FloatArray


class World(Protocol):
    """Where a belief of your own is played."""

    arms: int

    def moment(self, seed: int) -> Moment:
        """One step; the same seed gives the same step, whichever policy plays."""


class _Bernoulli:
    def __init__(self, bandit: BernoulliBandit) -> None:
        self.arms, self._p = bandit.arms, np.array(bandit.probabilities)

    def moment(self, seed: int) -> Moment:
        luck = np.random.default_rng(seed).random(self.arms)
        return Moment(None, self._p, (luck < self._p).astype(float))


class _Gaussian:
    def __init__(self, bandit: GaussianBandit) -> None:
        self.arms, self._means = bandit.arms, np.array(bandit.means)
        self._noise = np.ones(bandit.arms) * np.asarray(bandit.noise)

    def moment(self, seed: int) -> Moment:
        luck = np.random.default_rng(seed).normal(size=self.arms)
        return Moment(None, self._means, self._means + self._noise * luck)


def _world_of(world: Any) -> Any:
    if isinstance(world, BernoulliBandit):
        return _Bernoulli(world)
    if isinstance(world, GaussianBandit):
        return _Gaussian(world)
    if isinstance(world, type) or not callable(getattr(world, "moment", None)) or not hasattr(world, "arms"):
        raise SettingError(f"world must have arms and moment(seed), or be a bandit, got {checks.shown(world)}.")
    return world


def _check_belief(belief: Any, arms: int) -> None:
    if isinstance(belief, type):
        raise SettingError(f"belief must be an object, got the class {belief.__name__}. Write {belief.__name__}(...).")
    missing = [name for name in ("arms", "prior", "update", "draws") if not hasattr(belief, name)]
    if missing:
        raise SettingError(f"belief needs {', '.join(missing)}: see doublesampling.own.OwnBelief.")
    if belief.arms != arms:
        raise SettingError(f"The belief has {belief.arms} arms and the world {arms}. They must agree.")


def _seed_of(*address: int) -> int:
    """A seed that belongs to an address, the same in every process."""
    return int(np.random.SeedSequence(list(address)).generate_state(1, np.uint64)[0])


def play_realization(
    world: Any, policy: Any, belief: Any, horizon: int, samples: int, seed: int, realization: int
) -> FloatArray:
    """One realization: expected regret and whether the best arm was played, float array (2, time)."""
    state = belief.prior()
    found = np.empty((2, horizon))
    for t in range(horizon):
        moment = world.moment(_seed_of(seed, realization, t, 0))
        draws = np.asarray(belief.draws(state, moment.context, samples, _seed_of(seed, realization, t, 1)))
        if draws.ndim != 2 or draws.shape[1] != belief.arms:
            wanted = f"draws must have the shape (samples, {belief.arms}), got {draws.shape}"
            raise DrawsError(f"Realization {realization}, time {t + 1}: {wanted}.")
        try:
            arm = decide_from_draws(policy, draws, seed=_seed_of(seed, realization, 2), time=t + 1).arm
        except DrawsError as problem:
            raise DrawsError(f"Realization {realization}, time {t + 1}: {problem}") from None
        best = float(np.max(moment.means))
        found[:, t] = best - moment.means[arm], moment.means[arm] == best
        state = belief.update(state, arm, float(moment.rewards[arm]), moment.context)
    return found


def simulate_own(
    world: Any, policies: Any, belief: Any, *, horizon: int, realizations: int, seed: int = 0, samples: int = 1000,
    executor: Executor | None = None,
) -> xr.Dataset:  # fmt: skip
    """Play policies with a belief of your own; results are the same with any executor, or none.

    ``world`` is a BernoulliBandit, a GaussianBandit, or anything with ``arms`` and ``moment(seed)``. ``executor`` is
    one of concurrent.futures: processes need a world and a belief that can be pickled, defined in a file.
    """
    place = _world_of(world)
    _check_belief(belief, place.arms)
    horizon = checks.integer("horizon", horizon, least=1, most=10**7)
    realizations = checks.integer("realizations", realizations, least=1, most=10**9)
    samples = checks.integer("samples", samples, least=FEWEST_DRAWS, most=10**7)
    named = {name: check_policy(policy) for name, policy in name_policies(policies).items()}
    spread = map if executor is None else executor.map
    found = np.empty((len(named), realizations, 2, horizon))
    for row, policy in enumerate(named.values()):
        fixed = [(place, policy, belief, horizon, samples, checks.seed(seed))] * realizations
        for r, walked in enumerate(spread(_play, fixed, range(realizations))):
            found[row, r] = walked
    regret = found[:, :, 0].cumsum(axis=2)
    root = np.sqrt(realizations)
    deviation = regret.std(axis=1, ddof=1) if realizations > 1 else np.full(regret.shape[::2], np.nan)
    dims = ("policy", "time")
    return xr.Dataset(
        {
            "cumulative_regret": (dims, regret.mean(axis=1)),
            "cumulative_regret_std": (dims, deviation),
            "cumulative_regret_error": (dims, deviation / root),
            "optimal_arm_rate": (dims, found[:, :, 1].mean(axis=1)),
            "final_regret": (("policy", "realization"), regret[:, :, -1]),
        },
        coords={"policy": list(named), "time": np.arange(1, horizon + 1)},
        attrs={"seed": str(seed), "samples": str(samples), "realizations": str(realizations)},
    )


def _play(fixed: tuple[Any, Any, Any, int, int, int], realization: int) -> FloatArray:
    return play_realization(*fixed, realization)
