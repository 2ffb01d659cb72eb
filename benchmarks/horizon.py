"""Print the tables of docs/explanation/horizon.md: ``make horizon``, half an hour on two cores.

``python benchmarks/horizon.py exact long`` runs some sections only; ``--small`` is a rehearsal; ``--cuda=F`` plays
on a GPU with F times as many realizations, computes exact regrets to T = 1500 and draws the figure.
"""

import itertools
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

import doublesampling as ds
from doublesampling.paper import measures
from doublesampling.paper.experiments import SIX_PROBLEMS, bernoulli_problems, linear_problems
from doublesampling.paper.published import KL_EDGES

SMALL = "--small" in sys.argv
CUDA = next((int(word.removeprefix("--cuda=")) for word in sys.argv if word.startswith("--cuda=")), 0)
DEVICE = "cuda" if CUDA else "cpu"
SEED = 5
FIGURE = Path(__file__).parent.parent / "docs" / "images" / "above_optimum.png"
EXACT_TIMES = (20, 40) if SMALL else (20, 60, 100, 200) + ((500, 1000, 1500) if CUDA else ())
GITTINS_TIMES = 4  # of these the index is tabulated for


def policies(horizon: int, *, samples: int | None = 1000, bayes_ucb: bool = True) -> dict[str, Any]:
    """Return the rules that are compared, by the names of the tables."""
    return {
        "horizon": ds.DoubleSampling(samples=samples, horizon=horizon),
        "anytime": ds.DoubleSampling.anytime(samples=samples),
        "before 1.0": ds.DoubleSampling(samples=samples, horizon=horizon, count="doubt"),
        "paper": ds.DoubleSampling(samples=samples),
        "Thompson": ds.ThompsonSampling(),
    } | ({"Bayes-UCB": ds.BayesUCB()} if bayes_ucb else {})


