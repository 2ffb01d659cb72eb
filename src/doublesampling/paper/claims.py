"""Every claim of the paper, what our runs say of it, and a verdict in words. No number is typed in: each comes from a
dataset or, where it is the paper's, from published.py.
"""

from collections.abc import Callable
from dataclasses import dataclass

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
    FIGURE_5,
    FIGURE_5_DEVIATION,
    LINEAR_REDUCTION,
    OURS,
    REALIZATIONS,
    RIVALS,
    THOMPSON,
)

REPRODUCED, NOTED, NOT = "reproduced", "reproduced with a note", "not reproduced as stated"
SURE = 4.0  # standard errors
_NEAR = 0.05  # "around 40 %" is taken as within five points of it

Datasets = dict[str, xr.Dataset]


@dataclass(frozen=True)
class Finding:
    """What our runs say: the numbers, the verdict, and why."""

    ours: str
    verdict: str
    why: str


@dataclass(frozen=True)
class Claim:
    """What the paper says, where, which dataset bears on it, and how it is judged."""

    says: str
    where: str
    needs: str
    judge: Callable[[Datasets], Finding]


def number(estimate: Estimate, digits: int = 2) -> str:
    """An estimate with its error."""
    return f"{estimate.value:.{digits}f} ± {estimate.error:.{digits}f}"


def percent(estimate: Estimate) -> str:
    """A share with its error, in per cent."""
    return f"{100 * estimate.value:+.1f} ± {100 * estimate.error:.1f} %"


def _explores_first(data: Datasets) -> Finding:
    run = data["illustration"]
    early = (run.time.values >= 30) & (run.time.values < EXPLORES_UNTIL)
    late = run.time.values >= EXPLORES_UNTIL
    one, median = run.one_candidate_rate.values, run.candidates_median.values
    ours = (
        f"over {run.attrs['realizations']} realizations N = 1 in {one[early].mean():.0%} of the steps from 30 to "
        f"{EXPLORES_UNTIL} and in {one[late].mean():.0%} after; its median goes from {np.median(median[early]):.0f} to "
        f"{median[-1]:.0f} at the end"
    )
    if one[early].mean() > 0.5 > one[late].mean():
        return Finding(ours, REPRODUCED, "N stays at 1 while in doubt and grows when sure.")
    grows = one[late].mean() < one[early].mean()
    why = "N grows as the doubt shrinks, but when it does so differs widely from one realization to the next."
    return Finding(ours, NOTED if grows else NOT, why)


def _best_arm(data: Datasets) -> Finding:
    last = data["bernoulli"].isel(bandit=0, time=-1)
    rates = {p: float(last.optimal_arm_rate.sel(policy=p)) for p in (OURS, *RIVALS)}
    ours = ", ".join(f"{p} {rate:.1%}" for p, rate in rates.items()) + f" on the best arm at t = {int(last.time)}"
    close = max(rates.values()) - min(rates.values()) < 0.02
    return Finding(ours, REPRODUCED if close else NOT, "All are within two points of each other." if close else "")


def _variability(data: Datasets) -> Finding:
    late = data["bernoulli"].isel(bandit=0).sel(time=slice(100, None))
    spread = {p: float(late.optimal_arm_rate_std.sel(policy=p).mean()) for p in (OURS, FAIR, *RIVALS)}
    ours = "mean std of the correct action from t = 100: " + ", ".join(f"{p} {s:.3f}" for p, s in spread.items())
    if all(spread[OURS] < 0.9 * spread[rival] for rival in RIVALS):
        return Finding(ours, REPRODUCED, "The deviation is more than a tenth smaller than either rival's.")
    if spread[OURS] < spread[THOMPSON]:
        return Finding(ours, NOTED, "Smaller than Thompson sampling's, but not clearly smaller than Bayes-UCB's.")
    return Finding(ours, NOT, "It is not smaller.")


