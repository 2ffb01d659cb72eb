"""Figure 1's walk: one Bernoulli bandit, played step by step by double sampling."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.bandits import BernoulliBandit
from doublesampling.beliefs import BetaBernoulli
from doublesampling.decision import Decision, decide
from doublesampling.policies import DoubleSampling

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Step:
    """One decision, what it paid, and how often each arm has been played by now."""

    decision: Decision
    reward: float
    played: list[int]


@dataclass(frozen=True, eq=False)
class Illustration:
    """What a walk left behind: float arrays (time, arm), int arrays (time)."""

    bandit: BernoulliBandit
    probability_optimal: FloatArray
    probability_optimal_sd: FloatArray
    candidates: IntArray
    arm: IntArray


def walk(bandit: BernoulliBandit, policy: DoubleSampling, *, steps: int, seed: int) -> Iterator[Step]:
    """Play the bandit from a uniform prior, one step at a time."""
    belief = BetaBernoulli(arms=bandit.arms)
    state = belief.prior()
    for time in range(1, checks.integer("steps", steps, least=1) + 1):
        decision = decide(policy, belief, state, seed=seed, time=time)
        reward = bandit.reward(decision.arm, seed=seed, time=time)
        state = belief.update(state, decision.arm, reward)
        yield Step(decision, reward, state.counts.tolist())


def collect(bandit: BernoulliBandit, steps: list[Step]) -> Illustration:
    """The steps of a walk as arrays."""
    decisions = [step.decision for step in steps]
    return Illustration(
        bandit,
        np.array([d.probability_optimal for d in decisions]),
        np.array([d.probability_optimal_sd for d in decisions]),
        np.array([d.candidates for d in decisions]),
        np.array([d.arm for d in decisions]),
    )
