"""Checkpoints: posterior statistics after a prefix of the outcome log, and how to extend or rebuild them.

The belief's state is ``belief.update`` over all outcomes in the order (xid, seq). The first revision of a decision's
outcome determines its position in that order, the latest visible revision its value. A withdrawn or voided outcome has
no value and is skipped. Rows below a snapshot's ``xmin`` are settled: no row can appear before them any more, so the
state after them can be stored as a checkpoint. A later revision of an outcome inside a checkpoint is applied in place
where that is exact (sums of whole numbers). Otherwise the checkpoint is stale, and the state is rebuilt from an older
one. States of a belief of one's own with another number of arms are rebuilt from the start of the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from doublesampling.beliefs import BetaBernoulli, BetaState, JointState, OwnBelief, OwnState
from doublesampling.errors import SettingError
from doublesampling.live.contexts import context_from_json, contexts_from_json
from doublesampling.live.own_classes import own_code
from doublesampling.live.played import PlayedBelief, PlayedState
from doublesampling.live.unavailable import CountState, UnavailableBelief
from doublesampling.live.visibility import Snapshot


class OutcomeRow(NamedTuple):
    """One revision of an outcome, with the columns that determine the state."""

    xid: int
    seq: int
    decision: str | None
    revision: int
    kind: str
    arm: int
    reward: float | None
    previous: float | None
    place: int
    context: str | None


@dataclass(frozen=True)
class Checkpoint:
    """The belief's state after every row with ``xid`` below the watermark."""

    watermark: int
    state: Any
    decisions: int = 0
    """Decisions below the watermark, without those voided below it."""


