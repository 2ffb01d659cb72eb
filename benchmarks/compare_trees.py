"""Compare the code and the engine of two source trees: ``python benchmarks/compare_trees.py OLD/src NEW/src``.

Prints how many parameters functions take and how long the code is, then microseconds of processor time per decision on
one thread: old and new in turns, a process each, the best of all rounds (60 readings in each), and the ratio. On a
shared machine readings of one tree differ by half: take eight rounds or more, and repeat a line before relying on it.
"""

import argparse
import ast
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

CASES = [
    ("2 Bernoulli arms", "DoubleSampling()", 1500),
    ("2 Bernoulli arms", "ThompsonSampling()", 1500),
    ("2 Bernoulli arms", "BayesUCB()", 500),
    ("2 Bernoulli arms", "DoubleSampling(horizon=1500)", 1500),
    ("2 Bernoulli arms", "KLUCB()", 500),
    ("2 Bernoulli arms", "InformationDirected()", 1500),
    ("3 Bernoulli arms", "DoubleSampling()", 1000),
    ("10 Bernoulli arms", "DoubleSampling()", 150),
    ("linear, d = 2", "DoubleSampling()", 500),
    ("linear, d = 2", "ThompsonSampling()", 500),
    ("linear, d = 20", "DoubleSampling()", 300),
    ("2 Poisson arms", "DoubleSampling()", 500),
    ("2 Poisson arms", "BayesUCB()", 300),
    ("logistic, d = 2", "DoubleSampling()", 300),
]

CODE = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
import numpy as np
import doublesampling as ds
from doublesampling.engine.blocks import Unit, play_block
from doublesampling.engine.plan import make_plan
worlds = {
    "2 Bernoulli arms": ds.BernoulliBandit([0.4, 0.8]),
    "3 Bernoulli arms": ds.BernoulliBandit([0.4, 0.7, 0.8]),
    "10 Bernoulli arms": ds.BernoulliBandit(list(np.linspace(0.1, 0.9, 10))),
    "linear, d = 2": ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]], noise=0.2),
    "linear, d = 20": ds.LinearGaussianBandit(weights=np.random.default_rng(0).normal(size=(2, 20)).tolist()),
    "2 Poisson arms": ds.PoissonBandit([1.0, 2.0]),
    "logistic, d = 2": ds.LogisticBandit(weights=[[1.0, -1.0], [0.0, 0.5]]),
}
world, policy, horizon = json.loads(sys.argv[2])
policy = eval("ds." + policy)
plan = make_plan(worlds[world], policy, horizon=horizon, realizations=64, seed=1, times=[horizon])
play_block(plan, Unit(0, 0, 0))
best = 1e9
for _ in range(60):
    began = time.process_time()
    play_block(plan, Unit(0, 0, 0))
    best = min(best, time.process_time() - began)
print(best / 64 / horizon * 1e6)
"""


def measure(source: str, case: tuple[str, str, int]) -> float:
    """Return microseconds per decision of a case, in a process of its own."""
    command = [sys.executable, "-c", CODE, source, json.dumps(case)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def parameters(source: str) -> list[int]:
    """Return how many parameters each function of the package takes."""
    found = []
    for path in Path(source).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                a = node.args
                found.append(len([*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, [a.vararg, a.kwarg])]))
    return found


def lines(source: str, folder: str) -> int:
    """Return the number of lines of a folder's Python files."""
    return sum(len(path.read_text().splitlines()) for path in Path(source, "doublesampling", folder).rglob("*.py"))


def print_code(old: str, new: str) -> None:
    """Print what can be counted in the sources."""
    print("| | before | after |\n| --- | ---: | ---: |")
    counts = [parameters(tree) for tree in (old, new)]
    print("| largest number of parameters of a function |", *(f" {max(found)} |" for found in counts), sep="")
    more = [sum(count > 10 for count in found) for found in counts]
    print("| functions with more than 10 parameters |", *(f" {count} |" for count in more), sep="")
    for folder in ("rules", "engine"):
        print(f"| lines of `{folder}/` |", *(f" {lines(tree, folder)} |" for tree in (old, new)), sep="")
    print()


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--rounds", type=int, default=8, help="processes per tree and line; 0 prints only the code")
    parser.add_argument("--at-once", type=int, default=1, help="lines measured at the same time, on that many cores")
    options = parser.parse_args()
    print_code(options.old, options.new)
    if options.rounds < 1:
        return
    print("| problem | policy | before, µs | after, µs | ratio |\n| --- | --- | ---: | ---: | ---: |")

    def line(case: tuple[str, str, int]) -> str:
        found = [(measure(options.old, case), measure(options.new, case)) for _ in range(options.rounds)]
        old, new = (min(column) for column in zip(*found, strict=True))
        return f"| {case[0]} | `{case[1]}` | {old:.3f} | {new:.3f} | {new / old:.2f} |"

    with ThreadPoolExecutor(options.at_once) as pool:
        for text in pool.map(line, CASES):
            print(text, flush=True)


if __name__ == "__main__":
    main()
