"""Replay: every decision is made again from what the log says was known then, and compared."""

import json
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sqlalchemy as sa

from doublesampling.live.book import Book
from doublesampling.live.deciding import decide_at, digest
from doublesampling.live.design import grown
from doublesampling.live.knowledge import DisturbedError, Fold, Row, extend, refold, resized
from doublesampling.live.memory import Event, StoredLog, standing
from doublesampling.live.records import unpack
from doublesampling.live.schema import decisions
from doublesampling.live.snapshot import Snapshot

_MOST = 20  # differences that are spelled out
_CLOSE = 1e-9  # machines may round the last digits of a probability differently; arms and votes must be the same


@dataclass(frozen=True)
class Replay:
    """How many decisions were made again, and where they differ from what is stored."""

    decisions: int
    different: int
    differences: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool:
        """Whether every stored decision follows from the log."""
        return self.different == 0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"agrees": self.agrees, "decisions": self.decisions, "different": self.different,
                "differences": list(self.differences)}  # fmt: skip


@dataclass
class Walk:
    """The log in memory, and a fold that moves along it. It never looks at stored folds: they might be wrong."""

    belief: Any
    events: list[Event]
    every: list[Row]
    made: list[int]
    """xid of every decision, sorted."""
    voided: list[int] = field(init=False)
    """xid of every void, sorted."""
    seen: Snapshot = field(default_factory=lambda: Snapshot(0, 0))
    fold: Fold = field(init=False)
    kept: list[Fold] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.xids = [row.xid for row in self.every]
        self.voided = [row.xid for row in self.every if row.kind == "voided"]
        self.fold = Fold(0, self.belief.prior())

    def rows(self, since: int) -> Sequence[Row]:
        """Outcomes from a transaction on that the present snapshot sees."""
        window = self.every[bisect_left(self.xids, since) : bisect_left(self.xids, self.seen.xmax)]
        return [row for row in window if self.seen.sees(row.xid)]

    def older(self, place: int) -> Fold | None:
        """A fold kept on the way; those past a disturbed place are of no use any more."""
        while self.kept and self.kept[-1].watermark > place:
            self.kept.pop()
        return self.kept[-1] if self.kept else None

    def state_at(self, seen: Snapshot, belief: Any) -> Any:
        """What was known in a snapshot; snapshots come in the order of xmin."""
        self.seen = seen
        fold = replace(self.fold, state=resized(self.fold.state, belief))
        rows = self.rows(fold.watermark)
        cut = next((i for i, row in enumerate(rows) if row.xid >= seen.xmin), len(rows))
        try:
            self.fold = extend(belief, fold, rows[:cut], seen.xmin)
        except DisturbedError as amended:
            self.fold = refold(belief, self, amended.place, seen.xmin)
        if not self.kept or self.fold.watermark >= self.kept[-1].watermark + 200:
            self.kept.append(self.fold)
        try:
            return extend(belief, self.fold, rows[cut:]).state
        except DisturbedError as amended:
            return refold(belief, _Peek(self), amended.place).state

    def time_at(self, seen: Snapshot) -> int:
        """One more than the decisions that a snapshot sees, less those that it sees voided."""
        return _count_seen(self.made, seen) - _count_seen(self.voided, seen) + 1


def _count_seen(xids: list[int], seen: Snapshot) -> int:
    """How many of these transactions, sorted, a snapshot sees."""
    settled = bisect_left(xids, seen.xmin)
    between = xids[settled : bisect_right(xids, seen.xmax - 1)]
    return settled + sum(seen.sees(xid) for xid in between)


@dataclass(frozen=True)
class _Peek:
    """The same log for a look that must not throw kept folds away."""

    walk: Walk

    def rows(self, since: int) -> Sequence[Row]:
        return self.walk.rows(since)

    def older(self, place: int) -> Fold | None:
        return next((fold for fold in reversed(self.walk.kept) if fold.watermark <= place), None)


def replay(book: Book) -> Replay:
    """Make every decision again."""
    with book.store.reading() as connection:
        log = StoredLog(connection, book.id, book.design.belief)
        happened, every = log.events(0), log.rows(0)
        query = sa.select(decisions).where(decisions.c.experiment == book.id)
        stored = sorted(
            ((Snapshot.parse(row.snapshot), row) for row in connection.execute(query)),
            key=lambda pair: (pair[0].xmin, pair[1].number),
        )
    walk = Walk(book.design.belief, happened, every, sorted(row.xid for _, row in stored))
    differences: list[str] = []
    different, most = 0, book.design.belief.arms
    for seen, row in stored:
        arms, active, _ = standing(book.design, [e for e in happened if seen.sees(e.xid)])
        most = max(most, len(arms))
        belief = book.design.belief if most == book.design.belief.arms else grown(book.design.belief, most)
        found = _compare(book, walk, seen, row, belief, active, len(arms))
        different += bool(found)
        if found and len(differences) < _MOST:
            differences.append(f"decision {row.number} ({row.id}): {', '.join(found)}")
    return Replay(len(stored), different, tuple(differences))


def _compare(
    book: Book, walk: Walk, seen: Snapshot, row: Any, belief: Any, active: tuple[int, ...], arms: int
) -> list[str]:
    """What differs between a stored decision and the same one made again."""
    state = walk.state_at(seen, belief)
    if arms < belief.arms:  # an arm that settled for others was not visible to this one yet
        belief = grown(book.design.belief, arms)
        state = cut_state(state, arms)
    context = None if row.context is None else np.array(json.loads(row.context))
    time = walk.time_at(seen) + row.position
    again = decide_at(
        book.design.policy, belief, state, active, context, seed=book.design.seed, number=row.number, time=time
    )
    found = []
    for name, was, now in (
        ("arm", row.arm, again.arm),
        ("candidates", row.candidates, again.candidates),
        ("time", row.time, time),
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


def cut_state(state: Any, arms: int) -> Any:
    """Return the state of the first arms only."""
    return type(state)(**{name: getattr(state, name)[:arms].copy() for name in state.__dataclass_fields__})
