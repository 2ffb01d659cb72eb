"""Measure how often off-policy intervals of policies that never change hold the truth on adaptive logs.

``python -m benchmarks.coverage_fixed``, about a minute. Scores use running means of the arms; logs are simulated by
benchmarks/coverage_logs.py.
"""

import argparse
import datetime
import os
import platform
from typing import Any

import numpy as np

from benchmarks.coverage_logs import BERNOULLI, DOUBLE_SAMPLING, THOMPSON, Cell, simulate_logs
from doublesampling.inference.fixed_targets import adaptive_mean

MEANS = (0.4, 0.5, 0.6)
TARGETS = {"uniform": (1 / 3, 1 / 3, 1 / 3), "the worst arm": (1.0, 0.0, 0.0), "the best arm": (0.0, 0.0, 1.0)}
POLICIES = {"Thompson sampling": THOMPSON, "double sampling, horizon": DOUBLE_SAMPLING}
LEVELS = (0.95, 0.90)


def covers(arms: Any, rewards: Any, shares: Any, target: Any, truth: float, level: float) -> bool:
    """Return whether the adaptively weighted interval of one log holds the truth."""
    rows, count = shares.shape
    played = arms[:, None] == np.arange(count)
    before = np.vstack([np.zeros((1, count)), played.cumsum(axis=0)[:-1]])
    paid = np.vstack([np.zeros((1, count)), (played * rewards[:, None]).cumsum(axis=0)[:-1]])
    means = np.divide(paid, before, out=np.full((rows, count), 0.5), where=before > 0)
    every = np.arange(rows)
    scores = means @ target + target[arms] / shares[every, arms] * (rewards - means[every, arms])
    found = adaptive_mean(scores, target, arms, shares, level)
    return bool(found.low <= truth <= found.high)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--rows", type=int, default=500)
    options = parser.parse_args()
    today = f"{datetime.date.today():%Y-%m-%d}"
    print(
        f"{today}, {platform.machine()}, {os.cpu_count()} cores, {options.logs} logs of {options.rows}, arms {MEANS}\n"
    )
    print("| logged by | floor | " + " | ".join(TARGETS) + " |\n|---|---:|" + "---:|" * len(TARGETS))
    for name, policy in POLICIES.items():
        for floor in (0.02, 0.05, 0.1):
            logs = simulate_logs(Cell(policy, BERNOULLI, MEANS, options.rows, floor), options.logs, 1)
            cells = []
            for shares in TARGETS.values():
                target = np.array(shares)
                truth = float(target @ np.array(MEANS))
                held = [
                    np.mean([covers(*log, target, truth, level) for log in zip(*logs, strict=True)]) for level in LEVELS
                ]
                cells.append(" / ".join(f"{100 * share:.1f}" for share in held))
            print(f"| {name} | {floor} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
