"""A simulation, checked once and packed into plain arrays that any worker can play."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.bandits import Bandit, BernoulliBandit, GaussianBandit, LinearGaussianBandit
from doublesampling.beliefs import BetaBernoulli, Gaussian, LinearGaussian
from doublesampling.errors import SettingError
from doublesampling.policies import (
    IMED,
    KLUCB,
    UCB1,
    BayesUCB,
    DoubleSampling,
    EpsilonGreedy,
    Greedy,
    LinUCB,
    Oracle,
    ThompsonSampling,
    TopTwo,
)
from doublesampling.rules import belief as belief_rules
from doublesampling.rules import doors, play, recurrence, reward

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BLOCK = 64
"""Realizations that are played and averaged together. Part of every result: other blocks round differently."""

_LARGEST_TABLE = 1000  # samples: 8 MB, and the smallest p_FA, about 1e-218, is still a number
_KINDS: dict[type, int] = {
    DoubleSampling: play.DOUBLE_SAMPLING,
    ThompsonSampling: play.THOMPSON,
    BayesUCB: play.BAYES_UCB,
    Greedy: play.GREEDY,
    EpsilonGreedy: play.EPSILON_GREEDY,
    Oracle: play.ORACLE,
    TopTwo: play.TOP_TWO,
    UCB1: play.UCB1,
    KLUCB: play.KL_UCB,
    IMED: play.IMED,
    LinUCB: play.LIN_UCB,
}
_NEEDS = {UCB1: "beta", KLUCB: "beta", IMED: "beta", LinUCB: "gaussian"}  # policies that know one kind of reward


@dataclass(frozen=True, eq=False)
class PackedPolicy:
    """A policy's settings as the rules take them: whole numbers, real numbers, and a table of false alarms or none."""

    whole: IntArray
    real: FloatArray
    alarms: FloatArray
    two_arm_counts: FloatArray

    def table_of(self, arms: int) -> FloatArray:
        """p_FA by two counts; for two arms N itself, in one column, since one count says both."""
        return self.two_arm_counts if arms == 2 else self.alarms


@dataclass(frozen=True, eq=False)
class PackedProblem:
    """A bandit and the belief that plays it, as the kernels take them."""

    family: Literal["beta", "gaussian"]
    arms: int
    dimension: int
    world: tuple[Any, ...]
    prior: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that decides the numbers of a simulation, and nothing else."""

    problems: tuple[PackedProblem, ...]
    policies: tuple[PackedPolicy, ...]
    labels: tuple[str, ...]
    settings: dict[str, str]
    horizon: int
    realizations: int
    seed: int
    times: IntArray
    columns: IntArray
    trajectories: bool

    @property
    def blocks(self) -> int:
        """How many blocks of realizations each problem and policy has."""
        return -(-self.realizations // BLOCK)

    @property
    def arms(self) -> int:
        """The largest number of arms."""
        return max(problem.arms for problem in self.problems)


def pack_policy(policy: object) -> PackedPolicy:
    """A policy as numbers."""
    kind = _KINDS.get(type(policy))
    if kind is None:
        hint = f" Write {policy.__name__}()." if isinstance(policy, type) else ""
        raise SettingError(f"simulate plays policies such as DoubleSampling(), got {checks.shown(policy)}.{hint}")
    whole = np.array([kind, getattr(policy, "samples", None) or 0, 1, getattr(policy, "ties", "") == "first", 0])
    real = np.array([1.0, np.nan, _own_number(policy)])
    if isinstance(policy, DoubleSampling):
        whole[play.CAP], whole[play.ALARM] = policy.max_candidates, policy.false_alarm_kind
        real[play.RATE] = policy.rate
        real[play.HORIZON] = np.nan if policy.horizon is None else policy.horizon
        if policy.samples is not None and policy.samples <= _LARGEST_TABLE and policy.horizon is None:
            alarms = doors.false_alarm_table(policy.false_alarm_kind, policy.samples)
            counts = doors.two_arm_counts(alarms, policy.rate, policy.max_candidates)
            return PackedPolicy(whole, real, alarms, counts[:, None])
    return PackedPolicy(whole, real, np.empty((0, 0)), np.empty((0, 0)))


def _own_number(policy: object) -> float:
    """The one real setting that some policies have."""
    return next((float(getattr(policy, name)) for name in ("epsilon", "share", "width") if hasattr(policy, name)), 0.0)


def _check_pair(problem: PackedProblem, policy: object) -> None:
    needed = _NEEDS.get(type(policy))
    if needed is not None and needed != problem.family:
        kind = "rewards of 0 and 1 (BetaBernoulli)" if needed == "beta" else "Gaussian and linear beliefs"
        raise SettingError(f"{policy!r} is for {kind}. Leave it out, or choose another belief.")


def default_belief(bandit: Bandit) -> Any:
    """The belief that fits a bandit, with the paper's priors."""
    if isinstance(bandit, BernoulliBandit):
        return BetaBernoulli(arms=bandit.arms)
    if isinstance(bandit, LinearGaussianBandit):
        return LinearGaussian(arms=bandit.arms, dimension=bandit.dimension)
    return Gaussian(arms=bandit.arms)