class StaleCheckpointError(Exception):
    """A revision changes an outcome that the checkpoint already contains, first told in transaction ``place``."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class OutcomeLog(Protocol):
    """A source of outcome rows and of older checkpoints."""

    def rows(self, since: int) -> Sequence[OutcomeRow]:
        """Return the visible outcomes with ``xid >= since``, in order."""

    def checkpoint_before(self, place: int) -> Checkpoint | None:
        """Return the latest checkpoint whose watermark is at most ``place``."""


def is_exactly_reversible(belief: Any) -> bool:
    """Return whether an outcome can be subtracted from the state without rounding.

    True for sums of whole numbers on priors with few binary digits.
    """
    if not isinstance(belief, BetaBernoulli) or belief.fractional or belief.discount < 1.0:
        return False
    priors = np.concatenate([np.ravel(belief.alpha), np.ravel(belief.beta)])
    return bool(((priors * 1024 == np.floor(priors * 1024)) & (priors < 2**30)).all())


def resize_state(state: Any, belief: Any) -> Any:
    """Return the state for a belief that may have more arms; added arms start at the prior.

    Raise StaleCheckpointError for a belief of one's own: only the whole log tells what it would know with more arms.
    """
    old = state.counts.size
    if old == belief.arms:
        return state
    if isinstance(state, PlayedState):
        return state.resized(resize_state(state.inner, belief.inner))
    if isinstance(state, OwnState):
        raise StaleCheckpointError(0)
    if isinstance(state, JointState):
        return state.resized(belief.prior())
    if isinstance(state, CountState):
        return CountState(np.pad(state.counts, (0, belief.arms - old)), belief)
    new = belief.prior()
    parts = {}
    for part in fields(state):
        was, array = getattr(state, part.name), getattr(new, part.name).copy()
        if array.shape != (belief.arms, *was.shape[1:]) or was.shape[0] != old:
            raise SettingError(f"{type(belief).__name__} shares what it learns between arms, so none can be added.")
        array[:old] = was
        parts[part.name] = array
    return type(state)(**parts)


def truncate_state(state: Any, belief: Any, log: "OutcomeLog") -> Any:
    """Return the state for a belief that may have fewer arms; the log holds what the state contains."""
    if state.counts.size == belief.arms:
        return state
    if isinstance(state, PlayedState):
        return state.resized(truncate_state(state.inner, belief.inner, log))
    if isinstance(state, OwnState):
        return rebuild(belief, log, 0).state
    if isinstance(state, JointState):
        return state.resized(belief.prior())
    return type(state)(**{name: getattr(state, name)[: belief.arms].copy() for name in state.__dataclass_fields__})


def extend(belief: Any, checkpoint: Checkpoint, rows: Sequence[OutcomeRow], watermark: int | None = None) -> Checkpoint:
    """Return the checkpoint extended by rows from its watermark on; raise StaleCheckpointError where it is stale."""
    if not rows:
        return checkpoint if watermark is None else replace(checkpoint, watermark=watermark)
    values = {row.decision: row.reward for row in rows if row.decision is not None}
    state = checkpoint.state
    for row in rows:
        if row.revision > 1 and row.place < checkpoint.watermark:
            if not is_exactly_reversible(belief):
                raise StaleCheckpointError(min(r.place for r in rows if r.revision > 1))
            state = _replace_reward(state, row)
    firsts = [(row, row.reward if row.decision is None else values[row.decision]) for row in rows if row.revision == 1]
    valued = [(row, reward) for row, reward in firsts if reward is not None]
    state = update_in_order(belief, state, [row for row, _ in valued], [reward for _, reward in valued])
    return Checkpoint(checkpoint.watermark if watermark is None else watermark, state, checkpoint.decisions)


def count_voided(rows: Sequence[OutcomeRow]) -> int:
    """Return how many decisions these rows void; a decision is voided at most once."""
    return sum(row.kind == "voided" for row in rows)


def _replace_reward(state: BetaState, row: OutcomeRow) -> BetaState:
    """Return the state with the previous reward of a row replaced by its new one; either may be missing."""
    counts, alpha, beta = state.counts.copy(), state.alpha.copy(), state.beta.copy()
    for value, sign in ((row.previous, -1), (row.reward, 1)):
        if value is not None:
            counts[row.arm] += sign
            alpha[row.arm] += sign * value
            beta[row.arm] += sign * (1.0 - value)
    return BetaState(counts, alpha, beta)


def update_in_order(belief: Any, state: Any, rows: Sequence[OutcomeRow], rewards: Sequence[float]) -> Any:
    """Return the state after these outcomes, equal to repeated ``belief.update`` bit for bit."""
    if not rows:
        return state
    if isinstance(belief, PlayedBelief):
        inner = update_in_order(belief.inner, state.inner, rows, rewards)
        decided = [row.decision is not None for row in rows]
        return state.updated(inner, [row.arm for row in rows], list(rewards), decided)
    if isinstance(belief, OwnBelief):
        return _update_own(belief, state, rows, rewards)
    arms = np.array([row.arm for row in rows], dtype=np.int64)
    if isinstance(belief, UnavailableBelief):
        return belief.count(state, arms)
    paid = np.array(rewards, dtype=np.float64)
    return belief.update_in_order(state, arms, paid, contexts_from_json([row.context for row in rows]))


def _update_own(belief: OwnBelief, state: OwnState, rows: Sequence[OutcomeRow], rewards: Sequence[float]) -> OwnState:
    """Return the state of a belief of one's own after these outcomes.

    Each value goes through JSON, so that ``learn`` gets the same value whether a checkpoint was stored before it or
    not, and cannot change a state that is cached.
    """
    with own_code(belief):
        for row, reward in zip(rows, rewards, strict=True):
            context = context_from_json(row.context)
            state = belief.update(belief.state_from_json(state.to_json()), row.arm, reward, context)
        return belief.state_from_json(state.to_json())


def rebuild(belief: Any, log: OutcomeLog, place: int, before: int | None = None) -> Checkpoint:
    """Return the checkpoint recomputed from the latest stored one that is old enough not to be stale."""
    while True:
        start = log.checkpoint_before(place) or Checkpoint(0, belief.prior())
        rows = [row for row in log.rows(start.watermark) if before is None or row.xid < before]
        try:
            return extend(belief, replace(start, state=resize_state(start.state, belief)), rows, before)
        except StaleCheckpointError as again:
            place = min(again.place, start.watermark - 1)


class Folded(NamedTuple):
    """The result of folding a log up to a snapshot."""

    checkpoint: Checkpoint
    """The state after the settled rows; its ``decisions`` are those of the start."""
    state: Any
    """The state after every visible row."""
    settled: Sequence[OutcomeRow]
    unsettled: Sequence[OutcomeRow]
    stale_from: int | None
    """Checkpoints with a higher watermark than this turned out stale; None where none did."""


def fold_to_snapshot(belief: Any, log: OutcomeLog, start: Checkpoint, snapshot: Snapshot) -> Folded:
    """Return the state that a snapshot sees, starting from a checkpoint at or below its ``xmin``."""
    rows = log.rows(start.watermark)
    cut = next((i for i, row in enumerate(rows) if row.xid >= snapshot.xmin), len(rows))
    settled, unsettled, stale_from = rows[:cut], rows[cut:], None
    try:
        checkpoint = extend(belief, replace(start, state=resize_state(start.state, belief)), settled, snapshot.xmin)
    except StaleCheckpointError as amended:
        stale_from = amended.place
        checkpoint = rebuild(belief, log, amended.place, snapshot.xmin)
    try:
        state = extend(belief, checkpoint, unsettled).state
    except StaleCheckpointError as amended:
        state = rebuild(belief, log, amended.place).state
    return Folded(checkpoint, state, settled, unsettled, stale_from)
