"""Arrays become a dataset with names, units and provenance."""

import datetime
import platform
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from doublesampling import __version__
from doublesampling.engine.blocks import Moments
from doublesampling.engine.plan import Plan
from doublesampling.errors import SettingError

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.float64]

_PER_TIME = ("bandit", "policy", "time")
_LONG_NAMES = {
    "cumulative_regret": "cumulative expected regret, mean over realizations",
    "observed_cumulative_regret": "cumulative observed regret, mean over realizations",
    "optimal_arm_rate": "share of realizations that play the best arm",
}


def _means(plan: Plan, moments: list[list[Moments]], row: int) -> FloatArray:
    """Stack one row of every cell's means, float array (bandit, policy, time); nan where nothing was played."""
    out = np.full((len(plan.problems), len(plan.labels), plan.times.size), np.nan)
    for i, cells in enumerate(moments):
        for j, cell in enumerate(cells):
            if cell.count:
                out[i, j] = cell.means[row]
    return out


def _deviations(plan: Plan, moments: list[list[Moments]], row: int) -> FloatArray:
    """Stack the sample deviation (n - 1) of one row, float array (bandit, policy, time); one realization has none."""
    out = np.full((len(plan.problems), len(plan.labels), plan.times.size), np.nan)
    for i, cells in enumerate(moments):
        for j, cell in enumerate(cells):
            if cell.count > 1:
                out[i, j] = np.sqrt(cell.squares[row] / (cell.count - 1))
    return out


def _rate_deviation(rate: FloatArray, done: NDArray[np.int64]) -> FloatArray:
    """The sample deviation of indicators whose mean is a rate, float array (bandit, policy, time)."""
    size = np.where(done > 1, done, np.nan)[:, :, None]
    return np.asarray(np.sqrt(rate * (1.0 - rate) * (size / (size - 1.0))))


def to_dataset(plan: Plan, moments: list[list[Moments]], device: str) -> xr.Dataset:
    """Return the result of a simulation as a dataset with names and provenance."""
    done = np.array([[cell.count for cell in cells] for cells in moments])
    root = np.sqrt(np.maximum(done, 1))[:, :, None]
    rate = _means(plan, moments, 2)
    spread = {
        "cumulative_regret": _deviations(plan, moments, 0),
        "observed_cumulative_regret": _deviations(plan, moments, 1),
        "optimal_arm_rate": _rate_deviation(rate, done),
    }
    mean = {
        "cumulative_regret": _means(plan, moments, 0),
        "observed_cumulative_regret": _means(plan, moments, 1),
        "optimal_arm_rate": rate,
    }
    alone = "; nan: one realization has none" if plan.realizations == 1 else ""
    variables: dict[str, Any] = {}
    for name, values in mean.items():
        variables[name] = (_PER_TIME, values, {"long_name": _LONG_NAMES[name]})
        deviation = {"long_name": f"standard deviation over realizations{alone}"}
        variables[f"{name}_std"] = (_PER_TIME, spread[name], deviation)
        error = {"long_name": f"Monte Carlo standard error{alone}"}
        variables[f"{name}_error"] = (_PER_TIME, spread[name] / root, error)
    variables["candidates"] = (_PER_TIME, _means(plan, moments, 3), {"long_name": "mean number of candidates, N"})
    p = np.full((len(plan.problems), len(plan.labels), plan.times.size, plan.arms), np.nan)
    final = np.full((len(plan.problems), len(plan.labels), plan.realizations), np.nan)
    for i, cells in enumerate(moments):
        for j, cell in enumerate(cells):
            if cell.count:
                p[i, j, :, : plan.problems[i].arms] = cell.means[4:].T
                final[i, j, : cell.count] = np.concatenate(cell.final)
    variables["probability_optimal"] = (
        (*_PER_TIME, "arm"), p, {"long_name": "mean probability of each arm being the best, as the policy saw it"},
    )  # fmt: skip
    variables["final_regret"] = (
        ("bandit", "policy", "realization"), final, {"long_name": "cumulative expected regret at the horizon"},
    )  # fmt: skip
    if plan.trajectories:
        variables |= _trajectories(plan, moments)
    dataset = xr.Dataset(
        variables,
        coords={"policy": list(plan.labels), "time": plan.times, "bandit": list(plan.bandits)},
        attrs=provenance(plan, device) | {"interrupted": int((done < plan.realizations).any())},
    )
    dataset["realizations_done"] = (("bandit", "policy"), done, {"long_name": "realizations played"})
    dataset["time"].attrs["long_name"] = "time step"
    return dataset


def _trajectories(plan: Plan, moments: list[list[Moments]]) -> dict[str, Any]:
    """Arms, rewards, N and p of every realization and step."""
    shape = (len(plan.problems), len(plan.labels), plan.realizations, plan.horizon)
    kept = np.full((*shape, 3 + plan.arms), np.nan)
    for i, cells in enumerate(moments):
        for j, cell in enumerate(cells):
            if cell.kept:
                kept[i, j, : cell.count, :, : 3 + plan.problems[i].arms] = np.concatenate(cell.kept)
    dims = ("bandit", "policy", "realization", "step")
    names = ("trajectory_arm", "trajectory_reward", "trajectory_candidates")
    found: dict[str, Any] = {name: (dims, kept[..., i]) for i, name in enumerate(names)}
    return found | {"trajectory_probability_optimal": ((*dims, "arm"), kept[..., 3:])}


def provenance(plan: Plan, device: str) -> dict[str, str]:
    """Return what a reader needs to get the same numbers again."""
    return {
        "created_with": f"doublesampling {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": str(plan.seed),
        "horizon": str(plan.horizon),
        "realizations": str(plan.realizations),
        "device": device,
        **plan.settings,
    }


def table(dataset: xr.Dataset) -> "pd.DataFrame":
    """Return one row per bandit and policy at the last recorded step: regret, its error, share on the best arm."""
    names = {"cumulative_regret": "regret", "cumulative_regret_error": "error", "optimal_arm_rate": "best"}
    missing = [name for name in names if name not in dataset]
    if missing:
        raise SettingError(f"A table needs a result of ds.simulate; this dataset has no {missing[0]!r}.")
    last = dataset[list(names)]
    if "time" in last.dims:
        last = last.isel(time=-1)
    for axis in ("policy", "bandit"):  # what was chosen or averaged over before is no dimension any more
        if axis not in last.dims:
            last = last.expand_dims(axis)
    rows = last.transpose("bandit", "policy", ...).to_dataframe().reset_index()
    return rows.rename(columns=names)[["bandit", "policy", *names.values()]]
