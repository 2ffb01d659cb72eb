"""Exact tests of two binary arms under adaptive allocation, given the total number of successes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks, html
from doublesampling.errors import SettingError
from doublesampling.exact.characteristics import z_statistic
from doublesampling.exact.forward import StateLaw
from doublesampling.exact.prior import log_paths
from doublesampling.exact.trial import TrialPass, looks_of

FloatArray = NDArray[np.float64]
Statistic = Callable[[FloatArray, FloatArray, FloatArray, FloatArray], Any]
"""A function of arrays of successes and failures of both arms, s1, f1, s2, f2; larger says more for the second arm."""

ALTERNATIVES = ("two-sided", "greater", "less")
STATISTICS = ("z", "difference", "probability")
_SAME = 1e-9  # relative: statistics that differ by less are equal


@dataclass(frozen=True)
class ExactTest:
    """The result of an exact test: ``p_value``, the observed statistic, and how many states were compared."""

    p_value: float
    statistic: float
    states: int
    alternative: str
    assumes: str = field(default="", compare=False)
    """What the test of a live experiment assumes beside its design."""

    def _repr_html_(self) -> str:
        """A table for a notebook."""
        row = (self.alternative, f"{self.p_value:.4g}", self.statistic, self.states)
        shown = html.table([row], ["alternative", "p", "statistic", "states"], caption="Exact test of equal arms")
        return html.block(shown, *([html.line(f"Assumes: {self.assumes}")] if self.assumes else []))


def exact_test(
    trial: Any,
    successes: Any,
    failures: Any,
    *,
    statistic: str | Statistic = "z",
    alternative: str = "two-sided",
    threads: int | None = None,
) -> ExactTest:
    """Return the exact test that two binary arms are equal, given how the trial allocates.

    ``successes`` and ``failures`` are those of both arms when the trial ended. Where both arms succeed with the same
    probability, all states with the same number of participants and of successes are as probable as the sums over
    paths of the products of propensities say, whatever that probability is: the p-value is the share of those whose
    statistic is at least as extreme as the observed one. ``statistic`` is "z" (pooled), "difference" (of the success
    rates, second arm less first), "probability" (the less probable is the more extreme, as Fisher's two-sided test
    has it) or a function of arrays s1, f1, s2, f2. With "greater" the second arm is the better one. With a fixed
    number of participants per arm this is Fisher's test.
    """
    checks.one_of("alternative", alternative, ALTERNATIVES)
    if isinstance(statistic, str):
        checks.one_of("statistic", statistic, STATISTICS)
        if statistic == "probability" and alternative != "two-sided":
            raise SettingError('statistic="probability" has no direction. Use alternative="two-sided", or another one.')
    elif not callable(statistic):
        raise SettingError(f"statistic must be one of {', '.join(STATISTICS)}, or a function, got {statistic!r}.")
    seen = _check_counts(trial, successes, failures)
    weights, values, place = _states(_law_at(trial, int(seen.sum()), threads), seen, statistic)
    if weights[place] == 0.0:
        raise SettingError(
            f"successes={seen[:, 0].tolist()}, failures={seen[:, 1].tolist()} cannot be reached under this allocation "
            "(probability below 1e-30). Check the counts and the design."
        )
    extreme = np.abs(values) if alternative == "two-sided" and statistic != "probability" else values
    if alternative == "less":
        extreme = -values
    limit = extreme[place] - _SAME * max(abs(extreme[place]), 1e-300)
    p = float(weights[extreme >= limit].sum() / weights.sum())
    return ExactTest(min(p, 1.0), float(values[place]), int((weights > 0.0).sum()), alternative)


def _check_counts(trial: Any, successes: Any, failures: Any) -> NDArray[np.int64]:
    """Return successes and failures of both arms, int array (arm, 2)."""
    found = []
    for name, given in (("successes", successes), ("failures", failures)):
        values = checks.array(name, given, error=SettingError)
        if values.shape != (2,) or (values < 0).any() or (values != np.floor(values)).any():
            raise SettingError(f"{name} must be two whole numbers, one per arm, got {checks.shown(given)}.")
        found.append(values.astype(np.int64))
    seen = np.column_stack(found)
    if not 1 <= seen.sum() <= trial.horizon:
        raise SettingError(f"The trial has from 1 to {trial.horizon} participants, got {seen.sum()} outcomes.")
    looks = looks_of(trial)
    ends = {int(trial.horizon), *looks.times}
    if looks.times and int(seen.sum()) not in ends:
        raise SettingError(
            f"The trial ends at one of its looks, after {', '.join(map(str, sorted(ends)))} outcomes, got {seen.sum()}."
        )
    return seen


def _law_at(trial: Any, time: int, threads: int | None) -> StateLaw:
    """Return the law of the states in which the trial ends at a time: at a look that stops it, or at the horizon."""
    found = TrialPass(trial, threads, until=time)
    law = found.forward.run(found.drop_ended)
    if time in found.looks.times and time < int(trial.horizon):  # at the horizon the trial ends anyway
        law.weight[: law.size][found.outcomes(law) == 0] = 0.0
    return law


def _states(law: StateLaw, seen: NDArray[np.int64], statistic: str | Statistic) -> tuple[FloatArray, FloatArray, int]:
    """Return weights and statistics of all states with as many successes as were seen, and which of them was seen."""
    total = int(seen[:, 0].sum())
    log_weights, values, place, count = [], [], -1, 0
    for n1, weight in law.blocks():
        n2 = law.time - n1
        s1 = np.arange(max(0, total - n2), min(n1, total) + 1)
        s2 = total - s1
        with np.errstate(divide="ignore"):
            log_weights.append(np.log(weight[s1, s2]) + log_paths(n1, s1) + log_paths(n2, s2))
        values.append(_values(statistic, n1, n2, s1, s2))
        if n1 == seen[0].sum():
            place = count + int(seen[0, 0] - s1[0])
        count += s1.size
    logs, found = np.concatenate(log_weights), np.concatenate(values)
    weights = np.exp(logs - logs.max())
    return weights, (-weights if statistic == "probability" else found), place


def _values(statistic: str | Statistic, n1: int, n2: int, s1: NDArray[np.int64], s2: NDArray[np.int64]) -> FloatArray:
    """Return the statistic of some states of a block."""
    if statistic == "z":
        return z_statistic(n1, n2)[s1, s2]
    if isinstance(statistic, str):
        return np.asarray(s2 / max(n2, 1) - s1 / max(n1, 1), dtype=np.float64)
    parts = [np.asarray(part, dtype=np.float64) for part in (s1, n1 - s1, s2, n2 - s2)]
    found = np.asarray(statistic(*parts), dtype=np.float64)
    if found.shape != s1.shape or not np.isfinite(found).all():
        raise SettingError("statistic must return one finite number per state, as an array like those it was given.")
    return found
