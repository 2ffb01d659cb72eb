"""Print the tables of docs/explanation/exact.md: policies above the Bayes optimum, and z-tests of adaptive trials.

python benchmarks/exact.py            # T = 60, 100, 200: about a minute on two cores
python benchmarks/exact.py 60 500     # other horizons
"""

import platform
import sys
import time
from typing import Any

import numpy as np

import doublesampling as ds
from doublesampling.exact.forward import Forward
from doublesampling.exact.regret import expected_successes, regret_at
from doublesampling.policies.gittins import MOST_SIMULATED
from doublesampling.trials import Trial

PAIRS = [(0.85, 0.9), (0.45, 0.5), (0.3, 0.9)]
SCENARIOS = [(0.3, 0.3), (0.5, 0.5), (0.9, 0.9), (0.3, 0.5)]


def policies(horizon: int) -> dict[str, Any]:
    found: dict[str, Any] = {
        "Thompson sampling": ds.ThompsonSampling(),
        "double sampling, the paper's N": ds.DoubleSampling(samples=None),
        "double sampling, horizon": ds.DoubleSampling(samples=None, horizon=horizon),
        "double sampling, any time": ds.DoubleSampling.anytime(samples=None),
        "double sampling, doubt": ds.DoubleSampling(samples=None, horizon=horizon, count="doubt"),
        "IMED": ds.IMED(),
        "epsilon-Thompson, 0.3": ds.EpsilonThompson(0.3),
        "top-two Thompson": ds.TopTwo(),
        "information-directed": ds.InformationDirected(),
        "greedy": ds.Greedy(),
    }
    if horizon <= 100:  # a microsecond or more for each of C(T + 3, 4) / 2 states
        found |= {
            "IRS.FH": ds.InformationRelaxation(horizon=horizon),
            "Bayes-UCB": ds.BayesUCB(),
            "KL-UCB": ds.KLUCB(),
        }
    if horizon <= MOST_SIMULATED:
        found["finite-horizon Gittins"] = ds.FiniteHorizonGittins(horizon=horizon)
    return found


def print_regrets(horizon: int) -> None:
    """Print the exact regret of every policy, the least first."""
    began = time.process_time()
    best = ds.bayes_optimal(horizon)
    seconds = time.process_time() - began
    print(f"\nT = {horizon}: optimal regret {best.regret:.5f}, {best.successes:.9f} successes ({seconds:.1f} s)\n")
    print("| policy | regret | above the optimum | " + " | ".join(map(str, PAIRS)) + " | seconds |")
    print("| --- |" + " ---: |" * (3 + len(PAIRS)))
    rows, uniform = [], np.ones((2, 2))
    for name, policy in policies(horizon).items():
        began = time.process_time()
        law = Forward(policy, uniform, horizon).run()  # what exact_regret does, once for both
        regret = 2.0 / 3.0 * horizon - expected_successes(law, uniform)
        rows.append((regret, name, regret_at(law, np.array(PAIRS)), time.process_time() - began))
    for regret, name, at, seconds in sorted(rows, key=lambda row: row[0]):
        cells = " | ".join(f"{value:.2f}" for value in at)
        print(f"| {name} | {regret:.4f} | {regret / best.regret - 1:+.2%} | {cells} | {seconds:.1f} |")


def print_trials() -> None:
    """Print what a two-sided z-test and a Wald interval are worth after 100 participants."""
    horizon = 100
    policy = ds.DoubleSampling(samples=None, horizon=horizon)
    floors = {"no limits": None, "floor 0.1": ds.Allocation(floor=0.1), "floor 0.2": ds.Allocation(floor=0.2)}
    print(f"\nA z-test at 5 % after {horizon} participants, {policy!r}\n")
    print(
        "| design | " + " | ".join(f"rejects at {pair}" for pair in SCENARIOS) + " | coverage | successes at (.3, .5) |"
    )
    print("| --- |" + " ---: |" * 6)

    def row(name: str, found: Any, suffix: str) -> None:
        rates = " | ".join(f"{rate:.1%}" for rate in found[f"rejection_rate{suffix}"].values)
        coverage = found[f"naive_coverage{suffix}"].values[:, 1]
        earned = float(found[f"expected_successes{suffix}"][3])
        print(f"| {name} | {rates} | {coverage.min():.0%} to {coverage.max():.0%} | {earned:.1f} |")

    for name, allocation in floors.items():
        found = Trial(arms=["old", "new"], policy=policy, allocation=allocation, horizon=horizon).exact(SCENARIOS)
        row(name, found, "")
    row("equal allocation", found, "_equal")


if __name__ == "__main__":
    print(f"{platform.machine()}, Python {platform.python_version()}; seconds are of processor time, with compilation")
    for value in sys.argv[1:] or ["60", "100", "200"]:
        print_regrets(int(value))
    print_trials()
