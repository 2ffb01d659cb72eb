"""What is known of an experiment: a fold over the log, kept for the settled part and topped up for each call.

The state is ``belief.update`` over all outcomes in the order (xid, seq). The first revision of a decision's outcome
gives its place, the latest visible one its value; where that is withdrawn or voided there is no value, and the place
is passed over. Rows below a snapshot's xmin are settled: nothing will ever come before them, so their fold can be
kept. A later revision of something already folded either is exact to take back (sums of whole numbers), or disturbs
the fold, which then begins again from an older one.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from doublesampling.beliefs import BetaBernoulli, BetaState
from doublesampling.errors import SettingError


class Row(NamedTuple):
    """One outcome as the fold reads it."""

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
class Fold:
    """The state after every row below the watermark."""

    watermark: int
    state: Any
    decisions: int = 0
    """How many decisions were made below the watermark, less those voided below it."""


class DisturbedError(Exception):
    """An amendment of something that the fold has already absorbed, at ``place``."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


class Log(Protocol):
    """Where rows and older folds are found."""

    def rows(self, since: int) -> Sequence[Row]:
        """Visible outcomes with xid >= since, in order."""

    def older(self, place: int) -> Fold | None:
        """The latest kept fold whose watermark is at most this."""


def sums_are_exact(belief: Any) -> bool:
    """Whether what was added can be taken back to the last bit: whole numbers on priors of few binary digits."""
    if not isinstance(belief, BetaBernoulli) or belief.fractional or belief.discount < 1.0:
        return False
    priors = np.concatenate([np.ravel(belief.alpha), np.ravel(belief.beta)])
    return bool(((priors * 1024 == np.floor(priors * 1024)) & (priors < 2**30)).all())


def resized(state: Any, belief: Any) -> Any:
    """A state for a belief that has got more arms: they start at its prior."""
    old = state.arms
    if old == belief.arms:
        return state
    new = belief.prior()
    parts = {}
    for part in fields(state):
        was, array = getattr(state, part.name), getattr(new, part.name).copy()
        if array.shape != (belief.arms, *was.shape[1:]) or was.shape[0] != old:
            raise SettingError(f"{type(belief).__name__} shares what it learns between arms, so none can be added.")
        array[:old] = was
        parts[part.name] = array
    return type(state)(**parts)


def extend(belief: Any, fold: Fold, rows: Sequence[Row], watermark: int | None = None) -> Fold:
    """The fold with more rows, all of them from its watermark on; or DisturbedError."""
    if not rows:
        return fold if watermark is None else replace(fold, watermark=watermark)
    values = {row.decision: row.reward for row in rows if row.decision is not None}
    state = fold.state
    for row in rows:
        if row.revision > 1 and row.place < fold.watermark:
            if not sums_are_exact(belief):
                raise DisturbedError(min(r.place for r in rows if r.revision > 1))
            state = _taken_back(state, row)
    firsts = [(row, row.reward if row.decision is None else values[row.decision]) for row in rows if row.revision == 1]
    valued = [(row, reward) for row, reward in firsts if reward is not None]
    state = follow(belief, state, [row for row, _ in valued], [reward for _, reward in valued])
    return Fold(fold.watermark if watermark is None else watermark, state, fold.decisions)


def count_voided(rows: Sequence[Row]) -> int:
    """How many decisions these rows void; each can be voided once."""
    return sum(row.kind == "voided" for row in rows)


def _taken_back(state: BetaState, row: Row) -> BetaState:
    """The state with one value in the place of another; either may be missing."""
    counts, alpha, beta = state.counts.copy(), state.alpha.copy(), state.beta.copy()
    for value, sign in ((row.previous, -1), (row.reward, 1)):
        if value is not None:
            counts[row.arm] += sign
            alpha[row.arm] += sign * value
            beta[row.arm] += sign * (1.0 - value)
    return BetaState(counts, alpha, beta)


def follow(belief: Any, state: Any, rows: Sequence[Row], rewards: Sequence[float]) -> Any:
    """The state after these outcomes one by one: ``belief.update`` repeated, bit for bit."""
    if not rows:
        return state
    arms = np.array([row.arm for row in rows], dtype=np.int64)
    paid = np.array(rewards, dtype=np.float64)
    contexts = None if rows[0].context is None else np.array([json.loads(r.context or "null") for r in rows])
    return belief.update_in_order(state, arms, paid, contexts)


def refold(belief: Any, log: Log, place: int, before: int | None = None) -> Fold:
    """Fold again from an older fold, so old that nothing in it is disturbed."""
    while True:
        start = log.older(place) or Fold(0, belief.prior())
        start = replace(start, state=resized(start.state, belief))
        rows = [row for row in log.rows(start.watermark) if before is None or row.xid < before]
        try:
            return extend(belief, start, rows, before)
        except DisturbedError as again:
            place = min(again.place, start.watermark - 1)
