"""The paper's figures: pure functions from a dataset to a matplotlib figure. They never simulate."""

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter
from numpy.typing import NDArray

from doublesampling.paper import measures
from doublesampling.paper.published import (
    BAYES_UCB,
    DISTINGUISHABLE,
    FAIR,
    FIGURE_3,
    FIGURE_6,
    OURS,
    RIVALS,
    THOMPSON,
)
from doublesampling.plots import COLOURS, NotebookFigure, look, plain

FloatArray = NDArray[np.float64]

_STYLE = {OURS: 0, THOMPSON: 1, BAYES_UCB: 2, FAIR: 3}  # one look per policy, in every figure
_MARKS = {THOMPSON: "o", BAYES_UCB: "^"}
_WIDTH, _HEIGHT = 10.0, 3.6


def _band(axes: Axes, time: FloatArray, middle: FloatArray, spread: FloatArray, policy: str, **bounds: float) -> None:
    """A line with one standard deviation around it; the edges are drawn, so that bands are seen in grey."""
    style = look(_STYLE[policy])
    low, high = middle - spread, middle + spread
    if bounds:
        low, high = np.clip(low, bounds["low"], bounds["high"]), np.clip(high, bounds["low"], bounds["high"])
    axes.plot(time, middle, label=policy, **style)
    axes.fill_between(time, low, high, color=style["color"], alpha=0.10, linewidth=0)
    for edge in (low, high):
        axes.plot(time, edge, **(style | {"linewidth": 0.5}))


def draw_illustration(data: xr.Dataset) -> Figure:
    """Figure 1: how probably each arm is the best, with a band of one deviation, and N, over time."""
    figure = NotebookFigure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    left, right = figure.subplots(1, 2)
    time, theta = data.time.values, data.attrs["theta"]
    for arm in range(data.sizes["arm"]):
        p, sd = data.probability_optimal.values[:, arm], data.probability_optimal_sd.values[:, arm]
        style = look(arm)
        left.plot(time, p, label=f"arm {arm}: θ = {theta[arm]:g}", **style)
        left.fill_between(
            time, np.clip(p - sd, 0, 1), np.clip(p + sd, 0, 1), color=style["color"], alpha=0.12, linewidth=0
        )
    limits = (1, max(int(time[-1]), 2))
    left.set(xlabel="time step t", ylabel="probability of being optimal, p̂ ± σ̂", ylim=(0, 1), xlim=limits)
    left.legend(loc="center right", framealpha=0.85, edgecolor="none")
    candidates = data.candidates.values
    right.step(time, candidates, where="mid", color=COLOURS[0], linewidth=1.0)
    right.set(xlabel="time step t", ylabel="candidates drawn, N", xlim=limits)
    if candidates.max() > 50:
        right.set_yscale("log")
    else:
        right.set_ylim(0, max(int(candidates.max()), 4) + 0.5)
        right.yaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (left, right):
        plain(axes)
    return figure


def draw_correct_action(data: xr.Dataset) -> Figure:
    """Figure 2: the probability of playing the best arm, with its standard deviation, against each rival."""
    figure = NotebookFigure(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    for axes, rival in zip(figure.subplots(1, 2, sharey=True), RIVALS, strict=True):
        for policy in (rival, OURS):
            cell = data.sel(policy=policy).isel(bandit=0)
            rate, spread = cell.optimal_arm_rate.values, cell.optimal_arm_rate_std.values
            _band(axes, data.time.values, rate, spread, policy, low=0.0, high=1.0)
        axes.set(xlabel="time step t", xlim=(1, int(data.time[-1])), ylim=(0.0, 1.02))
        axes.legend(loc="lower right", framealpha=0.85, edgecolor="none")
        plain(axes)
    figure.axes[0].set_ylabel("probability of the best arm ± std")
    return figure


def _draw_regret(axes: Axes, data: xr.Dataset, bandit: int) -> None:
    for policy in (THOMPSON, BAYES_UCB, OURS):
        cell = data.sel(policy=policy).isel(bandit=bandit)
        middle, spread = cell.observed_cumulative_regret.values, cell.observed_cumulative_regret_std.values
        _band(axes, data.time.values, middle, spread, policy)
    fair = data.observed_cumulative_regret.sel(policy=FAIR).isel(bandit=bandit).values
    axes.plot(data.time.values, fair, label=FAIR, **look(_STYLE[FAIR]))
    axes.set(xlabel="time step t", ylabel="cumulative regret ± std", xlim=(1, int(data.time[-1])))
    plain(axes)


def draw_bernoulli_regret(data: xr.Dataset) -> Figure:
    """Figure 3: cumulative observed regret with its deviation, and the paper's values; the means alone beside it."""
    figure = NotebookFigure(figsize=(_WIDTH, _HEIGHT + 0.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_regret(left, data, 0)
    for policy in (THOMPSON, BAYES_UCB, OURS, FAIR):
        cell = data.sel(policy=policy).isel(bandit=0)
        right.plot(data.time.values, cell.observed_cumulative_regret.values, label=policy, **look(_STYLE[policy]))
    for time, published in FIGURE_3.items():
        for policy, (mean, _) in published.items():
            if time <= int(data.time[-1]):
                colour = look(_STYLE[policy])["color"]
                right.plot(time, mean, marker="D", ms=6, mfc="white", mec=colour, mew=1.4, linestyle="none", zorder=5)
    right.plot([], [], marker="D", ms=6, mfc="white", mec="0.3", mew=1.4, linestyle="none", label="published")
    right.set(xlabel="time step t", ylabel="cumulative regret, mean", xlim=(0, int(data.time[-1]) * 1.02))
    right.set_ylim(0.0, 1.05 * right.get_ylim()[1])
    plain(right)
    _legend(figure, right)
    return figure


def _legend(figure: Figure, axes: Axes) -> None:
    """One legend above all panels: bands would hide it inside."""
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)


def _draw_delta(axes: Axes, data: xr.Dataset, ours: str, logarithmic: bool) -> None:
    kl = data.kl.values
    order = np.argsort(kl)
    for rival in RIVALS:
        delta, _ = measures.relative_difference(data, ours, rival)
        style = look(_STYLE[rival])
        axes.scatter(kl, delta, s=9, marker=_MARKS[rival], facecolors="none", edgecolors=style["color"], linewidths=0.5,
                     alpha=0.45)  # fmt: skip
        curve = measures.lowess(np.log(kl) if logarithmic else kl, delta)
        axes.plot(kl[order], curve[order], color="white", linewidth=4.0, zorder=4)
        label: dict[str, Any] = {"label": f"against {rival}"}
        axes.plot(kl[order], curve[order], zorder=5, **(style | {"linewidth": 2.2} | label))
    axes.axhline(0.0, color="0.25", linewidth=0.8)
    axes.axvline(DISTINGUISHABLE, color="0.5", linewidth=0.8, linestyle=":")
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))
    axes.set_ylim(-1.0, 1.0)
    if logarithmic:
        axes.set_xscale("log")
    else:  # a few very easy problems would squeeze all others
        axes.set_xlim(0.0, float(np.quantile(kl, 0.95)))
    _count_outside(axes, data, ours)
    plain(axes)


