"""How fast the engine is on this machine: microseconds per decision, update included. Run by ``make bench``."""

import platform
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import doublesampling as ds
from doublesampling.errors import LongRunWarning

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
# what came after the paper, each beside its simplest relative, all on one thread: the name of a line above, or none
TWO, TEN = ds.BernoulliBandit([0.4, 0.8]), ds.BernoulliBandit(list(np.linspace(0.1, 0.9, 10)))
LINEAR = ds.LinearGaussianBandit(weights=RNG.normal(size=(2, 10)), noise=0.5)
LOGISTIC = ds.LogisticBandit(weights=RNG.normal(size=(2, 10)))
CATEGORIES = ds.CategoricalBandit([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]], values=[0, 1, 5])
FORGETS, TEN_FORGET = ds.BetaBernoulli(arms=2, discount=0.99), ds.BetaBernoulli(arms=10, discount=0.99)
BY_DRAWS = "NumPy's draws alone"
BEYOND: list[tuple[str, Any, Any, Any, int, str]] = [
    ("2 Beta arms", TWO, None, ds.DoubleSampling(), 1024, ""),
    ("Bayes-UCB", TWO, None, ds.BayesUCB(), 256, ""),
    ("UCB1", TWO, None, ds.UCB1(), 1024, "2 Beta arms"),
    ("KL-UCB", TWO, None, ds.KLUCB(), 1024, "Bayes-UCB"),
    ("IMED", TWO, None, ds.IMED(), 1024, "2 Beta arms"),
    ("top-two", TWO, None, ds.TopTwo(), 1024, "2 Beta arms"),
    ("horizon known", TWO, None, ds.DoubleSampling(horizon=1000), 1024, "2 Beta arms"),
    ("directed, 2 Beta arms", TWO, None, ds.InformationDirected(), 1024, "2 Beta arms"),
    ("linear, 2 arms, d = 10", LINEAR, None, ds.DoubleSampling(), 256, ""),
    ("LinUCB, d = 10", LINEAR, None, ds.LinUCB(), 256, "linear, 2 arms, d = 10"),
    ("logistic, 2 arms, d = 10", LOGISTIC, None, ds.DoubleSampling(), 256, "linear, 2 arms, d = 10"),
    ("2 Poisson arms", ds.PoissonBandit([2.0, 2.5]), None, ds.DoubleSampling(), 256, "linear, 2 arms, d = 10"),
    ("2 exponential arms", ds.ExponentialBandit([2.0, 2.5]), None, ds.DoubleSampling(), 256, "2 Poisson arms"),
    ("2 Beta arms that forget", TWO, FORGETS, ds.DoubleSampling(), 256, "2 Poisson arms"),
    ("directed, 2 that forget", TWO, FORGETS, ds.InformationDirected(), 256, "2 Beta arms that forget"),
    ("10 Beta arms", TEN, None, ds.DoubleSampling(), 128, ""),
    ("10 Beta arms that forget", TEN, TEN_FORGET, ds.DoubleSampling(), 32, ""),
    ("directed, 10 that forget", TEN, TEN_FORGET, ds.InformationDirected(), 16, "10 Beta arms that forget"),
    ("10 Poisson arms", ds.PoissonBandit(list(np.linspace(1, 3, 10))), None, ds.DoubleSampling(), 32,
     "10 Beta arms that forget"),
    ("2 arms of 3 categories", CATEGORIES, None, ds.DoubleSampling(), 8, BY_DRAWS),
]  # fmt: skip


def once(
    bandit: Any, policy: Any, realizations: int, horizon: int = 1000, threads: int | None = None, belief: Any = None
) -> float:
    """Microseconds per decision of one run."""
    options: dict[str, Any] = {"horizon": horizon, "realizations": realizations, "threads": threads, "belief": belief}
    began = time.perf_counter()
    ds.simulate(bandit, [policy], seed=1, device="cpu", times="log", **options)
    return (time.perf_counter() - began) / realizations / horizon * 1e6


def best_of(*runs: Callable[[], float]) -> list[float]:
    """The quickest of five rounds, in which the runs take turns: noise only ever adds, and it comes and goes."""
    return [min(each) for each in zip(*([run() for run in runs] for _ in range(5)), strict=True)]


def draws_of_numpy(samples: int = 1000, repetitions: int = 1000) -> float:
    """M posterior samples of two arms of three categories, in microseconds: what sampling one would cost in NumPy."""
    weights, values = np.array([[12.0, 5.0, 3.0], [40.0, 22.0, 31.0]]), np.array([0.0, 1.0, 5.0])
    began = time.perf_counter()
    for _ in range(repetitions):
        first, second = (RNG.dirichlet(weight, samples) @ values for weight in weights)
        np.mean(first > second)
    return (time.perf_counter() - began) / repetitions * 1e6


def beyond_the_paper() -> None:
    """Microseconds per decision, and how many times those of the simplest relative."""
    print("beyond the paper, one thread; where there is a relative, both in turns")
    runs: dict[str, Callable[[], float]] = {BY_DRAWS: draws_of_numpy}
    for name, bandit, belief, policy, realizations, relative in BEYOND:
        ds.simulate(bandit, [policy], horizon=2, realizations=1, seed=1, device="cpu", belief=belief)
        runs[name] = partial(once, bandit, policy, realizations, threads=1, belief=belief)
        if not relative:
            print(f"{name:26s} {best_of(runs[name])[0]:8.3f} us", flush=True)
            continue
        cost, beside = best_of(runs[name], runs[relative])
        print(f"{name:26s} {cost:8.3f} us   {cost / beside:5.2f} x {relative}, {beside:.3f} us", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore", LongRunWarning)
    print(time.strftime("%Y-%m-%d"), platform.machine(), "Python", platform.python_version())
    for name, bandit, policy, realizations in CASES:
        ds.simulate(bandit, [policy], horizon=2, realizations=1, seed=1, device="cpu")
        (cost,) = best_of(partial(once, bandit, policy, realizations))
        print(f"{name:24s} {policy!r:20s} {cost:7.3f} us", flush=True)
    beyond_the_paper()
    belief = ds.Logistic(arms=2, dimension=10)
    state, x = belief.prior(), RNG.normal(size=(10_000, 10))
    ds.decide(ds.DoubleSampling(), belief, state, x[0])
    began = time.perf_counter()
    for i in range(10_000):
        arm = ds.decide(ds.DoubleSampling(), belief, state, x[i], seed=1).arm
        state = belief.update(state, arm, float(RNG.random() < 0.5), x[i])
    print(f"logistic, d = 10: 10,000 calls of decide and update {time.perf_counter() - began:6.2f} s", flush=True)
    print("constant in the horizon: 2 Bernoulli arms, double sampling, one thread")
    for horizon, realizations in ((1_000, 4_000), (100_000, 40), (1_000_000, 4)):
        (cost,) = best_of(partial(once, TWO, ds.DoubleSampling(), realizations, horizon, threads=1))
        print(f"  T = {horizon:9,d}, {realizations:5d} realizations {cost:7.3f} us", flush=True)
