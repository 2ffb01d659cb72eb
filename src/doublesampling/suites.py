"""Policies side by side: suites of problems and policies as data, and a leaderboard from what was played."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from doublesampling.bandits import Bandit, BernoulliBandit, LinearGaussianBandit
from doublesampling.engine.simulate import simulate
from doublesampling.plots import COLOURS
from doublesampling.plots import plain as plain_axes
from doublesampling.policies import (
    IMED,
    KLUCB,
    UCB1,
    BayesUCB,
    DoubleSampling,
    EpsilonGreedy,
    Greedy,
    LinUCB,
    ThompsonSampling,
    TopTwo,
)
from doublesampling.rules import rivals
from doublesampling.rules.compiled import plain

FloatArray = NDArray[np.float64]

_END = 0.9  # of the horizon: from here on a policy should know


@dataclass(frozen=True)
class Suite:
    """Problems, policies for a horizon, what regrets are measured by, and how that is called."""

    bandits: tuple[Bandit, ...]
    policies: Callable[[int], dict[str, Any]]
    measure: str


def _common(horizon: int) -> dict[str, Any]:
    return {
        "double sampling, horizon known": DoubleSampling(horizon=horizon),
        "double sampling": DoubleSampling(),
        "double sampling, as published": DoubleSampling.as_published(),
        "Thompson sampling": ThompsonSampling(),
        "Bayes-UCB": BayesUCB(),
        "top-two Thompson": TopTwo(),
        "greedy": Greedy(),
        "epsilon-greedy, 0.1": EpsilonGreedy(0.1),
    }


def _bernoulli(horizon: int) -> dict[str, Any]:
    return _common(horizon) | {"UCB1": UCB1(), "KL-UCB": KLUCB(), "IMED": IMED()}


def _linear(horizon: int) -> dict[str, Any]:
    return _common(horizon) | {"LinUCB, width 1": LinUCB(1.0), "LinUCB, width 2": LinUCB(2.0)}


SUITES = {
    "bernoulli": Suite(
        tuple(
            map(
                BernoulliBandit,
                (
                    (0.85, 0.9), (0.45, 0.5), (0.5, 0.7), (0.4, 0.8), (0.4, 0.7, 0.8),
                    (0.1, 0.05, 0.05, 0.05, 0.02, 0.02, 0.02, 0.01, 0.01, 0.01),
                    tuple(round(0.05 + 0.1 * k, 2) for k in range(10)),
                ),
            )
        ),
        _bernoulli,
        "the Lai-Robbins bound",
    ),
    "linear": Suite(
        tuple(
            LinearGaussianBandit(weights=weights, noise=noise)
            for weights in ([[0.4, 0.4], [0.8, 0.8]], [[0.9, -0.3], [-0.2, 0.6]], [[0.5, 0.1], [0.4, 0.2], [0.1, 0.5]])
            for noise in (0.2, 1.0)
        ),
        _linear,
        "Thompson sampling's",
    ),
}  # fmt: skip


def lai_robbins(theta: Sequence[float], horizon: int) -> float:
    """The sum of gap / KL over the arms but the best, times log T: what no good policy stays below for ever."""
    best = max(theta)
    gaps = ((best - p) / plain(rivals.bernoulli_divergence)(p, best) for p in theta if p < best)
    return sum(gaps) * math.log(horizon)


def play(suite: Suite, *, horizon: int, realizations: int, seed: int, device: str = "auto") -> xr.Dataset:
    """Every policy on every problem of a suite, each timed by itself; policies meet the same luck."""
    parts, seconds = [], []
    for name, policy in suite.policies(horizon).items():
        simulate(list(suite.bandits), {name: policy}, horizon=2, realizations=1, seed=seed, device=device)  # compile
        began = time.perf_counter()
        parts.append(
            simulate(
                list(suite.bandits), {name: policy}, horizon=horizon, realizations=realizations, seed=seed,
                times=np.unique(np.linspace(_END * horizon, horizon, 50).astype(int).clip(1)), device=device,
            )
        )  # fmt: skip
        seconds.append(time.perf_counter() - began)
    result = xr.concat(parts, dim="policy", combine_attrs="drop_conflicts")
    steps = len(suite.bandits) * horizon * realizations
    result["seconds_per_decision"] = ("policy", np.array(seconds) / steps)
    return result


@dataclass(frozen=True)
class Row:
    """One line of a leaderboard: regret over the measure with its error, spread, share on a wrong arm, time."""

    policy: str
    regret: float
    error: float
    spread: float
    wrong: float
    microseconds: float


def leaderboard(suite: Suite, data: xr.Dataset) -> list[Row]:
    """Policies from the least relative regret, averaged over the problems."""
    horizon = int(data.time[-1])
    final = data.final_regret.transpose("policy", "bandit", "realization").values
    relative = final / _units(suite, data, horizon)[:, None]
    wrong = 1.0 - data.optimal_arm_rate.mean(("bandit", "time")).values
    mean, spread = relative.mean(axis=(1, 2)), relative.std(axis=2).mean(axis=1)
    error = np.sqrt((relative.var(axis=2) / final.shape[2]).sum(axis=1)) / final.shape[1]
    micros = data.seconds_per_decision.values * 1e6
    columns = zip(data.policy.values, mean, error, spread, wrong, micros, strict=True)
    rows = [Row(str(policy), *map(float, found)) for policy, *found in columns]
    return sorted(rows, key=lambda row: row.regret)


def _units(suite: Suite, data: xr.Dataset, horizon: int) -> FloatArray:
    """What each problem's regret is divided by."""
    if all(isinstance(bandit, BernoulliBandit) for bandit in suite.bandits):
        return np.array([lai_robbins(bandit.probabilities, horizon) for bandit in suite.bandits])  # type: ignore[union-attr]
    return np.asarray(data.cumulative_regret.sel(policy="Thompson sampling").isel(time=-1).values)


def draw_leaderboard(rows: list[Row], measure: str) -> Figure:
    """Relative regret with two standard errors, best first; what runs off the scale is cut and named."""
    figure = Figure(figsize=(8.0, 0.42 * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots()
    limit = 3.0 * float(np.median([row.regret for row in rows]))
    for place, row in enumerate(rows):
        ours = row.policy.startswith("double")
        axes.barh(place, min(row.regret, limit), color=COLOURS[0] if ours else "0.75", height=0.66)
        if row.regret < limit:
            axes.errorbar(row.regret, place, xerr=2 * row.error, color="0.2", capsize=2, linewidth=1)
        axes.annotate(f" {row.regret:.2f}", (min(row.regret + 2 * row.error, limit), place), va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [row.policy for row in rows])
    axes.invert_yaxis()
    axes.set(xlabel=f"regret relative to {measure} (± 2 standard errors)", xlim=(0.0, 1.12 * limit))
    plain_axes(axes)
    return figure