def published_gap(data: Datasets, policy: str, time: int) -> tuple[Estimate, float]:
    """Our observed regret at a step of figure 3, and its distance from the published one in standard errors."""
    cell = data["bernoulli"].isel(bandit=0).sel(policy=policy, time=time)
    ours = Estimate(float(cell.observed_cumulative_regret), float(cell.observed_cumulative_regret_error))
    mean, deviation = FIGURE_3[time][policy]
    return ours, (ours.value - mean) / float(np.hypot(ours.error, deviation / np.sqrt(REALIZATIONS)))


def _figure_3(data: Datasets) -> Finding:
    last = int(data["bernoulli"].time[-1])
    found = {policy: published_gap(data, policy, last) for policy in (THOMPSON, BAYES_UCB, OURS)}
    ours = "; ".join(
        f"{p} {number(e)}, published {FIGURE_3[last][p][0]:g} ({z:+.1f} errors)" for p, (e, z) in found.items()
    )
    agree = all(abs(z) < SURE for _, z in found.values())
    why = f"Each mean at t = {last} lies within {SURE:g} standard errors of the published one."
    return Finding(ours, REPRODUCED if agree else NOT, why if agree else "A mean lies further away than chance allows.")


def _lower_regret(data: Datasets) -> Finding:
    regret = {p: measures.final(data["bernoulli"], p) for p in (OURS, FAIR, *RIVALS)}
    ours = "expected regret: " + ", ".join(f"{p} {number(r)}" for p, r in regret.items())
    gaps = [regret[OURS] - regret[rival] for rival in RIVALS]
    if all(gap.value < -2.0 * gap.error for gap in gaps):
        return Finding(ours, REPRODUCED, "Lower than both, by more than two standard errors.")
    lower = all(gap.value < 0.0 for gap in gaps)
    return Finding(ours, NOTED if lower else NOT, "Lower, but not surely so." if lower else "A rival is lower.")


def _far(data: xr.Dataset, ours: str, rival: str, near: bool = False) -> Estimate:
    delta, error = measures.relative_difference(data, ours, rival)
    far = data.kl.values > DISTINGUISHABLE
    return measures.mean_within(delta, error, ~far if near else far)


def _reduction(rival: str) -> Callable[[Datasets], Finding]:
    def judge(data: Datasets) -> Finding:
        first, fair = (_far(data["bernoulli-sweep"], name, rival) for name in (OURS, FAIR))
        ours = f"mean Δ where KL > {DISTINGUISHABLE:g}: {percent(first)}; with fair ties {percent(fair)}"
        claimed = BERNOULLI_REDUCTION[rival]
        if abs(first.value + claimed) < _NEAR:
            return Finding(ours, REPRODUCED, f"Within {100 * _NEAR:.0f} points of the claim.")
        more = first.value < -claimed
        why = "The reduction is larger than claimed." if more else "There is a reduction, but a smaller one."
        return Finding(ours, NOTED if first.value < -0.5 * claimed else NOT, why)

    return judge


def _worsens(data: Datasets) -> Finding:
    sweep = data["bernoulli-sweep"]
    near, fair = (_far(sweep, name, THOMPSON, near=True) for name in (OURS, FAIR))
    far = _far(sweep, OURS, THOMPSON)
    hardest = [measures.by_divergence(sweep, name, THOMPSON, (0.0, 0.05))[0][1] for name in (OURS, FAIR)]
    ours = (
        f"mean Δ against Thompson sampling {percent(near)} where KL < {DISTINGUISHABLE:g}, {percent(far)} above; where "
        f"KL < 0.05 {percent(hardest[0])}, and {percent(hardest[1])} with fair ties"
    )
    if near.value > far.value and hardest[1].value < hardest[0].value - SURE * hardest[0].error:
        why = (
            "True of the published setting. Much of it is the tie rule: arms stand in ascending order, so the lowest "
            "index, which wins ties, is the worst arm. With fair ties the mean there is " + percent(fair) + "."
        )
        return Finding(ours, NOTED, why)
    return Finding(ours, REPRODUCED if near.value > far.value else NOT, "")


