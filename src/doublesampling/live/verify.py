"""Verify a store: the database's own checks, the triggers, every decision and every checkpoint."""

from dataclasses import dataclass, field
from typing import Any

from doublesampling.live.checkpoints import truncate_state
from doublesampling.live.design import resize_belief
from doublesampling.live.played import fold_belief
from doublesampling.live.queries.experiments import list_experiments
from doublesampling.live.queries.log import ExperimentLog, decision_xids, stored_checkpoints
from doublesampling.live.replay import LogReplayer, replay
from doublesampling.live.session import Session, open_session
from doublesampling.live.state import apply_events
from doublesampling.live.stores import upgrade
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.integrity import dangling_references, database_problems, missing_triggers
from doublesampling.live.stores.schema import HEAD
from doublesampling.live.unavailable import NotImportedError
from doublesampling.live.visibility import Snapshot


@dataclass
class Verification:
    """The result of a verification: what was checked, and the problems that were found."""

    identity: str
    schema: int = HEAD
    experiments: list[dict[str, Any]] = field(default_factory=list)
    """Per experiment: name, decisions, checkpoints, and whether all of them agree with the log."""
    problems: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"ok": self.ok, **self.__dict__}


def verify(store: Store) -> Verification:
    """Check a whole store and return what is wrong. It only reads, and takes minutes for millions of decisions."""
    upgrade.check(store)
    with store.reading() as connection:
        found = Verification(store.incarnation(connection).identity)
        for check in (database_problems, missing_triggers, dangling_references):
            found.problems += check(connection)
    for listed in list_experiments(store):
        session = open_session(store, listed["name"], None)
        try:
            again = replay(session)
        except NotImportedError as problem:
            found.problems.append(f"{session.name}: not replayed. {problem}")
            row = {"name": session.name, "decisions": 0, "checkpoints": 0, "agrees": False}
            found.experiments.append(row)
            continue
        found.problems += [f"{session.name}: {difference}" for difference in again.differences]
        checkpoints, wrong = _check_checkpoints(session)
        found.problems += [f"{session.name}: {problem}" for problem in wrong]
        agrees = again.agrees and not wrong
        row = {"name": session.name, "decisions": again.decisions, "checkpoints": checkpoints, "agrees": agrees}
        found.experiments.append(row)
    return found


def _check_checkpoints(session: Session) -> tuple[int, list[str]]:
    """Return how many checkpoints are stored, and which of them do not follow from the log."""
    with session.store.reading() as connection:
        fold = fold_belief(session.design)
        log = ExperimentLog(connection, session.id, fold)
        events, outcomes = log.events(0), log.rows(0)
        replayer = LogReplayer(fold, outcomes, decision_xids(connection, session.id))
        stored = stored_checkpoints(connection, session.id)
    belief = resize_belief(fold, len(apply_events(session.design, events).arms))
    wrong = []
    for row in stored:
        seen = Snapshot(row.watermark, row.watermark)
        state = truncate_state(replayer.state_at(seen, belief), resize_belief(fold, row.arms), replayer)
        if state.to_json() != row.state or replayer.time_at(seen) != row.decisions + 1:
            wrong.append(f"the checkpoint at {row.watermark} does not follow from the log: delete it from ds_snapshots")
    return len(stored), wrong
