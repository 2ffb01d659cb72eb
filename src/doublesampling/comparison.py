"""Policies side by side: suites of problems and policies as data, and a leaderboard from what was played."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import NDArray

from doublesampling import html
from doublesampling.bandits import (
    BernoulliBandit,
    CategoricalBandit,
    ChangingBernoulliBandit,
    ExponentialBandit,
    GaussianBandit,
    LinearGaussianBandit,
    LogisticBandit,
    PoissonBandit,
)
from doublesampling.beliefs import BetaBernoulli
from doublesampling.engine.simulate import simulate
from doublesampling.errors import SettingError
from doublesampling.exact import bayes_optimal
from doublesampling.lai_robbins import DIVERGENCES, lai_robbins, means_of
from doublesampling.plots import COLOURS, NotebookFigure
from doublesampling.plots import plain as plain_axes
from doublesampling.policies import (
    IMED,
    KLUCB,
    UCB1,
    BayesUCB,
    DoubleSampling,
    EpsilonGreedy,
    EpsilonThompson,
    FiniteHorizonGittins,
    Greedy,
    InformationDirected,
    InformationRelaxation,
    LinUCB,
    ThompsonSampling,
    TopTwo,
)
from doublesampling.progress import Progress, Wish
from doublesampling.rules.cached import compilations

FloatArray = NDArray[np.float64]

_CUT = 4.0  # times the median regret: longer bars are cut
_INDEXED = 300  # decisions: longer tables of indices take minutes to fill
_END = 0.9  # of the horizon: from here on a policy should know


@dataclass(frozen=True)
class Suite:
    """Problems, policies for a horizon, and how many realizations of them are quick enough to wait for."""

    bandits: tuple[Any, ...]
    policies: Callable[[int], dict[str, Any]]
    belief: Any = None
    realizations: int = 500
    horizon: int = 1500
    averaged: bool = False
    """Whether the problems stand for two Bernoulli arms with uniform priors, whose Bayes optimum is known."""

    @property
    def measure(self) -> str:
        """What regrets are measured by."""
        if self.averaged:
            return "the Bayes optimum"
        return "the Lai-Robbins bound" if type(self.bandits[0]) in DIVERGENCES else "Thompson sampling's"


def _common(horizon: int) -> dict[str, Any]:
    return {
        "double sampling, horizon known": DoubleSampling(horizon=horizon),
        "double sampling, any time": DoubleSampling.anytime(),
        "double sampling": DoubleSampling(),
        "double sampling, as published": DoubleSampling.as_published(),
        "Thompson sampling": ThompsonSampling(),
        "Bayes-UCB": BayesUCB(),
        "top-two Thompson": TopTwo(),
        "information-directed": InformationDirected(),
        "greedy": Greedy(),
        "epsilon-greedy, 0.1": EpsilonGreedy(0.1),
    }


def _bernoulli(horizon: int) -> dict[str, Any]:
    found = _common(horizon) | {"UCB1": UCB1(), "KL-UCB": KLUCB(), "IMED": IMED()}
    found |= {
        "epsilon-Thompson, 0.3": EpsilonThompson(0.3),
        "IRS.FH": InformationRelaxation(horizon=min(horizon, 10**6)),
    }
    if horizon <= _INDEXED:
        found["finite-horizon Gittins"] = FiniteHorizonGittins(horizon=horizon)
    return found


def _linear(horizon: int) -> dict[str, Any]:
    return _common(horizon) | {"LinUCB, width 1": LinUCB(1.0), "LinUCB, width 2": LinUCB(2.0)}


def uniform_pairs(count: int, step: int) -> tuple[BernoulliBandit, ...]:
    """Return problems whose mean stands for the mean over uniform priors: a lattice of pairs, such as 610, 377."""
    pairs = [((i + 0.5) / count, (i * step % count + 0.5) / count) for i in range(count)]
    return tuple(BernoulliBandit(pair) for pair in pairs)


_PAIRS = ((0.85, 0.9), (0.45, 0.5), (0.5, 0.7), (0.4, 0.8))
_LADDER = tuple(round(0.05 + 0.1 * k, 2) for k in range(10))
_RARE = (0.1, 0.05, 0.05, 0.05, 0.02, 0.02, 0.02, 0.01, 0.01, 0.01)
_WEIGHTS = ([[0.4, 0.4], [0.8, 0.8]], [[0.9, -0.3], [-0.2, 0.6]], [[0.5, 0.1], [0.4, 0.2], [0.1, 0.5]])
SUITES = {
    "bernoulli": Suite(
        tuple(map(BernoulliBandit, (*_PAIRS, (0.4, 0.7, 0.8), _RARE, _LADDER))),
        _bernoulli,
    ),
    "uniform": Suite(uniform_pairs(610, 377), _bernoulli, realizations=20, horizon=200, averaged=True),
    "gaussian": Suite(
        tuple(GaussianBandit(means, noise=s) for means in ((0.0, 0.5), (0.0, 0.2, 0.4)) for s in (0.5, 1.0)), _linear
    ),
    "linear": Suite(
        tuple(LinearGaussianBandit(weights=w, noise=noise) for w in _WEIGHTS for noise in (0.2, 1.0)), _linear
    ),
    "logistic": Suite(tuple(LogisticBandit(weights=2.0 * np.array(w)) for w in _WEIGHTS), _linear),
    "poisson": Suite(tuple(map(PoissonBandit, ((0.5, 1.0), (4.0, 5.0), (1.0, 2.0, 3.0)))), _common),
    "exponential": Suite(tuple(map(ExponentialBandit, ((0.5, 1.0), (4.0, 5.0), (1.0, 2.0, 3.0)))), _common),
    "categorical": Suite(
        (CategoricalBandit([[0.5, 0.3, 0.2], [0.3, 0.3, 0.4]], values=(0, 1, 5)),), _common, realizations=20
    ),
    "changing": Suite(
        (ChangingBernoulliBandit([[0.2, 0.8], [0.8, 0.2]], every=300), ChangingBernoulliBandit([[0.5, 0.7], [0.5, 0.3]],
         every=300)), _bernoulli, BetaBernoulli(arms=2, discount=0.98), realizations=100,
    ),
}  # fmt: skip


def play(
    suite: Suite, *, horizon: int, realizations: int, seed: int, device: str = "auto", progress: Wish = None
) -> xr.Dataset:
    """Play every policy on every problem of a suite, each timed by itself; policies meet the same luck.

    ``late_regret`` is what each realization lost over the last tenth: a second, shorter run walks the same steps.
    """
    parts, seconds, policies = [], [], suite.policies(horizon)
    known = compilations()
    shown = Progress(progress, "comparing", lambda: compilations() > known)
    with shown.over(len(policies), 0, "policies"):
        for name, policy in policies.items():
            _run(suite, {name: policy}, 2, 1, seed, device)  # compile
            began = time.perf_counter()
            found = _run(suite, {name: policy}, horizon, realizations, seed, device)
            seconds.append(time.perf_counter() - began)
            before = _run(suite, {name: policy}, late_start(horizon), realizations, seed, device)
            found["late_regret"] = found.final_regret - before.final_regret
            parts.append(found)
            shown.advance(1)
    result = xr.concat(parts, dim="policy", combine_attrs="drop_conflicts")
    steps = len(suite.bandits) * horizon * realizations
    result["seconds_per_decision"] = ("policy", np.array(seconds) / steps)
    return result


def _run(suite: Suite, policies: Any, horizon: int, realizations: int, seed: int, device: str) -> xr.Dataset:
    """Some policies on every problem of a suite, recorded over the last tenth."""
    # an index counts every win alike: a belief that forgets is not for it
    counting = all(getattr(policy, "counts_wins", False) for policy in policies.values())
    belief = None if counting else suite.belief
    times = np.unique(np.linspace(_END * horizon, horizon, 50).astype(int).clip(1))
    return simulate(
        list(suite.bandits), policies, horizon=horizon, realizations=realizations, seed=seed, belief=belief,
        times=times, device=device, progress=False,
    )  # fmt: skip


def late_start(horizon: int) -> int:
    """The last step before the last tenth of a run."""
    return max(int(_END * horizon), 1)


def stuck(suite: Suite, data: xr.Dataset) -> FloatArray:
    """The share of realizations that lost over the last tenth at least half of what one wrong arm throughout costs.

    Float array (policy); nan for problems whose gaps depend on a context or on the time.
    """
    horizon = int(data.time[-1])
    late = data.late_regret.transpose("policy", "bandit", "realization").values
    means = [means_of(bandit) for bandit in suite.bandits]
    if any(found is None for found in means):
        return np.full(late.shape[0], math.nan)
    gaps = np.array([max(found) - sorted(found)[-2] for found in means if found is not None])
    limits = 0.5 * gaps * (horizon - late_start(horizon))
    return np.asarray((late >= limits[:, None]).mean(axis=(1, 2)))


@dataclass(frozen=True)
class Row:
    """One line of a leaderboard: regret over the measure with its error, spread, wrong and stuck shares, time."""

    policy: str
    regret: float
    error: float
    spread: float
    wrong: float
    stuck: float
    microseconds: float


class Leaderboard(list[Row]):
    """The rows of a leaderboard, best first; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        headings = ["policy", "relative regret", "± error", "spread", "wrong arm", "stuck", "µs per decision"]
        rows = [
            (row.policy, row.regret, row.error, row.spread, html.bar(row.wrong), html.bar(row.stuck), row.microseconds)
            for row in self
        ]
        return html.block(html.table(rows, headings, caption="Leaderboard"))


