"""How the claims of section 4.1 are judged: Bernoulli bandits, figures 1 to 4, and the settings."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import xarray as xr

from doublesampling.paper import measures
from doublesampling.paper.experiments import ONE_CANDIDATE, PUBLISHED
from doublesampling.paper.measures import Estimate
from doublesampling.paper.published import (
    BAYES_UCB,
    BERNOULLI_REDUCTION,
    DISTINGUISHABLE,
    EXPLORES_UNTIL,
    FAIR,
    FIGURE_3,
    OURS,
    REALIZATIONS,
    RIVALS,
    THOMPSON,
)
from doublesampling.paper.verdicts import (
    NOT,
    NOTED,
    REPRODUCED,
    SUPPORT,
    SURE,
    Datasets,
    Finding,
    all_hold,
    holds,
    judged,
    number,
    percent,
    too_few,
    within,
)

NEAR = 0.05  # "around 40 %" is taken as within five points of it
_FINE = 0.25  # of a published mean: a run that could not notice such a difference does not support agreement


def explores_first(data: Datasets) -> Finding:
    """Judge: N is about 1 at first, and grows after."""
    run = data["illustration"]
    early = (run.time.values >= 30) & (run.time.values < EXPLORES_UNTIL)
    late = run.time.values >= EXPLORES_UNTIL
    one, median = run.one_candidate_rate.values, run.candidates_median.values
    count = int(run.attrs["realizations"])
    error = 0.5 / math.sqrt(count)  # steps of a realization depend on each other: no share varies more than this
    first, after = Estimate(float(one[early].mean()), error), Estimate(float(one[late].mean()), error)
    half = Estimate(0.5, 0.0)
    ours = (
        f"over {count} realizations N = 1 in {first.value:.0%} of the steps from 30 to "
        f"{EXPLORES_UNTIL} and in {after.value:.0%} after; its median goes from {np.median(median[early]):.0f} to "
        f"{median[-1]:.0f} at the end"
    )
    as_stated, grows = all_hold(first - half, half - after), holds(first - after)
    if as_stated:
        return Finding(ours, REPRODUCED, "N stays at 1 while in doubt and grows when sure.")
    if as_stated is None or grows is None:
        return too_few(ours)
    why = "N grows as the doubt shrinks, but when it does so differs widely from one realization to the next."
    return Finding(ours, NOTED if grows else NOT, why)


def _rate(data: xr.Dataset, policy: str) -> Estimate:
    """The share on the best arm at the last step; its error is never taken as zero, however sure the run was."""
    last, count = data.isel(bandit=0, time=-1), int(data.attrs["realizations"])
    rate = float(last.optimal_arm_rate.sel(policy=policy))
    smooth = (rate * count + 1.0) / (count + 2.0)
    return Estimate(rate, math.sqrt(smooth * (1.0 - smooth) / count))


def best_arm(data: Datasets) -> Finding:
    """Judge: all algorithms take the same actions in expectation."""
    found = data["bernoulli"]
    rates = {p: _rate(found, p) for p in (OURS, *RIVALS)}
    listed = ", ".join(f"{p} {rate.value:.1%}" for p, rate in rates.items())
    ours = f"{listed} on the best arm at t = {int(found.time[-1])}"
    ordered = sorted(rates.values())
    gap = ordered[-1] - ordered[0]
    return judged(
        ours, holds(Estimate(0.02 - gap.value, gap.error)), "All are within two points of each other.", "They differ."
    )


def variability(data: Datasets) -> Finding:
    """Judge: the actions of double sampling vary considerably less."""
    late = data["bernoulli"].isel(bandit=0).sel(time=slice(100, None))
    # sqrt(r (1 - r)) of a share r near 1 moves half as much as 1 / sqrt(realizations); steps do not average it out
    error = 0.5 / math.sqrt(int(data["bernoulli"].attrs["realizations"]))
    spread = {p: float(late.optimal_arm_rate_std.sel(policy=p).mean()) for p in (OURS, FAIR, *RIVALS)}
    ours = "mean std of the correct action from t = 100: " + ", ".join(f"{p} {s:.3f}" for p, s in spread.items())
    smaller = {
        rival: holds(Estimate(0.9 * spread[rival] - spread[OURS], error * math.hypot(0.9, 1.0))) for rival in RIVALS
    }
    if all(smaller.values()):
        return Finding(ours, REPRODUCED, "The deviation is more than a tenth smaller than either rival's.")
    if None in smaller.values():
        return too_few(ours)
    if smaller[THOMPSON]:
        return Finding(ours, NOTED, "Smaller than Thompson sampling's, but not clearly smaller than Bayes-UCB's.")
    return Finding(ours, NOT, "It is not smaller.")


def agreement(pairs: list[tuple[Estimate, Estimate]]) -> bool | None:
    """Say whether ours agree with published means; None where the run is too coarse to notice a difference."""
    gaps = [(ours - theirs, theirs) for ours, theirs in pairs]
    if any(abs(gap.value) >= SURE * gap.error for gap, _ in gaps):
        return False
    fine = all(SUPPORT * gap.error < _FINE * abs(theirs.value) for gap, theirs in gaps)
    return True if fine else None


def published_gap(data: Datasets, policy: str, time: int) -> tuple[Estimate, Estimate]:
    """Return our observed regret at a step of figure 3, and the published one."""
    cell = data["bernoulli"].isel(bandit=0).sel(policy=policy, time=time)
    ours = Estimate(float(cell.observed_cumulative_regret), float(cell.observed_cumulative_regret_error))
    mean, deviation = FIGURE_3[time][policy]
    return ours, Estimate(mean, deviation / math.sqrt(REALIZATIONS))


def apart(ours: Estimate, published: Estimate) -> str:
    """Format the distance between two estimates in standard errors."""
    gap = ours - published
    return f"{gap.value / gap.error:+.1f}"


def figure_3(data: Datasets) -> Finding:
    """Judge: the regrets of figure 3."""
    last = int(data["bernoulli"].time[-1])
    found = {policy: published_gap(data, policy, last) for policy in (THOMPSON, BAYES_UCB, OURS)}
    ours = "; ".join(
        f"{p} {number(mine)}, published {theirs.value:g} ({apart(mine, theirs)} errors)"
        for p, (mine, theirs) in found.items()
    )
    return judged(
        ours,
        agreement(list(found.values())),
        f"Each mean at t = {last} lies within {SURE:g} standard errors of the published one.",
        "A mean lies further away than chance allows.",
    )


def lower_regret(data: Datasets) -> Finding:
    """Judge: the regret is lower than either rival's."""
    regret = {p: measures.final(data["bernoulli"], p) for p in (OURS, FAIR, *RIVALS)}
    ours = "expected regret: " + ", ".join(f"{p} {number(r)}" for p, r in regret.items())
    lower = all_hold(*(regret[rival] - regret[OURS] for rival in RIVALS))
    return judged(ours, lower, f"Lower than both, by more than {SUPPORT:g} standard errors.", "A rival is lower.")


