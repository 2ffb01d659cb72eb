"""Parity and speed on a GPU: ``python benchmarks/gpu.py``. Needs NumPy, Numba and numba-cuda, and nothing else.

Parity: every policy on the CPU and on the GPU from the same addresses, realization by realization. Speed: nanoseconds
per decision, update included, of the second launch (the first one compiles).
"""

import platform
import sys
import time
from pathlib import Path

import numpy as np

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 asks for it at import; NumPy 2.5 no longer has it
    vars(np)["row_stack"] = np.vstack
sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import doublesampling as ds
from doublesampling.engine import cuda
from doublesampling.engine.blocks import Moments, Unit, play_block
from doublesampling.engine.plan import Plan, make_plan

POLICIES = [ds.DoubleSampling(), ds.ThompsonSampling(), ds.BayesUCB(), ds.Greedy(), ds.EpsilonGreedy(0.1)]
LINEAR = ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]], noise=0.2)
WORLDS = {
    "2 Bernoulli arms": ds.BernoulliBandit([0.4, 0.8]),
    "3 Bernoulli arms": ds.BernoulliBandit([0.4, 0.7, 0.8]),
    "5 Bernoulli arms": ds.BernoulliBandit([0.2, 0.4, 0.6, 0.7, 0.8]),
    "linear Gaussian, 2 arms, d = 2": LINEAR,
}


def on_cpu(plan: Plan) -> list[list[Moments]]:
    """The same plan on one CPU thread."""
    moments = [[Moments() for _ in plan.policies] for _ in plan.problems]
    for i in range(len(plan.problems)):
        for j in range(len(plan.policies)):
            for k in range(plan.blocks):
                moments[i][j].add(k, play_block(plan, Unit(i, j, k)))
    return moments


def parity() -> None:
    """How many realizations end with the same regret on both devices."""
    print("parity: realizations of 512 with the same final regret; mean regret on CPU and GPU")
    for name, world in WORLDS.items():
        plan = make_plan(world, POLICIES, horizon=200, realizations=512, seed=1)
        cpu, gpu = on_cpu(plan), cuda.play_all(plan)
        for j, label in enumerate(plan.labels):
            ours, theirs = (np.concatenate(m[0][j].final) for m in (cpu, gpu))
            same = int(np.isclose(ours, theirs, rtol=1e-9, atol=1e-9).sum())
            print(f"  {name:32s} {label:20s} {same:4d} of 512   {ours.mean():9.4f} {theirs.mean():9.4f}")


def speed() -> None:
    """Nanoseconds per decision, for sweeps that fill the GPU."""
    print("speed: nanoseconds per decision, update included, moments recorded at every tenth step")
    rng = np.random.default_rng(0)
    two = [ds.BernoulliBandit(sorted(rng.uniform(0.1, 0.95, 2))) for _ in range(200)]
    three = [ds.BernoulliBandit(sorted(rng.uniform(0.1, 0.95, 3))) for _ in range(200)]
    lines = [ds.LinearGaussianBandit(weights=rng.uniform(-1, 1, (2, 2)), noise=0.5) for _ in range(100)]
    for name, worlds, realizations in (
        ("2 Bernoulli arms", two, 5000),
        ("3 Bernoulli arms", three, 5000),
        ("linear Gaussian, 2 arms, d = 2", lines, 5000),
    ):
        for policy in (ds.DoubleSampling(), ds.ThompsonSampling(), ds.BayesUCB()):
            plan = make_plan(
                worlds, [policy], horizon=1500, realizations=realizations, seed=1, times=np.arange(10, 1501, 10)
            )
            group = list(range(len(worlds)))
            began = time.perf_counter()
            cuda.play_group(plan, group, 0, 0, 32)
            cold = time.perf_counter() - began
            began = time.perf_counter()
            cuda.play_group(plan, group, 0, 0, realizations)
            seconds = time.perf_counter() - began
            steps = len(worlds) * realizations * 1500
            print(
                f"  {name:32s} {policy!r:20s} {seconds / steps * 1e9:8.3f} ns   (first launch {cold:.1f} s)", flush=True
            )


if __name__ == "__main__":
    print(time.strftime("%Y-%m-%d"), platform.machine(), cuda.name(), "Python", platform.python_version(), flush=True)
    print("NumPy", np.__version__, flush=True)
    parity()
    speed()
