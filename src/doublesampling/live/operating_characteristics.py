"""Operating characteristics of an experiment's design: simulate it on assumed expected rewards.

A design with an allocation or a stopping rule is simulated as a ``ds.Trial``, and so is any design under delay, dropout
or a trend; others by ``ds.simulate``, which is quicker and also plays policies of one's own.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks, html
from doublesampling.allocation import Allocation
from doublesampling.arm_shares import by_number, find_arm
from doublesampling.bandits import (
    BernoulliBandit,
    ExponentialBandit,
    GaussianBandit,
    LinearGaussianBandit,
    LogisticBandit,
    PoissonBandit,
)
from doublesampling.beliefs import BetaBernoulli, GammaExponential, GammaPoisson, Gaussian, LinearGaussian, Logistic
from doublesampling.delays import Delay, check_delay
from doublesampling.engine.simulate import check_threads, simulate
from doublesampling.errors import SettingError
from doublesampling.live.contexts import features_of
from doublesampling.live.design import Design
from doublesampling.looks import OUTCOMES
from doublesampling.rules.looks.bundles import CONTINUE
from doublesampling.rules.trials.bundles import ASSIGNED, TOTAL
from doublesampling.trials.play import pack, play
from doublesampling.trials.scenarios import Circumstances, make_world
from doublesampling.trials.trial import Trial

FloatArray = NDArray[np.float64]
_CELLS = 4_000_000  # steps of one chunk, whose trajectories are kept in memory
_WORLDS: dict[type, Any] = {
    BetaBernoulli: BernoulliBandit,
    GammaPoisson: PoissonBandit,
    GammaExponential: ExponentialBandit,
}


@dataclass(frozen=True)
class Characteristics:
    """The performance of a design under assumed expected rewards, each number with its Monte Carlo standard error."""

    truth: tuple[Any, ...]
    """The expected reward of each arm; with contexts, the weights of each."""
    horizon: int
    realizations: int
    best_arm_wins: tuple[float, float] | None
    """How often the arm that is selected is the best one; None where all are equal, or with contexts. It is the arm
    that a look selected, or at the end the one with the highest posterior mean (as a trial: the highest P(best))."""
    failures: tuple[float, float] | None
    """Expected number of rewards of 0; None where rewards are not 0 or 1."""
    failures_of_equal_allocation: float | None
    """The same for equal allocation to all arms."""
    regret: tuple[float, float]
    """Expected loss of reward compared with always playing the best arm."""
    shares: tuple[tuple[float, float], ...]
    """Share of the decisions that each arm gets."""
    size: tuple[float, float] | None = None
    """Expected number of decisions; None where there is no stopping rule."""
    ends: dict[str, tuple[float, float]] | None = None
    """Probability that a trial ends with "superiority", "equivalence", "futility", or at its "maximum" size; None where
    there is no stopping rule."""
    selected: tuple[tuple[float, float], ...] | None = None
    """How often each arm is selected; None where there is no stopping rule."""

    def _repr_html_(self) -> str:
        """A table for a notebook: numbers with their Monte Carlo errors."""
        names = ("best_arm_wins", "failures", "regret")
        rows: list[tuple[Any, ...]] = [
            (name.replace("_", " "), *found) for name in names if (found := getattr(self, name)) is not None
        ]
        if self.size is not None:
            rows.append(("decisions", *self.size))
        rows += [(f"ends with {how}", *found) for how, found in (self.ends or {}).items()]
        rows += [(f"share of arm {arm}", *share) for arm, share in enumerate(self.shares)]
        told = f"{self.realizations:,} simulated experiments of {self.horizon:,} decisions, truth {list(self.truth)}"
        return html.block(
            html.table(rows, ["", "mean", "± error"], caption="Operating characteristics"), html.line(told)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def words_of_truth(truth: Sequence[Any]) -> str:
    """Return an assumed truth as people write it: "0.3, 0.5"; with contexts the weights of each arm, "1, 0; 0, 2"."""
    if isinstance(truth[0], Sequence):
        return "; ".join(", ".join(f"{weight:g}" for weight in weights) for weights in truth)
    return ", ".join(f"{mean:g}" for mean in truth)


def trial_of(design: Design, horizon: int) -> Trial:
    """Return the design as a trial of at most so many decisions. Looks that only advise are followed in it."""
    parts = {name: getattr(design, name) for name in ("arms", "belief", "policy", "allocation", "stopping")}
    return Trial(**parts, horizon=horizon)


class Lateness(NamedTuple):
    """What is assumed of outcomes beside their expected values."""

    delay: Delay
    dropout: float
    trend: float

    @property
    def any(self) -> bool:
        """Whether outcomes come late, or never, or drift."""
        return self.delay.longest > 0 or self.dropout > 0.0 or self.trend != 0.0


def characteristics(
    design: Design,
    truth: Any,
    *,
    horizon: int | None = None,
    realizations: int = 1000,
    seed: int = 1,
    noise: float = 1.0,
    delay: Any = 0,
    dropout: float = 0.0,
    trend: float = 0.0,
) -> Characteristics:
    """Return the operating characteristics for one assumed truth: the expected reward of each arm.

    Under a linear or logistic belief it is the weights of each arm, and every number of a context is standard normal.
    ``delay`` is after how many further decisions an outcome is known, as in ``ds.Trial``; a share ``dropout`` is never
    known; ``trend`` is how far all expected rewards move from the first to the last decision.
    """
    design.check_available()
    bandit = _world(design, truth, noise)
    wanted = design.usual_horizon if horizon is None else horizon
    length = checks.integer("horizon", wanted, least=1, most=_CELLS)
    count = checks.integer("realizations", realizations, least=2, most=10**6)
    if isinstance(bandit, (LinearGaussianBandit, LogisticBandit)):
        return _of_contexts(design, bandit, length, count, checks.seed(seed), (delay, dropout, trend))
    late = Lateness(
        check_delay(delay), checks.within("dropout", dropout, 0.0, 1.0), checks.within("trend", trend, -1e50, 1e50)
    )
    if design.allocation is not None or design.stopping is not None or late.any:
        return _of_trial(design, bandit, length, count, checks.seed(seed), late)
    return _of_simulation(design, bandit, length, count, checks.seed(seed))


def _of_trial(design: Design, bandit: Any, length: int, count: int, seed: int, late: Lateness) -> Characteristics:
    """Return the characteristics of the design as a trial."""
    if design.has_own_classes:
        raise SettingError(
            "A design with an allocation or a stopping rule, or with delay, dropout or a trend, is simulated with the "
            "beliefs and policies of this package only. Use ds.simulate with your own bandit."
        )
    trial = trial_of(design, length)
    world = make_world(design.belief, bandit, Circumstances(late.delay, late.dropout, late.trend or None))
    threads, means, binary = check_threads(None), world.means, isinstance(bandit, BernoulliBandit)
    found = play(pack(trial, False), [world], count, seed, threads)
    assigned, size = found.arms[0, :, :, ASSIGNED], found.size[0].astype(np.float64)
    best = means >= means.max() - 1e-12
    equal = None
    if binary and design.stopping is None:
        equal = float(length * (1.0 - means.mean() - late.trend / 2.0))
    elif binary:
        alike = play(pack(trial, True), [world], count, seed, threads)
        equal = float(np.mean(alike.size[0] - alike.arms[0, :, :, TOTAL].sum(axis=1)))
    stops = design.stopping is not None
    return Characteristics(
        truth=tuple(means.tolist()),
        horizon=length,
        realizations=count,
        best_arm_wins=None if best.all() else _mean(best[found.selected[0]]),
        failures=_mean(size - found.arms[0, :, :, TOTAL].sum(axis=1)) if binary else None,
        failures_of_equal_allocation=equal,
        regret=_mean(assigned @ (means.max() - means)),
        shares=tuple(_mean(share) for share in (assigned / size[:, None]).T),
        size=_mean(size) if stops else None,
        ends={word: _mean(found.outcome[0] == how) for how, word in OUTCOMES.items() if how != CONTINUE}
        if stops
        else None,
        selected=tuple(_mean(found.selected[0] == arm) for arm in range(means.size)) if stops else None,
    )


def _of_simulation(design: Design, bandit: Any, length: int, count: int, seed: int) -> Characteristics:
    """Return the characteristics of a design without limits or looks, whose outcomes are known at once."""
    means = np.array(bandit.probabilities if isinstance(bandit, BernoulliBandit) else bandit.means, dtype=np.float64)
    arms, rewards, _ = _play(design, bandit, length, count, seed)
    best = means >= means.max() - 1e-12
    won = np.array([best[_recommended(design, a, r)] for a, r in zip(arms, rewards, strict=True)], dtype=np.float64)
    shares = np.stack([(arms == arm).mean(axis=1) for arm in range(means.size)], axis=1)
    binary = isinstance(bandit, BernoulliBandit)
    return Characteristics(
        truth=tuple(means.tolist()),
        horizon=length,
        realizations=count,
        best_arm_wins=None if best.all() else _mean(won),
        failures=_mean((rewards == 0.0).sum(axis=1)) if binary else None,
        failures_of_equal_allocation=float(length * (1.0 - means.mean())) if binary else None,
        regret=_mean((means.max() - means[arms]).sum(axis=1)),
        shares=tuple(_mean(share) for share in shares.T),
    )


def _of_contexts(
    design: Design, bandit: Any, length: int, count: int, seed: int, late: tuple[Any, float, float]
) -> Characteristics:
    """Return the characteristics of a design with contexts; which arm is the best depends on the context."""
    delay, dropout, trend = late
    if trend != 0.0:
        raise SettingError("trend is for expected rewards without a context. Leave it out.")
    limits = None if design.allocation is None else _by_number(design.allocation, design.arms)
    more = {"allocation": limits, "delay": delay, "dropout": dropout}
    arms, rewards, regret = _play(design, bandit, length, count, seed, **more)
    binary = isinstance(bandit, LogisticBandit)
    return Characteristics(
        truth=tuple(tuple(weights) for weights in bandit.weights),
        horizon=length,
        realizations=count,
        best_arm_wins=None,
        failures=_mean((rewards == 0.0).sum(axis=1)) if binary else None,
        failures_of_equal_allocation=None,
        regret=_mean(regret),
        shares=tuple(_mean((arms == arm).mean(axis=1)) for arm in range(bandit.arms)),
    )


def _by_number(allocation: Allocation, names: Sequence[str]) -> Allocation:
    """Return an allocation with every arm by its number, as ``ds.simulate`` takes it."""
    given = {part.name: getattr(allocation, part.name) for part in fields(allocation)}
    for name, value in given.items():
        if isinstance(value, Mapping):
            given[name] = by_number(name, value, names)
    if isinstance(allocation.control, str):
        given["control"] = find_arm("control", allocation.control, names)
    return Allocation(**given)


def _world(design: Design, truth: Any, noise: float) -> Any:
    design.check_truth(truth)
    if type(design.belief) in (LinearGaussian, Logistic) and features_of(design.belief) is None:
        weights = [list(map(float, each)) for each in truth]
        if isinstance(design.belief, Logistic):
            return LogisticBandit(weights=weights)
        known = design.belief.noise
        return LinearGaussianBandit(weights=weights, noise=noise if known is None else known, context="normal")
    if type(design.belief) in _WORLDS:
        return _WORLDS[type(design.belief)](list(truth))
    if isinstance(design.belief, Gaussian):
        known = design.belief.noise
        return GaussianBandit(list(truth), noise=noise if known is None else known)
    raise SettingError(
        f"A design with {type(design.belief).__name__} cannot be simulated here: it must have BetaBernoulli, Gaussian, "
        "GammaPoisson or GammaExponential, where a truth is one number per arm, or LinearGaussian or Logistic without "
        "features, where it is the weights of each arm. Use ds.simulate with your own bandit."
    )


def _play(
    design: Design, bandit: Any, horizon: int, count: int, seed: int, **more: Any
) -> tuple[Any, FloatArray, FloatArray]:
    """Return arms and rewards, arrays (realization, step), and regrets (realization), in chunks that fit in memory."""
    size = max(1, min(count, _CELLS // (horizon * len(design.arms))))
    arms, rewards, regrets = [], [], []
    for start in range(0, count, size):
        result = simulate(
            bandit,
            [design.policy],
            horizon=horizon,
            realizations=min(size, count - start),
            seed=(seed + start) % 2**64,
            belief=design.belief,
            device="cpu",
            keep=("trajectories",),
            progress=False,
            threads=1 if design.has_own_classes else None,  # no processes are started below a server
            **more,
        )
        arms.append(result["trajectory_arm"].values[0, 0].astype(np.int64))
        rewards.append(result["trajectory_reward"].values[0, 0])
        regrets.append(result["final_regret"].values[0, 0])
    return np.concatenate(arms), np.concatenate(rewards), np.concatenate(regrets)


def _recommended(design: Design, arms: Any, rewards: FloatArray) -> int:
    """Return the arm with the highest posterior mean after a realization."""
    belief = design.belief
    state = belief.update_batch(belief.prior(), arms, rewards)
    return int(np.argmax(belief.marginals(state).mean))


def _mean(values: Any) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))
