"""``ds.report``: what happened in an experiment and what it says, as a document."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from doublesampling.beliefs import BetaBernoulli, GammaExponential, GammaPoisson
from doublesampling.errors import DoubleSamplingError, SettingError
from doublesampling.inference import analyse
from doublesampling.inference.reading import read_decisions
from doublesampling.live.experiment import Experiment
from doublesampling.live.unavailable import NotImportedError
from doublesampling.paper.document import Block, Heading, Paragraph, Table
from doublesampling.reports.characteristics import Truth, Truths, characteristics_blocks, named
from doublesampling.reports.design_words import design_blocks, items, rule_blocks, versions_blocks
from doublesampling.reports.events import event_blocks
from doublesampling.reports.page import NO_CLAIM, Report

METHODS = ("aw-aipw", "aipw", "ips", "naive")
_MOST_REPLAYED = 20_000
_MOST_CONTRASTS = 10
_STAGES = 4
_MEANS = (BetaBernoulli, GammaPoisson, GammaExponential)
"""Beliefs for which a truth is one number per arm."""


def report(
    subject: Any,
    *,
    level: float = 0.95,
    reference: int | str = 0,
    replay: bool | None = None,
    truths: Sequence[Truth] | Truths | None = None,
    realizations: int = 500,
) -> Report:
    """Return the report of an Experiment: flow, events, allocation, estimates, exact test, sensitivity and replay.

    Arms are compared with ``reference``. ``replay`` recomputes every decision; by default up to 20,000 of them. The
    operating characteristics of the design are for ``truths``, the expected reward of every arm in each scenario; by
    default for the posterior means, and for arms that are all alike. An empty list leaves them out.

    >>> import doublesampling as ds
    >>> exp = ds.Experiment.create("trial", arms=["placebo", "10 mg"], seed=7, storage="sqlite:///report.db")
    >>> for unit in ["anna", "ben"]:
    ...     outcome = exp.tell(exp.ask(unit=unit).id, 1.0)
    >>> ds.report(exp).title
    "Report of experiment 'trial'"
    """
    if not isinstance(subject, Experiment):
        raise SettingError("report takes an Experiment. Use ds.Experiment.load(name, storage=...).")
    exp, summary, decisions = subject, subject.summary(), subject.decisions()
    title = f"Report of experiment {exp.name!r}"
    names = [arm["name"] for arm in summary["arms"]]
    control = names.index(reference) if isinstance(reference, str) and reference in names else reference
    if not isinstance(control, int) or not 0 <= control < len(names):
        raise SettingError(f"reference must be one of the arms {', '.join(map(repr, names))}, got {reference!r}.")
    pairs = [(arm, control) for arm in range(len(names)) if arm != control][:_MOST_CONTRASTS]
    blocks: list[Block] = [Heading(title, 1), Paragraph(NO_CLAIM), *_flow(summary, decisions)]
    blocks += design_blocks(exp.design, f"experiment {exp.name!r}") + rule_blocks(exp.design)
    blocks += event_blocks(exp)
    blocks += _stages(names, decisions)
    estimates, sensitivity = _estimates(exp, names, pairs, level)
    blocks += estimates + _exact_test(exp) + _sequences(exp, names, pairs, level) + sensitivity + _posterior(exp)
    scenarios = _scenarios(exp) if truths is None else named(truths, exp.design)
    if scenarios:
        blocks += characteristics_blocks(exp.design, scenarios, realizations=realizations, seed=1)
    blocks += _replay(exp, summary["decisions"] <= _MOST_REPLAYED if replay is None else replay)
    commands = ("doublesampling report STORE NAME", "doublesampling experiment replay NAME")
    blocks += versions_blocks(exp.design, commands)
    from doublesampling.reports.charts import pictures  # matplotlib, which a service needs for reports only

    return Report(title, tuple(blocks), pictures(exp, names, decisions, pairs[0] if pairs else None, level))


def _flow(summary: dict[str, Any], decisions: Any) -> list[Block]:
    rows = []
    status, arm = decisions["status"].to_numpy(), decisions["arm"].to_numpy()
    for each in summary["arms"]:
        mine = status[arm == each["arm"]]
        kinds = [int((mine == kind).sum()) for kind in ("amended", "imputed", "withdrawn")]
        waiting = each["decisions"] - each["outcomes"]
        rows.append((each["name"], str(each["decisions"] + each["voided"]), str(each["voided"]), str(each["decisions"]),
                     str(each["outcomes"]), str(waiting), *map(str, kinds), str(each["history"]),
                     "active" if each["active"] else "dropped"))  # fmt: skip
    columns = ("arm", "assigned", "not carried out (voided)", "carried out", "with an outcome", "awaited", "amended",
               "imputed", "withdrawn", "outcomes from before", "now")  # fmt: skip
    first, last = ("–", "–") if decisions.empty else (str(decisions["asked_at"].iloc[i])[:19] for i in (0, -1))
    return [
        Heading("Flow of participants"),
        items("participant flow", "recruitment", "numbers analysed"),
        Paragraph(
            f"Created {summary['created_at'][:19]} by {summary['created_by']}; first decision {first}, last decision "
            f"{last} (UTC). Status: {summary['status']}."
        ),
        Table(columns, tuple(rows), numbers=tuple(range(1, 10))),
    ]


def _stages(names: list[str], decisions: Any) -> list[Block]:
    """Assignments and outcomes of each quarter of the decisions."""
    said: list[Block] = [Heading("Allocation over time"), items("randomisation", "similarity of stages")]
    carried = decisions[decisions["status"] != "voided"]
    if len(carried) < _STAGES:
        return [*said, Paragraph("There are too few decisions to show stages.")]
    rows = []
    for part, stage in enumerate(np.array_split(np.arange(len(carried)), _STAGES)):
        some = carried.iloc[stage]
        cells = []
        for arm in range(len(names)):
            mine = some[some["arm"] == arm]
            mean = f", mean {mine['reward'].mean():.3f}" if mine["reward"].notna().any() else ""
            cells.append(f"{len(mine)} ({100 * len(mine) / len(some):.0f} %){mean}")
        rows.append((f"{part + 1} of {_STAGES}", *cells))
    return [*said, Table(("quarter", *(f"{name}: assigned, outcome" for name in names)), tuple(rows))]


def _estimates(
    exp: Experiment, names: list[str], pairs: list[tuple[int, int]], level: float
) -> tuple[list[Block], list[Block]]:
    """The section of estimates, and that of sensitivity to missing outcomes."""
    targets: list[Sequence[int]] = [*pairs, *((arm,) for arm in range(len(names)))]
    rows, refusals, worst = [], [], []
    log = _log(exp)
    for target in targets:
        called = " - ".join(names[arm] for arm in target)
        for method in METHODS:
            try:
                found = analyse(log, tuple(target), method, level)
            except DoubleSamplingError as problem:
                rows.append((called, method, "refused", "–", "–", "–"))
                if str(problem) not in refusals:
                    refusals.append(str(problem))
                continue
            rows.append((called, method, f"{found.estimate:.4f}", f"{found.low:.4f} to {found.high:.4f}",
                         f"{found.p_value:.4f}" if len(target) == 2 else "–",
                         f"{found.effective_sample_size:.0f}"))  # fmt: skip
            if method == "aw-aipw":
                bound = "–" if found.worst_case is None else "{:.4f} to {:.4f}".format(*found.worst_case)
                worst.append((called, f"{found.low:.4f} to {found.high:.4f}", bound, str(found.pending),
                              str(found.missing), str(found.imputed)))  # fmt: skip
    columns = ("target", "method", "estimate", f"{100 * level:g} % interval", "p", "effective outcomes")
    said: list[Block] = [
        Heading("Estimates"),
        items("statistical methods", "outcomes and estimation"),
        Paragraph(
            "aw-aipw is the planned analysis. naive ignores that the data chose themselves: its interval covers less "
            "than it says and is shown for comparison only."
        ),
        Table(columns, tuple(rows), numbers=(2, 3, 4, 5), marks=(("refused", "bad"),)),
        *(Paragraph(f"Refused: {text}") for text in refusals[:3]),
    ]
    head = (
        "target",
        f"{100 * level:g} % interval",
        "whatever the unknown outcomes are",
        "pending",
        "missing",
        "imputed",
    )
    bounds: list[Block] = [
        Heading("Sensitivity to unknown outcomes"),
        items("numbers analysed"),
        Paragraph("Unknown outcomes are left out above, and set to the worst and the best here."),
        Table(head, tuple(worst), numbers=(1, 2, 3, 4, 5)) if worst else Paragraph("No estimate could be made."),
    ]
    return said, bounds


def _log(exp: Experiment) -> Any:
    """The log, read and checked once; the experiment itself where it cannot be read, so that the error is reported."""
    try:
        return read_decisions(exp)
    except DoubleSamplingError:
        return exp


def _sequences(exp: Experiment, names: list[str], pairs: list[tuple[int, int]], level: float) -> list[Block]:
    rows = []
    for pair in pairs:
        for method in ("asymptotic", "empirical-bernstein"):
            try:
                found = exp.sequence(pair, level, method=method)
            except DoubleSamplingError as problem:
                rows.append((names[pair[0]], method, "–", str(problem)))
                continue
            low, high = found.interval
            text = f"{low:.4f} to {high:.4f}" if np.isfinite(low) else "no interval yet"
            rows.append((f"{names[pair[0]]} - {names[pair[1]]}", method, text, found.reason or ""))
    return [
        Heading("Confidence sequences"),
        items("interim results"),
        Paragraph(f"These hold at all looks together with {100 * level:g} % confidence."),
        Table(("target", "method", "latest interval", "note"), tuple(rows)),
    ]


def _exact_test(exp: Experiment) -> list[Block]:
    """The exact test where two binary arms are compared, or why there is none."""
    if len(exp.design.arms) != 2 or not isinstance(exp.design.belief, BetaBernoulli):
        return []
    said: list[Block] = [Heading("Exact test"), items("statistical methods", "outcomes and estimation")]
    try:
        found = exp.exact_test()
    except DoubleSamplingError as problem:
        return [*said, Paragraph(f"There is no exact test: {problem}")]
    words = (
        f"That both arms are equal, given how this design allocates: p = {found.p_value:.4f} (two-sided, pooled z "
        f"statistic {found.statistic:.3f}, {found.states} states with as many successes). It assumes: {found.assumes}"
    )
    return [*said, Paragraph(words)]


def _scenarios(exp: Experiment) -> dict[str, Sequence[float]]:
    """Arms as the posterior means have them, and arms that are all alike; nothing for designs with other truths."""
    design, current = exp.design, exp.state
    if type(design.belief) not in _MEANS or len(current.arms) != len(design.arms) or not current.outcomes:
        return {}
    means = exp.posterior()["mean"].to_numpy()
    counts = current.belief_state.counts
    alike = float(counts @ means / counts.sum())
    return {
        f"posterior means: {', '.join(f'{mean:.3g}' for mean in means)}": means.tolist(),
        f"all arms alike: {alike:.3g}": [alike] * means.size,
    }


def _posterior(exp: Experiment) -> list[Block]:
    said: list[Block] = [Heading("Posterior")]
    if getattr(exp.state.belief, "dimension", None):
        return [*said, Paragraph("It depends on a context; see `exp.posterior(context)`.")]
    try:
        table = exp.posterior()
    except NotImportedError as problem:
        return [*said, Paragraph(f"The belief could not be imported here: {problem}")]
    rows = tuple(
        (str(name), f"{row['mean']:.4f}", f"{row['low']:.4f} to {row['high']:.4f}",
         f"{100 * row['probability_optimal']:.1f} %", str(int(row["observations"])))
        for name, row in table.iterrows()
    )  # fmt: skip
    columns = ("arm", "mean", "95 % credible interval", "probability of being the best", "outcomes")
    return [*said, Table(columns, rows, numbers=(1, 2, 3, 4))]


def _replay(exp: Experiment, wanted: bool) -> list[Block]:
    said: list[Block] = [Heading("Replay")]
    if not wanted:
        return [*said, Paragraph("Not replayed for this report. Run `doublesampling experiment replay NAME`.")]
    try:
        found = exp.replay()
    except NotImportedError as problem:
        return [*said, Paragraph(f"Not replayed: {problem}")]
    if found.agrees:
        text = f"All {found.decisions} decisions follow from the stored outcomes, design and seed."
    else:
        text = f"{found.different} of {found.decisions} decisions differ from the log: {'; '.join(found.differences)}"
    return [*said, Paragraph(text)]
