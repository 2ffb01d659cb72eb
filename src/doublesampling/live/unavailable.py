"""Placeholders for a stored belief or policy whose class is not imported in this process."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from doublesampling.errors import DoubleSamplingError

IntArray = NDArray[np.int64]


class NotImportedError(DoubleSamplingError, ImportError):
    """The class of a belief or policy is not imported: it is not allowed, not installed, or has changed."""

    code = "not-imported"


@dataclass(frozen=True)
class Unavailable:
    """Where a class would be imported from, its settings, and why it was not imported."""

    reference: str
    """``module:qualname``."""
    settings: Mapping[str, Any]
    reason: str

    def refuse(self) -> NoReturn:
        """Raise the error that says why the class was not imported, and what to do."""
        raise NotImportedError(self.reason)

    def __repr__(self) -> str:
        return f"{show_call(self.reference, self.settings)} (not imported)"


def show_call(name: str, settings: Mapping[str, Any]) -> str:
    """Return a class and its settings as they would be typed.

    >>> show_call("Commit", {"each": 5})
    'Commit(each=5)'
    """
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"


class UnavailablePolicy(Unavailable):
    """A policy that cannot decide here."""

    def choose(self, evidence: Any) -> NoReturn:
        """Raise NotImportedError."""
        self.refuse()


@dataclass(frozen=True, eq=False)
class CountState:
    """The observations per arm: all that is known without the belief."""

    counts: IntArray
    belief: "UnavailableBelief"

    @property
    def observations(self) -> int:
        """The number of rewards, over all arms."""
        return int(self.counts.sum())

    def to_json(self) -> NoReturn:
        """Raise NotImportedError: these counts must not be stored as the belief's state."""
        self.belief.refuse()


@dataclass(frozen=True, repr=False)
class UnavailableBelief(Unavailable):
    """A belief that cannot learn here. It counts outcomes, so that the status of an experiment can still be read."""

    arms: int = 0
    dimension: int | None = field(default=None, init=False)
    binary: bool = field(default=False, init=False)

    def prior(self) -> CountState:
        """Return the counts before any observation."""
        return CountState(np.zeros(self.arms, dtype=np.int64), self)

    def count(self, state: CountState, arms: IntArray) -> CountState:
        """Return the counts after these observations."""
        return replace(state, counts=state.counts + np.bincount(arms, minlength=self.arms))

    def resized(self, arms: int) -> "UnavailableBelief":
        """Return the placeholder of a belief with this number of arms."""
        return replace(self, arms=arms)

    def check_reward(self, reward: object) -> NoReturn:
        """Raise NotImportedError."""
        self.refuse()

    def update_batch(self, *arguments: Any) -> NoReturn:
        """Raise NotImportedError."""
        self.refuse()

    def marginals(self, *arguments: Any) -> NoReturn:
        """Raise NotImportedError."""
        self.refuse()

    def state_from_json(self, text: str | bytes) -> NoReturn:
        """Raise NotImportedError."""
        self.refuse()
