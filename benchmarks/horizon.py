"""Evidence for horizon-aware double sampling: docs/explanation/horizon.md. ``make horizon``, some ten minutes."""

import itertools
import platform
import sys
import time
from typing import Any

import numpy as np
import xarray as xr

import doublesampling as ds
from doublesampling.paper import measures
from doublesampling.paper.experiments import SIX_PROBLEMS, bernoulli_problems, linear_problems
from doublesampling.paper.published import KL_EDGES

SMALL = "--small" in sys.argv  # a rehearsal
SEED = 5


def play(bandits: Any, horizon: int, realizations: int, *, bayes_ucb: bool = False) -> xr.Dataset:
    """The paper's rule, the horizon-aware one and Thompson sampling, at the last step."""
    policies: dict[str, Any] = {
        "horizon": ds.DoubleSampling(horizon=horizon),
        "paper": ds.DoubleSampling(),
        "Thompson": ds.ThompsonSampling(),
    } | ({"Bayes-UCB": ds.BayesUCB()} if bayes_ucb else {})
    repeats = max(realizations // 20, 4) if SMALL else realizations
    return ds.simulate(bandits, policies, horizon=horizon, realizations=repeats, seed=SEED, times=[horizon])


def row(*cells: str) -> None:
    """A row of a Markdown table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def head(*cells: str) -> None:
    """The head of one."""
    row(*cells)
    row("---", *["---:"] * (len(cells) - 1))


def percent(delta: float, error: float) -> str:
    """A relative difference and its error."""
    return f"{100 * delta:+.1f} ± {100 * error:.1f} %"


def by_divergence() -> None:
    """All 969 problems of figure 4."""
    bandits = bernoulli_problems()
    data = play(list(bandits), 1500, 128, bayes_ucb=True)
    kl = np.array([measures.bernoulli_divergence(bandit) for bandit in bandits])  # type: ignore[arg-type]
    print(f"\n969 Bernoulli problems, T = 1500, {data.attrs['realizations']} realizations: mean regret\n")
    head(
        "KL",
        "problems",
        "horizon known",
        "paper's rule",
        "Thompson",
        "Bayes-UCB",
        "horizon against Thompson",
        "against Bayes-UCB",
    )
    regret = {p: data.cumulative_regret.sel(policy=p).values[:, 0] for p in data.policy.values}
    for low, high in itertools.pairwise(KL_EDGES):
        inside = (kl >= low) & (kl < high)
        cells = [f"{regret[p][inside].mean():.2f}" for p in ("horizon", "paper", "Thompson", "Bayes-UCB")]
        deltas = []
        for rival in ("Thompson", "Bayes-UCB"):
            delta, error = measures.paired_difference(data, "horizon", rival)
            deltas.append(percent(*measures.mean_within(delta, error, inside)))
        row(f"{low:g} to {high:g}", str(int(inside.sum())), *cells, *deltas)


def long_runs() -> None:
    """Six two-armed problems, far beyond the paper's horizon."""
    bandits = [ds.BernoulliBandit(theta) for theta in SIX_PROBLEMS]
    for horizon, realizations in ((1500, 8000), (20_000, 2000), (100_000, 600)):
        data = play(bandits, horizon, realizations)
        print(f"\nSix problems, T = {horizon:,}, {data.attrs['realizations']} realizations: expected regret\n")
        head("θ", "horizon known", "paper's rule", "Thompson", "horizon against Thompson")
        delta, error = measures.paired_difference(data, "horizon", "Thompson")
        for i, theta in enumerate(SIX_PROBLEMS):
            cells = [
                f"{measures.final(data, p, i).value:.1f} ± {measures.final(data, p, i).error:.1f}"
                for p in ("horizon", "paper", "Thompson")
            ]
            row(str(theta), *cells, percent(delta[i], error[i]))


def many_arms() -> None:
    """Problems drawn from the uniform prior, ten and fifty arms; and linear Gaussian ones."""
    print("\nMany arms drawn from the uniform prior, and linear Gaussian problems, T = 1500: mean regret\n")
    head("", "problems", "horizon known", "paper's rule", "Thompson", "horizon against Thompson")
    rng = np.random.default_rng(SEED)
    sets: dict[str, tuple[Any, int]] = {
        "10 Bernoulli arms": ([ds.BernoulliBandit(rng.uniform(size=10).tolist()) for _ in range(60)], 64),
        "50 Bernoulli arms": ([ds.BernoulliBandit(rng.uniform(size=50).tolist()) for _ in range(20)], 32),
        "linear Gaussian, 2 arms, d = 2": (list(linear_problems(equal_entries=False)), 64),
    }
    for name, (bandits, realizations) in sets.items():
        data = play(bandits, 1500, realizations)
        mean = {p: float(data.cumulative_regret.sel(policy=p).mean()) for p in ("horizon", "paper", "Thompson")}
        delta, error = measures.paired_difference(data, "horizon", "Thompson")
        everyone = np.ones(delta.size, dtype=bool)
        change = percent(*measures.mean_within(delta, error, everyone))
        row(name, str(len(bandits)), *(f"{value:.2f}" for value in mean.values()), change)


if __name__ == "__main__":
    print(time.strftime("%Y-%m-%d"), platform.machine(), "Python", platform.python_version(), "seed", SEED)
    by_divergence()
    long_runs()
    many_arms()
