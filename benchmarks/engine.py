"""How fast the engine is on this machine: microseconds per decision, update included. Run by ``make bench``."""

import platform
import time
from typing import Any

import numpy as np

import doublesampling as ds

RNG = np.random.default_rng(0)
CASES: list[tuple[str, Any, Any, int]] = [
    ("2 Bernoulli arms", ds.BernoulliBandit([0.4, 0.8]), ds.DoubleSampling(), 4000),
    ("2 Bernoulli arms", ds.BernoulliBandit([0.4, 0.8]), ds.ThompsonSampling(), 8000),
    ("2 Bernoulli arms", ds.BernoulliBandit([0.4, 0.8]), ds.BayesUCB(), 1000),
    ("3 Bernoulli arms", ds.BernoulliBandit([0.4, 0.7, 0.8]), ds.DoubleSampling(), 2000),
    ("10 Bernoulli arms", ds.BernoulliBandit(list(np.linspace(0.1, 0.9, 10))), ds.DoubleSampling(), 256),
    (
        "linear, 2 arms, d = 2",
        ds.LinearGaussianBandit(weights=[[0.4] * 2, [0.8] * 2], noise=0.2),
        ds.DoubleSampling(),
        512,
    ),
    (
        "linear, 2 arms, d = 20",
        ds.LinearGaussianBandit(weights=RNG.normal(size=(2, 20)), noise=0.2),
        ds.DoubleSampling(),
        256,
    ),
]


def best_of(bandit: Any, policy: Any, realizations: int, horizon: int, threads: int | None = None) -> float:
    """The quickest of five runs, in microseconds per decision: the machine's noise only ever adds."""
    seconds = []
    for _ in range(5):
        began = time.perf_counter()
        options: dict[str, Any] = {"horizon": horizon, "realizations": realizations, "threads": threads}
        ds.simulate(bandit, [policy], seed=1, device="cpu", times="log", **options)
        seconds.append(time.perf_counter() - began)
    return min(seconds) / realizations / horizon * 1e6


if __name__ == "__main__":
    print(time.strftime("%Y-%m-%d"), platform.machine(), "Python", platform.python_version())
    for name, bandit, policy, realizations in CASES:
        ds.simulate(bandit, [policy], horizon=2, realizations=1, seed=1, device="cpu")
        print(f"{name:24s} {policy!r:20s} {best_of(bandit, policy, realizations, 1000):7.3f} us", flush=True)
    print("constant in the horizon: 2 Bernoulli arms, double sampling, one thread")
    for horizon, realizations in ((1_000, 4_000), (100_000, 40), (1_000_000, 4)):
        cost = best_of(ds.BernoulliBandit([0.4, 0.8]), ds.DoubleSampling(), realizations, horizon, threads=1)
        print(f"  T = {horizon:9,d}, {realizations:5d} realizations {cost:7.3f} us", flush=True)
