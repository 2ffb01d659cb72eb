"""Other rewards, and what the prior does to each policy: regret at T = 1500. Run by ``make rewards``."""

import platform
import time
from typing import Any

import numpy as np

import doublesampling as ds

POLICIES: dict[str, Any] = {
    "paper": ds.DoubleSampling(),
    "horizon": ds.DoubleSampling(horizon=1500),
    "Thompson": ds.ThompsonSampling(),
    "Bayes-UCB": ds.BayesUCB(),
    "directed": ds.InformationDirected(),
}
PRIORS: list[tuple[Any, Any, list[dict[str, float]]]] = [
    (ds.PoissonBandit, ds.GammaPoisson, [{"shape": 1.0, "rate": 1.0}, {"shape": 1.0, "rate": 0.1}]),
    (ds.ExponentialBandit, ds.GammaExponential, [{"shape": 2.0, "rate": 1.0}, {"shape": 2.0, "rate": 10.0}]),
]
MEANS = ((0.5, 1.0), (4.0, 5.0), (1.0, 2.0, 3.0))
GAUSSIAN_PRIORS: list[dict[str, float]] = [{"mean": 1.0, "variance": 1.0}, {}]
GAUSSIAN_MEANS = ((0.0, 0.5), (5.0, 5.5), (-5.0, -4.5), (0.0, 0.2, 0.4))
LINEAR_PROBLEMS = 12


def linear_problems(offset: float) -> list[Any]:
    """Three arms with an intercept and four standard normal features, noise 1; arms pay about the offset."""
    rng = np.random.default_rng(1)
    path = np.column_stack([np.ones(500), rng.normal(size=(500, 4))])
    found = []
    for _ in range(LINEAR_PROBLEMS):
        weights = rng.normal(size=(3, 5)) / 2
        weights[:, 0] += offset
        found.append(ds.LinearGaussianBandit(weights=weights, noise=1.0, context=path))
    return found


def row(name: str, bandit: Any, belief: Any) -> None:
    """One problem, or the mean of several: regret at the end and its standard error, of every policy."""
    repeats = 1000 // (len(bandit) if isinstance(bandit, list) else 1)
    found = ds.simulate(
        bandit, POLICIES, belief=belief, horizon=1500, realizations=repeats, seed=1, times=[1500], device="cpu"
    )
    mean = found.cumulative_regret.mean("bandit").values[:, 0]
    error = np.sqrt((found.cumulative_regret_error**2).sum("bandit").values[:, 0]) / found.sizes["bandit"]
    cells = zip(mean, error, strict=True)
    print(f"{name:62s}", *(f"{mean:7.1f} ± {error:4.1f}" for mean, error in cells), flush=True)


if __name__ == "__main__":
    print(time.strftime("%Y-%m-%d"), platform.machine(), "expected regret at T = 1500, 1000 realizations")
    print(f"{'':62s}", *(f"{name:>14s}" for name in POLICIES))
    for kind, known, priors in PRIORS:
        for means in MEANS:
            for prior in priors:
                row(f"{kind.__name__}{means}, {prior}", kind(means), known(arms=len(means), **prior))
    for means in GAUSSIAN_MEANS:
        for given in GAUSSIAN_PRIORS:
            name = f"Gaussian{means}, noise 1, {given or 'default prior'}"
            row(name, ds.GaussianBandit(means), ds.Gaussian(arms=len(means), **given))
    for offset in (0.0, 5.0, -5.0):
        for name, make in (("as published", ds.LinearGaussian.as_published), ("default", ds.LinearGaussian)):
            label = f"linear, 3 arms, 5 weights, paying about {offset:g}, prior {name}"
            row(label, linear_problems(offset), make(arms=3, dimension=5))
    still, moving = ds.BernoulliBandit([0.2, 0.8]), ds.ChangingBernoulliBandit([[0.2, 0.8], [0.8, 0.2]], every=300)
    for discount in (1.0, 0.99, 0.97):
        for name, bandit in (("the best arm stays", still), ("the best arm changes every 300", moving)):
            row(f"Bernoulli, {name}, discount {discount}", bandit, ds.BetaBernoulli(arms=2, discount=discount))