def leaderboard(suite: Suite, data: xr.Dataset) -> Leaderboard:
    """Policies from the least relative regret, averaged over the problems."""
    horizon = int(data.time[-1])
    final = data.final_regret.transpose("policy", "bandit", "realization").values
    relative = final / _units(suite, data, horizon)[:, None]
    wrong = 1.0 - data.optimal_arm_rate.mean(("bandit", "time")).values
    mean, spread = relative.mean(axis=(1, 2)), relative.std(axis=2, ddof=1).mean(axis=1)
    error = np.sqrt((relative.var(axis=2, ddof=1) / final.shape[2]).sum(axis=1)) / final.shape[1]
    micros = data.seconds_per_decision.values * 1e6
    columns = zip(data.policy.values, mean, error, spread, wrong, stuck(suite, data), micros, strict=True)
    rows = [Row(str(policy), *map(float, found)) for policy, *found in columns]
    return Leaderboard(sorted(rows, key=lambda row: row.regret))


def _units(suite: Suite, data: xr.Dataset, horizon: int) -> FloatArray:
    """What each problem's regret is divided by."""
    if suite.averaged:
        return np.full(len(suite.bandits), bayes_optimal(horizon).regret)
    if all(type(bandit) in DIVERGENCES for bandit in suite.bandits):
        return np.array([lai_robbins(bandit, horizon) for bandit in suite.bandits])
    units = np.asarray(data.cumulative_regret.sel(policy="Thompson sampling").isel(time=-1).values)
    if not (units > 0.0).all():
        raise SettingError("Thompson sampling lost nothing, so nothing can be measured by it. Raise the horizon.")
    return units