def _like_thompson(data: Datasets) -> Finding:
    (_, hardest), *_ = measures.by_divergence(data["bernoulli-sweep"], OURS, THOMPSON, (0.0, 0.05))
    near = abs(hardest.value) < 0.15
    why = "Close to Thompson sampling where the arms are hardest to tell apart." if near else "It is not close."
    return Finding(f"mean Δ where KL < 0.05: {percent(hardest)}", REPRODUCED if near else NOT, why)


def _scatter(data: Datasets) -> Finding:
    sweep = data["bernoulli-sweep"]
    delta, error = measures.relative_difference(sweep, OURS, THOMPSON)
    far = sweep.kl.values > DISTINGUISHABLE
    # what the problems differ by, beyond the noise of our own runs
    spread = [float(np.sqrt(max(np.var(delta[part]) - np.mean(error[part] ** 2), 0.0))) for part in (~far, far)]
    below, above = (f"{100 * part:.0f} points" for part in spread)
    ours = f"deviation of Δ between problems: {below} where KL < {DISTINGUISHABLE:g}, {above} where it is larger"
    more = spread[0] > 1.5 * spread[1]
    return Finding(ours, REPRODUCED if more else NOT, "Monte Carlo noise is taken off before comparing.")


def setting_ratio(data: xr.Dataset, setting: str) -> Estimate:
    """The regret of a setting relative to the published one, less 1, averaged over the problems."""
    delta, error = measures.paired_difference(data, setting, PUBLISHED)
    return measures.mean_within(delta, error, np.ones(delta.size, dtype=bool))


def _more_samples(data: Datasets) -> Finding:
    names = ("M = 10", "M = 100", "M = 10 000", "exact p")
    found = {name: setting_ratio(data["settings"], name) for name in names}
    ours = "regret relative to M = 1000: " + ", ".join(f"{name} {percent(e)}" for name, e in found.items())
    more = [found["M = 10 000"], found["exact p"]]
    if all(e.value > -max(SURE * e.error, 0.05) for e in more):
        worse = any(e.value > SURE * e.error for e in more)
        why = "More samples do not lower the regret." + (" They even raise it." if worse else "")
        return Finding(ours, NOTED if worse else REPRODUCED, why)
    return Finding(ours, NOT, "More samples lower the regret.")


def _special_case(data: Datasets) -> Finding:
    final = data["settings"].final_regret
    same = bool((final.sel(policy=ONE_CANDIDATE).values == final.sel(policy=THOMPSON).values).all())
    count = final.sel(policy=THOMPSON).size
    ours = f"with N = 1 and exact p, {'all' if same else 'not all'} of {count:,} realizations equal Thompson sampling's"
    return Finding(
        ours, REPRODUCED if same else NOT, "Decision by decision, from the same random numbers." if same else ""
    )


def _linear_order(data: Datasets) -> Finding:
    at_caption, louder = (
        {p: measures.final(data["linear"], p, bandit) for p in (THOMPSON, BAYES_UCB, OURS)} for bandit in (0, 1)
    )

    def listed(found: dict[str, Estimate]) -> str:
        return ", ".join(f"{p} {number(e)}" for p, e in found.items())

    noise = data["linear"].noise.values
    ours = f"σ = {noise[0]:g}: {listed(at_caption)}; σ = {noise[1]:g}: {listed(louder)}"
    ordered = all(found[OURS].value < found[THOMPSON].value < found[BAYES_UCB].value for found in (at_caption, louder))
    why = "The order holds at both noises." if ordered else "The order does not hold."
    return Finding(ours, REPRODUCED if ordered else NOT, why)


