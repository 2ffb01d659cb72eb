"""The report of a reproduction: each figure, the paper's claims, our numbers, verdicts, and what lies beyond."""

import itertools
from pathlib import Path

import numpy as np

from doublesampling.paper import claims, measures
from doublesampling.paper.claims import CLAIMS, Claim, Datasets, number, percent
from doublesampling.paper.document import Block, Heading, Paragraph, Picture, Table
from doublesampling.paper.experiments import EXPERIMENTS, HORIZON_AWARE, PUBLISHED
from doublesampling.paper.figures import FIGURES
from doublesampling.paper.published import (
    BAYES_UCB,
    CHECK_FAIR,
    CHECK_FIRST,
    CHECK_HORIZON,
    CITATION,
    FAIR,
    FIGURE_3,
    FIGURE_5,
    FIGURE_5_DEVIATION,
    KL_EDGES,
    OURS,
    THOMPSON,
)

TITLE = "Double sampling: the paper, reproduced"
_MARKS = ((claims.REPRODUCED, "good"), (claims.NOTED, "note"), (claims.NOT, "bad"))
_CAPTIONS = {
    1: "Figure 1. One run of double sampling, θ = (0.4, 0.7, 0.8). Left: p̂ of each arm with a band of one σ̂. Right: N.",
    2: "Figure 2. Probability of playing the best arm, θ = (0.4, 0.8); the band is one standard deviation.",
    3: "Figure 3. Cumulative observed regret, θ = (0.4, 0.8). Left: with one standard deviation, as published. Right: "
    "the means alone, with the values read off the published figure.",
    4: "Figure 4. Regret relative to each rival at t = 1500, by the least KL divergence between arms; one point per "
    "problem and rival, LOWESS curves. Left: as published. Right: with fair ties.",
    5: "Figure 5. Cumulative observed regret on a linear Gaussian bandit, with one standard deviation. Left: the noise "
    "of the caption. Right: the noise that comes nearer to the published values.",
    6: "Figure 6. As figure 4, on linear Gaussian problems; KL, averaged over the contexts, on a logarithmic axis.",
}


def write_blocks(data: Datasets, pictures: dict[int, Path], about: dict[str, str]) -> list[Block]:
    """The whole report, of the datasets and figures that there are."""
    said = " · ".join(f"{name} {value}" for name, value in about.items())
    blocks: list[Block] = [
        Heading(TITLE, 1),
        Paragraph(f"A run of `doublesampling reproduce`: {said}. The paper: {CITATION}."),
        Paragraph(
            "Double sampling is played as published: ties go to the first arm and p_FA is rounded as the authors' code "
            "rounds it. Fair ties, the default of this software, stand beside it. ± is one Monte Carlo standard error. "
            "Every number of ours comes from a dataset in the folder `data`; the paper's are cited."
        ),
    ]
    blocks += _summary(data)
    for figure, path in pictures.items():
        blocks += _figure(figure, path, data)
    blocks += _beyond(data)
    return [*blocks, *_claims(data)]


def _judged(claim: Claim, data: Datasets) -> tuple[str, ...]:
    if claim.needs not in data:
        return claim.says, claim.where, "not run", "", ""
    found = claim.judge(data)
    return claim.says, claim.where, found.verdict, found.ours, found.why


def _summary(data: Datasets) -> list[Block]:
    verdicts = [_judged(claim, data)[2] for claim in CLAIMS]
    counted = ", ".join(f"{verdicts.count(word)} {word}" for word, _ in _MARKS)
    left = verdicts.count("not run")
    rest = f", {left} not run" if left else ""
    return [Paragraph(f"Of {len(CLAIMS)} claims: {counted}{rest}. The table at the end has them all.")]


def _claims(data: Datasets) -> list[Block]:
    rows = tuple(_judged(claim, data) for claim in CLAIMS)
    columns = ("the paper says", "section", "verdict", "our numbers", "why")
    return [Heading("Every claim of the paper"), Table(columns, rows, marks=_MARKS, wordy=True)]


def _figure(figure: int, path: Path, data: Datasets) -> list[Block]:
    name, _ = FIGURES[figure]
    experiment, found = EXPERIMENTS[name], data[name]
    title = experiment.title[0].upper() + experiment.title[1:]
    played = f"{title}; T = {experiment.horizon:,}, {int(found.attrs['realizations']):,} realizations"
    if figure == 1:
        played += " (the figure shows the first)"
    blocks: list[Block] = [Heading(f"Figure {figure}"), Paragraph(played + "."), Picture(path, _CAPTIONS[figure])]
    rows = tuple(_judged(claim, data) for claim in CLAIMS if claim.where.endswith(f"figure {figure}"))
    columns = ("the paper says", "verdict", "our numbers", "why")
    blocks.append(Table(columns, tuple((r[0], r[2], r[3], r[4]) for r in rows), marks=_MARKS, wordy=True))
    if figure == 3:
        blocks.append(_figure_3_table(data))
    if figure == 4:
        blocks += _ties(data)
    if figure == 5:
        blocks += _caption(data)
    return blocks