def _count_outside(axes: Axes, data: xr.Dataset, ours: str) -> None:
    """Say how many points lie outside of the axes, so that nobody takes the picture for all of them."""
    kl, (low, high), (left, right) = data.kl.values, axes.get_ylim(), axes.get_xlim()
    deltas = [measures.relative_difference(data, ours, rival)[0] for rival in RIVALS]
    outside = sum(int(((d < low) | (d > high) | (kl < left) | (kl > right)).sum()) for d in deltas)
    total = len(RIVALS) * kl.size
    words = f"{outside} of {total} points lie outside" if outside else f"all {total} points are shown"
    axes.text(0.99, 0.01, words, transform=axes.transAxes, ha="right", va="bottom", fontsize=8, color="0.35")


def draw_relative_regret(data: xr.Dataset) -> Figure:
    """Figure 4: Delta against the least divergence, both rivals, a LOWESS curve through each; fair ties beside it."""
    figure = NotebookFigure(figsize=(_WIDTH, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, ours in ((left, OURS), (right, FAIR)):
        _draw_delta(axes, data, ours, logarithmic=False)
        axes.set(title=ours if ours != OURS else f"{OURS}, as published", xlabel="smallest KL divergence between arms")
    left.set_ylabel("Δ, regret relative to the rival's")
    left.legend(loc="upper right", framealpha=0.85, edgecolor="none")
    return figure


def draw_linear_relative_regret(as_run: xr.Dataset, free: xr.Dataset) -> Figure:
    """Figure 6: the same on linear Gaussian problems, as the authors ran it, and with any weights of the grid."""
    figure = NotebookFigure(figsize=(_WIDTH, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_delta(left, as_run, OURS, logarithmic=True)
    for (low, high), published in FIGURE_6.items():
        middle = float(np.sqrt(max(low, 0.02) * high))
        for rival, delta in published.items():
            colour = look(_STYLE[rival])["color"]
            left.plot(middle, delta, marker="D", ms=7, mfc="white", mec=colour, mew=1.6, linestyle="none", zorder=6)
    left.plot([], [], marker="D", ms=7, mfc="white", mec="0.3", mew=1.6, linestyle="none", label="published, by bins")
    left.set(title="as run: equal entries per arm", xlabel="KL as published: mean squared gap / 2σ")
    _draw_delta(right, free, OURS, logarithmic=True)
    right.set(title="any weights of the grid", xlabel="KL divergence: mean squared gap / 2σ²")
    left.set_ylabel("Δ, regret relative to the rival's")
    left.legend(loc="upper right", framealpha=0.85, edgecolor="none")
    return figure


def draw_linear_regret(data: xr.Dataset) -> Figure:
    """Figure 5: cumulative observed regret with its deviation, at the caption's noise and at five times that."""
    figure = NotebookFigure(figsize=(_WIDTH, _HEIGHT + 0.4), layout="constrained")
    for bandit, axes in enumerate(figure.subplots(1, 2)):
        _draw_regret(axes, data, bandit)
        axes.set_title(f"noise σ = {data.noise.values[bandit]:g}" + (", as in the caption" if bandit == 0 else ""))
    _legend(figure, figure.axes[0])
    return figure


FIGURES: dict[int, tuple[tuple[str, ...], Callable[..., Figure]]] = {
    1: (("illustration",), draw_illustration),
    2: (("bernoulli",), draw_correct_action),
    3: (("bernoulli",), draw_bernoulli_regret),
    4: (("bernoulli-sweep",), draw_relative_regret),
    5: (("linear",), draw_linear_regret),
    6: (("linear-sweep", "linear-sweep-free"), draw_linear_relative_regret),
}
"""Figure -> the datasets that it draws, and how."""
