"""Arrays become a dataset with names, units and provenance."""

import datetime
import platform
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from doublesampling import __version__
from doublesampling.engine.blocks import Moments
from doublesampling.engine.plan import Plan

FloatArray = NDArray[np.float64]

_PER_TIME = ("bandit", "policy", "time")
_LONG_NAMES = {
    "cumulative_regret": "cumulative expected regret, mean over realizations",
    "observed_cumulative_regret": "cumulative observed regret, mean over realizations",
    "optimal_arm_rate": "share of realizations that play the best arm",
}


def _stack(plan: Plan, moments: list[list[Moments]], row: int, squared: bool = False) -> FloatArray:
    """One row of every cell's moments, float array (bandit, policy, time); nan where nothing was played."""
    out = np.full((len(plan.problems), len(plan.labels), plan.times.size), np.nan)
    for i, cells in enumerate(moments):
        for j, cell in enumerate(cells):
            if cell.count:
                out[i, j] = np.sqrt(cell.squares[row] / cell.count) if squared else cell.means[row]
    return out


def to_dataset(plan: Plan, moments: list[list[Moments]], device: str) -> xr.Dataset:
    """The result of a simulation."""
    done = np.array([[cell.count for cell in cells] for cells in moments])
    root = np.sqrt(np.maximum(done, 1))[:, :, None]
    rate = _stack(plan, moments, 2)
    spread = {
        "cumulative_regret": _stack(plan, moments, 0, squared=True),
        "observed_cumulative_regret": _stack(plan, moments, 1, squared=True),
        "optimal_arm_rate": np.sqrt(rate * (1.0 - rate)),
    }
    mean = {
        "cumulative_regret": _stack(plan, moments, 0),
        "observed_cumulative_regret": _stack(plan, moments, 1),
        "optimal_arm_rate": rate,
    }
    variables: dict[str, Any] = {}
    for name, values in mean.items():
        variables[name] = (_PER_TIME, values, {"long_name": _LONG_NAMES[name]})
        variables[f"{name}_std"] = (_PER_TIME, spread[name], {"long_name": "standard deviation over realizations"})
        variables[f"{name}_error"] = (_PER_TIME, spread[name] / root, {"long_name": "Monte Carlo standard error"})
    variables["candidates"] = (_PER_TIME, _stack(plan, moments, 3), {"long_name": "mean number of candidates, N"})
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
        coords={"policy": list(plan.labels), "time": plan.times, "bandit": np.arange(len(plan.problems))},
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
    """What a reader needs to get the same numbers again."""
    return {
        "created_with": f"doublesampling {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": str(plan.seed),
        "horizon": str(plan.horizon),
        "realizations": str(plan.realizations),
        "device": device,
        **plan.settings,
    }


@xr.register_dataset_accessor("ds")  # type: ignore[no-untyped-call,unused-ignore]
class Accessor:
    """``result.ds``: tables and pictures of a simulation."""

    def __init__(self, dataset: xr.Dataset) -> None:
        self._dataset = dataset

    def plot_regret(self, **options: Any) -> Any:
        """Cumulative regret over time, a matplotlib figure."""
        from doublesampling import plots

        return plots.draw_regret(self._dataset, **options)

    def plot_optimal_arm(self, **options: Any) -> Any:
        """The share of realizations that play the best arm over time, a matplotlib figure."""
        from doublesampling import plots

        return plots.draw_optimal_arm(self._dataset, **options)

    def plot_candidates(self, **options: Any) -> Any:
        """The mean number of candidates over time, a matplotlib figure."""
        from doublesampling import plots

        return plots.draw_candidates(self._dataset, **options)

    def table(self) -> list[dict[str, Any]]:
        """One row per bandit and policy at the last recorded step: regret, its error, share on the best arm."""
        last = self._dataset.isel(time=-1)
        return [
            {
                "bandit": int(bandit),
                "policy": str(policy),
                "regret": float(last.cumulative_regret.sel(bandit=bandit, policy=policy)),
                "error": float(last.cumulative_regret_error.sel(bandit=bandit, policy=policy)),
                "best": float(last.optimal_arm_rate.sel(bandit=bandit, policy=policy)),
            }
            for bandit in self._dataset.bandit.values
            for policy in self._dataset.policy.values
        ]
