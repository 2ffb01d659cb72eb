"""Compile everything ahead, and keep the machine code on disk: for images and servers."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, NamedTuple

from doublesampling import checks

KINDS = ("decide", "simulate", "trial")
_OF_TRIALS = 4  # the first policies: double sampling and Thompson sampling
_WEIGHTS = [[0.1, 0.2], [0.2, 0.1]]


class Task(NamedTuple):
    """A tiny run whose code is compiled by running it."""

    what: str
    """"decide", "simulate" or "trial"."""
    name: str
    policy: int


def _policies(linear: bool, counts: bool) -> list[Any]:
    import doublesampling as ds

    common = [
        ds.DoubleSampling(),
        ds.DoubleSampling(horizon=9),
        ds.ThompsonSampling(),
        ds.DoubleSampling.anytime(),
        ds.BayesUCB(),
        ds.Greedy(),
        ds.TopTwo(),
        ds.EpsilonGreedy(),
        ds.InformationDirected(),
        ds.Oracle(),
    ]
    return [*common, *([ds.LinUCB()] if linear else []), *([ds.UCB1(), ds.KLUCB(), ds.IMED()] if counts else [])]


def _bandits() -> dict[str, tuple[Any, Any, bool, bool]]:
    """Return a bandit for every family of kernels, its belief, whether it is linear, whether it counts wins."""
    import doublesampling as ds

    beta2, beta3 = ds.BetaBernoulli(arms=2), ds.BetaBernoulli(arms=3)
    line, odds = ds.LinearGaussianBandit(weights=_WEIGHTS), ds.LogisticBandit(weights=_WEIGHTS)
    several = ds.CategoricalBandit([[0.5, 0.5], [0.4, 0.6]], values=(0, 1))
    return {
        "two Bernoulli arms": (ds.BernoulliBandit([0.4, 0.6]), beta2, False, True),
        "three Bernoulli arms": (ds.BernoulliBandit([0.4, 0.5, 0.6]), beta3, False, True),
        "more Bernoulli arms": (ds.BernoulliBandit([0.4, 0.5, 0.6, 0.7]), ds.BetaBernoulli(arms=4), False, True),
        "Poisson arms": (ds.PoissonBandit([1.0, 2.0]), ds.GammaPoisson(arms=2), False, False),
        "exponential arms": (ds.ExponentialBandit([1.0, 2.0]), ds.GammaExponential(arms=2), False, False),
        "Gaussian arms": (ds.GaussianBandit([0.0, 1.0]), ds.Gaussian(arms=2), True, False),
        "linear arms": (line, ds.LinearGaussian(arms=2, dimension=2), True, False),
        "logistic arms": (odds, ds.Logistic(arms=2, dimension=2), True, False),
        "categories": (several, ds.DirichletCategorical(arms=2, values=(0, 1)), False, False),
    }


def tasks(what: str = "all") -> list[Task]:
    """Return what there is to compile: "decide", "simulate", "trial" or "all"."""
    checks.one_of("what", what, ("all", *KINDS))
    found = []
    for kind in KINDS if what == "all" else (what,):
        for name, (bandit, _, linear, counts) in _bandits().items():
            if kind != "trial":
                found += [Task(kind, name, i) for i in range(len(_policies(linear, counts)))]
            elif counts and len(bandit.probabilities) < 4:  # trials of more arms share the code of three
                found += [Task(kind, name, i) for i in range(_OF_TRIALS)]
    return found


def compile_task(task: Task) -> Task:
    """Compile one of them in this process."""
    import doublesampling as ds
    from doublesampling.errors import DoubleSamplingError

    bandit, belief, linear, counts = _bandits()[task.name]
    policy = _policies(linear, counts)[task.policy]
    context = None if belief.dimension is None else [0.5] * belief.dimension
    try:
        if task.what == "simulate":
            ds.simulate(bandit, policy, horizon=2, realizations=1, device="cpu", progress=False, threads=1)
        elif task.what == "trial":
            trial = ds.Trial(
                arms=[str(arm) for arm in range(belief.arms)], belief=belief, policy=policy,
                allocation=ds.Allocation(floor=0.1), stopping=ds.Stopping(looks=2, superiority=0.99), horizon=4,
            )  # fmt: skip
            trial.simulate([bandit.probabilities], realizations=1, threads=1)
        else:
            contexts = None if context is None else [context]
            state = belief.update(belief.update_in_order(belief.prior(), [1], [1.0], contexts), 0, 1.0, context)
            ds.decide(policy, belief, state, context, seed=1)
            ds.decide(policy, belief, state, context, seed=1, allocation=ds.Allocation(floor=0.1))
    except DoubleSamplingError:  # a policy that does not suit the belief, or decides in simulations only
        pass
    return task


def warm(
    what: str = "all", processes: int | None = None, report: Callable[[int, int], None] = lambda done, total: None
) -> int:
    """Compile ahead, in several processes, and return how many runs there were; what is on disk already is quick."""
    wanted = tasks(what)
    count = checks.integer("processes", processes or os.cpu_count() or 1, least=1, most=1024)
    # policies of one family share rules: a process that compiles them all compiles those once
    with ProcessPoolExecutor(count, mp_context=multiprocessing.get_context("spawn")) as pool:
        running = [pool.submit(compile_task, task) for task in wanted]
        for done, future in enumerate(as_completed(running), start=1):
            future.result()
            report(done, len(wanted))
    return len(wanted)
