"""What a process remembers of an experiment between calls, so that an ask reads only what is new."""

import datetime
import json
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from doublesampling.errors import DoubleSamplingError, NotFoundError
from doublesampling.live import deciding
from doublesampling.live.design import Design, design_from_json, grown
from doublesampling.live.identity import Incarnation, Moment
from doublesampling.live.knowledge import DisturbedError, Fold, Row, count_voided, extend, refold, resized
from doublesampling.live.schema import decisions, events, experiments, outcomes, snapshots
from doublesampling.live.snapshot import Snapshot
from doublesampling.live.store import Store

EVERY = 1000
"""Outcomes between two stored folds."""
MOST = 64
"""Stored folds of one experiment; a large state would fill the disk otherwise."""
_COLUMNS = [outcomes.c[name] for name in Row._fields]


@dataclass(frozen=True)
class Event:
    """Something that happened to the experiment itself."""

    xid: int
    revision: int
    kind: str
    content: dict[str, Any]


@dataclass(frozen=True)
class Known:
    """Everything that a decision may look at."""

    arms: tuple[str, ...]
    active: tuple[int, ...]
    paused: bool
    belief: Any
    state: Any
    decisions: int
    snapshot: Snapshot
    events: int
    incarnation: Incarnation

    @property
    def version(self) -> str:
        """A text that changes with everything that is written, and with every restore."""
        return f"{self.incarnation.tag}-{self.snapshot}"

    @cached_property
    def digest(self) -> str:
        """The fingerprint of the state and the active arms."""
        return deciding.digest(self.state, self.active)


def standing(design: Design, happened: Sequence[Event]) -> tuple[tuple[str, ...], tuple[int, ...], bool]:
    """All arms ever, the active ones, and whether the experiment is paused, after these events."""
    arms, dropped, paused = list(design.arms), set(), False
    for event in happened:
        if event.kind == "add_arm":
            arms.append(event.content["arm"])
        elif event.kind == "drop_arm":
            dropped.add(event.content["arm"])
        elif event.kind in ("pause", "resume"):
            paused = event.kind == "pause"
    return tuple(arms), tuple(i for i, name in enumerate(arms) if name not in dropped), paused


@dataclass(frozen=True)
class StoredLog:
    """The log of one experiment as one transaction sees it."""

    connection: Connection
    experiment: int
    belief: Any

    def rows(self, since: int, before: int | None = None) -> list[Row]:
        """Outcomes from a transaction on, in order."""
        query = sa.select(*_COLUMNS).where(outcomes.c.experiment == self.experiment, outcomes.c.xid >= since)
        query = query if before is None else query.where(outcomes.c.xid < before)
        found = self.connection.execute(query.order_by(outcomes.c.xid, outcomes.c.seq))
        return [Row._make(row) for row in found]

    def events(self, since: int) -> list[Event]:
        """Events from a transaction on, in order."""
        query = sa.select(events).where(events.c.experiment == self.experiment, events.c.xid >= since)
        found = self.connection.execute(query.order_by(events.c.revision))
        return [Event(row.xid, row.revision, row.kind, json.loads(row.content)) for row in found]

    def count_decisions(self, since: int, before: int, last: Row | None) -> tuple[int, int, bool]:
        """How many decisions lie in [since, before), how many from ``before`` on, and whether an outcome is there."""
        o = outcomes.c
        there = (sa.literal(1) == 1) if last is None else sa.exists().where(
            o.seq == last.seq, o.experiment == self.experiment, o.xid == last.xid, o.revision == last.revision,
            o.decision.is_not_distinct_from(last.decision),
        )  # fmt: skip
        query = sa.select(
            sa.func.count(), sa.func.coalesce(sa.func.sum(sa.case((decisions.c.xid < before, 1), else_=0)), 0), there
        ).where(decisions.c.experiment == self.experiment, decisions.c.xid >= since)
        every, settled, found = self.connection.execute(query).one()
        return int(settled), int(every) - int(settled), bool(found)

    def older(self, place: int) -> Fold | None:
        """The latest stored fold below or at a watermark; one that cannot be read is passed over: it is a cache."""
        query = sa.select(snapshots).where(snapshots.c.experiment == self.experiment, snapshots.c.watermark <= place)
        for row in self.connection.execute(query.order_by(snapshots.c.watermark.desc())):
            try:
                belief = self.belief if row.arms == self.belief.arms else grown(self.belief, row.arms)
                return Fold(row.watermark, belief.state_from_json(row.state), row.decisions)
            except DoubleSamplingError:
                continue
        return None

    def last_before(self, watermark: int) -> Row | None:
        """The last outcome below a watermark."""
        query = sa.select(*_COLUMNS).where(outcomes.c.experiment == self.experiment, outcomes.c.xid < watermark)
        found = self.connection.execute(query.order_by(outcomes.c.xid.desc(), outcomes.c.seq.desc()).limit(1)).first()
        return None if found is None else Row._make(found)


