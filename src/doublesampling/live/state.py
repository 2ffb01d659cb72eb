"""The state of an experiment as one transaction sees it: arms, pause, posterior statistics and counts."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from doublesampling.assignment import Past
from doublesampling.evidence import Played
from doublesampling.live import deciding
from doublesampling.live.design import Design
from doublesampling.live.played import PlayedState
from doublesampling.live.stores.identity import Incarnation
from doublesampling.live.visibility import Snapshot


@dataclass(frozen=True)
class Event:
    """A change of the experiment itself: pause, resume, drop_arm, add_arm, history or look."""

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
    looks: tuple[dict[str, Any], ...] = ()
    """The content of every look, in order."""
    history: int = 0
    """Outcomes from before the experiment."""


def apply_events(design: Design, events: Iterable[Event]) -> ArmStatus:
    """Return the arms, the active arms, the pause flag and the looks after the given events."""
    arms, dropped, paused, history = list(design.arms), set(), False, 0
    looks: list[dict[str, Any]] = []
    for event in events:
        if event.kind == "add_arm":
            arms.append(event.content["arm"])
        elif event.kind == "drop_arm":
            dropped.add(event.content["arm"])
        elif event.kind in ("pause", "resume"):
            paused = event.kind == "pause"
        elif event.kind == "history":
            history += int(event.content["count"])
        elif event.kind == "look":
            looks.append(event.content)
            dropped.update(event.content["dropped"] if event.content["enforced"] else ())
    active = tuple(i for i, name in enumerate(arms) if name not in dropped)
    return ArmStatus(tuple(arms), active, paused, tuple(looks), history)


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
    looks: tuple[dict[str, Any], ...] = ()
    """The content of every look, in order."""
    history: int = 0
    """Outcomes from before the experiment, which are part of ``belief_state``."""

    @property
    def basis(self) -> deciding.Known:
        """What the next decision or look is made from."""
        return deciding.Known(self.arms, self.active, self.looks, self.belief, self.belief_state, self.played)

    @property
    def outcomes(self) -> int:
        """The decisions whose outcome is known."""
        return int(self.belief_state.observations) - self.history

    @property
    def stopped(self) -> str | None:
        """Why a look ended the experiment; None where none did."""
        last = self.looks[-1] if self.looks else None
        return last["reason"] if last is not None and last["enforced"] and last["outcome"] != "continue" else None

    @property
    def status(self) -> Literal["running", "paused", "stopped"]:
        """Whether decisions can be made: stopped after a look that ended the experiment, paused, or running."""
        return "stopped" if self.stopped is not None else "paused" if self.paused else "running"

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
