"""A cache of an experiment's state in one process, so that an ask reads only the rows that are new."""

import datetime
import threading
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.beliefs import OwnBelief
from doublesampling.errors import DoubleSamplingError, NotFoundError
from doublesampling.live.checkpoints import Checkpoint, OutcomeRow, count_voided, fold_to_snapshot
from doublesampling.live.design import Design, resize_belief
from doublesampling.live.played import PlayedBelief, fold_belief
from doublesampling.live.queries.experiments import experiment_by_id
from doublesampling.live.queries.log import ExperimentLog, checkpoint_watermarks
from doublesampling.live.queries.past_decisions import read_past
from doublesampling.live.state import Event, ExperimentState, apply_events
from doublesampling.live.stores.contract import Store
from doublesampling.live.stores.identity import Incarnation, Moment
from doublesampling.live.stores.schema import checkpoints

EVERY = 1000
"""Outcomes between two stored checkpoints."""
MOST = 64
"""Stored checkpoints of one experiment; more would fill the disk where the state is large."""


class StateCache:
    """The settled state of one experiment, extended by every read.

    Hold ``lock`` from before a transaction's first read until ``read`` has returned. Then snapshots arrive in order,
    and rows that are settled for one snapshot are settled for the next.
    """

    def __init__(self, store: Store, experiment: int, name: str, stored_design: str, design: Design) -> None:
        self._store, self._experiment, self._name = store, experiment, name
        self._stored_design, self._design, self._belief = stored_design, design, fold_belief(design)
        self.lock = threading.RLock()
        self._incarnation: Incarnation | None = None
        self._settled: Checkpoint | None = None
        self._last: OutcomeRow | None = None
        """The last outcome in the settled state; where the store does not hold it, the cache is ahead of the store."""
        self._events: list[Event] = []
        self._unsaved, self._newest = 0, 0

    def read(self, connection: Connection) -> ExperimentState:
        """Return the state that this transaction sees."""
        moment = self._store.moment(connection, self._experiment)
        seen = moment.snapshot
        log = ExperimentLog(connection, self._experiment, self._belief)
        if moment.incarnation != self._incarnation:
            self._reset(connection, moment)
        counted = None if self._settled is None else log.count_decisions(self._settled.watermark, seen.xmin, self._last)
        if self._settled is not None and (seen.xmin < self._settled.watermark or not (counted and counted[2])):
            self._store.note_restore()  # rows are gone although no new incarnation began
            self._reset(connection, moment)
            counted = None
        events = self._events + log.events(0 if self._settled is None else self._settled.watermark)
        arms, active, paused, looks, history = apply_events(self._design, events)
        belief = resize_belief(self._belief, len(arms))
        log = replace(log, belief=belief)
        start = self._settled or log.checkpoint_before(seen.xmin) or Checkpoint(0, belief.prior())
        if self._settled is None:
            self._newest, self._last = start.watermark, log.last_row_before(start.watermark)
        folded = fold_to_snapshot(belief, log, start, seen)
        # stored checkpoints do not contain an amendment that made them stale: save one that does
        self._unsaved = EVERY if folded.stale_from is not None else self._unsaved + len(folded.settled)
        below, beyond, _ = counted or log.count_decisions(start.watermark, seen.xmin, None)
        decisions = start.decisions + below - count_voided(folded.settled)
        self._settled = replace(folded.checkpoint, decisions=decisions)
        self._last = folded.settled[-1] if folded.settled else self._last
        self._events = [event for event in events if event.xid < seen.xmin]
        count = decisions + beyond - count_voided(folded.unsettled)
        state, played = folded.state, None
        if isinstance(belief, PlayedBelief):
            belief, state, played = belief.inner, folded.state.inner, folded.state
        if isinstance(belief, OwnBelief):  # a copy, so that its code cannot change the cached state
            state = belief.state_from_json(state.to_json())
        return ExperimentState(
            arms, active, paused, belief, state, count, seen, len(events), moment.incarnation, played,
            read_past(connection, self._experiment, self._design), looks, history,
        )  # fmt: skip

    def _reset(self, connection: Connection, moment: Moment) -> None:
        """Drop everything that is cached: the store was restored since the last read."""
        found = experiment_by_id(connection, self._experiment)
        if found is None or (found.name, found.design) != (self._name, self._stored_design):
            raise NotFoundError(
                f"{self._store.where} no longer holds the experiment {self._name!r}, or holds another one of this "
                "name: the store was restored from a copy. Load the experiment again."
            )
        self._incarnation, self._settled, self._last = moment.incarnation, None, None
        self._events, self._unsaved, self._newest = [], 0, 0

    def save_checkpoint(self) -> None:
        """Store a checkpoint where enough outcomes are new, so that the next process need not read the whole log."""
        with self.lock:
            settled, due, incarnation = self._settled, self._unsaved >= EVERY, self._incarnation
            if settled is None or not due or self._store.read_only:
                return
            self._unsaved = 0
        try:
            row = {
                "experiment": self._experiment,
                "watermark": settled.watermark,
                "state": settled.state.to_json(),  # raises where the belief is not imported: only counts are known
                "arms": settled.state.counts.size,
                "decisions": settled.decisions,
                "at": datetime.datetime.now(datetime.UTC),
            }
            with self._store.writing() as connection:
                if self._store.incarnation(connection) == incarnation:  # a restored store never held these rows
                    self._newest = self._insert(connection, row)
        except (DoubleSamplingError, sa.exc.SQLAlchemyError):
            return  # a checkpoint only saves time: the experiment continues without it

    def _insert(self, connection: Connection, row: dict[str, Any]) -> int:
        """Insert a checkpoint unless another process stored a newer one; return the newest watermark."""
        stored = checkpoint_watermarks(connection, self._experiment)
        newest = stored[-1] if stored else 0
        if newest != self._newest or newest >= row["watermark"]:
            return newest
        connection.execute(sa.insert(checkpoints).values(row))
        if len(stored) >= MOST:  # delete every second of the older ones: the rest still reach back to the start
            thinned = checkpoints.c.watermark.in_(stored[1:-1:2])
            connection.execute(sa.delete(checkpoints).where(checkpoints.c.experiment == self._experiment, thinned))
        return int(row["watermark"])