class Memory:
    """The settled fold of one experiment, and how to look from there. Hold ``lock`` from before a transaction's first
    read until ``look`` has returned: then snapshots come in order, and what is settled for one is settled for the next.
    """

    def __init__(self, store: Store, experiment: int, name: str, stored: str) -> None:
        self._store, self._experiment, self._name = store, experiment, name
        self._stored, self._design = stored, design_from_json(stored)
        self.lock = threading.RLock()
        self._incarnation: Incarnation | None = None
        self._fold: Fold | None = None
        self._last: Row | None = None
        """The last outcome in the fold; where the store does not hold it, the fold is ahead of the store."""
        self._events: list[Event] = []
        self._unstored, self._newest = 0, 0

    def look(self, connection: Connection) -> Known:
        """What this transaction knows, and exactly that."""
        moment = self._store.moment(connection, self._experiment)
        seen = moment.snapshot
        log = StoredLog(connection, self._experiment, self._design.belief)
        if moment.incarnation != self._incarnation:
            self._begin(connection, moment)
        counted = None if self._fold is None else log.count_decisions(self._fold.watermark, seen.xmin, self._last)
        if self._fold is not None and (seen.xmin < self._fold.watermark or not (counted and counted[2])):
            self._store.note_restore()  # nobody began a new incarnation, and still what was known is gone
            self._begin(connection, moment)
            counted = None
        happened = self._events + log.events(0 if self._fold is None else self._fold.watermark)
        arms, active, paused = standing(self._design, happened)
        belief = self._design.belief if len(arms) == self._design.belief.arms else grown(self._design.belief, len(arms))
        log = replace(log, belief=belief)
        fold = self._fold or log.older(seen.xmin) or Fold(0, belief.prior())
        if self._fold is None:
            self._newest, self._last = fold.watermark, log.last_before(fold.watermark)
        rows = log.rows(fold.watermark)
        cut = next((i for i, row in enumerate(rows) if row.xid >= seen.xmin), len(rows))
        settled, state = self._advance(log, fold, seen, rows[:cut], rows[cut:])
        fresh, loose, _ = counted or log.count_decisions(fold.watermark, seen.xmin, None)
        self._fold = replace(settled, decisions=fold.decisions + fresh - count_voided(rows[:cut]))
        self._last = rows[cut - 1] if cut else self._last
        self._events = [event for event in happened if event.xid < seen.xmin]
        count = self._fold.decisions + loose - count_voided(rows[cut:])
        return Known(arms, active, paused, belief, state, count, seen, len(happened), moment.incarnation)

    def _begin(self, connection: Connection, moment: Moment) -> None:
        """Forget everything: the store is not the one, or not as far, as when it was looked at last."""
        found = connection.execute(sa.select(experiments).where(experiments.c.id == self._experiment)).one_or_none()
        if found is None or (found.name, found.design) != (self._name, self._stored):
            raise NotFoundError(
                f"{self._store.where} holds no experiment {self._name!r} any more, or another one of this name: it was "
                "restored from a copy. Load the experiment again."
            )
        self._incarnation, self._fold, self._last = moment.incarnation, None, None
        self._events, self._unstored, self._newest = [], 0, 0

    def _advance(
        self, log: StoredLog, fold: Fold, seen: Snapshot, below: Sequence[Row], beyond: Sequence[Row]
    ) -> tuple[Fold, Any]:
        """The settled fold with the rows below xmin, and the state with the visible rows beyond it on top."""
        belief = log.belief
        fold = replace(fold, state=resized(fold.state, belief))
        self._unstored += len(below)
        try:
            settled = extend(belief, fold, below, seen.xmin)
        except DisturbedError as amended:
            settled = refold(belief, log, amended.place, seen.xmin)
            self._unstored = EVERY  # stored folds do not know the amendment: keep one that does
        try:
            return settled, extend(belief, settled, beyond).state
        except DisturbedError as amended:
            return settled, refold(belief, log, amended.place).state

    def keep(self) -> None:
        """Store the settled fold now and then, so that the next process need not read from the start."""
        with self.lock:
            fold, due, incarnation = self._fold, self._unstored >= EVERY, self._incarnation
            if fold is None or not due or self._store.read_only:
                return
            self._unstored = 0
        row = {
            "experiment": self._experiment,
            "watermark": fold.watermark,
            "state": fold.state.to_json(),
            "arms": fold.state.arms,
            "decisions": fold.decisions,
            "at": datetime.datetime.now(datetime.UTC),
        }
        try:
            with self._store.writing() as connection:
                if self._store.incarnation(connection) == incarnation:  # a restored store never saw what this one did
                    self._newest = self._write(connection, row)
        except (DoubleSamplingError, sa.exc.SQLAlchemyError):
            return  # a cache: the experiment goes on without it

    def _write(self, connection: Connection, row: dict[str, Any]) -> int:
        """Add a fold, unless somebody kept one on the same stretch; returns the newest watermark."""
        query = sa.select(snapshots.c.watermark).where(snapshots.c.experiment == self._experiment)
        kept = [int(found.watermark) for found in connection.execute(query.order_by(snapshots.c.watermark))]
        newest = kept[-1] if kept else 0
        if newest != self._newest or newest >= row["watermark"]:
            return newest
        connection.execute(sa.insert(snapshots).values(row))
        if len(kept) >= MOST:  # every second of the older ones goes: the rest still reach back to the start
            doomed = snapshots.c.watermark.in_(kept[1:-1:2])
            connection.execute(sa.delete(snapshots).where(snapshots.c.experiment == self._experiment, doomed))
        return int(row["watermark"])
