"""Microseconds per decision, ours beside a textbook loop and other libraries: ``python benchmarks/peers.py``."""

import math
import os
import platform
import random
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module  # what it returns is untyped, so mypy passes with and without the peers
from importlib.metadata import version
from typing import Any

import numpy as np
import scipy
from scipy.stats import beta, norm, truncnorm

import doublesampling as ds

THETA = [0.4, 0.8]
ARMS = [0, 1]
HORIZON = 500  # the same for everyone: what a decision costs can change as the posterior narrows
REALIZATIONS = 20_000
REPEATS = 5
SAMPLES, MOST_CANDIDATES = 1000, 1000

Player = tuple[Callable[[], int], Callable[[int, int], None]]  # choose() -> arm, learn(arm, reward)


def textbook(scipy_only: bool) -> Player:
    """Double sampling as the paper writes it: with the laws of scipy.stats, or with NumPy's quicker draws."""
    rng = np.random.default_rng(1)
    wins, losses = np.ones(len(ARMS)), np.ones(len(ARMS))

    def choose() -> int:
        """The mode of N candidates."""
        size = (SAMPLES, len(ARMS))
        draws = beta.rvs(wins, losses, size=size, random_state=rng) if scipy_only else rng.beta(wins, losses, size)
        p = np.bincount(draws.argmax(axis=1), minlength=len(ARMS)) / SAMPLES
        number = scipy_candidates(p) if scipy_only else candidates(p)
        return int(np.bincount(rng.choice(len(ARMS), size=number, p=p), minlength=len(ARMS)).argmax())

    def learn(arm: int, reward: int) -> None:
        """The Beta update."""
        wins[arm] += reward
        losses[arm] += 1 - reward

    return choose, learn


def candidates(p: Any) -> int:
    """N = log10(1 / p_FA), p_FA by a Gaussian truncated to [0, 1], averaged over the arms but the leader."""
    best = int(p.argmax())
    rivals = np.delete(p, best)
    if not rivals.any():  # no deviation to divide by, and no doubt left
        return MOST_CANDIDATES
    rivals = rivals[rivals > 0]  # the others raise no alarm
    deviation = np.sqrt(rivals * (1 - rivals))
    below, upto, inside = norm.cdf(np.array([-rivals, p[best] - rivals, 1 - rivals]) / deviation)
    alarm = float((1 - (upto - below) / (inside - below)).sum() / (p.size - 1))
    if alarm <= 0:  # too small for double precision
        return MOST_CANDIDATES
    return min(max(math.floor(math.log10(1 / alarm)), 1), MOST_CANDIDATES)


def scipy_candidates(p: Any) -> int:
    """The same with SciPy's truncated Gaussian."""
    best = int(p.argmax())
    rivals = np.delete(p, best)
    if not rivals.any():
        return MOST_CANDIDATES
    rivals = rivals[rivals > 0]
    deviation = np.sqrt(rivals * (1 - rivals))
    alarms = truncnorm.sf(p[best], -rivals / deviation, (1 - rivals) / deviation, loc=rivals, scale=deviation)
    alarm = float(alarms.sum() / (p.size - 1))
    return min(max(math.floor(math.log10(1 / alarm)), 1), MOST_CANDIDATES) if alarm > 0 else MOST_CANDIDATES


def river() -> Player:
    """Thompson sampling of river."""
    bandit, proba = import_module("river.bandit"), import_module("river.proba")
    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=1)
    return lambda: policy.pull(ARMS), policy.update


def mabwiser() -> Player:
    """Thompson sampling of mabwiser, one decision and one observation at a time."""
    mab = import_module("mabwiser.mab")
    model = mab.MAB(ARMS, mab.LearningPolicy.ThompsonSampling(), seed=1)
    model.fit(decisions=ARMS, rewards=[1, 1])  # it does not predict before it has seen something
    return model.predict, lambda arm, reward: model.partial_fit([arm], [reward])