def draw_leaderboard(rows: list[Row], measure: str) -> Figure:
    """Draw relative regret with two standard errors, best first; a bar that is cut has a mark, every bar its number.

    Bars are cut only where they would dwarf the others: from four times the median on.
    """
    figure = NotebookFigure(figsize=(8.0, 0.42 * len(rows) + 1.2), layout="constrained")
    axes = figure.subplots()
    limit = _CUT * float(np.median([row.regret for row in rows]))
    shown = [row for row in rows if row.regret + 2 * row.error <= limit]
    end = max((row.regret + 2 * row.error for row in shown), default=limit)
    cut = 1.06 * end  # where the bars end that would go on
    for place, row in enumerate(rows):
        ours = row.policy.startswith("double")
        colour, whole = COLOURS[0] if ours else "0.75", row in shown
        axes.barh(place, row.regret if whole else cut, color=colour, height=0.66)
        if whole:
            axes.errorbar(row.regret, place, xerr=2 * row.error, color="0.2", capsize=2, linewidth=1)
        else:
            axes.plot([0.95 * cut, 0.965 * cut], [place + 0.45, place - 0.45], color="white", linewidth=3, zorder=4)
        label = f"{row.regret:.2f}" if whole else f"{row.regret:.2f}, cut"
        right = row.regret + 2 * row.error if whole else cut
        axes.annotate(label, (right, place), (5, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set_yticks(range(len(rows)), [row.policy for row in rows])
    axes.invert_yaxis()
    axes.set(xlabel=f"regret relative to {measure} (± 2 standard errors)", xlim=(0.0, 1.16 * cut))
    plain_axes(axes)
    return figure
