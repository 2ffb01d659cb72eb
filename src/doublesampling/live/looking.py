"""Looks of a live experiment: when one is due, what it says, and how it is stored."""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from doublesampling.assignment import next_propensities
from doublesampling.beliefs.marginals import address_words
from doublesampling.errors import ArmError, DoubleSamplingError
from doublesampling.live.deciding import Known, decide_at_look, limits_within, prior_basis
from doublesampling.live.design import Design
from doublesampling.live.own_classes import own_code
from doublesampling.live.queries.log import history_counts
from doublesampling.live.session import Session
from doublesampling.live.state import ExperimentState
from doublesampling.looks import LookResult, evaluate_look
from doublesampling.stopping import THRESHOLDS, Stopping

IntArray = NDArray[np.int64]
Content = dict[str, Any]
"""A look as its event stores it: numbers, names of arms, and None for what does not apply."""
log = logging.getLogger("doublesampling.live")


class LookDueError(Exception):
    """A decision must wait: a look is due first."""


def is_due(stopping: Stopping | None, looks: Sequence[Content], outcomes: int) -> bool:
    """Return whether a look must be made when so many outcomes are known."""
    if stopping is None or (looks and looks[-1]["enforced"] and looks[-1]["outcome"] != "continue"):
        return False
    wanted = stopping.next_look(len(looks))
    return wanted is not None and outcomes >= wanted


def look_where_due(session: Session) -> None:
    """Make every look that is due, each once, whoever else tries at the same time."""
    stopping = session.design.stopping
    while stopping is not None:
        current = session.read_state()
        if not is_due(stopping, current.looks, current.outcomes) or not _make_look(session):
            return


def look_after_tell(session: Session) -> None:
    """Make every look that is due. The outcome is stored: where a look fails, the next tell or ask makes it."""
    try:
        look_where_due(session)
    except (DoubleSamplingError, SQLAlchemyError) as problem:
        log.warning("A look at %r failed and is made with the next tell or ask: %s", session.name, problem)


def _make_look(session: Session) -> bool:
    """Write the next look as an event; return False where it is no longer due."""

    def work(connection: Connection) -> bool:
        with session.cache.lock:
            session.store.enter(connection)
            current = session.cache.read(connection)
        if not is_due(session.design.stopping, current.looks, current.outcomes):
            return False
        counts = current.belief_state.counts - history_counts(connection, session.id, len(current.arms))
        content = look_content(session.design, current.basis, counts, current.decisions + 1)
        at = {"snapshot": str(current.snapshot), "digest": current.digest}
        session.write_event(connection, current, "look", content | at)
        return True

    return session.store.run_transaction(work)


def control_now(stopping: Stopping, arms: tuple[str, ...], looks: Sequence[Content]) -> tuple[int | None, bool]:
    """Return the control, and whether a look promoted it; None where there is none."""
    last = looks[-1] if looks and looks[-1]["enforced"] else None
    if last is not None and last["control"] is not None:
        return arms.index(last["control"]), bool(last["promoted"])
    first = stopping.control_among(arms)
    return (None if first < 0 else first), False


def design_now(design: Design, current: ExperimentState) -> Design:
    """Return the design over the active arms, with the control that looks made of an arm."""
    arms, rule = tuple(current.arms[i] for i in current.active), design.stopping
    if len(arms) < 2:
        raise ArmError(f"Only the arm {arms[0]!r} is left, and a design needs two. The first design is in .design.")
    if rule is not None and rule.control is not None:
        control, _ = control_now(rule, current.arms, current.looks)
        if control is not None and current.arms[control] != rule.control:
            design = replace(design, stopping=replace(rule, control=current.arms[control]))
    return design.with_arms(arms)


