"""Pictures of a report: shares of the arms over time, and a confidence sequence."""

import io
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from doublesampling.errors import DoubleSamplingError
from doublesampling.live.experiment import Experiment

_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")


def pictures(
    exp: Experiment, names: list[str], decisions: Any, pair: tuple[int, int] | None, level: float
) -> tuple[tuple[str, bytes, str], ...]:
    """Return the pictures with the headings below which they stand."""
    found = []
    carried = decisions[decisions["status"] != "voided"]
    if len(carried) >= 10:
        text = "Share of each arm among the decisions up to each one."
        found.append(("Allocation over time", _png(draw_shares(carried["arm"].to_numpy(), names)), text))
    if pair is not None:
        try:
            sequence = exp.sequence(pair, level)
        except DoubleSamplingError:
            return tuple(found)
        if np.isfinite(sequence.low).sum() >= 2:
            text = f"{sequence.contrast}: estimate and confidence sequence ({100 * level:g} %) after each outcome."
            found.append(("Confidence sequences", _png(draw_sequence(sequence)), text))
    return tuple(found)


def draw_shares(arms: Any, names: list[str]) -> Figure:
    """Return a figure of the cumulative share of each arm."""
    figure = Figure(figsize=(8.0, 3.0), layout="constrained")
    axes = figure.subplots()
    count = np.arange(1, arms.size + 1)
    for arm, name in enumerate(names):
        style = "-" if arm < len(_COLOURS) else ":"
        axes.plot(count, (arms == arm).cumsum() / count, style, color=_COLOURS[arm % len(_COLOURS)], label=name)
    axes.set(xlabel="decision", ylabel="share so far", ylim=(0.0, 1.0), xlim=(1, max(arms.size, 2)))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def draw_sequence(sequence: Any) -> Figure:
    """Return a figure of a confidence sequence as a band."""
    figure = Figure(figsize=(8.0, 3.0), layout="constrained")
    axes = figure.subplots()
    there = np.isfinite(sequence.low)
    x = sequence.outcomes[there]
    axes.fill_between(x, sequence.low[there], sequence.high[there], color=_COLOURS[0], alpha=0.2, linewidth=0)
    axes.plot(x, sequence.estimate[there], color=_COLOURS[0])
    axes.axhline(0.0, color="#555555", linewidth=0.8, linestyle="--")
    axes.set(xlabel="outcomes", ylabel=sequence.contrast)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=120)
    return stream.getvalue()
