"""Other rewards, and what the prior does to each policy: regret at T = 1500. Run by ``make rewards``."""

import platform
import time
from typing import Any

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


def row(name: str, bandit: Any, belief: Any) -> None:
    """One problem: mean regret at the end and its standard error, of every policy."""
    found = ds.simulate(
        bandit, POLICIES, belief=belief, horizon=1500, realizations=1000, seed=1, times=[1500], device="cpu"
    )
    cells = zip(found.cumulative_regret.values[0, :, 0], found.cumulative_regret_error.values[0, :, 0], strict=True)
    print(f"{name:62s}", *(f"{mean:7.1f} ± {error:4.1f}" for mean, error in cells), flush=True)


if __name__ == "__main__":
    print(time.strftime("%Y-%m-%d"), platform.machine(), "expected regret at T = 1500, 1000 realizations")
    print(f"{'':62s}", *(f"{name:>14s}" for name in POLICIES))
    for kind, known, priors in PRIORS:
        for means in MEANS:
            for prior in priors:
                row(f"{kind.__name__}{means}, {prior}", kind(means), known(arms=len(means), **prior))
    still, moving = ds.BernoulliBandit([0.2, 0.8]), ds.ChangingBernoulliBandit([[0.2, 0.8], [0.8, 0.2]], every=300)
    for discount in (1.0, 0.99, 0.97):
        for name, bandit in (("the best arm stays", still), ("the best arm changes every 300", moving)):
            row(f"Bernoulli, {name}, discount {discount}", bandit, ds.BetaBernoulli(arms=2, discount=discount))
