"""Figures of operating characteristics: pure functions from a dataset to a matplotlib figure."""

from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from doublesampling.errors import SettingError
from doublesampling.plots import COLOURS, NotebookFigure, plain
from doublesampling.trials.summary import share_on_best

_OUTCOMES = {
    "superiority": COLOURS[0],
    "equivalence": COLOURS[2],
    "futility": COLOURS[1],
    "maximum": "0.8",
}


def _labels(data: xr.Dataset) -> list[str]:
    """Return one label per scenario: its name, or its truth."""
    named = data.scenario.dtype.kind in "UO"
    truths = [", ".join(f"{mean:g}" for mean in row) for row in data.truth.values.tolist()]
    return [f"{name}\n{truth}" if named else truth for name, truth in zip(data.scenario.values, truths, strict=True)]


def draw_characteristics(data: xr.Dataset) -> Figure:
    """Draw how a trial ends in each scenario, and its size, beside equal allocation where that was simulated."""
    if "probability_superiority" not in data or "design" in data.dims:
        raise SettingError("This figure needs a result of trial.simulate.")
    suffixes = [suffix for suffix in ("", "_equal") if f"probability_superiority{suffix}" in data]
    rows = [(i, suffix) for i in range(data.sizes["scenario"]) for suffix in suffixes]
    figure = NotebookFigure(figsize=(9.0, 0.42 * len(rows) + 1.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
    labels = _labels(data)
    for place, (i, suffix) in enumerate(rows):
        cell, start = data.isel(scenario=i), 0.0
        for name, colour in _OUTCOMES.items():
            share = float(cell[f"probability_{name}{suffix}"])
            left.barh(place, share, left=start, color=colour, height=0.7, label=name if place == 0 else None)
            if share > 0.06:
                white = colour != "0.8"
                left.text(start + share / 2, place, f"{share:.0%}", ha="center", va="center", fontsize=8,
                          color="white" if white else "0.2")  # fmt: skip
            start += share
        if f"size_quantile{suffix}" in cell:
            low, middle, high = cell[f"size_quantile{suffix}"].sel(quantile=[0.05, 0.5, 0.95]).values
            right.plot([low, high], [place, place], color="0.6", linewidth=2)
            right.plot([middle], [place], marker="|", color="0.3", markersize=11)
        right.plot([float(cell[f"expected_size{suffix}"])], [place], marker="o", color=COLOURS[0], markersize=5)
    texts = [labels[i].replace("\n", ": ") + ("  (equal)" if suffix else "") for i, suffix in rows]
    left.set_yticks(range(len(rows)), texts)
    left.invert_yaxis()
    left.set(xlabel="probability of each end", xlim=(0.0, 1.0))
    right.set(xlabel="participants, 5 % to 95 %")
    right.set_xlim(left=0.0)
    for axes in (left, right):
        plain(axes)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    return figure


def draw_comparison(data: xr.Dataset) -> Figure:
    """Draw superiority, size, failures and the share on the best arm of every design, by scenario."""
    if "design" not in data.dims:
        raise SettingError("This figure needs a result of ds.compare_designs.")
    panels: list[tuple[str, Any, Any]] = [
        ("P(superiority)", data.probability_superiority, data.probability_superiority_error),
        ("participants", data.expected_size, data.expected_size_error),
    ]
    if "expected_failures" in data:
        panels.append(("failures", data.expected_failures, data.expected_failures_error))
    panels.append(("share on the best arm", share_on_best(data), None))
    figure = NotebookFigure(figsize=(3.0 * len(panels), 3.6), layout="constrained")
    for axes, (label, values, errors) in zip(figure.subplots(1, len(panels)), panels, strict=True):
        _draw_panel(axes, data, values, errors)
        axes.set_title(label, fontsize="medium")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def _draw_panel(axes: Axes, data: xr.Dataset, values: xr.DataArray, errors: xr.DataArray | None) -> None:
    designs = data.sizes["design"]
    height = 0.8 / designs
    for i in range(designs):
        places = np.arange(data.sizes["scenario"]) + (i - 0.5 * (designs - 1)) * height
        found = values.isel(design=i).values
        spread = None if errors is None else 2.0 * errors.isel(design=i).values
        axes.barh(
            places, found, height=height * 0.9, color=COLOURS[i % len(COLOURS)], xerr=spread,
            label=str(data.design.values[i]), error_kw={"ecolor": "0.2", "linewidth": 1},
        )  # fmt: skip
    first = axes.get_subplotspec()
    shown = _labels(data) if first is not None and first.is_first_col() else [""] * data.sizes["scenario"]
    axes.set_yticks(range(data.sizes["scenario"]), shown)
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    plain(axes)
