"""Run the paper's experiments, keep what is finished, draw the figures and write the report."""

import json
import os
import platform
import shutil
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
import xarray as xr

from doublesampling import __version__, checks
from doublesampling.engine.simulate import simulate
from doublesampling.errors import LongRunWarning, OutputError, SettingError
from doublesampling.paper import document, report
from doublesampling.paper.experiments import EXPERIMENTS, SCALES, SEED, Experiment
from doublesampling.paper.figures import FIGURES
from doublesampling.paper.illustration import summarize
from doublesampling.paper.verdicts import Datasets
from doublesampling.progress import Wish
from doublesampling.rules.cached import sources_digest

_SETTINGS = "reproduce.json"
_BULKY = ("probability_optimal", "candidates")  # of sweeps: nothing in the report looks at them


def check_figures(figures: list[int] | None) -> tuple[int, ...]:
    """The figures that are wished for, in order; none named means all."""
    wished = sorted(set(figures or FIGURES))
    for figure in wished:
        if figure not in FIGURES:
            raise SettingError(f"--figure {figure}: the paper has figures 1 to {max(FIGURES)}.")
    return tuple(wished)


def prepare(folder: Path, settings: dict[str, str], wished: tuple[int, ...], *, resume: bool, force: bool) -> None:
    """Make an output folder that belongs to this run, or refuse one that does not.

    A run is its settings: figures of the same run accumulate in one folder, whichever were asked for first.
    """
    found = folder / _SETTINGS
    try:
        if force and found.exists():
            for name in ("store", "data", "figures"):
                shutil.rmtree(folder / name, ignore_errors=True)
            found.unlink()
        if found.exists():
            _check_same_run(json.loads(found.read_text()), settings, folder)
            if not resume:
                _check_new_figures(folder, wished)
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise OutputError(f"--out {str(folder)!r} holds other files. Name an empty or a new folder.")
        for name in ("data", "figures"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        found.write_text(json.dumps(settings, indent=1))
    except OutputError:
        raise
    except OSError as problem:
        raise OutputError(f"--out {str(folder)!r} cannot be written: {problem.strerror or problem}.") from None
    except json.JSONDecodeError:
        raise OutputError(f"--out {str(folder)!r} has a damaged {_SETTINGS}. Add --force to begin anew.") from None


def _check_same_run(found: dict[str, str], wanted: dict[str, str], folder: Path) -> None:
    for name, value in wanted.items():
        if found.get(name) != value:
            raise OutputError(
                f"--out {str(folder)!r} was made with {name} {found.get(name)}, this run has {value}. "
                "Name another folder, or add --force to begin anew."
            )


def _check_new_figures(folder: Path, wished: tuple[int, ...]) -> None:
    """Ask before work that was begun or finished is done again; figures that are new to the folder are welcome."""
    unfinished = [f for f in wished if any((folder / "store" / name).exists() for name in FIGURES[f][0])]
    if unfinished or all((folder / "figures" / f"figure{figure}.png").exists() for figure in wished):
        held = f"an unfinished figure {unfinished[0]}" if unfinished else f"figure {', '.join(map(str, wished))}"
        raise OutputError(
            f"--out {str(folder)!r} holds {held} of this run already. "
            "Add --resume to go on with what is there, or --force to begin anew."
        )


def _file(folder: Path, experiment: Experiment) -> Path:
    return folder / "data" / f"{experiment.name}.nc"


def _kept(folder: Path, experiment: Experiment) -> xr.Dataset | None:
    """Read a dataset that an earlier command of this run finished."""
    path = _file(folder, experiment)
    if not path.exists():
        return None
    with xr.open_dataset(path, engine="scipy") as kept:
        return kept.load()


def _play(
    experiment: Experiment, folder: Path, repeats: int, seed: int, device: str, executor: Any, progress: Wish
) -> xr.Dataset:
    """One dataset, from its file if it is there."""
    path = _file(folder, experiment)
    if (kept := _kept(folder, experiment)) is not None:
        return kept
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LongRunWarning)  # showing what happens then is the point
        result = simulate(
            list(experiment.bandits), experiment.policies, horizon=experiment.horizon, realizations=repeats, seed=seed,
            device="cpu" if experiment.keep else device, executor=None if experiment.keep else executor,
            belief=experiment.belief, progress=progress,
            times=np.array(experiment.times) if isinstance(experiment.times, tuple) else experiment.times,
            keep=experiment.keep, store=None if experiment.keep else folder / "store" / experiment.name,
        )  # fmt: skip
    attributes = result.attrs
    if experiment.keep:
        result = summarize(result).assign_attrs(theta=np.array(getattr(experiment.bandits[0], "probabilities", ())))
    else:
        result = _labelled(result, experiment)
    result.attrs = attributes | result.attrs
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    result.to_netcdf(unfinished, engine="scipy")
    unfinished.replace(path)
    shutil.rmtree(folder / "store" / experiment.name, ignore_errors=True)  # the pieces are in the dataset now
    return result