def _figure_3_table(data: Datasets) -> Table:
    spreads = data["bernoulli"].observed_cumulative_regret_std.isel(bandit=0)
    rows = []
    for time in FIGURE_3:
        for policy, (mean, deviation) in FIGURE_3[time].items():
            ours, gap = claims.published_gap(data, policy, time)
            spread = f"{float(spreads.sel(policy=policy, time=time)):.2f}"
            rows.append((str(time), policy, number(ours), f"{mean:g}", f"{gap:+.1f}", spread, f"{deviation:g}"))
    columns = ("t", "policy", "regret", "published", "errors apart", "std", "published std")
    return Table(columns, tuple(rows), numbers=(0, 2, 3, 4, 5, 6))


def _ties(data: Datasets) -> list[Block]:
    sweep = data["bernoulli-sweep"]
    parts = {
        (ours, rival): measures.by_divergence(sweep, ours, rival, KL_EDGES)
        for rival in (THOMPSON, BAYES_UCB)
        for ours in (OURS, FAIR)
    }
    rows = []
    for i, (low, high) in enumerate(itertools.pairwise(KL_EDGES)):
        label = f"{low:g} to {high:g}" if np.isfinite(high) else f"above {low:g}"
        cells = [percent(parts[key][i][1]) for key in parts]
        check = (f"{CHECK_FIRST[i]:+.0f} %", f"{CHECK_FAIR[i]:+.0f} %")
        rows.append((label, str(parts[OURS, THOMPSON][i][0]), cells[0], check[0], cells[1], check[1], *cells[2:]))
    columns = ("KL", "problems", "Thompson, first", "check", "Thompson, fair", "check", "Bayes-UCB, first",
               "Bayes-UCB, fair")  # fmt: skip
    return [
        Heading("Ties", 3),
        Paragraph(
            "Mean Δ by divergence. “First” gives ties of the mode to the arm with the lowest index, as the authors' "
            "code did; in this sweep that is the worst arm. The columns “check” are an independent check of the same "
            "sweep with 5000 realizations."
        ),
        Table(columns, tuple(rows), numbers=tuple(range(1, len(columns)))),
    ]


def _caption(data: Datasets) -> list[Block]:
    rows = []
    for bandit, noise in enumerate(data["linear"].noise.values):
        for name, label in (("observed_cumulative_regret", "observed"), ("cumulative_regret", "expected")):
            cells = [number(measures.final(data["linear"], p, bandit, name)) for p in (THOMPSON, BAYES_UCB, OURS)]
            rows.append((f"σ = {noise:g}, {label}", *cells))
    rows.append(("published", *(f"{FIGURE_5[p]:g}" for p in (THOMPSON, BAYES_UCB, OURS))))
    last = int(data["linear"].time[-1])
    spread = data["linear"].observed_cumulative_regret_std.sel(policy=OURS).isel(time=-1).values
    noise = data["linear"].noise.values
    return [
        Heading("The caption", 3),
        Paragraph(
            f"Regret at t = {last}. The published curves have a standard deviation of about {FIGURE_5_DEVIATION:g}; "
            f"ours is {spread[0]:.1f} at the caption's noise and {spread[1]:.1f} at σ = {noise[1]:g}."
        ),
        Table(("", THOMPSON, BAYES_UCB, OURS), tuple(rows), numbers=(1, 2, 3)),
    ]


def _beyond(data: Datasets) -> list[Block]:
    blocks: list[Block] = []
    if "settings" in data:
        blocks += _settings(data)
    if "horizon" in data:
        blocks += _horizon(data)
    return blocks


def _settings(data: Datasets) -> list[Block]:
    found = data["settings"]
    problems = [str(bandit.probabilities) for bandit in EXPERIMENTS["settings"].bandits]  # type: ignore[union-attr]
    rows = []
    for setting in found.policy.values:
        regrets = [f"{measures.final(found, setting, b).value:.1f}" for b in range(found.sizes["bandit"])]
        change = "" if setting == PUBLISHED else percent(claims.setting_ratio(found, setting))
        rows.append((str(setting), change, *regrets))
    return [
        Heading("What the text leaves open"),
        Paragraph(
            "The text does not say how ties of the mode are broken, how p_FA is rounded, the base of the logarithm or "
            f"N_max. Each row changes one setting of the published run and shows the mean change of the regret at "
            f"t = {int(found.time[-1])} over six two-armed problems, then the regret on each; "
            f"{int(found.attrs['realizations']):,} realizations."
        ),
        Table(("setting", "change", *problems), tuple(rows), numbers=tuple(range(1, 2 + len(problems)))),
    ]


def _horizon(data: Datasets) -> list[Block]:
    found = data["horizon"]
    policies = (THOMPSON, OURS, FAIR, HORIZON_AWARE)
    rows = []
    for bandit, (theta, (thompson, double)) in enumerate(CHECK_HORIZON.items()):
        cells = [number(measures.final(found, policy, bandit), 1) for policy in policies]
        rows.append((str(theta), *cells, f"{thompson:g}, {double:g}"))
    return [
        Heading("Far beyond the paper's horizon"),
        Paragraph(
            "N does not know the time: once a wrong leader looks safe it is never questioned again, and the regret "
            f"grows linearly. Expected regret at T = {int(found.time[-1]):,}, {int(found.attrs['realizations']):,} "
            "realizations; the last column is an independent check of Thompson sampling and double sampling. "
            "`DoubleSampling(horizon=T)` weighs the doubt against the decisions that are left."
        ),
        Table(("θ", THOMPSON, "as published", "fair ties", "horizon known", "check"), tuple(rows), (1, 2, 3, 4, 5)),
    ]