def start_track(alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """The recurrence of two or three Beta arms at their prior; empty for more."""

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    def overlap(a: float, b: float, c: float, d: float) -> float:
        return math.exp(log_beta(a + c, b + d) - log_beta(a, b) - log_beta(c, d))

    def exact(a: Any, b: Any) -> FloatArray:
        if len(set(zip(a, b, strict=True))) == 1:  # equal arms are equally probable: nothing to compile or integrate
            return np.full(len(a), 1.0 / len(a))
        return doors.exact_optimality(belief_rules.BETA, np.column_stack([a, b, np.zeros(len(a))]))

    if alpha.size > 3:
        return np.empty(0)
    track = np.zeros(recurrence.TRACK_SIZE)
    track[: alpha.size] = exact(alpha, beta)
    if alpha.size == 2:
        track[1] = overlap(alpha[0], beta[0], alpha[1], beta[1])
        return track
    for third in range(3):
        i, j = (third + 1) % 3, (third + 2) % 3
        a, b = alpha[i] + alpha[j], beta[i] + beta[j]
        track[recurrence.PAIR + third] = overlap(alpha[i], beta[i], alpha[j], beta[j])
        track[recurrence.BELOW + third] = exact([a, alpha[third]], [b, beta[third]])[0]
        track[recurrence.PAIR_BELOW + third] = overlap(a, b, alpha[third], beta[third])
    return track


def pack_problem(bandit: Bandit, belief: Any) -> PackedProblem:
    """A bandit and a belief that can absorb its rewards."""
    belief = default_belief(bandit) if belief is None else belief
    if belief.arms != bandit.arms:
        raise SettingError(
            f"The belief has {belief.arms} arms and the bandit {bandit.arms}. They must agree: {bandit!r}."
        )
    state = belief.prior()
    if isinstance(belief, BetaBernoulli):
        if not isinstance(bandit, BernoulliBandit):
            raise SettingError(
                f"BetaBernoulli absorbs rewards of 0 and 1, {type(bandit).__name__} pays real numbers. "
                "Use Gaussian or LinearGaussian."
            )
        prior = (state.alpha.copy(), state.beta.copy(), start_track(state.alpha, state.beta))
        return PackedProblem("beta", bandit.arms, 1, (np.array(bandit.probabilities),), prior)
    sees_context = isinstance(belief, LinearGaussian)
    if sees_context and getattr(bandit, "dimension", None) != belief.dimension:
        found = f"contexts of {bandit.dimension}" if isinstance(bandit, LinearGaussianBandit) else "no context"
        raise SettingError(
            f"LinearGaussian with dimension={belief.dimension} needs contexts of that length, "
            f"{type(bandit).__name__} shows {found}. Use Gaussian, or another dimension."
        )
    arrays = [np.array(part) for part in (state.mean, state.root, state.alpha, state.beta)]
    prior = (*arrays, belief.known_noise, sees_context)
    return PackedProblem("gaussian", bandit.arms, state.mean.shape[1], _pack_world(bandit), prior)


def _pack_world(bandit: Bandit) -> tuple[Any, ...]:
    """(weights, noise, context kind, path, shared, binary): every bandit as a linear one."""
    one = np.ones((1, 1))
    if isinstance(bandit, BernoulliBandit):
        return np.array(bandit.probabilities)[:, None], np.zeros(bandit.arms), reward.GIVEN, one, False, True
    noise = np.ones(bandit.arms) * np.asarray(bandit.noise)
    if isinstance(bandit, GaussianBandit):
        return np.array(bandit.means)[:, None], noise, reward.GIVEN, one, False, False
    kind = {"uniform": reward.UNIFORM, "normal": reward.NORMAL}.get(
        bandit.context if isinstance(bandit.context, str) else "", reward.GIVEN
    )
    path = np.ones((1, bandit.dimension))
    if not isinstance(bandit.context, str):
        path = np.atleast_2d(np.array(bandit.context))
    return np.array(bandit.weights), noise, kind, path, bandit.path == "shared", False


def _check_bandits(bandits: object) -> tuple[Bandit, ...]:
    found = tuple(bandits) if isinstance(bandits, Sequence) and not isinstance(bandits, str) else (bandits,)
    if not found:
        raise SettingError("simulate needs a bandit, such as BernoulliBandit([0.4, 0.8]), got an empty list.")
    for bandit in found:
        if not isinstance(bandit, BernoulliBandit | GaussianBandit | LinearGaussianBandit):
            raise SettingError(f"A bandit is wanted, such as BernoulliBandit([0.4, 0.8]), got {checks.shown(bandit)}.")
    return found


def _check_policies(policies: object) -> dict[str, Any]:
    """Policies by the name that results carry: given in a dictionary, or as they would be typed."""
    if isinstance(policies, Mapping):
        found = {str(name): policy for name, policy in policies.items()}
    elif isinstance(policies, Sequence) and not isinstance(policies, str):
        found = {repr(policy): policy for policy in policies}
        if len(found) < len(policies):
            raise SettingError("The same policy is listed twice. Leave one out, or pass a dictionary of names.")
    else:
        found = {repr(policies): policies}
    if not found:
        raise SettingError("simulate needs a policy, such as DoubleSampling(), got none.")
    return found


def check_times(times: object, horizon: int) -> IntArray:
    """The recorded time steps: "all", "log" (about 200, evenly spaced in the logarithm), or a list."""
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
) -> Plan:
    """Check everything a user said, once."""
    horizon = checks.integer("horizon", horizon, least=1, most=10**9)
    realizations = checks.integer("realizations", realizations, least=1, most=10**12)
    found, named = _check_bandits(bandits), _check_policies(policies)
    if belief is not None and not isinstance(belief, BetaBernoulli | Gaussian | LinearGaussian):
        raise SettingError(f"belief must be one such as BetaBernoulli(arms=2), got {checks.shown(belief)}.")
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
    problems = tuple(pack_problem(bandit, belief) for bandit in found)
    for problem, policy in itertools.product(problems, named.values()):
        _check_pair(problem, policy)
    return Plan(
        problems=problems,
        policies=tuple(pack_policy(policy) for policy in named.values()),
        labels=tuple(named),
        settings=settings,
        horizon=horizon,
        realizations=realizations,
        seed=checks.seed(seed),
        times=recorded,
        columns=columns,
        trajectories=bool(keep),
    )
