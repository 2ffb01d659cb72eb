"""Policies and beliefs as a user might write them, in a module that other processes can import."""

from dataclasses import dataclass
from typing import Any

import numpy as np

import doublesampling as ds


class Commit:
    """Explore each arm a few times, then play the best mean; it answers with an arm."""

    def __init__(self, each: int = 2) -> None:
        self.each = each

    def choose(self, evidence: Any) -> int:
        """The least played until all have been played enough, then the best mean."""
        if evidence.counts.min() < self.each:
            return int(np.argmin(evidence.counts))
        return int(np.argmax(evidence.sums / evidence.counts))


@dataclass
class Softmax:
    """Boltzmann exploration of the mean rewards, with a bonus for the arm that paid last; answers probabilities."""

    temperature: float = 0.5
    bonus: float = 0.3

    def choose(self, evidence: Any) -> Any:
        """Weights from counts, sums and the last reward."""
        values = evidence.sums / np.maximum(evidence.counts, 1)
        if evidence.last is not None:
            arm, reward = evidence.last
            values[arm] += self.bonus * reward
        if evidence.context is not None:
            values = values + 0.1 * evidence.context.sum() * np.arange(evidence.arms)
        weights = np.exp((values - values.max()) / self.temperature)
        return weights / weights.sum()


@dataclass
class Forgetful:
    """It counts its own decisions, which a live experiment does not let it keep."""

    calls: int = 0

    def choose(self, evidence: Any) -> int:
        """The first arm at the first call, else the second."""
        self.calls += 1
        return 0 if self.calls == 1 else 1


class Witness:
    """It writes down what it is shown."""

    seen: list[Any] = []  # noqa: RUF012 - shared by every object, so that a test can read it

    def choose(self, evidence: Any) -> int:
        """The first arm."""
        self.seen.append((evidence.counts.tolist(), evidence.sums.tolist(), evidence.last))
        return 0


class Counting(ds.OwnBelief):
    """Beta laws, as a user might write them."""

    binary = True

    def __init__(self, arms: int, start_at: float = 1.0) -> None:
        self.arms, self.start_at = arms, start_at

    def start(self) -> Any:
        """The same for every arm."""
        return [[self.start_at, self.start_at] for _ in range(self.arms)]

    def learn(self, value: Any, arm: int, reward: float, context: Any) -> Any:
        """One more win or loss."""
        wins, losses = value[arm]
        return [*value[:arm], [wins + reward, losses + 1 - reward], *value[arm + 1 :]]

    def draws(self, value: Any, context: Any, samples: int, rng: np.random.Generator) -> Any:
        """From NumPy's generator."""
        wins, losses = np.array(value, dtype=float).T
        return rng.beta(wins, losses, (samples, self.arms))


class Growing(Counting):
    """The same, and arms can be added; it changes its values in place, which a live experiment must survive."""

    def learn(self, value: Any, arm: int, reward: float, context: Any) -> Any:
        """In place."""
        value[arm][0 if reward else 1] += 1.0
        return value

    def resized(self, arms: int) -> "Growing":
        """With other arms."""
        return Growing(arms, self.start_at)


class Sloped(ds.OwnBelief):
    """It learns a mean per arm, and shifts it by the context."""

    dimension = 1

    def __init__(self, arms: int) -> None:
        self.arms = arms

    def start(self) -> Any:
        """Sums and counts."""
        return {"sums": [0.0] * self.arms, "counts": [1] * self.arms}

    def learn(self, value: Any, arm: int, reward: float, context: Any) -> Any:
        """Of what the context does not explain."""
        value["sums"][arm] += reward - float(context[0])
        value["counts"][arm] += 1
        return value

    def draws(self, value: Any, context: Any, samples: int, rng: np.random.Generator) -> Any:
        """Normal laws."""
        counts = np.array(value["counts"])
        return rng.normal(
            np.array(value["sums"]) / counts + context[0] * np.arange(self.arms), 1 / counts, (samples, self.arms)
        )


class Spoiling(Counting):
    """Its draws change the value that they are given, which they must not; a live experiment survives it."""

    def draws(self, value: Any, context: Any, samples: int, rng: np.random.Generator) -> Any:
        """And a hundred wins for the first arm."""
        found = super().draws(value, context, samples, rng)
        value[0][0] += 100.0
        return found
