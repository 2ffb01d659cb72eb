"""A simulation, checked once and packed into plain arrays that any worker can play."""

import itertools
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.beliefs import HybridLinearGaussian, OwnBelief
from doublesampling.custom import is_world
from doublesampling.engine.families import FAMILIES
from doublesampling.engine.lateness import Lateness
from doublesampling.engine.packed import OWN, PackedPolicy, PackedProblem, pack_policy
from doublesampling.errors import SettingError
from doublesampling.given import name_policies
from doublesampling.policies import CompiledPolicy

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BLOCK = 64
"""Realizations that are played and averaged together. Part of every result: other blocks round differently."""

_THREAD_MEMORY = 256 * 1024  # bytes of posterior samples that a GPU thread may hold
_LINEAR = ("linear", "logistic")  # the families that LinUCB plays


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that decides the numbers of a simulation, and nothing else."""

    problems: tuple[PackedProblem, ...]
    policies: tuple[PackedPolicy, ...]
    labels: tuple[str, ...]
    bandits: tuple[int, ...] | tuple[str, ...]
    settings: dict[str, str]
    horizon: int
    realizations: int
    seed: int
    times: IntArray
    columns: IntArray
    trajectories: bool
    late: Lateness | None = None
    """Delay, dropout and allocation; None where outcomes are known at once and shares have no limits."""

    @property
    def blocks(self) -> int:
        """How many blocks of realizations each problem and policy has."""
        return -(-self.realizations // BLOCK)

    @property
    def on_device(self) -> bool:
        """Whether a GPU can play all of it: a thread's own memory must hold the samples of a decision."""
        pairs = list(itertools.product(self.problems, self.policies))
        if self.late is not None or not all(q.compiled and p.compiled for q, p in pairs):
            return False
        return all(8 * q.arms * FAMILIES[q.family].samples(q, p) <= _THREAD_MEMORY for q, p in pairs)

    @property
    def arms(self) -> int:
        """The largest number of arms."""
        return max(problem.arms for problem in self.problems)


def _check_pair(problem: PackedProblem, policy: object) -> None:
    """Refuse a policy that knows another kind of reward."""
    kind = None
    if not problem.compiled or not isinstance(policy, CompiledPolicy):
        return
    if policy.counts_wins and not problem.counts_wins:
        kind = "rewards of 0 and 1 that are all remembered (BetaBernoulli without a discount)"
    elif policy.linear_only and problem.family not in _LINEAR:
        kind = "linear beliefs"
    if kind is not None:
        raise SettingError(f"{policy!r} is for {kind}. Leave it out, or choose another belief.")


def pack_problem(bandit: Any, belief: Any) -> PackedProblem:
    """Return a bandit and a belief that takes its rewards, packed by the first family that plays both."""
    if is_world(bandit):
        return _pack_own_world(bandit, belief)
    if belief is None:
        belief = default_belief(bandit)
    if belief.arms != bandit.arms:
        raise SettingError(
            f"The belief has {belief.arms} arms and the bandit {bandit.arms}. They must agree: {bandit!r}."
        )
    if isinstance(belief, HybridLinearGaussian) and getattr(bandit, "dimension", None) != belief.dimension:
        found = f"contexts of {bandit.dimension}" if hasattr(bandit, "dimension") else "no context"
        raise SettingError(
            f"HybridLinearGaussian with dimension={belief.dimension} needs contexts of that length, and "
            f"{type(bandit).__name__} has {found}. Use LinearGaussianBandit."
        )
    if isinstance(belief, (OwnBelief, HybridLinearGaussian)):
        return replace(pack_problem(bandit, None), belief=belief, compiled=False)
    for family in FAMILIES.values():
        if family.takes(bandit, belief):
            return replace(family.pack(bandit, belief), belief=belief)
    raise SettingError(
        f"{type(belief).__name__} absorbs other rewards than {type(bandit).__name__} pays. "
        f"Use {type(default_belief(bandit)).__name__}, or leave belief out."
    )


def _pack_own_world(world: Any, belief: Any) -> PackedProblem:
    """Return a world of a user's own, which is stepped in Python."""
    if belief is None:
        raise SettingError(
            f"{checks.shown(world)} is a world of your own: pass the belief that learns from it, belief=."
        )
    if belief.arms != world.arms:
        raise SettingError(f"The belief has {belief.arms} arms and the world {world.arms}. They must agree.")
    return PackedProblem("own", OWN, belief.arms, 1, world, None, belief=belief, compiled=False)


def default_belief(bandit: Any) -> Any:
    """Return the belief that fits a bandit, with the paper's priors."""
    return next(f.defaults[type(bandit)] for f in FAMILIES.values() if type(bandit) in f.defaults)(bandit)