def far(data: xr.Dataset, ours: str, rival: str, near: bool = False) -> Estimate:
    """Return the mean Delta over the problems that are easy to tell apart, or over the others."""
    delta, error = measures.relative_difference(data, ours, rival)
    easy = data.kl.values > DISTINGUISHABLE
    return measures.mean_within(delta, error, ~easy if near else easy)


def reduction(rival: str) -> Callable[[Datasets], Finding]:
    """Judge: reductions around so many per cent."""

    def judge(data: Datasets) -> Finding:
        first, fair = (far(data["bernoulli-sweep"], name, rival) for name in (OURS, FAIR))
        ours = f"mean Δ where KL > {DISTINGUISHABLE:g}: {percent(first)}; with fair ties {percent(fair)}"
        claimed = BERNOULLI_REDUCTION[rival]
        near = holds(within(first, -claimed, NEAR))
        half = holds(Estimate(-0.5 * claimed - first.value, first.error))
        if near is None or (not near and half is None):
            return too_few(ours)
        if near:
            return Finding(ours, REPRODUCED, f"Within {100 * NEAR:.0f} points of the claim.")
        why = "larger than claimed." if first.value < -claimed else "smaller than claimed."
        return Finding(ours, NOTED if half else NOT, f"The reduction is {why}")

    return judge


