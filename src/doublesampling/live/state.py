"""The state of an experiment as one transaction sees it: arms, pause, posterior statistics and counts."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from doublesampling.assignment import Past
from doublesampling.evidence import Played
from doublesampling.live import deciding
from doublesampling.live.design import Design
from doublesampling.live.played import PlayedState
from doublesampling.live.stores.identity import Incarnation
from doublesampling.live.visibility import Snapshot


@dataclass(frozen=True)
class Event:
    """A change of the experiment itself: pause, resume, drop_arm, add_arm or history."""

    xid: int
    revision: int
    kind: str
    content: dict[str, Any]


class ArmStatus(NamedTuple):
    """The arms of an experiment after some events."""

    arms: tuple[str, ...]
    """Names of all arms that the experiment ever had."""
    active: tuple[int, ...]
    """Indices of the arms that were not dropped."""
    paused: bool


def apply_events(design: Design, events: Iterable[Event]) -> ArmStatus:
    """Return the arms, the active arms and the pause flag after the given events."""
    arms, dropped, paused = list(design.arms), set(), False
    for event in events:
        if event.kind == "add_arm":
            arms.append(event.content["arm"])
        elif event.kind == "drop_arm":
            dropped.add(event.content["arm"])
        elif event.kind in ("pause", "resume"):
            paused = event.kind == "pause"
    return ArmStatus(tuple(arms), tuple(i for i, name in enumerate(arms) if name not in dropped), paused)


@dataclass(frozen=True)
class ExperimentState:
    """Everything that a decision may use, read from one snapshot of the store."""

    arms: tuple[str, ...]
    active: tuple[int, ...]
    paused: bool
    belief: Any
    belief_state: Any
    """The posterior statistics: the belief's state after every visible outcome."""
    decisions: int
    """Visible decisions, without the voided ones."""
    snapshot: Snapshot
    events: int
    incarnation: Incarnation
    played_state: PlayedState | None = None
    """What was played so far, kept for policies of one's own."""
    past: Past | None = None
    """The decisions so far, where the next one depends on their arms: an allocation with a burn-in or blocks."""

    @property
    def played(self) -> Played | None:
        """Counts, sums and last reward of the active arms, for policies of one's own; None for other policies."""
        return None if self.played_state is None else self.played_state.played(self.active)

    @property
    def state(self) -> Any:
        """The former name of ``belief_state``."""
        return self.belief_state

    @property
    def version(self) -> str:
        """A text that changes with every write and every restore."""
        return f"{self.incarnation.tag}-{self.snapshot}"

    @cached_property
    def digest(self) -> str:
        """The SHA-256 digest of the posterior statistics and the active arms."""
        return deciding.digest(self.played_state or self.belief_state, self.active)
