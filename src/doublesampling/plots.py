"""Pictures of results: pure functions from a dataset to a matplotlib figure."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's colours, told apart by colour-blind readers; dashes tell them apart in grey
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))


def look(index: int) -> dict[str, Any]:
    """The colour and dash of the index-th line."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)], "linewidth": 1.5}


def plain(axes: Axes) -> None:
    """A quiet frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def _lines(result: xr.Dataset, name: str, band: str | None, label: str, bandit: int) -> Figure:
    """One line per policy over time, with a band of a standard deviation or error where one is named."""
    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.subplots()
    time = result.time.values
    for i, policy in enumerate(result.policy.values):
        cell = result.sel(policy=policy).isel(bandit=bandit)
        middle = cell[name].values
        axes.plot(time, middle, label=str(policy), **look(i))
        if band is not None:
            spread = cell[band].values
            axes.fill_between(time, middle - spread, middle + spread, color=look(i)["color"], alpha=0.12, linewidth=0)
    axes.set(xlabel="time step t", ylabel=label, xlim=(time[0], max(time[-1], time[0] + 1)))
    axes.legend(framealpha=0.85, edgecolor="none")
    plain(axes)
    return figure


def draw_regret(result: xr.Dataset, *, bandit: int = 0, spread: str = "error") -> Figure:
    """Cumulative expected regret, with a band of two Monte Carlo standard errors ("error") or one deviation ("std")."""
    shown = result.assign(band=result[f"cumulative_regret_{spread}"] * (2.0 if spread == "error" else 1.0))
    words = "± 2 standard errors" if spread == "error" else "± standard deviation"
    figure = _lines(shown, "cumulative_regret", "band", f"cumulative regret ({words})", bandit)
    figure.axes[0].set_ylim(bottom=min(0.0, float(np.nanmin(result.cumulative_regret.isel(bandit=bandit)))))
    return figure


def draw_optimal_arm(result: xr.Dataset, *, bandit: int = 0) -> Figure:
    """The share of realizations that play the best arm."""
    figure = _lines(result, "optimal_arm_rate", None, "share playing the best arm", bandit)
    figure.axes[0].set_ylim(0.0, 1.02)
    return figure


def draw_candidates(result: xr.Dataset, *, bandit: int = 0) -> Figure:
    """The mean number of candidates."""
    figure = _lines(result, "candidates", None, "mean candidates drawn, N", bandit)
    figure.axes[0].set_yscale("log")
    return figure
