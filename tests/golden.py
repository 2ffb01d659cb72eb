"""Runs of the engine whose every arm is kept on file, so that a change of its structure cannot change what it plays.

``python -m tests.golden`` writes the file anew; only a change that is meant to change decisions may do so. Arms are
kept and not digits: they are the same on every machine, where the last bits of a logarithm are not.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

import doublesampling as ds

FILE = Path(__file__).parent / "golden.json"
HORIZON, REALIZATIONS, SEED = 30, 70, 3  # two blocks, the second not full

_ANY: list[Any] = [
    ds.DoubleSampling(),
    ds.DoubleSampling(samples=9, ties="first"),
    ds.DoubleSampling(samples=None, false_alarm="markov"),
    ds.DoubleSampling(horizon=HORIZON, count="doubt"),
    ds.DoubleSampling.as_published(),
    ds.ThompsonSampling(),
    ds.TopTwo(0.4),
    ds.Greedy(),
    ds.EpsilonGreedy(0.2),
    ds.InformationDirected(),
    ds.InformationDirected(samples=40),
    ds.BayesUCB(samples=20),
    ds.Oracle(),
]
_EXACT: list[Any] = [*_ANY, ds.BayesUCB(), ds.BayesUCB(ties="first")]
_NEWER: list[Any] = [
    ds.EpsilonThompson(0.3),
    ds.InformationRelaxation(horizon=HORIZON),
    ds.FiniteHorizonGittins(horizon=HORIZON, epsilon=0.1),
]
_COUNTS: list[Any] = [*_EXACT, ds.UCB1(), ds.KLUCB(), ds.IMED(ties="first"), *_NEWER]
_LINEAR: list[Any] = [*_EXACT, ds.LinUCB(0.7)]
_PATH = np.array([[1.0, 0.2], [0.5, -1.0], [0.1, 0.9]])

CASES: list[tuple[Any, Any, list[Any]]] = [
    (ds.BernoulliBandit([0.4, 0.8]), None, _COUNTS),
    (ds.BernoulliBandit([0.4, 0.7, 0.8]), ds.BetaBernoulli(arms=3, alpha=(1.0, 2.0, 0.5), beta=1.5), _COUNTS),
    (ds.BernoulliBandit([0.2, 0.5, 0.6, 0.7, 0.65]), None, _COUNTS),
    (ds.BernoulliBandit([0.3, 0.6]), ds.BetaBernoulli(arms=2, discount=0.95), _EXACT),
    (ds.ChangingBernoulliBandit([[0.2, 0.8, 0.5], [0.8, 0.2, 0.5]], every=7), None, _COUNTS),
    (ds.PoissonBandit([1.0, 2.0]), None, _EXACT),
    (ds.PoissonBandit([1.0, 2.0, 2.5]), ds.GammaPoisson(arms=3, discount=0.9), _EXACT),
    (ds.ExponentialBandit([1.0, 2.0]), None, _EXACT),
    (ds.GaussianBandit([0.0, 0.5, 0.2], noise=0.7), ds.Gaussian(arms=3, mean=1.0, variance=1.0), _LINEAR),
    (ds.BernoulliBandit([0.3, 0.6]), ds.Gaussian(arms=2, mean=0.5, variance=2.0), _LINEAR),
    (ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]], noise=0.2), None, _LINEAR),
    (
        ds.LinearGaussianBandit(weights=[[0.4, 0.1], [0.2, 0.8], [0.3, 0.3]], noise=(0.2, 0.5, 1.0), path="shared"),
        ds.LinearGaussian(arms=3, dimension=2, mean=1.0, covariance=1.0, noise=0.5),
        _LINEAR,
    ),
    (
        ds.LinearGaussianBandit(weights=[[0.4, 0.1], [0.2, 0.8]], context=_PATH),
        ds.LinearGaussian(arms=2, dimension=2, mean=0.5, covariance=[[2.0, 0.5], [0.5, 1.0]], discount=0.95),
        _LINEAR,
    ),
    (ds.LogisticBandit(weights=[[1.0, -1.0], [0.0, 0.5]]), None, _LINEAR),
    (ds.CategoricalBandit([[0.5, 0.3, 0.2], [0.4, 0.3, 0.3]], values=(0, 1, 5)), None, _ANY),
]


def arms_played(bandit: Any, belief: Any, policies: list[Any]) -> dict[str, str]:
    """Return a digest of the arms of every realization and step, by policy."""
    found = ds.simulate(
        bandit, policies, belief=belief, horizon=HORIZON, realizations=REALIZATIONS, seed=SEED, keep="trajectories",
        device="cpu", progress=False,
    )  # fmt: skip
    arms = found.trajectory_arm.values[0].astype(np.uint8)
    return {repr(p): hashlib.sha256(arms[i].tobytes()).hexdigest()[:16] for i, p in enumerate(policies)}


def name_of(bandit: Any, belief: Any) -> str:
    """Return what a case is called in the file."""
    return f"{bandit!r} {belief!r}"


if __name__ == "__main__":
    played = {name_of(bandit, belief): arms_played(bandit, belief, policies) for bandit, belief, policies in CASES}
    FILE.write_text(json.dumps(played, indent=1) + "\n")
