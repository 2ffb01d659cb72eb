"""What was played and paid so far, as policies of one's own may see it, kept beside the belief's state.

Policies of this package decide from the belief's state alone. For any other policy the fold over the log also keeps
sums of rewards and the last reward of each arm, so that a decision can be replayed from exactly what it saw.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.errors import StateError
from doublesampling.evidence import Played
from doublesampling.live.design import Design, resize_belief
from doublesampling.live.own_classes import is_own

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PlayedState:
    """The belief's state, and per arm the sum of its rewards, its last reward, and the position of that in the log."""

    inner: Any
    sums: FloatArray
    latest: FloatArray
    """The reward of the arm's last decision that has an outcome; 0 where there is none."""
    positions: IntArray
    """Its position among all outcomes, from 1; 0 where there is none. Imported history has no decisions."""

    @property
    def counts(self) -> IntArray:
        """Observations per arm."""
        found: IntArray = self.inner.counts
        return found

    @property
    def observations(self) -> int:
        """The number of rewards, over all arms."""
        return int(self.inner.observations)

    def to_json(self) -> str:
        """Return the state as JSON text."""
        arrays = {name: getattr(self, name).tolist() for name in ("sums", "latest", "positions")}
        return json.dumps({"belief": self.inner.to_json(), **arrays})

    def updated(self, inner: Any, arms: list[int], rewards: list[float], decided: list[bool]) -> "PlayedState":
        """Return the state after these outcomes, in order; ``decided`` is False for imported history."""
        sums, latest, positions = self.sums.copy(), self.latest.copy(), self.positions.copy()
        first = self.observations + 1
        for position, (arm, reward, own) in enumerate(zip(arms, rewards, decided, strict=True), first):
            sums[arm] += reward
            if own:
                latest[arm], positions[arm] = reward, position
        return PlayedState(inner, sums, latest, positions)

    def resized(self, inner: Any) -> "PlayedState":
        """Return the state for another number of arms; added arms have not been played."""
        size, kept = inner.counts.size, min(self.sums.size, inner.counts.size)
        parts = [np.zeros(size, dtype=part.dtype) for part in (self.sums, self.latest, self.positions)]
        for part, old in zip(parts, (self.sums, self.latest, self.positions), strict=True):
            part[:kept] = old[:kept]
        return PlayedState(inner, *parts)

    def played(self, active: tuple[int, ...]) -> Played:
        """Return what a policy may see, for the active arms only and counted among them."""
        arms = list(active)
        positions = self.positions[arms]
        last = int(np.argmax(positions))
        paid = (last, float(self.latest[arms[last]])) if positions[last] > 0 else None
        return Played(self.counts[arms].astype(np.int64), self.sums[arms], paid)


@dataclass(frozen=True)
class PlayedBelief:
    """A belief whose states also hold what was played."""

    inner: Any

    @property
    def arms(self) -> int:
        """The number of arms."""
        return int(self.inner.arms)

    def prior(self) -> PlayedState:
        """Return the state before any observation."""
        empty = np.zeros(self.arms)
        return PlayedState(self.inner.prior(), empty, empty.copy(), np.zeros(self.arms, dtype=np.int64))

    def resized(self, arms: int) -> "PlayedBelief":
        """Return the belief with this number of arms."""
        return PlayedBelief(resize_belief(self.inner, arms))

    def state_from_json(self, text: str | bytes) -> PlayedState:
        """Return the state that ``to_json`` wrote."""
        try:
            content = json.loads(text)
            sums, latest = (np.array(content[name], dtype=np.float64) for name in ("sums", "latest"))
            positions, inner = np.array(content["positions"], dtype=np.int64), content["belief"]
        except (ValueError, TypeError, KeyError):
            raise StateError("This JSON does not hold a PlayedState.") from None
        if not sums.shape == latest.shape == positions.shape == (self.arms,):
            raise StateError(f"sums, latest and positions must have shape ({self.arms},), got {sums.shape}.")
        return PlayedState(self.inner.state_from_json(inner), sums, latest, positions)


def fold_belief(design: Design) -> Any:
    """Return the belief whose states are folded over the log: the design's own, or with what was played."""
    return PlayedBelief(design.belief) if is_own(design.policy) else design.belief


def split(belief: Any, state: Any, active: tuple[int, ...]) -> tuple[Any, Any, Played | None]:
    """Return the belief, its state, and what was played where the fold keeps it."""
    if isinstance(belief, PlayedBelief):
        return belief.inner, state.inner, state.played(active)
    return belief, state, None