def _check_bandits(bandits: object) -> dict[Any, Any]:
    """Return the bandits by their names in results: the keys of a dictionary, else their numbers."""
    if isinstance(bandits, Mapping):
        named = {str(name): bandit for name, bandit in bandits.items()}
    else:
        several = isinstance(bandits, Sequence) and not isinstance(bandits, str)
        named = dict(enumerate(bandits if several else (bandits,)))  # type: ignore[arg-type]
    found = tuple(named.values())
    if not found:
        raise SettingError("simulate needs a bandit, such as BernoulliBandit([0.4, 0.8]), got an empty list.")
    for bandit in found:
        if not is_world(bandit) and not any(type(bandit) in family.defaults for family in FAMILIES.values()):
            raise SettingError(
                "A bandit is wanted, such as BernoulliBandit([0.4, 0.8]), or a world with arms and step(time, rng); "
                f"got {checks.shown(bandit)}."
            )
    return named


def check_times(times: object, horizon: int) -> IntArray:
    """Return the recorded time steps of "all", "log" (about 200, evenly spaced in the logarithm), or a list."""
    if isinstance(times, str):
        checks.one_of("times", times, ("all", "log"))
        if times == "all":
            return np.arange(1, horizon + 1)
        return np.unique(np.round(np.geomspace(1, horizon, min(200, horizon))).astype(np.int64))
    given = checks.array("times", times, error=SettingError)
    if given.ndim != 1 or given.size < 1 or (given != np.floor(given)).any():
        raise SettingError("times must be 'all', 'log', or a list of time steps.")
    if given.min() < 1 or given.max() > horizon:
        raise SettingError(
            f"times must lie between 1 and the horizon, {horizon}; got {given.min():g} to {given.max():g}."
        )
    return np.unique(given.astype(np.int64))


def _check_room(bandits: Any, policies: int, horizon: int, realizations: int, times: object) -> None:
    """Refuse what this machine's memory cannot hold, before any of it is taken."""
    recorded = horizon if isinstance(times, str) and times == "all" else min(horizon, 200)
    arms = max(bandit.arms for bandit in bandits)
    numbers = len(bandits) * policies * (recorded * (6 + arms) + realizations) + 2 * horizon
    wanted, there = 8 * numbers, _memory()
    if wanted > there:
        raise SettingError(
            f"This would keep about {wanted / 1e9:,.0f} GB, and the machine has {there / 1e9:,.0f} GB. "
            'Record fewer steps (times="log"), or play fewer realizations at a time.'
        )


def _memory() -> float:
    """Return the bytes of this machine's memory; infinity where they cannot be counted."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def make_plan(
    bandits: object,
    policies: object,
    *,
    horizon: int,
    realizations: int,
    seed: int,
    belief: Any = None,
    times: object = "all",
    keep: Sequence[str] = (),
    late: Lateness | None = None,
) -> Plan:
    """Return the plan of a simulation, with every argument checked."""
    horizon = checks.integer("horizon", horizon, least=1, most=10**9)
    realizations = checks.integer("realizations", realizations, least=1, most=10**12)
    worlds, named = _check_bandits(bandits), name_policies(policies)
    found = tuple(worlds.values())
    if not keep:  # trajectories have a limit of their own
        _check_room(found, len(named), horizon, realizations, times)
    known = (OwnBelief, HybridLinearGaussian, *(kind for family in FAMILIES.values() for kind in family.beliefs))
    if belief is not None and not isinstance(belief, known):
        hint = " Subclass OwnBelief for one of your own." if not isinstance(belief, type) else ""
        raise SettingError(f"belief must be one such as BetaBernoulli(arms=2), got {checks.shown(belief)}.{hint}")
    keep = (keep,) if isinstance(keep, str) else tuple(keep)
    for word in keep:
        checks.one_of("keep", word, ("trajectories",))
    recorded = check_times(times, horizon)
    columns = np.full(horizon, -1, dtype=np.int64)
    columns[recorded - 1] = np.arange(recorded.size)
    settings = {
        "bandits": "; ".join(map(repr, found)) if len(found) <= 20 else f"{len(found)} bandits, first {found[0]!r}",
        "policies": "; ".join(f"{name}: {policy!r}" for name, policy in named.items()),
        "belief": "default of each bandit" if belief is None else repr(belief),
    }
    if late is not None:
        settings |= late.settings
    problems = tuple(pack_problem(bandit, belief) for bandit in found)
    for problem, policy in itertools.product(problems, named.values()):
        _check_pair(problem, policy)
        if late is not None:
            late.check(problem, policy)
    return Plan(
        problems=problems,
        policies=tuple(pack_policy(policy, problems) for policy in named.values()),
        labels=tuple(named),
        bandits=tuple(worlds),
        settings=settings,
        horizon=horizon,
        realizations=realizations,
        seed=checks.seed(seed),
        times=recorded,
        columns=columns,
        trajectories=bool(keep),
        late=late,
    )