def play(bandits: Any, horizon: int, realizations: int, *, belief: Any = None, bayes_ucb: bool = True) -> xr.Dataset:
    """Return the regret of every rule at the last step."""
    repeats = max(realizations // 20, 4) if SMALL else realizations * max(CUDA, 1)
    return ds.simulate(
        bandits, policies(horizon, bayes_ucb=bayes_ucb), belief=belief, horizon=horizon, realizations=repeats,
        seed=SEED, times=[horizon], device=DEVICE, progress=False,
    )  # fmt: skip


def row(*cells: str) -> None:
    """Print a row of a Markdown table."""
    print("| " + " | ".join(cells) + " |", flush=True)


def head(*cells: str) -> None:
    """Print the head of one."""
    row(*cells)
    row("---", *["---:"] * (len(cells) - 1))


def percent(delta: float, error: float) -> str:
    """Return a relative difference and its error."""
    return f"{100 * delta:+.1f} ± {100 * error:.1f} %"


def exact_regrets() -> dict[str, list[float]]:
    """Return regret over the Bayes-optimal one, by rule and horizon: two Bernoulli arms, uniform priors."""
    found: dict[str, list[float]] = {}
    for horizon in EXACT_TIMES:
        optimum = ds.bayes_optimal(horizon, device=DEVICE).regret
        rules = policies(horizon, samples=None, bayes_ucb=False) | {"greedy": ds.Greedy()}
        if horizon in EXACT_TIMES[:GITTINS_TIMES]:
            rules["Gittins"] = ds.FiniteHorizonGittins(horizon=horizon)
        for name, policy in rules.items():
            found.setdefault(name, []).append(float(ds.exact_regret(policy, horizon, device=DEVICE)) / optimum - 1.0)
    return found


def exact() -> None:
    """Print exact regrets above the optimum, and draw them."""
    found = exact_regrets()
    print("\nExact Bayes regret above the Bayes optimum, two Bernoulli arms, uniform priors\n")
    head("rule", *(f"T = {horizon}" for horizon in EXACT_TIMES))
    for name, values in found.items():
        row(name, *(f"{100 * value:+.2f} %" for value in values), *[""] * (len(EXACT_TIMES) - len(values)))
    if CUDA:
        draw(found)


def draw(found: dict[str, list[float]]) -> None:
    """Draw regret above the optimum against T."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for name, values in found.items():
        if name != "greedy":  # it leaves the axis
            axes.plot(EXACT_TIMES[: len(values)], 100 * np.array(values), marker="o", label=name)
    axes.set(xscale="log", xlabel="decisions T", ylabel="regret above the Bayes optimum, %", ylim=(0, None))
    axes.set_xticks(EXACT_TIMES, [str(horizon) for horizon in EXACT_TIMES])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(ncols=2, frameon=False)
    figure.savefig(FIGURE, dpi=130)


def drawn() -> None:
    """Print mean regrets over two-armed problems drawn from the uniform prior, where exact ones take too long."""
    rng = np.random.default_rng(SEED)
    bandits = [ds.BernoulliBandit(pair.tolist()) for pair in rng.uniform(size=(40 if SMALL else 4000, 2))]
    data = play(bandits, 1500, 16)
    count = data.attrs["realizations"]
    print(f"\n4000 two-armed problems drawn from the uniform prior, T = 1500, {count} realizations: mean regret\n")
    head("rule", "regret", "against Thompson")
    for name in data.policy.values:
        regret = data.cumulative_regret.sel(policy=name).values[:, 0]
        error = float(np.sqrt((data.cumulative_regret_error.sel(policy=name).values ** 2).sum()) / len(bandits))
        other = data.cumulative_regret.sel(policy="Thompson").values[:, 0]
        row(name, f"{regret.mean():.3f} ± {error:.3f}", f"{100 * (regret.mean() / other.mean() - 1):+.1f} %")


def divergence() -> None:
    """Print mean regrets over the 969 problems of figure 4, by divergence."""
    bandits = bernoulli_problems()
    data = play(list(bandits), 1500, 48)
    kl = np.array([measures.bernoulli_divergence(bandit) for bandit in bandits])  # type: ignore[arg-type]
    print(f"\n969 Bernoulli problems, T = 1500, {data.attrs['realizations']} realizations: mean regret\n")
    names = [str(name) for name in data.policy.values]
    rivals = [name for name in names if name not in ("horizon", "anytime")]
    head("KL", "problems", *names, *(f"horizon against {rival}" for rival in rivals))
    for low, high in itertools.pairwise(KL_EDGES):
        inside = (kl >= low) & (kl < high)
        cells = [f"{data.cumulative_regret.sel(policy=name).values[inside, 0].mean():.2f}" for name in names]
        deltas = []
        for rival in rivals:
            ours, theirs = (data.cumulative_regret.sel(policy=name).values[inside, 0] for name in ("horizon", rival))
            errors = [data.cumulative_regret_error.sel(policy=name).values[inside, 0] for name in ("horizon", rival)]
            error = float(np.sqrt(sum((e**2).sum() for e in errors))) / theirs.sum()
            deltas.append(percent(float(ours.sum() / theirs.sum()) - 1.0, error))
        row(f"{low:g} to {high:g}", str(int(inside.sum())), *cells, *deltas)


def long() -> None:
    """Print regrets on six two-armed problems, far beyond the paper's horizon."""
    bandits = [ds.BernoulliBandit(theta) for theta in SIX_PROBLEMS]
    for horizon, realizations in ((1500, 6000), (20_000, 1500), (100_000, 700)):
        data = play(bandits, horizon, realizations, bayes_ucb=False)
        names = [str(name) for name in data.policy.values]
        print(f"\nSix problems, T = {horizon:,}, {data.attrs['realizations']} realizations: expected regret\n")
        head("θ", *names, "horizon against Thompson", "anytime against Thompson")
        deltas = [measures.paired_difference(data, name, "Thompson") for name in ("horizon", "anytime")]
        for i, theta in enumerate(SIX_PROBLEMS):
            cells = [f"{measures.final(data, p, i).value:.1f} ± {measures.final(data, p, i).error:.1f}" for p in names]
            row(str(theta), *cells, *(percent(delta[i], error[i]) for delta, error in deltas))


def many() -> None:
    """Print regrets with many arms, with contexts and with other rewards; none of these chose the constants."""
    print("\nOther problems: mean regret\n")
    head("", "T", "problems", *policies(1), "horizon against Thompson", "anytime against Thompson")
    rng = np.random.default_rng(SEED)

    def arms(count: int, problems: int) -> list[Any]:
        return [ds.BernoulliBandit(rng.uniform(size=count).tolist()) for _ in range(problems)]

    wide = rng.normal(size=(40, 2, 10))
    sets: list[tuple[str, Any, int, int, Any]] = [
        ("5 Bernoulli arms", arms(5, 100), 1500, 32, None),
        ("10 Bernoulli arms", arms(10, 60), 1500, 32, None),
        ("10 Bernoulli arms", arms(10, 20), 20_000, 4, None),
        ("50 Bernoulli arms", arms(50, 20), 1500, 8, None),
        ("linear Gaussian, 2 arms, d = 2", list(linear_problems(equal_entries=False)), 1500, 8, None),
        ("linear Gaussian, 2 arms, d = 10", [ds.LinearGaussianBandit(weights=w.tolist()) for w in wide], 1500, 8, None),
    ]  # fmt: skip
    _print_sets([*sets, *SINGLE])


def single() -> None:
    """Print regrets on the single problems of `many` alone, for many realizations on a GPU."""
    print("\nSingle problems: mean regret\n")
    head("", "T", "problems", *policies(1), "horizon against Thompson", "anytime against Thompson")
    _print_sets(SINGLE)


SINGLE: list[tuple[str, Any, int, int, Any]] = [
    ("Gaussian (0, 0.2), noise 1", [ds.GaussianBandit([0.0, 0.2])], 1500, 1000, None),
    ("Poisson (4, 5), Gamma(1, 1)", [ds.PoissonBandit([4.0, 5.0])], 1500, 1000, ds.GammaPoisson(arms=2, rate=1.0)),
    ("exponential (1, 1.5)", [ds.ExponentialBandit([1.0, 1.5])], 1500, 400, None),
]


def _print_sets(sets: list[tuple[str, Any, int, int, Any]]) -> None:
    """Print a row for each set of problems."""
    for name, bandits, horizon, realizations, belief in sets:
        data = play(bandits, horizon, realizations, belief=belief)
        cells = [f"{float(data.cumulative_regret.sel(policy=p).mean()):.2f}" for p in data.policy.values]
        changes = []
        for rule in ("horizon", "anytime"):
            delta, error = measures.paired_difference(data, rule, "Thompson")
            changes.append(percent(*measures.mean_within(delta, error, np.ones(delta.size, dtype=bool))))
        row(name, str(horizon), str(len(bandits)), *cells, *changes)


if __name__ == "__main__":
    print(time.strftime("%Y-%m-%d"), platform.machine(), "Python", platform.python_version(), "seed", SEED)
    sections = {section.__name__: section for section in (exact, drawn, divergence, long, many, single)}
    chosen = [name for name in sys.argv[1:] if not name.startswith("-")] or list(sections)[:-1]
    for name in chosen:
        sections[name]()