def look_content(design: Design, known: Known, outcomes: IntArray, time: int) -> Content:
    """Return the next look, as its event stores it.

    outcomes : known outcomes of decisions per arm, without imported ones, int array (arm). ``time`` is the number of
    the next decision, without voided ones.
    """
    stopping, number = design.stopping, len(known.looks)
    assert stopping is not None
    control, promoted = control_now(stopping, known.arms, known.looks)
    with own_code(known.belief):
        laws = known.belief.marginals(known.state)
        found = evaluate_look(
            stopping, laws, outcomes, look=number, active=known.active, control=control, promoted=promoted,
            seed=design.seed,
        )  # fmt: skip
    content = _named(found, known.arms)
    content["outcomes"], content["planned"] = int(outcomes.sum()), stopping.next_look(number)
    content["thresholds"] = _thresholds(stopping, number)
    content["enforced"] = stopping.enforce
    if design.allocation is not None and design.allocation.at_looks:
        remaining = found.active if stopping.enforce else known.active
        content |= _renewed(design, known._replace(active=remaining), found.stops and stopping.enforce, time)
    return content | {"reason": _in_words(content)}


def _renewed(design: Design, known: Known, ended: bool, time: int) -> Content:
    """Return the policy's decision at a look, and the shares that decisions have until the next look."""
    if ended:
        return {"policy": None, "shares": {}}
    made = decide_at_look(design, known, time=time)
    within = limits_within(design, known.arms, known.active, None)
    assert within is not None
    shares = next_propensities(within, made.propensities, address_words(design.seed, time))
    policy = {"probability_optimal": made.probability_optimal.tolist(), "candidates": made.candidates,
              "votes": made.votes.tolist(), "propensities": made.propensities.tolist()}  # fmt: skip
    return {"policy": policy, "shares": {known.arms[a]: float(shares[a]) for a in known.active}}


def _named(found: LookResult, arms: tuple[str, ...]) -> Content:
    """Return the result of a look with arms by name."""

    def name(arm: int | None) -> str | None:
        return None if arm is None else arms[arm]

    def by_arm(values: Any) -> dict[str, float]:
        return {arms[i]: float(value) for i, value in enumerate(values) if not math.isnan(value)}

    def number(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {
        "look": found.look + 1,
        "outcome": found.outcome,
        "dropped": [arms[a] for a in found.dropped],
        "remaining": [arms[a] for a in found.active],
        "selected": name(found.selected),
        "control": name(found.control),
        "promoted": found.promoted,
        "probability_best": by_arm(found.probability_best),
        "probability_best_remaining": by_arm(found.probability_best_remaining),
        "probability_better": by_arm(found.probability_better),
        "probability_equivalence": number(found.probability_equivalence),
        "probability_futility": number(found.probability_futility),
    }


def _thresholds(stopping: Stopping, look: int) -> dict[str, float]:
    rule = stopping.rule_at(look)
    found = {name: float(getattr(rule, name)[0]) for name in THRESHOLDS}
    return {name: value for name, value in found.items() if not math.isnan(value)}


def _in_words(content: Content) -> str:
    """Return what a look said, in one sentence."""
    versus, limits = content["control"] is not None, content["thresholds"]
    what = "P(better than the control)" if versus else "P(best)"
    chances = content["probability_better"] if versus else content["probability_best"]
    parts = [f"{arm!r} is inferior, {what} {chances[arm]:.4f}" for arm in content["dropped"] if arm in chances]
    selected, outcome = content["selected"], content["outcome"]
    if outcome == "superiority":
        found = (chances if versus else content["probability_best_remaining"]).get(selected)
        limit = f", {what} {found:.4f}" if found is not None and "superiority" in limits else ", the only arm left"
        parts.append(f"{selected!r} is superior{limit}")
    elif outcome != "continue":
        chance = content[f"probability_{outcome}"]
        said = "" if chance is None else f", probability {chance:.4f}"
        parts.append(f"{'arms are equivalent' if outcome == 'equivalence' else 'no arm beats the control'}{said}")
    verdict = "; ".join(parts) or "continue"
    advice = "" if content["enforced"] or not parts else " (advice only)"
    return f"Look {content['look']} at {content['outcomes']} outcomes: {verdict}{advice}."


def check_looks(design: Design) -> None:
    """Make one look from the prior, so that a belief that cannot answer it is refused at creation."""
    if design.stopping is not None:
        every, none = tuple(range(design.belief.arms)), np.zeros(design.belief.arms, dtype=np.int64)
        look_content(design, prior_basis(design, design.arms, every), none, 1)
