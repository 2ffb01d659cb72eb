"""Parity, start and speed on a GPU: ``python benchmarks/gpu.py``. Needs NumPy, Numba and numba-cuda, and nothing else.

Parity: every family and policy on the CPU and on the GPU from the same addresses, realization by realization. Start:
seconds to compile a kernel, and to load it in the next process. Speed: nanoseconds per decision, update included, of
the second launch. Parts can be named: ``python benchmarks/gpu.py parity speed``.
"""

import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 asks for it at import; NumPy 2.5 no longer has it
    vars(np)["row_stack"] = np.vstack
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import doublesampling as ds
from doublesampling.engine import cuda
from doublesampling.engine.blocks import Moments, Unit, play_block
from doublesampling.engine.plan import Plan, make_plan

COMMON = [ds.DoubleSampling(), ds.ThompsonSampling(), ds.BayesUCB(), ds.Greedy(), ds.InformationDirected()]
MORE = [ds.DoubleSampling(horizon=100), ds.TopTwo(), ds.EpsilonGreedy(0.1), ds.BayesUCB(samples=50)]
LINEAR = ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]], noise=0.2)
CASES: dict[str, tuple[Any, Any, list[Any]]] = {
    "2 Bernoulli arms": (ds.BernoulliBandit([0.4, 0.8]), None, COMMON + MORE + [ds.UCB1(), ds.KLUCB(), ds.IMED()]),
    "3 Bernoulli arms": (ds.BernoulliBandit([0.4, 0.7, 0.8]), None, COMMON),
    "5 Bernoulli arms": (ds.BernoulliBandit([0.2, 0.4, 0.6, 0.7, 0.8]), None, COMMON[:3]),
    "Beta, forgetting": (ds.BernoulliBandit([0.4, 0.8]), ds.BetaBernoulli(arms=2, discount=0.98), COMMON[:3]),
    "Poisson": (ds.PoissonBandit([1.0, 2.0]), None, COMMON),
    "exponential": (ds.ExponentialBandit([1.0, 2.0]), None, COMMON[:3]),
    "linear Gaussian, d = 2": (LINEAR, None, [*COMMON, ds.LinUCB()]),
    "linear, forgetting": (LINEAR, ds.LinearGaussian(arms=2, dimension=2, discount=0.98), COMMON[:2]),
    "logistic": (ds.LogisticBandit(weights=[[1.0, -1.0], [0.0, 0.5]]), None, COMMON[:3]),
    "categories": (ds.CategoricalBandit([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]], values=(0, 1, 5)), None, COMMON[:2]),
}


def on_cpu(plan: Plan) -> list[list[Moments]]:
    """Play a plan on one CPU thread."""
    moments = [[Moments() for _ in plan.policies] for _ in plan.problems]
    for i in range(len(plan.problems)):
        for j in range(len(plan.policies)):
            for k in range(plan.blocks):
                moments[i][j].add(k, play_block(plan, Unit(i, j, k)))
    return moments


def parity() -> None:
    """Print how many realizations end with the same regret on both devices."""
    print("parity: realizations of 256 with the same final regret; mean regret on CPU and GPU", flush=True)
    for name, (world, belief, policies) in CASES.items():
        plan = make_plan(world, policies, horizon=100, realizations=256, seed=1, belief=belief)
        began = time.perf_counter()
        gpu = cuda.play_all(plan)
        middle = time.perf_counter()
        cpu = on_cpu(plan)
        print(f"  {name}: {middle - began:.0f} s on the GPU, {time.perf_counter() - middle:.0f} s on the CPU")
        for j, label in enumerate(plan.labels):
            ours, theirs = (np.concatenate(m[0][j].final) for m in (cpu, gpu))
            same = int(np.isclose(ours, theirs, rtol=1e-9, atol=1e-9).sum())
            print(f"    {label:32s} {same:4d} of 256   {ours.mean():9.4f} {theirs.mean():9.4f}", flush=True)


def _sweep(arms: int) -> list[Any]:
    rng = np.random.default_rng(0)
    return [ds.BernoulliBandit(sorted(rng.uniform(0.1, 0.95, arms))) for _ in range(200)]


def speed() -> None:
    """Print nanoseconds per decision, for sweeps that fill the GPU."""
    print("speed: nanoseconds per decision, update included, moments recorded at every tenth step", flush=True)
    lines: list[tuple[str, list[Any], Any]] = [
        ("double sampling, 2 Bernoulli arms", _sweep(2), ds.DoubleSampling()),
        ("Thompson sampling, 2 Bernoulli arms", _sweep(2), ds.ThompsonSampling()),
        ("Bayes-UCB, 2 Bernoulli arms", _sweep(2), ds.BayesUCB()),
        ("double sampling, 3 Bernoulli arms", _sweep(3), ds.DoubleSampling()),
        ("double sampling, linear Gaussian, d = 2", [LINEAR] * 64, ds.DoubleSampling()),
        ("double sampling, 2 Poisson arms", [ds.PoissonBandit([1.0, 2.0])] * 64, ds.DoubleSampling()),
    ]
    for name, worlds, policy in lines:
        plan = make_plan(worlds, policy, horizon=1500, realizations=2048, seed=1, times=list(range(10, 1501, 10)))
        cuda.play_all(make_plan(worlds[:2], policy, horizon=20, realizations=64, seed=1, times=[20]))
        began = time.perf_counter()
        cuda.play_all(plan)
        took = time.perf_counter() - began
        print(f"  {name:42s} {took / (len(worlds) * 2048 * 1500) * 1e9:8.3f} ns", flush=True)


_START = """
import sys, time, numpy as np
if not hasattr(np, "row_stack"): np.row_stack = np.vstack
sys.path.insert(0, sys.argv[1])
import doublesampling as ds
from doublesampling.engine import cuda
from doublesampling.engine.plan import make_plan
world = {"beta": ds.BernoulliBandit([0.4, 0.8]), "linear": ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]])}
began = time.perf_counter()
cuda.play_all(make_plan(world[sys.argv[2]], ds.DoubleSampling(), horizon=20, realizations=64, seed=1))
print(f"{time.perf_counter() - began:.1f}")
"""


def start() -> None:
    """Print the seconds until the first results, in a process that compiles and in the next."""
    with tempfile.TemporaryDirectory() as folder:
        for world in ("beta", "linear"):
            took = [
                subprocess.run(
                    [sys.executable, "-c", _START, str(Path(__file__).parent.parent / "src"), world],
                    env=os.environ | {"NUMBA_CACHE_DIR": folder},
                    capture_output=True,
                    text=True,
                    check=False,
                )
                for _ in range(2)
            ]
            shown = [done.stdout.strip() or done.stderr[-300:] for done in took]
            print(
                f"start, double sampling, {world}: {shown[0]} s to compile and play, {shown[1]} s in the next process"
            )


def main() -> None:
    """Print the parts that are named, or all."""
    print(f"{cuda.name()}, Python {platform.python_version()}, NumPy {np.__version__}", flush=True)
    parts = {"start": start, "speed": speed, "parity": parity}
    for name in sys.argv[1:] or parts:
        parts[name]()


if __name__ == "__main__":
    main()