def _labelled(result: xr.Dataset, experiment: Experiment) -> xr.Dataset:
    """With each problem's words, divergence and noise, and without what only fills the disk."""
    if len(experiment.bandits) > 10:
        result = result.drop_vars([*_BULKY, "final_regret"])
    noise = [float(np.max(getattr(bandit, "noise", 0.0))) for bandit in experiment.bandits]
    return result.assign_coords(
        problem=("bandit", [repr(bandit) for bandit in experiment.bandits]),
        kl=("bandit", [experiment.divergence(bandit) for bandit in experiment.bandits]),
        noise=("bandit", noise),
    )


class RunOptions(TypedDict, total=False):
    """How the simulations are run, as in ``simulate``."""

    device: str
    executor: Any
    progress: Wish


def reproduce(
    folder: str | os.PathLike[str], *, figures: list[int] | None = None, scale: str = "standard",
    realizations: int | None = None, seed: int = SEED, resume: bool = False, force: bool = False,
    say: Callable[[str], None] = lambda _: None, **run: Unpack[RunOptions],
) -> Path:  # fmt: skip
    """The paper's evaluation: datasets, figures and a report in a folder; returns the report's path.

    ``scale`` is "quick" (about a minute), "standard" (about ten minutes on two cores) or "paper" (5000 realizations of
    everything). Only some ``figures`` may be asked for. A run that was stopped goes on with ``resume=True``.
    """
    wished = check_figures(figures)
    checks.one_of("scale", scale, SCALES)
    device, executor, progress = run.get("device", "auto"), run.get("executor"), run.get("progress")
    checks.one_of("device", device, ("auto", "cpu", "cuda"))
    if realizations is not None:
        realizations = checks.integer("realizations", realizations, least=2, most=10**9)
    out = Path(folder)
    settings = {
        "scale": scale,
        "realizations": "its own" if realizations is None else str(realizations),
        "seed": str(checks.seed(seed)),
        "version": __version__,
        "rules": sources_digest(),
    }
    prepare(out, settings, wished, resume=resume, force=force)
    data: Datasets = {}
    for experiment in EXPERIMENTS.values():
        shown = [figure for figure, (names, _) in FIGURES.items() if experiment.name in names]
        if figures is None or set(shown) & set(wished):
            repeats = experiment.repeats(scale, realizations)
            label = f"Figure {' and '.join(map(str, shown))}" if shown else "Beyond"
            size = len(experiment.bandits) * experiment.horizon * repeats
            say(f"{label}: {experiment.title}; T = {experiment.horizon:,}, {repeats:,} realizations,")
            say(f"  {size:,} decisions of each policy")
            began = time.monotonic()
            data[experiment.name] = _play(experiment, out, repeats, seed, device, executor, progress)
            say(f"  done in {time.monotonic() - began:.0f} s")
        elif (kept := _kept(out, experiment)) is not None:
            data[experiment.name] = kept
    drawn = tuple(figure for figure, (names, _) in FIGURES.items() if all(name in data for name in names))
    return _write(out, data, drawn, settings)


def _write(out: Path, data: Datasets, figures: tuple[int, ...], settings: dict[str, str]) -> Path:
    """Draw every figure whose data is there, and write the report of all of them."""
    pictures = {}
    try:
        for figure in figures:
            names, draw = FIGURES[figure]
            picture = draw(*(data[name] for name in names))
            for suffix in ("png", "pdf"):
                picture.savefig(out / "figures" / f"figure{figure}.{suffix}", dpi=150)
            pictures[figure] = out / "figures" / f"figure{figure}.png"
        any_data = next(iter(data.values()))
        about = {name: value for name, value in settings.items() if value != "its own" and name != "rules"}
        device = f"{any_data.attrs['device']} ({platform.machine()}, {os.cpu_count()} cores)"
        about |= {"device": device, "on": str(any_data.attrs["created_at"])[:10]}
        blocks = report.write_blocks(data, pictures, about)
        (out / "report.md").write_text(document.to_markdown(blocks, out), encoding="utf-8")
        page = out / "report.html"
        page.write_text(document.to_html(blocks, report.TITLE), encoding="utf-8")
    except OSError as problem:
        raise OutputError(f"--out {str(out)!r} cannot be written: {problem.strerror or problem}.") from None
    return page
