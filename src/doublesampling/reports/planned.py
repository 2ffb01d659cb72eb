"""``ds.protocol``: the design of an experiment or trial as a document, before the first decision."""

from collections.abc import Sequence
from typing import Any

from doublesampling.errors import DoubleSamplingError, SettingError
from doublesampling.live.experiment import Experiment
from doublesampling.live.operating_characteristics import Characteristics, characteristics
from doublesampling.paper.document import Block, Heading, Paragraph, Table
from doublesampling.reports.design_words import analysis_blocks, design_blocks, rule_blocks, versions_blocks
from doublesampling.reports.page import NO_CLAIM, Report

_SCENARIO = {
    "probability_superiority": "superiority",
    "probability_equivalence": "equivalence",
    "probability_futility": "futility",
    "probability_maximum": "largest size",
    "probability_best_selected": "best arm selected",
    "expected_size": "participants",
    "expected_successes": "successes",
    "expected_failures": "failures",
    "expected_inferior": "on inferior arms",
}


def protocol(
    subject: Any, truths: Sequence[Sequence[float]] = (), *, realizations: int = 1000, seed: int = 1
) -> Report:
    """Return the protocol of an Experiment, or of a design without a store (a Trial).

    ``truths`` are scenarios, each with the assumed expected reward of every arm; the design is simulated on them and
    compared with equal allocation.

    >>> import doublesampling as ds
    >>> trial = ds.Trial(arms=["old", "new"], policy=ds.ThompsonSampling(), horizon=40)
    >>> ds.protocol(trial).title
    'Protocol of the trial'
    """
    design, name = _design(subject)
    title = f"Protocol of {name}"
    blocks: list[Block] = [Heading(title, 1), Paragraph(NO_CLAIM)]
    blocks += design_blocks(design, name)
    blocks += rule_blocks(design)
    blocks += _characteristics_blocks(subject, design, truths, realizations, seed)
    blocks += analysis_blocks(design)
    commands = ("doublesampling protocol STORE NAME --truth ...", "doublesampling experiment simulate NAME --truth ...")
    blocks += versions_blocks(design, commands)
    return Report(title, tuple(blocks))


def _design(subject: Any) -> tuple[Any, str]:
    if isinstance(subject, Experiment):
        return subject.design, f"experiment {subject.name!r}"
    if all(hasattr(subject, part) for part in ("arms", "belief", "policy", "simulate")):
        return subject, "the trial"
    raise SettingError("protocol takes an Experiment or a Trial. Use ds.Experiment.load(name, storage=...).")


def _characteristics_blocks(
    subject: Any, design: Any, truths: Sequence[Sequence[float]], realizations: int, seed: int
) -> list[Block]:
    said: list[Block] = [Heading("Operating characteristics"), Paragraph("CONSORT-ACE item 7a.")]
    if not truths:
        said.append(
            Paragraph("No scenarios were given, so none were simulated. Give the expected reward of every arm in each.")
        )
        return said
    said.append(
        Paragraph(
            f"Simulated with {realizations} realizations, seed {seed}. Each number has its Monte Carlo standard error. "
            "Equal allocation to all arms stands beside the adaptive design."
        )
    )
    if isinstance(subject, Experiment):
        try:
            found = [characteristics(design, truth, realizations=realizations, seed=seed) for truth in truths]
        except DoubleSamplingError as problem:
            return [*said, Paragraph(f"The design could not be simulated: {problem}")]
        return [*said, *_experiment_tables(design, found)]
    return [*said, scenario_table(subject.simulate(truths, realizations=realizations, seed=seed))]


def _pm(pair: tuple[float, float] | None, digits: int = 1, scale: float = 1.0) -> str:
    return "–" if pair is None else f"{scale * pair[0]:.{digits}f} ± {scale * pair[1]:.{digits}f}"


def _experiment_tables(design: Any, found: list[Characteristics]) -> list[Block]:
    rows = tuple(
        (
            ", ".join(f"{mean:g}" for mean in each.truth),
            str(each.horizon),
            _pm(each.best_arm_wins, scale=100.0),
            _pm(each.failures),
            "–" if each.failures_of_equal_allocation is None else f"{each.failures_of_equal_allocation:.1f}",
            _pm(each.regret),
            *(_pm(share, scale=100.0) for share in each.shares),
        )
        for each in found
    )
    columns = (
        "expected rewards", "decisions", "best arm leads at the end, %", "failures", "failures, equal allocation",
        "loss against the best arm", *(f"share of {arm}, %" for arm in design.arms),
    )  # fmt: skip
    return [Table(columns, rows, numbers=tuple(range(1, len(columns))))]


def scenario_table(data: Any) -> Table:
    """Return a table of a trial's operating characteristics: a dataset with the dimension scenario."""
    named = [name for name in _SCENARIO if name in data]
    rows = []
    for scenario in data["scenario"].values.tolist():
        for suffix, words in (("", "adaptive"), ("_equal", "equal")):
            if named and f"{named[0]}{suffix}" in data:
                one = data.sel(scenario=scenario)
                cells = [_scenario_cell(one, f"{name}{suffix}", name.startswith("probability")) for name in named]
                rows.append((str(scenario), words, *cells))
    columns = ("scenario", "allocation", *(_SCENARIO[name] for name in named))
    return Table(columns, tuple(rows), numbers=tuple(range(2, len(columns))))


def _scenario_cell(one: Any, name: str, probability: bool) -> str:
    if name not in one:
        return "–"
    scale, unit = (100.0, " %") if probability else (1.0, "")
    error = f" ± {scale * float(one[f'{name}_error']):.1f}" if f"{name}_error" in one else ""
    return f"{scale * float(one[name]):.1f}{error}{unit}"
