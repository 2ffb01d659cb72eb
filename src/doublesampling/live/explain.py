"""Explain a decision from the log: what was known, what was drawn, and why this arm was chosen."""

import datetime
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy.engine import Connection

from doublesampling import html
from doublesampling.live.checkpoints import rebuild
from doublesampling.live.deciding import digest
from doublesampling.live.design import Design, resize_belief
from doublesampling.live.own_classes import is_own, show
from doublesampling.live.played import fold_belief, split
from doublesampling.live.queries.log import ExperimentLog, VisibleLog
from doublesampling.live.queries.revisions import count_retracted_since
from doublesampling.live.records import Receipt
from doublesampling.live.session import Session
from doublesampling.live.state import apply_events
from doublesampling.live.visibility import Snapshot

LONG = 20_000
"""Outcomes above which an explanation starts from a stored checkpoint instead of reading the whole log."""


@dataclass(frozen=True)
class Explanation:
    """What a decision knew, what it drew and why it chose its arm. ``print`` it for a readable text."""

    decision: Receipt
    arms: tuple[dict[str, Any], ...]
    """Per arm: name, active, observations, mean, sd, probability_optimal, votes, propensity."""
    why: str
    policy: str
    allocation: str | None
    """The limits on the propensities; None where there are none."""
    belief: str
    verified: bool
    """Whether the statistics recomputed from the log have the stored digest. Where the decision knew more than 20,000
    outcomes, the recomputation starts from a stored checkpoint; ``replay`` recomputes everything."""
    unknown_then: int
    """Outcomes that count now and that this decision did not know."""
    asked_at: datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "decision": self.decision.to_dict(),
            "arms": list(self.arms),
            "why": self.why,
            "policy": self.policy,
            "allocation": self.allocation,
            "belief": self.belief,
            "verified": self.verified,
            "unknown_then": self.unknown_then,
        }

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        d = self.decision
        rows = [
            (arm["name"] + ("" if arm["active"] else " (dropped)"), arm["observations"], arm["mean"], arm["sd"],
             html.bar(arm["probability_optimal"]), arm["votes"], arm["propensity"])
            for arm in self.arms
        ]  # fmt: skip
        headings = ["arm", "outcomes", "mean", "sd", "P(best)", "votes", "propensity"]
        caption = f"Decision {d.number} of {d.experiment}: {d.arm_name}{' (voided)' if d.voided else ''}"
        context = "" if d.context is None else f", context {d.context}"
        check = "agrees" if self.verified else "DOES NOT AGREE"
        return html.block(
            html.table(rows, headings, caption=caption, marked=d.arm),
            html.line(
                f"Unit {d.unit or '–'}{context}; it knew {d.observations} outcomes, {self.unknown_then} came later."
            ),
            html.line(self.why),
            html.line(f"The log, recomputed, {check} with the stored digest."),
        )

    def __str__(self) -> str:
        d = self.decision
        lines = [
            f"Decision {d.number} of {d.experiment!r} ({d.id}), {d.asked_at:%Y-%m-%d %H:%M:%S} UTC, by {d.actor}",
            f"  unit {d.unit or '-'}, context {d.context if d.context is not None else '-'}",
            f"  known then: {d.observations} outcomes; {self.unknown_then} more came later",
            *(["  VOIDED: not carried out, does not count"] if d.voided else []),
            f"  {self.belief}, {self.policy}{'' if self.allocation is None else f', {self.allocation}'}",
            "",
            "  arm                  outcomes      mean        sd   P(best)   votes   propensity",
        ]
        for i, arm in enumerate(self.arms):
            mark = ">" if i == d.arm else " "
            if not arm["active"]:
                lines.append(f"{mark} {arm['name']:20.20s} {arm['observations']:8d}   dropped")
                continue
            chance = "not known" if arm["propensity"] is None else f"{arm['propensity']:.4f}"
            lines.append(
                f"{mark} {arm['name']:20.20s} {arm['observations']:8d} {arm['mean']:9.4f} {arm['sd']:9.4f} "
                f"{arm['probability_optimal']:9.4f} {arm['votes']:7d} {chance:>12s}"
            )
        check = "agrees with the stored digest" if self.verified else "DOES NOT AGREE with the stored digest"
        return "\n".join([*lines, "", f"  {self.why}", f"  The log, recomputed, {check}."])


def explain(session: Session, connection: Connection, receipt: Receipt) -> Explanation:
    """Return what the decision knew, recomputed from the log, and why it chose its arm."""
    seen = Snapshot.parse(receipt.snapshot)
    fold = fold_belief(session.design)
    log = ExperimentLog(connection, session.id, fold)
    arms, active = apply_events(session.design, [e for e in log.events(0) if seen.sees(e.xid)])[:2]
    belief = resize_belief(fold, len(arms))
    visible = VisibleLog(replace(log, belief=belief), seen)
    state = rebuild(belief, visible, seen.xmin if receipt.observations > LONG else 0).state
    if digest(state, active) != receipt.digest:  # the stored checkpoint may be wrong: read the whole log
        state = rebuild(belief, visible, 0).state
    verified = digest(state, active) == receipt.digest
    inner, belief_state, _ = split(belief, state, active)
    laws = inner.marginals(belief_state, session.design.check_context(receipt.context))
    table = tuple(
        {
            "name": name,
            "active": i in active,
            "observations": int(state.counts[i]),
            "mean": float(laws.mean[i]),
            "sd": float(laws.sd[i]),
            "probability_optimal": float(receipt.probability_optimal[i]),
            "votes": int(receipt.votes[i]),
            "propensity": None if np.isnan(receipt.propensities[i]) else float(receipt.propensities[i]),
        }
        for i, name in enumerate(arms)
    )
    retracted = count_retracted_since(connection, session.id, seen)
    return Explanation(
        decision=receipt,
        arms=table,
        why=_why(session.design, receipt, arms),
        policy=show(session.design.policy),
        allocation=None if session.design.allocation is None else repr(session.design.allocation),
        belief=show(inner),
        verified=verified,
        unknown_then=int(session.read_state().belief_state.observations) - state.observations + retracted,
        asked_at=receipt.asked_at,
    )


def _why(design: Design, receipt: Receipt, arms: tuple[str, ...]) -> str:
    """Return the reason for the choice in one or two sentences."""
    leader = int(np.argmax(receipt.probability_optimal))
    p, n, policy = receipt.probability_optimal[leader], receipt.candidates, design.policy
    if design.allocation is not None:
        when = "at the look before it, " if design.allocation.at_looks else ""
        text = (
            f"The arm was drawn from the propensities of {show(policy)} {when}within the allocation: "
            f"{receipt.arm_name!r} had {receipt.propensity:.3f}."
        )
    elif is_own(policy):
        chance = "" if np.isnan(receipt.propensity) else f", which it played with probability {receipt.propensity:.3f}"
        text = f"{show(policy)} chose {receipt.arm_name!r}{chance}."
    elif n == 1:
        text = f"One candidate was drawn, so each arm was chosen with its own probability: it was {receipt.arm_name!r}."
    else:
        votes = int(receipt.votes[receipt.arm])
        text = f"{n} candidates were drawn, and {receipt.arm_name!r} was the most frequent with {votes}."
    return f"{arms[leader]!r} was the best arm with probability {p:.3f}. {text}"
