"""Measure how often the intervals of ``off_policy.evaluate`` cover the truth on logs of our own policies.

``python benchmarks/replay_coverage.py``, about half an hour on two cores; ``--logs 50`` is a rehearsal.
"""

import argparse
import datetime
import math
import os
import platform
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import doublesampling as ds
from doublesampling import off_policy
from doublesampling.evidence import Evidence
from doublesampling.logs import Log
from doublesampling.policies import Choice

ARMS = (0.4, 0.5, 0.6)
ROWS = 500
ESTIMATES = ("ips", "dr", "replay")


class Uniform:
    """Play every arm with the same probability."""

    def choose(self, evidence: Evidence) -> Choice:
        """Draw the arm at the decision's own address."""
        arms = evidence.expected_rewards().size
        arm = int(np.random.default_rng([int(word) for word in evidence.words]).integers(arms))
        equal = np.full(arms, 1.0 / arms)
        return Choice(arm, equal, 1, np.eye(arms, dtype=np.int64)[arm], equal)

    def __repr__(self) -> str:
        return "uniform"


class Always:
    """Play one arm."""

    def __init__(self, arm: int) -> None:
        self.arm = arm

    def choose(self, evidence: Evidence) -> Choice:
        """Return the arm, for sure."""
        votes = np.eye(evidence.expected_rewards().size, dtype=np.int64)[self.arm]
        return Choice(self.arm, votes.astype(float), 1, votes, votes.astype(float))


class Floored:
    """A policy with an additive floor under its propensities."""

    def __init__(self, policy: Any, floor: float) -> None:
        self.policy, self.floor = policy, floor

    def choose(self, evidence: Evidence) -> Choice:
        """Draw the arm at the decision's own address from the raised propensities."""
        found: Choice = self.policy.choose(evidence)
        raised = self.floor + (1.0 - found.propensities.size * self.floor) * found.propensities
        u = np.random.default_rng([int(word) for word in evidence.words]).random()
        arm = int(min((raised.cumsum() < u).sum(), raised.size - 1))
        return Choice(arm, found.probability_optimal, 1, np.eye(raised.size, dtype=np.int64)[arm], raised)


class Recorded:
    """A policy that keeps what it expected to earn: propensities times true means, by the number of the decision."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy
        self.runs: list[dict[int, float]] = []

    def choose(self, evidence: Evidence) -> Choice:
        """Decide as the policy does."""
        choice: Choice = self.policy.choose(evidence)
        if evidence.time == 1 and (not self.runs or len(self.runs[-1]) > 1):  # evaluate walks the log twice
            self.runs.append({})
        self.runs[-1][evidence.time] = float(choice.propensities @ np.array(ARMS))
        return choice

    def __deepcopy__(self, memo: dict[int, Any]) -> "Recorded":
        return self  # evaluate plays copies of other people's policies; this one keeps no state but its notes


LOGGERS: dict[str, Any] = {
    "double sampling, horizon": ds.DoubleSampling(horizon=ROWS),
    "double sampling, horizon, floor 0.05": Floored(ds.DoubleSampling(horizon=ROWS), 0.05),
    "Thompson sampling": ds.ThompsonSampling(),
    "Thompson sampling, floor 0.05": Floored(ds.ThompsonSampling(), 0.05),
    "uniform": Uniform(),
}
TARGETS: dict[str, Any] = {
    "uniform": Uniform(),
    "the worst arm": Always(0),
    "Thompson sampling": ds.ThompsonSampling(),
    "double sampling": ds.DoubleSampling(),
    "double sampling, horizon": ds.DoubleSampling(horizon=ROWS),
}


def make_log(policy: Any, seed: int) -> Log:
    """Let a policy play the bandit and keep its propensities."""
    rng = np.random.default_rng([11, seed])
    belief = ds.BetaBernoulli(arms=len(ARMS))
    state = belief.prior()
    arms, rewards, propensities = [], [], []
    for row in range(ROWS):
        decision = ds.decide(policy, belief, state, seed=seed, time=row + 1)
        reward = float(rng.random() < ARMS[decision.arm])
        state = belief.update(state, decision.arm, reward)
        arms.append(decision.arm)
        rewards.append(reward)
        propensities.append(decision.propensities)
    # names as they sort, also where an arm was never played
    index, every = np.array(arms), np.array(propensities)
    return Log(tuple("abc"), index, np.array(rewards), every[np.arange(ROWS), index], shares=every)


def judge(job: tuple[str, int]) -> list[tuple[str, str, float, float, float, int]]:
    """(target, estimate, truth, low, high, rows) of one log, for every target."""
    logger, seed = job
    log = make_log(LOGGERS[logger], seed)
    found = []
    for name, target in TARGETS.items():
        recorded = Recorded(target)
        result = off_policy.evaluate(recorded, log, seed=seed + 10**6)
        for estimate in ESTIMATES:
            worth = getattr(result, estimate)
            run = recorded.runs[1] if estimate == "replay" else recorded.runs[0]
            # what the target was expected to earn in the very decisions that are averaged
            earned = [run[k] for k in range(1, worth.rows + 1)]
            truth = math.fsum(earned) / len(earned) if earned else math.nan
            found.append((name, estimate, truth, worth.low, worth.high, worth.rows))
    return found


def main() -> None:
    """Print the coverage of each target, logging policy and estimate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=500)
    parser.add_argument("--logger", nargs="+", default=list(LOGGERS), choices=list(LOGGERS))
    options = parser.parse_args()
    logs = options.logs
    today = f"{datetime.date.today():%Y-%m-%d}"
    print(f"{today}, {platform.machine()}, {os.cpu_count()} cores: {logs} logs of {ROWS} decisions, arms {ARMS}\n")
    print("Share of 95 % intervals that hold the target's expected reward; in brackets the share of logs with one.\n")
    print("| logged by | target | ips | dr | rejection replay | rows it accepted, median (5 % to 95 %) |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for logger in options.logger:
            found = [row for rows in pool.map(judge, [(logger, seed) for seed in range(logs)]) for row in rows]
            for target in TARGETS:
                cells = []
                for estimate in ESTIMATES:
                    mine = np.array([row[2:] for row in found if row[0] == target and row[1] == estimate])
                    given = np.isfinite(mine[:, 1])
                    truth, low, high = mine[given, :3].T
                    share = f" ({given.mean():.0%})" if not given.all() else ""
                    held = f"{((low <= truth) & (truth <= high)).mean():.1%}" if given.any() else "no interval"
                    cells.append(f"{held}{share}")
                rows = np.array([row[5] for row in found if row[0] == target and row[1] == "replay"])
                low, middle, high = np.percentile(rows, [5, 50, 95])
                print(
                    f"| {logger} | {target} | {' | '.join(cells)} | {middle:.0f} ({low:.0f} to {high:.0f}) |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
