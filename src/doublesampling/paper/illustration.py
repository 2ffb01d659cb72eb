"""Figure 1's walk: one Bernoulli bandit, played step by step by double sampling."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from doublesampling import checks
from doublesampling.bandits import BernoulliBandit
from doublesampling.beliefs import BetaBernoulli
from doublesampling.decision import Decision, decide
from doublesampling.policies import DoubleSampling

if TYPE_CHECKING:
    import xarray as xr


@dataclass(frozen=True)
class Step:
    """One decision, what it paid, and how often each arm has been played by now."""

    decision: Decision
    reward: float
    played: list[int]


def walk(bandit: BernoulliBandit, policy: DoubleSampling, *, steps: int, seed: int) -> Iterator[Step]:
    """Play the bandit from a uniform prior, one step at a time."""
    belief = BetaBernoulli(arms=bandit.arms)
    state = belief.prior()
    for time in range(1, checks.integer("steps", steps, least=1) + 1):
        decision = decide(policy, belief, state, seed=seed, time=time)
        reward = bandit.reward(decision.arm, seed=seed, time=time)
        state = belief.update(state, decision.arm, reward)
        yield Step(decision, reward, state.counts.tolist())


def collect(bandit: BernoulliBandit, steps: list[Step]) -> "xr.Dataset":
    """The steps of a walk: what figure 1 draws."""
    import xarray as xr  # only for those who draw: the terminal does not wait for it

    decisions = [step.decision for step in steps]
    return xr.Dataset(
        {
            "probability_optimal": (("time", "arm"), np.array([d.probability_optimal for d in decisions])),
            "probability_optimal_sd": (("time", "arm"), np.array([d.probability_optimal_sd for d in decisions])),
            "candidates": ("time", np.array([d.candidates for d in decisions])),
            "arm_played": ("time", np.array([d.arm for d in decisions])),
        },
        coords={"time": np.arange(1, len(steps) + 1)},
        attrs={"theta": np.array(bandit.probabilities)},
    )


def summarize(data: "xr.Dataset") -> "xr.Dataset":
    """The same from a simulation that kept its trajectories: its first realization, and N over all of them."""
    import xarray as xr

    kept = data.isel(bandit=0, policy=0)
    p = kept.trajectory_probability_optimal.values[0]
    candidates = kept.trajectory_candidates.values
    return xr.Dataset(
        {
            "probability_optimal": (("time", "arm"), p),
            "probability_optimal_sd": (("time", "arm"), np.sqrt(p * (1.0 - p))),
            "candidates": ("time", candidates[0].astype(np.int64)),
            "arm_played": ("time", kept.trajectory_arm.values[0].astype(np.int64)),
            "candidates_median": ("time", np.median(candidates, axis=0)),
            "one_candidate_rate": ("time", (candidates <= 1.0).mean(axis=0)),
        },
        coords={"time": data.time.values},
        attrs={"realizations": candidates.shape[0]},
    )
