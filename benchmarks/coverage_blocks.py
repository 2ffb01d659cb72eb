"""Measure how often intervals hold the truth on logs with a burn-in or permuted blocks, whose propensities are often 0.

``python -m benchmarks.coverage_blocks``, some minutes on two cores. Arms are drawn here without the package.
"""

import argparse
import datetime
import os
import platform
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

import doublesampling as ds
from doublesampling.inference.reading import read_decisions

FloatArray = NDArray[np.float64]
LEVELS = (0.95, 0.90)
METHODS = (("aw-aipw", "constant"), ("aw-aipw", "stick-breaking"), ("aipw", "constant"), ("ips", "constant"),
           ("naive", "constant"))  # fmt: skip


class Design(NamedTuple):
    """A floor under the shares of two arms, decisions of each arm before they adapt, and the size of a block."""

    floor: float
    burn_in: int = 0
    block: int = 1


DESIGNS = {
    "burn-in of 10 per arm, floor 0.1": Design(0.1, burn_in=10),
    "burn-in of 50 per arm, floor 0.05": Design(0.05, burn_in=50),
    "blocks of 4, floor 0.2": Design(0.2, block=4),
    "blocks of 10, floor 0.1": Design(0.1, block=10),
    "blocks of 4, equal shares": Design(0.5, block=4),
}


class Logs(NamedTuple):
    """Simulated logs: arms and rewards (log, row), propensities (log, row, arm)."""

    arms: NDArray[np.int64]
    rewards: FloatArray
    shares: FloatArray


def simulate_logs(design: Design, theta: tuple[float, float], rows: int, logs: int, seed: int) -> Logs:
    """Return logs of Thompson sampling with normal approximations of the posteriors; propensities are exact."""
    rng, each = np.random.default_rng(seed), np.arange(logs)
    count, total, left = np.zeros((logs, 2)), np.zeros((logs, 2)), np.zeros((logs, 2))
    found = Logs(np.empty((logs, rows), dtype=np.int64), np.empty((logs, rows)), np.empty((logs, rows, 2)))
    for t in range(rows):
        begun = t if t < 2 * design.burn_in else t - 2 * design.burn_in
        block = 2 if t < 2 * design.burn_in else design.block
        if begun % block == 0:
            mean = (1.0 + total) / (2.0 + count)
            spread = np.sqrt((mean * (1.0 - mean) / (3.0 + count)).sum(axis=1))
            share = design.floor + (1.0 - 2.0 * design.floor) * special.ndtr((mean[:, 1] - mean[:, 0]) / spread)
            wanted = np.full(logs, 0.5) if t < 2 * design.burn_in else share
            slots = np.floor(block * wanted + 0.5 + 1e-6 * (rng.random(logs) - 0.5))
            left = np.column_stack([block - slots, slots]) if block > 1 else np.column_stack([1.0 - wanted, wanted])
        shares = left / left.sum(axis=1, keepdims=True)
        arm = (rng.random(logs) < shares[:, 1]).astype(np.int64)
        reward = (rng.random(logs) < np.array(theta)[arm]).astype(np.float64)
        found.arms[:, t], found.rewards[:, t], found.shares[:, t] = arm, reward, shares
        left[each, arm] -= block > 1
        count[each, arm] += 1.0
        total[each, arm] += reward
    return found


def judge(logs: Logs, truth: float) -> tuple[Any, Any]:
    """Return whether intervals cover, bool array (method, level, log), and whether sequences miss (log)."""
    covered = np.zeros((len(METHODS), len(LEVELS), len(logs.arms)), dtype=bool)
    missed = np.zeros(len(logs.arms), dtype=bool)
    for i, (arms, rewards, shares) in enumerate(zip(*logs, strict=True)):
        log = read_decisions({"arm": arms, "reward": rewards, "propensities": shares})
        for m, (method, weights) in enumerate(METHODS):
            for k, level in enumerate(LEVELS):
                found = ds.analyse(log, (1, 0), method, level, weights=weights)
                covered[m, k, i] = found.low <= truth <= found.high
        band = ds.sequence(log, (1, 0))
        missed[i] = bool(((band.low > truth) | (band.high < truth)).any())
    return covered, missed


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--rows", type=int, nargs="+", default=[200])
    options = parser.parse_args()
    print(
        f"{datetime.date.today():%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores, {options.logs} logs a row\n"
    )
    print("| T | design | arms | aw-aipw | aw-aipw, stick-breaking | aipw | ips | naive | asymptotic sequence misses |")
    print("|---:|---|---|---:|---:|---:|---:|---:|---:|")
    for rows in options.rows:
        for name, design in DESIGNS.items():
            for theta in ((0.5, 0.5), (0.4, 0.6)):
                covered, missed = judge(simulate_logs(design, theta, rows, options.logs, 1), theta[1] - theta[0])
                cells = [" / ".join(f"{100 * level.mean():.1f}" for level in method) for method in covered]
                print(f"| {rows} | {name} | {theta[0]}, {theta[1]} | {' | '.join(cells)} | {100 * missed.mean():.1f} |",
                      flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
