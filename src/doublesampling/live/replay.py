"""Replay: recompute every stored decision from the log, each from the outcomes it could see, and compare."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doublesampling import html
from doublesampling.assignment import Past, after_decision
from doublesampling.decision import Decision
from doublesampling.live.checkpoints import Checkpoint, OutcomeRow, fold_to_snapshot, truncate_state
from doublesampling.live.contexts import context_from_json
from doublesampling.live.deciding import Known, decide_next, digest
from doublesampling.live.design import resize_belief
from doublesampling.live.look_replay import replay_looks
from doublesampling.live.looking import is_due
from doublesampling.live.played import fold_belief, split
from doublesampling.live.queries.log import ExperimentLog, all_decisions
from doublesampling.live.records import unpack
from doublesampling.live.session import Session
from doublesampling.live.state import apply_events
from doublesampling.live.visibility import Snapshot

_MOST = 20  # differences that are listed in full
_CLOSE = 1e-9  # machines may round the last digits of a probability differently; arms and votes must be equal
_SPACING = 200  # transactions between two checkpoints that a replay keeps in memory


@dataclass(frozen=True)
class Replay:
    """How many decisions were recomputed, and where they differ from the stored ones."""

    decisions: int
    different: int
    differences: tuple[str, ...] = ()
    looks: int = 0
    """How many looks were recomputed; those that differ are counted in ``different``."""

    @property
    def agrees(self) -> bool:
        """Whether every stored decision and look follows from the log."""
        return self.different == 0

    def _repr_html_(self) -> str:
        """A line for a notebook, and the differences."""
        verdict = "all agree" if self.agrees else f"{self.different} differ"
        looks = f" and {self.looks} looks" if self.looks else ""
        told = html.line(f"{self.decisions:,} decisions{looks} recomputed from the log: {verdict}.", bold=True)
        return html.block(told, *(html.line(each) for each in self.differences))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"agrees": self.agrees, "decisions": self.decisions, "different": self.different,
                "differences": list(self.differences), "looks": self.looks}  # fmt: skip


@dataclass
class LogReplayer:
    """The log in memory, and the state at one snapshot after another.

    It never reads stored checkpoints: a replay must notice where one of them is wrong.
    """

    belief: Any
    outcomes: list[OutcomeRow]
    decided: list[int]
    """xid of every decision, ascending."""
    voided: list[int] = field(init=False)
    """xid of every void, ascending."""
    seen: Snapshot = field(default_factory=lambda: Snapshot(0, 0))
    settled: Checkpoint = field(init=False)
    kept: list[Checkpoint] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.xids = [row.xid for row in self.outcomes]
        self.voided = [row.xid for row in self.outcomes if row.kind == "voided"]
        self.settled = Checkpoint(0, self.belief.prior())

    def rows(self, since: int) -> Sequence[OutcomeRow]:
        """Return the outcomes with ``xid >= since`` that the current snapshot sees."""
        window = self.outcomes[bisect_left(self.xids, since) : bisect_left(self.xids, self.seen.xmax)]
        return [row for row in window if self.seen.sees(row.xid)]

    def checkpoint_before(self, place: int) -> Checkpoint | None:
        """Return the latest checkpoint of this replay whose watermark is at most ``place``."""
        return next((found for found in reversed(self.kept) if found.watermark <= place), None)

    def state_at(self, seen: Snapshot, belief: Any) -> Any:
        """Return the belief's state in a snapshot; snapshots must come in ascending order of ``xmin``."""
        self.seen = seen
        folded = fold_to_snapshot(belief, self, self.settled, seen)
        self.settled = folded.checkpoint
        if folded.stale_from is not None:
            self.kept = [found for found in self.kept if found.watermark <= folded.stale_from]
        if not self.kept or self.settled.watermark >= self.kept[-1].watermark + _SPACING:
            self.kept.append(self.settled)
        return folded.state

    def time_at(self, seen: Snapshot) -> int:
        """Return one more than the decisions that a snapshot sees, without those it sees voided."""
        return _count_seen(self.decided, seen) - _count_seen(self.voided, seen) + 1


def _count_seen(xids: list[int], seen: Snapshot) -> int:
    """Return how many of these transactions, in ascending order, a snapshot sees."""
    settled = bisect_left(xids, seen.xmin)
    between = xids[settled : bisect_right(xids, seen.xmax - 1)]
    return settled + sum(seen.sees(xid) for xid in between)


def replay(session: Session) -> Replay:
    """Recompute every decision and return where the result differs from the stored one."""
    session.design.check_available()
    fold = fold_belief(session.design)
    with session.store.reading() as connection:
        log = ExperimentLog(connection, session.id, fold)
        events, outcomes = log.events(0), log.rows(0)
        stored = sorted(
            ((Snapshot.parse(row.snapshot), row) for row in all_decisions(connection, session.id)),
            key=lambda pair: (pair[0].xmin, pair[1].number),
        )
    replayer = LogReplayer(fold, outcomes, sorted(row.xid for _, row in stored))
    differences: list[str] = []
    different, most = 0, fold.arms
    past = Past(0, np.zeros(len(session.design.arms), dtype=np.int64)) if session.design.in_order else None
    for seen, row in stored:
        status = apply_events(session.design, [e for e in events if seen.sees(e.xid)])
        arms, active = status.arms, status.active
        most = max(most, len(arms))
        state = replayer.state_at(seen, resize_belief(fold, most))
        belief = resize_belief(fold, len(arms))
        if len(arms) < most:  # an arm that an earlier snapshot saw, and this one does not see yet
            state = truncate_state(state, belief, replayer)
        inner, belief_state, played = split(belief, state, active)
        known = Known(arms, active, status.looks, inner, belief_state, played)
        time, context = replayer.time_at(seen) + row.position, context_from_json(row.context)
        again = decide_next(session.design, known, context, past, number=row.number, time=time)
        found = _differences(row, again, state, active)
        if is_due(session.design.stopping, status.looks, state.observations - status.history):
            found.append("made although a look was due")
        past = None if past is None else after_decision(past, row.arm, unpack(row.propensities))
        different += bool(found)
        if found and len(differences) < _MOST:
            differences.append(f"decision {row.number} ({row.id}): {', '.join(found)}")
    again_looks = list(replay_looks(session.design, events, LogReplayer(fold, outcomes, replayer.decided)))
    wrong = [f"look {look['look']}: {', '.join(found)}" for look, found in again_looks if found]
    return Replay(len(stored), different + len(wrong), (*differences, *wrong[:_MOST]), len(again_looks))


def _differences(row: Any, again: Decision, state: Any, active: tuple[int, ...]) -> list[str]:
    """Return what differs between a stored decision and the same decision made again."""
    found = []
    for name, was, now in (
        ("arm", row.arm, again.arm),
        ("candidates", row.candidates, again.candidates),
        ("time", row.time, again.address.time),
        ("observations", row.observations, state.observations),
        ("votes", json.loads(row.votes), again.votes.tolist()),
        ("digest", row.digest, digest(state, active)),
    ):
        if was != now:
            found.append(f"{name} stored {was}, recomputed {now}")
    for name in ("propensities", "probability_optimal"):
        was, now = unpack(getattr(row, name)), getattr(again, name)
        if was.shape != now.shape or not np.allclose(was, now, rtol=_CLOSE, atol=1e-12, equal_nan=True):
            found.append(f"{name} stored {was.tolist()}, recomputed {now.tolist()}")
    return found
