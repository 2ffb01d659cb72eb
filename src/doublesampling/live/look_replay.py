"""Replay of looks: make every stored look again from the log, and compare."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from doublesampling.live.checkpoints import OutcomeRow, truncate_state
from doublesampling.live.deciding import Known, digest
from doublesampling.live.design import Design, resize_belief
from doublesampling.live.looking import Content, is_due, look_content
from doublesampling.live.played import fold_belief, split
from doublesampling.live.state import ArmStatus, Event, apply_events
from doublesampling.live.visibility import Snapshot

_CLOSE = 1e-9  # machines may round the last digits of a probability differently


class Replayer(Protocol):
    """The log, and the state at one snapshot after another."""

    outcomes: list[OutcomeRow]

    def rows(self, since: int) -> Sequence[OutcomeRow]:
        """Return the outcomes that the current snapshot sees."""

    def checkpoint_before(self, place: int) -> Any:
        """Return an earlier state."""

    def state_at(self, seen: Snapshot, belief: Any) -> Any:
        """Return the belief's state in a snapshot."""

    def time_at(self, seen: Snapshot) -> int:
        """Return the number of the next decision in a snapshot, without voided ones."""


def replay_looks(design: Design, events: Sequence[Event], replayer: Replayer) -> Iterator[tuple[Content, list[str]]]:
    """Yield every stored look with what differs when it is made again."""
    fold = fold_belief(design)
    most = len(apply_events(design, events).arms)
    for event in [e for e in events if e.kind == "look"]:
        seen = Snapshot.parse(event.content["snapshot"])
        status = apply_events(design, [e for e in events if seen.sees(e.xid) and e.revision < event.revision])
        belief = resize_belief(fold, len(status.arms))
        state = truncate_state(replayer.state_at(seen, resize_belief(fold, most)), belief, replayer)
        counted = (_imported(replayer, seen), replayer.time_at(seen))
        yield event.content, _differences(design, event.content, status, belief, state, counted)


def _imported(replayer: Replayer, seen: Snapshot) -> list[int]:
    """Return the arms of the outcomes from before the experiment that a snapshot sees."""
    return [row.arm for row in replayer.outcomes if row.decision is None and seen.sees(row.xid)]


def _differences(
    design: Design, stored: Content, status: ArmStatus, belief: Any, state: Any, counted: tuple[list[int], int]
) -> list[str]:
    """Return what differs between a stored look and the same look made again.

    ``counted`` are the arms of imported outcomes, and the number of the next decision.
    """
    if design.stopping is None:
        return ["the design has no stopping rule"]
    inner, belief_state, played = split(belief, state, status.active)
    counts = belief_state.counts - np.bincount(counted[0], minlength=len(status.arms))
    found = []
    if not is_due(design.stopping, status.looks, int(counts.sum())):
        found.append(f"it was not due at {int(counts.sum())} outcomes")
    known = Known(status.arms, status.active, status.looks, inner, belief_state, played)
    again = look_content(design, known, counts, counted[1])
    again["digest"] = digest(state, status.active)
    for name, now in again.items():
        if name != "reason" and not _same(stored.get(name), now):
            found.append(f"{name} stored {stored.get(name)}, recomputed {now}")
    return found


def _same(was: Any, now: Any) -> bool:
    """Return whether two values of a look are equal, up to the rounding of probabilities."""
    if isinstance(was, dict) and isinstance(now, dict):
        return was.keys() == now.keys() and all(_same(was[name], now[name]) for name in was)
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(map(_same, was, now))
    if isinstance(was, float) and isinstance(now, float):
        return math.isclose(was, now, rel_tol=_CLOSE, abs_tol=1e-9)
    return bool(was == now)