def coba() -> Player:
    """UCB1-Tuned of coba: its only Thompson sampling is linear and wants contexts."""
    learner = import_module("coba.learners").BanditUCBLearner(seed=1)

    def choose() -> int:
        """The arm, without the probability that comes with it."""
        return int(learner.predict(None, ARMS)[0])

    # UCB1-Tuned does not look at the probability, the last argument
    return choose, lambda arm, reward: learner.learn(None, arm, reward, 1.0)


def bayesianbandits() -> Player:
    """Thompson sampling of bayesianbandits: a Dirichlet law over two classes is a Beta law."""
    bb = import_module("bayesianbandits")

    def success(draws: Any) -> Any:
        """The reward of an arm is its probability of class 1."""
        return draws[..., 1]

    arms = [bb.Arm(a, success, learner=bb.DirichletClassifier({0: 1.0, 1: 1.0})) for a in ARMS]
    agent = bb.Agent(arms, bb.ThompsonSampling(), random_seed=1)
    # it remembers which arm it pulled
    return lambda: agent.pull()[0], lambda arm, reward: agent.update(np.array([reward]))


PEERS: dict[str, tuple[str, Callable[[], Player]]] = {
    "river": ("ThompsonSampling(Beta)", river),
    "mabwiser": ("LearningPolicy.ThompsonSampling", mabwiser),
    "coba": ("BanditUCBLearner (UCB1-Tuned)", coba),
    "bayesianbandits": ("Agent, DirichletClassifier, ThompsonSampling", bayesianbandits),
}


def time_ours(policy: Any) -> float:
    """Microseconds per decision of ds.simulate on all cores, the best of a few runs."""

    def play(realizations: int) -> float:
        """Seconds of one simulation."""
        began = time.perf_counter()
        ds.simulate(
            ds.BernoulliBandit(THETA),
            [policy],
            horizon=HORIZON,
            realizations=realizations,
            seed=1,
            device="cpu",
            times=[HORIZON],
            progress=False,
        )
        return time.perf_counter() - began

    play(64)  # compiles, or reads machine code from disk
    return min(play(REALIZATIONS) for _ in range(REPEATS)) / (REALIZATIONS * HORIZON) * 1e6


def time_player(make: Callable[[], Player]) -> float:
    """Microseconds per decision in a Python loop, the best of a few runs, each from the prior."""

    def play() -> float:
        """Seconds of one game."""
        choose, learn = make()
        world = random.Random(1)
        began = time.perf_counter()
        for _ in range(HORIZON):
            arm = choose()
            learn(arm, int(world.random() < THETA[arm]))
        return time.perf_counter() - began

    return min(play() for _ in range(REPEATS)) / HORIZON * 1e6


def show(name: str, what: str, micros: float, ours: float) -> None:
    """One line of the table."""
    print(f"{name:26s} {what:46s} {micros:12.3f} {micros / ours:10,.0f}", flush=True)


def main() -> None:
    """Time everyone and print the table."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    print(time.strftime("%Y-%m-%d"), platform.machine(), f"{cores} cores, Python", platform.python_version())
    print(f"2 Bernoulli arms {THETA}, {HORIZON} steps, best of {REPEATS} runs")
    print(f"Ours: {REALIZATIONS} realizations at once on all cores. The others: one decision at a time on one core.\n")
    print(f"{'':26s} {'':46s} {'µs/decision':>12s} {'times ours':>10s}")
    own = f"doublesampling {ds.__version__}"
    thompson, double = time_ours(ds.ThompsonSampling()), time_ours(ds.DoubleSampling())
    show(own, "ThompsonSampling, ds.simulate", thompson, thompson)
    for name, (what, make) in PEERS.items():
        try:
            micros = time_player(make)
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] != name:  # installed, but something that it needs is not
                raise
            print(f"{name:26s} not installed: pip install {name}")
            continue
        show(f"{name} {version(name)}", what, micros, thompson)
    show(own, "DoubleSampling, ds.simulate", double, double)
    libraries = f"NumPy {np.__version__}, SciPy {scipy.__version__}"
    for what, scipy_only in (("double sampling with scipy.stats", True), ("the same with NumPy's draws", False)):
        show(libraries, what, time_player(partial(textbook, scipy_only)), double)


if __name__ == "__main__":
    main()
