"""The report of a reproduction: each figure, the paper's claims, our numbers, verdicts, and what lies beyond."""

from pathlib import Path

from doublesampling.paper import measures, report_tables
from doublesampling.paper.bernoulli_claims import setting_ratio
from doublesampling.paper.claims import CLAIMS, Claim
from doublesampling.paper.document import Block, Heading, Paragraph, Picture, Table
from doublesampling.paper.experiments import EXPERIMENTS, HORIZON_AWARE, PUBLISHED
from doublesampling.paper.figures import FIGURES
from doublesampling.paper.published import CHECK_HORIZON, CITATION, FAIR, OURS, THOMPSON
from doublesampling.paper.verdicts import NOT, NOTED, REPRODUCED, TOO_FEW, Datasets, number, percent

TITLE = "Double sampling: the paper, reproduced"
_MARKS = ((REPRODUCED, "good"), (NOTED, "note"), (NOT, "bad"), (TOO_FEW, "note"))
_CAPTIONS = {
    1: "Figure 1. One run of double sampling, θ = (0.4, 0.7, 0.8). Left: p̂ of each arm with a band of one σ̂. Right: N.",
    2: "Figure 2. Probability of playing the best arm, θ = (0.4, 0.8); the band is one standard deviation.",
    3: "Figure 3. Cumulative observed regret, θ = (0.4, 0.8). Left: with one standard deviation, as published. Right: "
    "the means alone, with the values read off the published figure.",
    4: "Figure 4. Regret relative to each rival at t = 1500, by the least KL divergence between arms; one point per "
    "problem and rival, LOWESS curves. Left: as published. Right: with fair ties.",
    5: "Figure 5. Cumulative observed regret on a linear Gaussian bandit, with one standard deviation. Left: the noise "
    "of the caption. Right: the noise that comes nearer to the published values.",
    6: "Figure 6. As figure 4, on linear Gaussian problems, logarithmic axes. Left: the problems, the shared "
    "contexts and the axis that the authors ran, with the published means by bins. Right: any weights of the grid, as "
    "the text says.",
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
    counted = ", ".join(f"{verdicts.count(word)} {word}" for word, _ in _MARKS if word in verdicts)
    left = verdicts.count("not run")
    counted += f"{', ' if counted else ''}{left} not run" if left else ""
    return [Paragraph(f"Of {len(CLAIMS)} claims: {counted}. The table at the end has them all.")]


def _claims(data: Datasets) -> list[Block]:
    rows = tuple(_judged(claim, data) for claim in CLAIMS)
    columns = ("the paper says", "section", "verdict", "our numbers", "why")
    return [Heading("Every claim of the paper"), Table(columns, rows, marks=_MARKS, wordy=True)]


def _figure(figure: int, path: Path, data: Datasets) -> list[Block]:
    names, _ = FIGURES[figure]
    blocks: list[Block] = [Heading(f"Figure {figure}")]
    for name in names:
        experiment, found = EXPERIMENTS[name], data[name]
        title = experiment.title[0].upper() + experiment.title[1:]
        played = f"{title}; T = {experiment.horizon:,}, {int(found.attrs['realizations']):,} realizations"
        blocks.append(Paragraph(played + (" (the figure shows the first)." if figure == 1 else ".")))
    blocks.append(Picture(path, _CAPTIONS[figure]))
    rows = tuple(_judged(claim, data) for claim in CLAIMS if claim.where.endswith(f"figure {figure}"))
    columns = ("the paper says", "verdict", "our numbers", "why")
    blocks.append(Table(columns, tuple((r[0], r[2], r[3], r[4]) for r in rows), marks=_MARKS, wordy=True))
    return blocks + (report_tables.TABLES[figure](data) if figure in report_tables.TABLES else [])


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
        change = "" if setting == PUBLISHED else percent(setting_ratio(found, setting))
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