def _figure_5(data: Datasets) -> Finding:
    found = data["linear"]
    noise = found.noise.values
    near = {p: measures.final(found, p, 0, "observed_cumulative_regret") for p in FIGURE_5}
    far = {p: measures.final(found, p, 1, "observed_cumulative_regret") for p in FIGURE_5}
    ours = "; ".join(
        f"{p} {number(near[p])} at σ = {noise[0]:g} and {number(far[p])} at σ = {noise[1]:g}, published {value:g}"
        for p, value in FIGURE_5.items()
    )
    error = FIGURE_5_DEVIATION / np.sqrt(REALIZATIONS)
    agree = all(abs(near[p].value - value) < SURE * np.hypot(near[p].error, error) for p, value in FIGURE_5.items())
    if agree:
        return Finding(ours, REPRODUCED, "")
    spread = found.observed_cumulative_regret_std.sel(policy=OURS).isel(time=-1).values
    why = (
        f"They do not follow from the caption. The published deviation, about {FIGURE_5_DEVIATION:g}, is ours at "
        f"σ = {noise[1]:g} ({spread[1]:.0f}) and not at σ = {noise[0]:g} ({spread[0]:.0f})."
    )
    return Finding(ours, NOT, why)


def _linear_reduction(rival: str) -> Callable[[Datasets], Finding]:
    def judge(data: Datasets) -> Finding:
        sweep = data["linear-sweep"]
        far = _far(sweep, OURS, rival)
        delta, _ = measures.relative_difference(sweep, OURS, rival)
        best = float(np.quantile(delta[sweep.kl.values > DISTINGUISHABLE], 0.05))
        claimed = LINEAR_REDUCTION[rival]
        ours = f"where KL > {DISTINGUISHABLE:g} one problem in twenty is below {best:+.0%}; mean Δ {percent(far)}"
        if best > -claimed + _NEAR:
            return Finding(ours, NOT, "So large a reduction is not reached.")
        if far.value < -claimed + _NEAR:
            return Finding(ours, REPRODUCED, "The mean reaches the claim, too.")
        return Finding(ours, NOTED, "“Up to” is right: some problems reach it. The mean reduction is smaller.")

    return judge


CLAIMS = (
    Claim(f"N ≈ 1 while t < {EXPLORES_UNTIL} in the illustration, and grows after", "4.1, figure 1", "illustration",
          _explores_first),
    Claim("in expectation all algorithms take the same actions", "4.1, figure 2", "bernoulli", _best_arm),
    Claim("the action variability of double sampling is considerably smaller", "4.1, figure 2", "bernoulli",
          _variability),
    Claim("the regrets of figure 3", "4.1, figure 3", "bernoulli", _figure_3),
    Claim("the cumulative regret is lower than Thompson sampling's and Bayes-UCB's", "4.1, figure 3", "bernoulli",
          _lower_regret),
    Claim("regret reductions around 40 % against Thompson sampling", "4.1, figure 4", "bernoulli-sweep",
          _reduction(THOMPSON)),
    Claim("regret reductions around 25 % against Bayes-UCB", "4.1, figure 4", "bernoulli-sweep", _reduction(BAYES_UCB)),
    Claim(f"performance worsens when KL < {DISTINGUISHABLE:g}", "4.1, figure 4", "bernoulli-sweep", _worsens),
    Claim("near-equivalent to Thompson sampling where the arms are very similar", "4.1, figure 4", "bernoulli-sweep",
          _like_thompson),
    Claim(f"points are scattered where KL < {DISTINGUISHABLE:g}", "4.1, figure 4", "bernoulli-sweep", _scatter),
    Claim("larger M do not significantly improve the regret", "4.1", "settings", _more_samples),
    Claim("Thompson sampling is the special case of one candidate", "3", "settings", _special_case),
    Claim("the regrets of figure 5, at the noise of its caption", "4.2, figure 5", "linear", _figure_5),
    Claim("double sampling has the lowest regret on a linear Gaussian bandit", "4.2, figure 5", "linear",
          _linear_order),
    Claim("up to 40 % less regret than Thompson sampling, linear Gaussian", "4.2, figure 6", "linear-sweep",
          _linear_reduction(THOMPSON)),
    Claim("up to 50 % less regret than Bayes-UCB, linear Gaussian", "4.2, figure 6", "linear-sweep",
          _linear_reduction(BAYES_UCB)),
)  # fmt: skip
