"""How the claims of section 4.2 are judged: linear Gaussian bandits, figures 5 and 6."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import xarray as xr

from doublesampling.paper import measures
from doublesampling.paper.bernoulli_claims import NEAR, agreement, far
from doublesampling.paper.measures import Estimate
from doublesampling.paper.published import (
    BAYES_UCB,
    DISTINGUISHABLE,
    FIGURE_5,
    FIGURE_5_DEVIATION,
    FIGURE_6,
    LINEAR_REDUCTION,
    OURS,
    REALIZATIONS,
    RIVALS,
    THOMPSON,
)
from doublesampling.paper.verdicts import (
    NOT,
    NOTED,
    REPRODUCED,
    SURE,
    Datasets,
    Finding,
    all_hold,
    judged,
    number,
    percent,
    too_few,
)

_READ = 0.01  # the published means were read to a hundredth
_FEWEST = 3  # problems in a bin, from which on it is compared
_COARSE = 0.025  # an error of a bin's mean from which on agreement says little


def linear_order(data: Datasets) -> Finding:
    """Judge: double sampling has the lowest regret."""
    at_caption, louder = (
        {p: measures.final(data["linear"], p, bandit) for p in (THOMPSON, BAYES_UCB, OURS)} for bandit in (0, 1)
    )

    def listed(found: dict[str, Estimate]) -> str:
        return ", ".join(f"{p} {number(e)}" for p, e in found.items())

    noise = data["linear"].noise.values
    ours = f"σ = {noise[0]:g}: {listed(at_caption)}; σ = {noise[1]:g}: {listed(louder)}"
    margins = [
        better - worse
        for found in (at_caption, louder)
        for better, worse in ((found[THOMPSON], found[OURS]), (found[BAYES_UCB], found[THOMPSON]))
    ]
    return judged(ours, all_hold(*margins), "The order holds at both noises.", "The order does not hold.")


def figure_5(data: Datasets) -> Finding:
    """Judge: the regrets of figure 5 at the noise of its caption."""
    found = data["linear"]
    noise = found.noise.values
    near = {p: measures.final(found, p, 0, "observed_cumulative_regret") for p in FIGURE_5}
    loud = {p: measures.final(found, p, 1, "observed_cumulative_regret") for p in FIGURE_5}
    ours = "; ".join(
        f"{p} {number(near[p])} at σ = {noise[0]:g} and {number(loud[p])} at σ = {noise[1]:g}, published {value:g}"
        for p, value in FIGURE_5.items()
    )
    error = FIGURE_5_DEVIATION / math.sqrt(REALIZATIONS)
    agree = agreement([(near[p], Estimate(value, error)) for p, value in FIGURE_5.items()])
    spread = found.observed_cumulative_regret_std.sel(policy=OURS).isel(time=-1).values
    why = (
        f"They do not follow from the caption. The published deviation, about {FIGURE_5_DEVIATION:g}, is ours at "
        f"σ = {noise[1]:g} ({spread[1]:.0f}) and not at σ = {noise[0]:g} ({spread[0]:.0f})."
    )
    return judged(ours, agree, "Each mean agrees with the published one.", why)


@dataclass(frozen=True)
class Bin:
    """The problems of figure 6 between two divergences: how many, our mean Delta, and the published one."""

    low: float
    high: float
    problems: int
    ours: Estimate
    published: float

    @property
    def apart(self) -> float:
        """Return the distance from the published mean in standard errors, its rounding taken off first."""
        gap = abs(self.ours.value - self.published)
        return max(gap - _READ, 0.0) / self.ours.error if self.ours.error > 0.0 else math.inf


def figure_6_bins(data: xr.Dataset, policy: str, rival: str) -> list[Bin]:
    """Return the mean Delta against a rival by divergence, beside the published one.

    Ours and the published points are two samples of the same grid, so the error is that between problems, twice.
    """
    delta, _ = measures.relative_difference(data, policy, rival)
    found = []
    for (low, high), published in FIGURE_6.items():
        inside = delta[(data.kl.values >= low) & (data.kl.values < high)]
        if inside.size >= _FEWEST:
            error = float(inside.std(ddof=1)) * math.sqrt(2.0 / inside.size)
            found.append(Bin(low, high, inside.size, Estimate(float(inside.mean()), error), published[rival]))
    return found


def figure_6(data: Datasets) -> Finding:
    """Judge: the points of figure 6, bin by bin."""
    sweep = data["linear-sweep"]
    bins = {rival: figure_6_bins(sweep, OURS, rival) for rival in RIVALS}
    worst = {rival: max(found, key=lambda each: each.apart) for rival, found in bins.items() if found}
    if len(worst) < len(RIVALS):
        return too_few("no bin holds enough problems")
    ours = "; ".join(
        f"against {rival} {len(bins[rival])} bins, the farthest (KL {b.low:g} to {b.high:g}) {b.ours.value:+.0%} where "
        f"{b.published:+.0%} was published"
        for rival, b in worst.items()
    )
    every = [each for found in bins.values() for each in found]
    if any(each.apart >= SURE for each in every):
        return Finding(ours, NOT, f"A bin lies more than {SURE:g} standard errors from the published mean.")
    if max(each.ours.error for each in every) > _COARSE:
        return too_few(ours)
    why = (
        f"Every bin agrees within {SURE:g} standard errors, with the problems, the shared contexts and the axis that "
        "the authors ran; the text's grid gives another picture, see below."
    )
    return Finding(ours, REPRODUCED, why)


def linear_reduction(rival: str) -> Callable[[Datasets], Finding]:
    """Judge: up to so many per cent less regret."""

    def judge(data: Datasets) -> Finding:
        sweep = data["linear-sweep"]
        mean = far(sweep, OURS, rival)
        delta, error = measures.relative_difference(sweep, OURS, rival)
        easy = sweep.kl.values > DISTINGUISHABLE
        best = float(np.quantile(delta[easy], 0.05))
        claimed = LINEAR_REDUCTION[rival]
        ours = f"where KL > {DISTINGUISHABLE:g} one problem in twenty is below {best:+.0%}; mean Δ {percent(mean)}"
        if float(np.median(error[easy])) > NEAR:  # noise alone would carry some problems there
            return too_few(ours)
        if best > -claimed + NEAR:
            return Finding(ours, NOT, "So large a reduction is not reached.")
        if mean.value < -claimed + NEAR:
            return Finding(ours, REPRODUCED, "The mean reaches the claim, too.")
        return Finding(ours, NOTED, "“Up to” is right: some problems reach it. The mean reduction is smaller.")

    return judge
