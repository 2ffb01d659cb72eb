"""Operating characteristics of an experiment's design: simulate it on assumed expected rewards."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks, html
from doublesampling.bandits import BernoulliBandit, ExponentialBandit, GaussianBandit, PoissonBandit
from doublesampling.beliefs import BetaBernoulli, GammaExponential, GammaPoisson, Gaussian
from doublesampling.engine.simulate import simulate
from doublesampling.errors import SettingError
from doublesampling.live.design import Design

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

    truth: tuple[float, ...]
    horizon: int
    realizations: int
    best_arm_wins: tuple[float, float] | None
    """How often the arm with the highest posterior mean at the end is the best one; None where all are equal."""
    failures: tuple[float, float] | None
    """Expected number of rewards of 0; None where rewards are not 0 or 1."""
    failures_of_equal_allocation: float | None
    """The same for equal allocation to all arms."""
    regret: tuple[float, float]
    """Expected loss of reward compared with always playing the best arm."""
    shares: tuple[tuple[float, float], ...]
    """Share of the decisions that each arm gets."""

    def _repr_html_(self) -> str:
        """A table for a notebook: numbers with their Monte Carlo errors."""
        names = ("best_arm_wins", "failures", "regret")
        rows: list[tuple[Any, ...]] = [
            (name.replace("_", " "), *found) for name in names if (found := getattr(self, name)) is not None
        ]
        rows += [(f"share of arm {arm}", *share) for arm, share in enumerate(self.shares)]
        told = f"{self.realizations:,} simulated experiments of {self.horizon:,} decisions, truth {list(self.truth)}"
        return html.block(
            html.table(rows, ["", "mean", "± error"], caption="Operating characteristics"), html.line(told)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def characteristics(
    design: Design,
    truth: Any,
    *,
    horizon: int | None = None,
    realizations: int = 1000,
    seed: int = 1,
    noise: float = 1.0,
) -> Characteristics:
    """Return the operating characteristics for one assumed truth: the expected reward of each arm."""
    design.check_available()
    limited = design.allocation if design.stopping is None else design.stopping
    if limited is not None:
        raise SettingError(f"A design with {limited!r} cannot be simulated here. Simulate it as a trial: ds.Trial.")
    bandit = _world(design, truth, noise)
    wanted = design.usual_horizon if horizon is None else horizon
    length = checks.integer("horizon", wanted, least=1, most=_CELLS)
    count = checks.integer("realizations", realizations, least=2, most=10**6)
    means = np.array([float(value) for value in truth])
    arms, rewards = _play(design, bandit, length, count, checks.seed(seed))
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


def _world(design: Design, truth: Any, noise: float) -> Any:
    design.check_truth(truth)
    if type(design.belief) in _WORLDS:
        return _WORLDS[type(design.belief)](list(truth))
    if isinstance(design.belief, Gaussian):
        known = design.belief.noise
        return GaussianBandit(list(truth), noise=noise if known is None else known)
    raise SettingError(
        f"A design with {type(design.belief).__name__} cannot be simulated here: it must have BetaBernoulli, Gaussian, "
        "GammaPoisson or GammaExponential, where a truth is one number per arm. Use ds.simulate with your own bandit."
    )


def _play(design: Design, bandit: Any, horizon: int, count: int, seed: int) -> tuple[Any, FloatArray]:
    """Return arms and rewards, arrays (realization, step), simulated in chunks that fit in memory."""
    size = max(1, min(count, _CELLS // (horizon * len(design.arms))))
    arms, rewards = [], []
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
        )
        arms.append(result["trajectory_arm"].values[0, 0].astype(np.int64))
        rewards.append(result["trajectory_reward"].values[0, 0])
    return np.concatenate(arms), np.concatenate(rewards)


def _recommended(design: Design, arms: Any, rewards: FloatArray) -> int:
    """Return the arm with the highest posterior mean after a realization."""
    belief = design.belief
    state = belief.update_batch(belief.prior(), arms, rewards)
    return int(np.argmax(belief.marginals(state).mean))


def _mean(values: Any) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values, ddof=1) / math.sqrt(len(values)))
