"""``doublesampling simulate``: policies against bandits, as a table, a NetCDF file and a picture."""

import difflib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xarray as xr
from rich.console import Console

from doublesampling import policies
from doublesampling.bandits import (
    Bandit,
    BernoulliBandit,
    ExponentialBandit,
    GaussianBandit,
    LinearGaussianBandit,
    LogisticBandit,
    PoissonBandit,
)
from doublesampling.cli.output import new_table, open_console
from doublesampling.cli.settings import parse_settings
from doublesampling.engine.simulate import simulate
from doublesampling.errors import Interrupted, OutputError, SettingError, missing_extra
from doublesampling.policies import (
    IMED,
    KLUCB,
    UCB1,
    BayesUCB,
    DoubleSampling,
    EpsilonGreedy,
    Greedy,
    InformationDirected,
    LinUCB,
    Oracle,
    ThompsonSampling,
    TopTwo,
)

POLICIES: dict[str, Any] = {
    "double-sampling": DoubleSampling(),
    "double-sampling-anytime": DoubleSampling.anytime(),
    "double-sampling-published": DoubleSampling.as_published(),
    "thompson": ThompsonSampling(),
    "bayes-ucb": BayesUCB(),
    "greedy": Greedy(),
    "epsilon-greedy": EpsilonGreedy(),
    "top-two": TopTwo(),
    "ucb1": UCB1(),
    "kl-ucb": KLUCB(),
    "imed": IMED(),
    "lin-ucb": LinUCB(),
    "information-directed": InformationDirected(),
    "oracle": Oracle(),
}
PICTURES = (".png", ".pdf", ".svg")
_FORMS = (
    "bernoulli:0.4,0.8, gaussian:0,1:0.5 (means, noise), linear:0.4,0.4;0.8,0.8:0.2 (weights per arm, noise), "
    "logistic:1,0;0,1 (weights per arm), poisson:1,2 or exponential:1,2 (means)"
)
_BY_MEANS: dict[str, Any] = {
    "bernoulli": BernoulliBandit,
    "poisson": PoissonBandit,
    "exponential": ExponentialBandit,
}


def _numbers(text: str, whole: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise SettingError(f"--bandit {whole!r}: {text!r} is not a list of numbers. Write {_FORMS}.") from None


def parse_bandit(text: str) -> Bandit:
    """A bandit from the command line.

    >>> parse_bandit("linear:0.4,0.4;0.8,0.8:0.2").arms
    2
    """
    kind, _, rest = text.partition(":")
    if kind in _BY_MEANS and rest:
        found: Bandit = _BY_MEANS[kind](_numbers(rest, text))
        return found
    if kind == "logistic" and rest:
        return LogisticBandit(weights=[_numbers(row, text) for row in rest.split(";")])
    values, _, noise = rest.partition(":")
    level = _numbers(noise, text) if noise else [1.0]
    spread = level[0] if len(level) == 1 else level
    if kind == "gaussian" and values:
        return GaussianBandit(_numbers(values, text), noise=spread)
    if kind == "linear" and values:
        return LinearGaussianBandit(weights=[_numbers(row, text) for row in values.split(";")], noise=spread)
    raise SettingError(f"--bandit {text!r} is not known. Write {_FORMS}.")


def parse_policy(name: str) -> Any:
    """A policy by the name that the command line gives it, with settings after a colon.

    >>> parse_policy("double-sampling:horizon=1500")
    DoubleSampling(horizon=1500)
    """
    if name not in POLICIES and ":" in name:
        return parse_settings(name, policies)
    if name not in POLICIES:
        near = difflib.get_close_matches(name, POLICIES, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(POLICIES)}."
        raise SettingError(f"--policy {name!r} is not known. {hint}")
    return POLICIES[name]


def check_file(option: str, name: str | None, suffixes: tuple[str, ...], force: bool) -> Path | None:
    """Refuse a file that cannot be written before anything is played."""
    if name is None:
        return None
    path = Path(name)
    if path.suffix.lower() not in suffixes:
        raise OutputError(f"{option} writes {', '.join(suffixes)} files, got {name!r}.")
    if path.is_dir() or not path.parent.is_dir():
        raise OutputError(f"{option} cannot write {name!r}: the folder {str(path.parent)!r} does not exist.")
    if path.exists() and not force:
        raise OutputError(f"{option} would overwrite {name!r}. Name another file, or add --force.")
    return path


def dask_client(address: str | None) -> Any:
    """A Dask client, or None where no address is given."""
    if address is None:
        return None
    try:
        from distributed import Client
    except ImportError:
        raise missing_extra("--dask needs Dask", "cluster") from None
    try:
        return Client(address, timeout="10s")  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TimeoutError) as problem:
        raise SettingError(f"No Dask scheduler answers at {address!r}: {problem}.") from None


def show(result: xr.Dataset, bandits: list[str], console: Console) -> None:
    """The table: policy, final regret with its error, share on the best arm."""
    columns = ("bandit", "policy", f"regret at t = {int(result.time[-1])}", "on the best arm")
    table = new_table(columns, left=("bandit", "policy"))
    for row in result.ds.table().to_dict("records"):
        error = "–" if math.isnan(row["error"]) else f"{row['error']:.3f}"
        cells = f"{row['regret']:.3f} ± {error}", f"{row['best']:.1%}"
        table.add_row(bandits[row["bandit"]], row["policy"], *cells)
    console.print(table)
    wanted, done = int(result.attrs["realizations"]), int(result["realizations_done"].min())
    played = (
        f"{wanted} realizations" if done >= wanted else f"{done} of {wanted} realizations, or more of some policies"
    )
    alone = "; one realization has none" if done == 1 else ""
    console.print(f"± is one Monte Carlo standard error{alone}; {played}.", style="dim")


def write_files(
    console: Console, data: xr.Dataset, out: Path | None, draw: Callable[[], Any], plot: Path | None
) -> None:
    """The dataset and the picture, where they were asked for."""
    try:
        if out is not None:
            data.to_netcdf(out, engine="scipy")
            console.print(f"The dataset is in {out}")
        if plot is not None:
            draw().savefig(plot, dpi=150)
            console.print(f"The picture is in {plot}")
    except OSError as problem:
        raise OutputError(f"A file cannot be written: {problem.strerror or problem}.") from None


def run(options: Any) -> int:
    """Play, show, write."""
    out = check_file("--out", options.out, (".nc",), options.force)
    plot = check_file("--plot", options.plot, PICTURES, options.force)
    bandits = [parse_bandit(text) for text in options.bandit]
    chosen = {name: parse_policy(name) for name in options.policy}
    console = open_console()
    status = 0
    try:
        result = simulate(
            bandits, chosen, horizon=options.horizon, realizations=options.realizations, seed=options.seed,
            device=options.device, times=options.times, store=options.store, executor=dask_client(options.dask),
            progress=True,
        )  # fmt: skip
    except Interrupted as stopped:
        result = stopped.partial  # type: ignore[assignment]
        console.print("Stopped early: what follows is what was finished.", style="yellow")
        status = 130
    show(result, options.bandit, console)
    write_files(console, result, out, result.ds.plot_regret, plot)
    return status
