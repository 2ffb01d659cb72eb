"""The paper's evaluation as data: which bandits, policies, horizon, realizations and seed. One entry per dataset."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from doublesampling.bandits import Bandit, BernoulliBandit, LinearGaussianBandit
from doublesampling.beliefs import LinearGaussian
from doublesampling.paper import measures
from doublesampling.paper.published import BAYES_UCB, CHECK_HORIZON, FAIR, OURS, THOMPSON
from doublesampling.policies import BayesUCB, DoubleSampling, ThompsonSampling

SEED = 1
SCALES = ("quick", "standard", "paper")
GRID = tuple(round(0.05 * k, 2) for k in range(2, 20))  # 0.10, 0.15, ... 0.95
LINEAR_PROBLEMS = 360  # as many as the published scatter holds
EQUAL_GRID = 21 * 20 // 2 * 10  # equal entries per arm, from -1 to 1 by 0.1, two arms in ascending order; noise to 1
FREE_GRID = (21**4 - 21**2) * 10  # any weights of two different arms from that grid
SIX_PROBLEMS = ((0.85, 0.9), (0.45, 0.5), (0.5, 0.7), (0.4, 0.8), (0.1, 0.3), (0.3, 0.9))

FOUR_POLICIES: dict[str, Any] = {
    OURS: DoubleSampling.as_published(),
    FAIR: DoubleSampling(),
    THOMPSON: ThompsonSampling(),
    BAYES_UCB: BayesUCB(),
}
PUBLISHED = "as published"
ONE_CANDIDATE = "N_max = 1, exact p"
SETTINGS: dict[str, Any] = {
    PUBLISHED: DoubleSampling.as_published(),
    "fair ties": DoubleSampling.as_published(ties="random"),
    "p_FA not rounded": DoubleSampling.as_published(arithmetic="log"),
    "M = 10": DoubleSampling.as_published(samples=10),
    "M = 100": DoubleSampling.as_published(samples=100),
    "M = 10 000": DoubleSampling.as_published(samples=10_000),
    "exact p": DoubleSampling.as_published(samples=None),
    "log base 2": DoubleSampling.as_published(log_base=2.0),
    "log base e": DoubleSampling.as_published(log_base=math.e),
    "log base 100": DoubleSampling.as_published(log_base=100.0),
    "N_max = 10": DoubleSampling.as_published(max_candidates=10),
    "N_max = 10 000": DoubleSampling.as_published(max_candidates=10_000),
    ONE_CANDIDATE: DoubleSampling.as_published(samples=None, max_candidates=1),
    THOMPSON: ThompsonSampling(),
}
LINEAR_PRIOR = LinearGaussian.as_published(arms=2, dimension=2)
HORIZON_AWARE = "double sampling, horizon known"
LONG = 100_000


@dataclass(frozen=True)
class Experiment:
    """One dataset: what is played, how often at each scale, and how hard each problem is (its divergence)."""

    name: str
    title: str
    bandits: tuple[Bandit, ...]
    policies: dict[str, Any]
    horizon: int
    realizations: dict[str, int]
    divergence: Callable[[Any], float]
    times: Any = "all"
    belief: Any = None
    keep: tuple[str, ...] = field(default=())

    def repeats(self, scale: str, wish: int | None) -> int:
        """Realizations at a scale, or as many as were wished for."""
        return self.realizations[scale] if wish is None else wish


def bernoulli_problems() -> tuple[Bandit, ...]:
    """Every set of 2 and of 3 distinct values of the grid, in ascending order: 153 + 816."""
    return tuple(BernoulliBandit(theta) for arms in (2, 3) for theta in itertools.combinations(GRID, arms))


def linear_problems(*, equal_entries: bool) -> tuple[Bandit, ...]:
    """A seeded sample of the grid of two-armed linear Gaussian bandits.

    With ``equal_entries`` as the authors ran it: w_a = (v_a, v_a) in ascending order, so that arm 1 is better in every
    context, and one path of contexts is shared by all realizations. Without, as the paper's footnote says: any weights
    of the grid.
    """
    rng = np.random.default_rng(SEED)
    found: dict[tuple[int, ...], Bandit] = {}
    while len(found) < LINEAR_PROBLEMS:
        weights, noise = rng.integers(-10, 11, (2, 1 if equal_entries else 2)), int(rng.integers(1, 11))
        path = "shared" if equal_entries else "fresh"
        if equal_entries:
            weights = np.broadcast_to(np.sort(weights, axis=0), (2, 2))
        if (weights[0] != weights[1]).any():
            problem = LinearGaussianBandit(weights=weights / 10, noise=noise / 10, path=path)
            found[(*weights.ravel().tolist(), noise)] = problem
    return tuple(found.values())


def _linear(noise: float) -> LinearGaussianBandit:
    return LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]], noise=noise)


EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        Experiment(
            "illustration", "three arms, step by step",
            (BernoulliBandit([0.4, 0.7, 0.8]),), {OURS: DoubleSampling.as_published()}, 500,
            {"quick": 200, "standard": 1000, "paper": 5000}, measures.bernoulli_divergence,
            keep=("trajectories",),
        ),
        Experiment(
            "bernoulli", "two Bernoulli arms, θ = (0.4, 0.8)",
            (BernoulliBandit([0.4, 0.8]),), FOUR_POLICIES, 1000,
            {"quick": 1000, "standard": 5000, "paper": 5000}, measures.bernoulli_divergence,
        ),
        Experiment(
            "bernoulli-sweep", "969 Bernoulli problems of two and three arms",
            bernoulli_problems(), FOUR_POLICIES, 1500,
            {"quick": 10, "standard": 128, "paper": 5000}, measures.bernoulli_divergence, times=(1500,),
        ),
        Experiment(
            "linear", "linear Gaussian, w = (0.4, 0.4) and (0.8, 0.8), noise 0.2 and 1",
            (_linear(0.2), _linear(1.0)), FOUR_POLICIES, 1000,
            {"quick": 500, "standard": 5000, "paper": 5000}, measures.linear_divergence, belief=LINEAR_PRIOR,
        ),
        Experiment(
            "linear-sweep", f"{LINEAR_PROBLEMS} linear Gaussian problems as the authors ran them: equal entries per "
            f"arm, a seeded sample of {EQUAL_GRID:,}",
            linear_problems(equal_entries=True), FOUR_POLICIES, 1500,
            {"quick": 10, "standard": 64, "paper": 5000}, measures.divergence_as_published, times=(1500,),
            belief=LINEAR_PRIOR,
        ),
        Experiment(
            "linear-sweep-free", f"{LINEAR_PROBLEMS} linear Gaussian problems as the footnote says: any weights, a "
            f"seeded sample of {FREE_GRID:,}",
            linear_problems(equal_entries=False), FOUR_POLICIES, 1500,
            {"quick": 10, "standard": 64, "paper": 5000}, measures.linear_divergence, times=(1500,),
            belief=LINEAR_PRIOR,
        ),
        Experiment(
            "settings", "what the text leaves open, on six two-armed problems",
            tuple(BernoulliBandit(theta) for theta in SIX_PROBLEMS), SETTINGS, 1500,
            {"quick": 200, "standard": 2000, "paper": 20_000}, measures.bernoulli_divergence, times=(1500,),
        ),
        Experiment(
            "horizon", f"four two-armed problems to T = {LONG:,}",
            tuple(BernoulliBandit(theta) for theta in CHECK_HORIZON),
            {OURS: DoubleSampling.as_published(), FAIR: DoubleSampling(), THOMPSON: ThompsonSampling(),
             HORIZON_AWARE: DoubleSampling(horizon=LONG)},
            LONG, {"quick": 32, "standard": 384, "paper": 20_000}, measures.bernoulli_divergence, times="log",
        ),
    )
}  # fmt: skip
