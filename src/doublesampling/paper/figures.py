"""The paper's figures: pure functions from what was run to a matplotlib figure. They never simulate."""

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from doublesampling.paper.illustration import Illustration
from doublesampling.plots import COLOURS, look, plain


def draw_illustration(run: Illustration) -> Figure:
    """Figure 1: how probably each arm is the best, with a band of one deviation, and N, over time."""
    figure = Figure(figsize=(10.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps, arms = run.probability_optimal.shape
    time = np.arange(1, steps + 1)
    for arm in range(arms):
        p, sd = run.probability_optimal[:, arm], run.probability_optimal_sd[:, arm]
        style = look(arm)
        label = f"arm {arm}: θ = {run.bandit.probabilities[arm]:g}"
        left.plot(time, p, label=label, **style)
        left.fill_between(
            time, np.clip(p - sd, 0, 1), np.clip(p + sd, 0, 1), color=style["color"], alpha=0.12, linewidth=0
        )
    left.set(xlabel="time step t", ylabel="probability of being optimal, p̂ ± σ̂", ylim=(0, 1), xlim=(1, max(steps, 2)))
    left.legend(loc="center right", framealpha=0.85, edgecolor="none")
    right.step(time, run.candidates, where="mid", color=COLOURS[0], linewidth=1.0)
    right.set(xlabel="time step t", ylabel="candidates drawn, N", xlim=(1, max(steps, 2)))
    if run.candidates.max() > 50:
        right.set_yscale("log")
    else:
        right.set_ylim(0, max(int(run.candidates.max()), 4) + 0.5)
        right.yaxis.set_major_locator(MaxNLocator(integer=True))
    for axes in (left, right):
        plain(axes)
    return figure