def worsens(data: Datasets) -> Finding:
    """Judge: performance worsens where arms are hard to tell apart."""
    sweep = data["bernoulli-sweep"]
    near, fair = (far(sweep, name, THOMPSON, near=True) for name in (OURS, FAIR))
    easy = far(sweep, OURS, THOMPSON)
    hardest = [measures.by_divergence(sweep, name, THOMPSON, (0.0, 0.05))[0][1] for name in (OURS, FAIR)]
    ours = (
        f"mean Δ against Thompson sampling {percent(near)} where KL < {DISTINGUISHABLE:g}, {percent(easy)} above; "
        f"where KL < 0.05 {percent(hardest[0])}, and {percent(hardest[1])} with fair ties"
    )
    worse = holds(near - easy)
    if worse and holds(hardest[0] - hardest[1]):
        why = (
            "True of the published setting. Much of it is the tie rule: arms stand in ascending order, so the lowest "
            "index, which wins ties, is the worst arm. With fair ties the mean there is " + percent(fair) + "."
        )
        return Finding(ours, NOTED, why)
    return judged(ours, worse, "It is worse there.", "It is not worse there.")


def like_thompson(data: Datasets) -> Finding:
    """Judge: near-equivalent to Thompson sampling on the hardest problems."""
    (_, hardest), *_ = measures.by_divergence(data["bernoulli-sweep"], OURS, THOMPSON, (0.0, 0.05))
    return judged(
        f"mean Δ where KL < 0.05: {percent(hardest)}",
        holds(within(hardest, 0.0, 0.15)),
        "Close to Thompson sampling where the arms are hardest to tell apart.",
        "It is not close.",
    )


def scatter(data: Datasets) -> Finding:
    """Judge: points are scattered where arms are hard to tell apart."""
    sweep = data["bernoulli-sweep"]
    delta, error = measures.relative_difference(sweep, OURS, THOMPSON)
    easy = sweep.kl.values > DISTINGUISHABLE
    hard, rest = (_spread(delta[part], error[part]) for part in (~easy, easy))
    below, above = (f"{100 * part.middle:.0f} points" for part in (hard, rest))
    ours = f"deviation of Δ between problems: {below} where KL < {DISTINGUISHABLE:g}, {above} where it is larger"
    more = True if hard.least > 1.5 * rest.most else False if hard.most < 1.5 * rest.least else None
    return judged(ours, more, "Monte Carlo noise is taken off before comparing.", "They are scattered alike.")


class _Spread(NamedTuple):
    """The deviation of Delta between problems without Monte Carlo noise, and the least and most that it may be."""

    middle: float
    least: float
    most: float


def _spread(delta: measures.FloatArray, error: measures.FloatArray) -> _Spread:
    raw, noise = float(np.var(delta, ddof=1)), float(np.mean(error**2))
    doubt = SUPPORT * raw * math.sqrt(2.0 / (delta.size - 1))
    # the least without noise, the most with all of it: the noise is only known as well as the errors are
    variances = raw - noise, raw - noise - doubt, raw + doubt
    return _Spread(*(math.sqrt(max(variance, 0.0)) for variance in variances))


def setting_ratio(data: xr.Dataset, setting: str) -> Estimate:
    """Return the regret of a setting relative to the published one, less 1, averaged over the problems."""
    delta, error = measures.paired_difference(data, setting, PUBLISHED)
    return measures.mean_within(delta, error, np.ones(delta.size, dtype=bool))


def more_samples(data: Datasets) -> Finding:
    """Judge: more posterior samples do not improve the regret."""
    names = ("M = 10", "M = 100", "M = 10 000", "exact p")
    found = {name: setting_ratio(data["settings"], name) for name in names}
    ours = "regret relative to M = 1000: " + ", ".join(f"{name} {percent(e)}" for name, e in found.items())
    more = [found["M = 10 000"], found["exact p"]]
    if any(e.value > SURE * e.error for e in more):
        return Finding(ours, NOTED, "More samples do not lower the regret. They even raise it.")
    same = all_hold(*(Estimate(NEAR + e.value, e.error) for e in more))
    return judged(ours, same, "More samples do not lower the regret.", "More samples lower the regret.")


def special_case(data: Datasets) -> Finding:
    """Judge: one candidate is Thompson sampling."""
    final = data["settings"].final_regret
    same = bool((final.sel(policy=ONE_CANDIDATE).values == final.sel(policy=THOMPSON).values).all())
    count = final.sel(policy=THOMPSON).size
    ours = f"with N = 1 and exact p, {'all' if same else 'not all'} of {count:,} realizations equal Thompson sampling's"
    return judged(ours, same, "Decision by decision, from the same random numbers.", "They differ.")
