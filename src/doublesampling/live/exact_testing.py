"""The exact test of a live experiment with two binary arms, under the design that it was created with."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from doublesampling import checks
from doublesampling.beliefs import BetaBernoulli
from doublesampling.errors import LogError, SettingError
from doublesampling.exact.significance import ExactTest, exact_test
from doublesampling.live.design import Design
from doublesampling.live.queries.tables import decision_table
from doublesampling.live.session import Session
from doublesampling.live.state import ExperimentState
from doublesampling.stopping import THRESHOLDS, Stopping

LATE = ("refuse", "ignore")
_FIXED = "The number of outcomes was fixed without looking at them."
_AS_IF_KNOWN = (
    "Not exact: {late} of {made} decisions did not know all outcomes before them, or knew ones that were corrected; "
    "computed as if each had known them."
)


@dataclass(frozen=True)
class _Frozen:
    """The parts of a design that the exact recursion reads; a ``ds.Trial`` has the same names."""

    arms: tuple[str, ...]
    belief: Any
    policy: Any
    allocation: Any
    stopping: Stopping | None
    horizon: int
    delay: int = 0


@dataclass(frozen=True)
class _Told:
    """The outcomes of an experiment: successes and failures of both arms, and how many decisions were late."""

    successes: tuple[int, int]
    failures: tuple[int, int]
    made: int
    late: int
    waiting: int

    @property
    def outcomes(self) -> int:
        """All of them."""
        return sum(self.successes) + sum(self.failures)


def run_exact_test(session: Session, *, statistic: Any, alternative: str, late: str) -> ExactTest:
    """Return the exact test that both arms of an experiment are equal; see ``Experiment.exact_test``."""
    checks.one_of("late", late, LATE)
    current, design = session.read_state(), session.design
    _check_design(design, current)
    told = _told(session)
    if told.late and late == "refuse":
        raise LogError(
            f"{told.late} of {told.made} decisions did not know all outcomes before them, or knew ones that were "
            "corrected later. The exact test assumes that every decision knew them. Use analyse, which needs no such "
            "assumption, or pass late='ignore' for the p-value as if it were so, which is then not exact."
        )
    frozen = _frozen(design, current, told.outcomes)
    found = exact_test(frozen, told.successes, told.failures, statistic=statistic, alternative=alternative)
    return replace(found, assumes=_assumptions(design, current, told))


def _check_design(design: Design, current: ExperimentState) -> None:
    """Raise SettingError where the recursion over two binary arms does not describe the experiment."""
    remedy = "Use analyse."
    if getattr(design.belief, "dimension", None) is not None:
        raise SettingError(f"The exact test is for arms of 0 and 1 without contexts, got {design.belief!r}. {remedy}")
    if len(design.arms) != 2 or type(design.belief) is not BetaBernoulli:
        raise SettingError(
            "The exact test is for two arms with rewards of 0 and 1 (BetaBernoulli), got "
            f"{len(design.arms)} arms and {checks.shown(design.belief)}. {remedy}"
        )
    if len(current.arms) > 2:
        added = ", ".join(map(repr, current.arms[2:]))
        raise SettingError(f"The exact test is for the two arms of the design, and {added} was added. {remedy}")
    # of two arms none can be dropped by hand; a look that drops one ends the experiment
    if current.history:
        raise SettingError(
            f"{current.history} outcomes were imported from before the experiment, and no propensities are known for "
            f"them: no exact test describes it. {remedy}"
        )


def _told(session: Session) -> _Told:
    """Read the outcomes, and count the decisions that did not know exactly the outcomes of all before them."""
    table = decision_table(session)
    status, reward, arm = (table[name].to_numpy() for name in ("status", "reward", "arm"))
    corrected = (table["revisions"].to_numpy() > 1) | np.isin(status, ("voided", "withdrawn"))
    carried = status != "voided"
    late = corrected.copy()
    late[carried] |= table["observations"].to_numpy()[carried] != np.arange(int(carried.sum()))
    known = carried & ~np.isnan(reward)
    if not known.any():
        raise LogError("No outcome is known yet, so there is nothing to test.")
    for value in reward[known & (reward != 0.0) & (reward != 1.0)][:1]:
        raise LogError(f"The exact test is for outcomes of 0 and 1, and one is {value:g}. Use analyse.")
    first, second = (
        (int((known & (arm == a) & (reward == 1.0)).sum()), int((known & (arm == a) & (reward == 0.0)).sum()))
        for a in (0, 1)
    )
    waiting = int((carried & ~known).sum())
    return _Told((first[0], second[0]), (first[1], second[1]), len(table), int(late.sum()), waiting)


def _frozen(design: Design, current: ExperimentState, outcomes: int) -> _Frozen:
    """Return the design with the end that the experiment had: at a look, at its last participant, or now."""
    rule, most = design.stopping, design.participants
    parts = (design.arms, design.belief, design.policy, design.allocation)
    if rule is None or not rule.enforce:
        return _Frozen(*parts, None, outcomes if most is None else most)
    if most is not None:
        if current.stopped is None and outcomes < most:
            raise LogError(
                f"The trial has not ended: {outcomes} of at most {most} outcomes are known, and no look has stopped "
                "it. Before its end, use sequence, which may be looked at any time."
            )
        return _Frozen(*parts, rule, most)
    if not current.looks:
        return _Frozen(*parts, None, outcomes)
    # looks that are still to come do not matter: only those that were made could have ended it before
    beyond = 1 if current.stopped is not None else 0
    return _Frozen(*parts, _looks_made(rule, current), outcomes + beyond)


def _looks_made(rule: Stopping, current: ExperimentState) -> Stopping:
    """Return the stopping rule with those looks that were made, and the thresholds of each."""
    count = len(current.looks)
    times = tuple(int(look["planned"]) for look in current.looks)
    each = [rule.rule_at(look) for look in range(count)]
    used: dict[str, Any] = {
        name: tuple(float(getattr(at, name)[0]) for at in each)
        for name in THRESHOLDS
        if getattr(rule, name) is not None
    }
    return replace(rule, looks=times, **used)


def _assumptions(design: Design, current: ExperimentState, told: _Told) -> str:
    """Return in words what the p-value assumes beside the design."""
    said = []
    if told.late:
        said.append(_AS_IF_KNOWN.format(late=told.late, made=told.made))
    if current.stopped is None and design.participants != told.outcomes:
        said.append(_FIXED)
    if design.stopping is not None and not design.stopping.enforce:
        said.append("The advice of the looks did not end the experiment.")
    if told.waiting:
        said.append(f"{told.waiting} decisions wait for an outcome and are left out.")
    return " ".join(said) or "Nothing beside the design."
