"""Why a decision fell as it did, from the log alone."""

import datetime
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.live.book import Book
from doublesampling.live.deciding import digest
from doublesampling.live.design import grown
from doublesampling.live.knowledge import DisturbedError, Fold, extend, resized
from doublesampling.live.memory import StoredLog, standing
from doublesampling.live.records import Receipt
from doublesampling.live.schema import outcomes
from doublesampling.live.snapshot import Snapshot

_LONG = 20_000  # outcomes; the whole of a shorter log is read in a moment


@dataclass(frozen=True)
class Explanation:
    """What was known, what was believed, what was drawn, and why this arm. ``str`` of it is for people."""

    decision: Receipt
    arms: tuple[dict[str, Any], ...]
    """Per arm: name, active, observations, mean, sd, probability_optimal, votes, propensity."""
    why: str
    policy: str
    belief: str
    verified: bool
    """Whether the statistics recomputed from the log have the stored digest. Of a log of more than 20,000 outcomes only
    what follows a stored fold is recomputed; ``replay`` recomputes everything."""
    unknown_then: int
    """Outcomes that count now and were not known to this decision."""
    asked_at: datetime.datetime

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "decision": self.decision.to_dict(),
            "arms": list(self.arms),
            "why": self.why,
            "policy": self.policy,
            "belief": self.belief,
            "verified": self.verified,
            "unknown_then": self.unknown_then,
        }

    def __str__(self) -> str:
        d = self.decision
        lines = [
            f"Decision {d.number} of {d.experiment!r} ({d.id}), {d.asked_at:%Y-%m-%d %H:%M:%S} UTC, by {d.actor}",
            f"  unit {d.unit or '-'}, context {d.context if d.context is not None else '-'}",
            f"  known then: {d.observations} outcomes; {self.unknown_then} more came later",
            *(["  VOIDED: not carried out, and counts for nothing"] if d.voided else []),
            f"  {self.belief}, {self.policy}",
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


def explain(book: Book, connection: Connection, receipt: Receipt) -> Explanation:
    """Recompute what the decision knew, and put it into words."""
    seen = Snapshot.parse(receipt.snapshot)
    log = StoredLog(connection, book.id, book.design.belief)
    arms, active, _ = standing(book.design, [e for e in log.events(0) if seen.sees(e.xid)])
    belief = book.design.belief if len(arms) == book.design.belief.arms else grown(book.design.belief, len(arms))
    log = replace(log, belief=belief)
    state = _known_then(log, seen, log.older(seen.xmin) if receipt.observations > _LONG else None)
    if digest(state, active) != receipt.digest:  # a stored fold is a cache, and no judge: read the whole log
        state = _known_then(log, seen, None)
    laws = belief.marginals(state, receipt.context)
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
    return Explanation(
        decision=receipt,
        arms=table,
        why=_why(receipt, arms),
        policy=repr(book.design.policy),
        belief=repr(belief),
        verified=digest(state, active) == receipt.digest,
        unknown_then=_count_unknown(book, connection, seen, state.observations),
        asked_at=receipt.asked_at,
    )


def _known_then(log: StoredLog, seen: Snapshot, start: Fold | None) -> Any:
    """The statistics in a snapshot, from an older fold where there is one: then few rows are read of a long log."""
    fold = Fold(0, log.belief.prior()) if start is None else replace(start, state=resized(start.state, log.belief))
    rows = [row for row in log.rows(fold.watermark, before=seen.xmax) if seen.sees(row.xid)]
    try:
        return extend(log.belief, fold, rows).state
    except DisturbedError:  # an amendment of what the fold has absorbed
        return _known_then(log, seen, None)


def _count_unknown(book: Book, connection: Connection, seen: Snapshot, known_then: int) -> int:
    """How many outcomes count now that did not then: some that counted then may have been taken back since."""
    o = outcomes.c
    taken_back = sa.select(o.decision).where(o.experiment == book.id, o.kind.in_(("withdrawn", "voided")))
    query = sa.select(o.decision, o.xid, o.reward).where(o.decision.in_(taken_back)).order_by(o.decision, o.revision)
    then: dict[str, Any] = {}
    now: dict[str, Any] = {}
    for row in connection.execute(query):
        now[row.decision] = row.reward
        if seen.sees(row.xid):
            then[row.decision] = row.reward
    gone = sum(reward is not None and now[decision] is None for decision, reward in then.items())
    return int(book.look().state.observations) - known_then + gone


def _why(receipt: Receipt, arms: tuple[str, ...]) -> str:
    """The choice in one or two sentences."""
    leader = int(np.argmax(receipt.probability_optimal))
    p, n = receipt.probability_optimal[leader], receipt.candidates
    if n == 1:
        text = f"One candidate was drawn, so each arm had its own chance of being played: it was {receipt.arm_name!r}."
    else:
        votes = int(receipt.votes[receipt.arm])
        text = f"{n} candidates were drawn, and {receipt.arm_name!r} was the most frequent with {votes}."
    return f"{arms[leader]!r} seemed the best with probability {p:.3f}. {text}"
