"""The section on operating characteristics: a design on assumed truths, beside equal allocation."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from doublesampling import checks
from doublesampling.errors import DoubleSamplingError, SettingError
from doublesampling.live.design import Design
from doublesampling.live.operating_characteristics import Characteristics, characteristics, trial_of, words_of_truth
from doublesampling.paper.document import Block, Heading, Paragraph, Table
from doublesampling.reports.design_words import items
from doublesampling.trials import Trial

Truth = Sequence[float] | Sequence[Sequence[float]]
"""The expected reward of every arm; for arms with contexts the weights of each."""
Truths = Mapping[str, Truth]
_EXACT = 100
"""Participants up to which two binary arms are computed exactly: a second, and four times as long for twice as many."""
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


def named(truths: Sequence[Truth] | Truths, design: Any) -> Truths:
    """Return scenarios by name, by default by what is assumed; raise SettingError where they do not fit the design."""
    each = list(truths.values()) if isinstance(truths, Mapping) else truths
    if not isinstance(each, Sequence) or any(
        not isinstance(t, Sequence | np.ndarray) or isinstance(t, str) for t in each
    ):
        raise SettingError(
            "truths are scenarios, each with the expected reward of every arm, such as [[0.3, 0.3], [0.3, 0.5]], got "
            f"{checks.shown(truths)}."
        )
    for truth in each:
        if len(truth) != len(design.arms):
            raise SettingError(
                f"A truth needs one number per arm ({len(design.arms)}), got {len(truth)}: {checks.shown(truth)}."
            )
        if design.belief.dimension is None:
            least, most = (0.0, 1.0) if design.belief.binary else (-math.inf, math.inf)
            numbers = checks.array("a truth", truth, error=SettingError)
            for number in numbers[(numbers < least) | (numbers > most)].ravel()[:1]:
                raise SettingError(f"Expected rewards of outcomes 0 and 1 lie between 0 and 1, got {number:g}.")
    return truths if isinstance(truths, Mapping) else {words_of_truth(truth): truth for truth in each}


def _trial(design: Any) -> Trial:
    """Return the design of an experiment as a trial: all its rules, and an end where it has none."""
    if isinstance(design, Trial):
        return design
    rule, horizon = design.stopping, design.participants or design.usual_horizon
    if design.participants is None and rule is not None:
        looks = rule.looks if isinstance(rule.looks, int) else rule.looks[-1]
        horizon = max(horizon, looks)
    return trial_of(design, horizon)


def characteristics_blocks(design: Any, truths: Truths, *, realizations: int, seed: int) -> list[Block]:
    """Return the section: heading, how the numbers were made, and one row per scenario and allocation."""
    said: list[Block] = [
        Heading("Operating characteristics"), items("sample size and operating characteristics")
    ]  # fmt: skip
    if not truths:
        said.append(
            Paragraph("No scenarios were given, so none were simulated. Give the expected reward of every arm in each.")
        )
        return said
    try:
        trial = _trial(design)
        found = _exact(trial, truths)
        words = "Computed exactly, without Monte Carlo error"
        if found is None:
            found = trial.simulate(dict(truths), realizations=realizations, seed=seed)
            words = f"Simulated with {realizations} realizations, seed {seed}; ± is the Monte Carlo standard error"
    except DoubleSamplingError as problem:
        return [*said, *_without_trial(design, truths, realizations, seed, problem)]
    how = f"{words}. At most {trial.horizon} participants; outcomes are known {_delay(trial)}."
    beside = "Equal allocation to all arms, with the same rules, stands below the adaptive design."
    if trial.stopping is not None and not trial.stopping.enforce:
        beside += " Looks of this design only advise; the numbers hold if their advice is followed."
    return [*said, Paragraph(f"{how} {beside}"), scenario_table(found, _rules_without(trial))]


def _rules_without(trial: Trial) -> tuple[str, ...]:
    """Return the ends that the design has no rule for."""
    rule = trial.stopping
    if rule is None:
        return tuple(f"probability_{name}" for name in ("superiority", "equivalence", "futility", "maximum"))
    return tuple(f"probability_{name}" for name in ("equivalence", "futility") if getattr(rule, name) is None)


def _delay(trial: Trial) -> str:
    return f"late, by `{trial.delay!r}` participants" if trial.delay else "before the next decision"


def _exact(trial: Trial, truths: Truths) -> xr.Dataset | None:
    """Return exact characteristics, None where there are none or they would take long."""
    if trial.horizon > _EXACT:
        return None
    try:
        return trial.exact(dict(truths))
    except SettingError:
        return None


def _without_trial(
    design: Any, truths: Truths, realizations: int, seed: int, problem: DoubleSamplingError
) -> list[Block]:
    """Simulate a design that is no trial, such as one with a policy of your own; or say why it cannot be simulated."""
    if not isinstance(design, Design):
        return [Paragraph(f"The design could not be simulated: {problem}")]
    try:
        found = [characteristics(design, truth, realizations=realizations, seed=seed) for truth in truths.values()]
    except DoubleSamplingError:
        return [Paragraph(f"The design could not be simulated: {problem}")]
    words = f"Simulated with {realizations} realizations, seed {seed}; ± is the Monte Carlo standard error."
    return [Paragraph(words), *_experiment_tables(design, found)]


def _pm(pair: tuple[float, float] | None, digits: int = 1, scale: float = 1.0) -> str:
    return "–" if pair is None else f"{scale * pair[0]:.{digits}f} ± {scale * pair[1]:.{digits}f}"


def _experiment_tables(design: Any, found: list[Characteristics]) -> list[Block]:
    rows = tuple(
        (
            words_of_truth(each.truth),
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


def scenario_table(data: Any, without: Sequence[str] = ()) -> Table:
    """Return a table of a trial's operating characteristics: a dataset with the dimension scenario.

    ``without`` are variables that are left out.
    """
    named = [name for name in _SCENARIO if name in data and name not in without]
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
