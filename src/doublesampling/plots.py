"""Pictures of results: pure functions from a dataset to a matplotlib figure."""

import io
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from doublesampling import checks
from doublesampling.errors import SettingError

# Okabe and Ito's colours, told apart by colour-blind readers; dashes tell them apart in grey
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
_MANY = (0.1, 0.9)  # of several bandits: the band goes from this quantile to that one


class NotebookFigure(Figure):
    """A figure that a notebook shows where it is the last value of a cell, without %matplotlib."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=100)
        return picture.getvalue()


def look(index: int) -> dict[str, Any]:
    """Return the colour and dash of the index-th line."""
    return {"color": COLOURS[index % len(COLOURS)], "linestyle": DASHES[index % len(DASHES)], "linewidth": 1.5}


def plain(axes: Axes) -> None:
    """Draw a quiet frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)


def _choose(result: xr.Dataset, name: str, bandit: int | str | None) -> tuple[xr.Dataset, str]:
    """Return the bandits to draw, and a title that says which: one that is named, the only one, or all."""
    if name not in result or "time" not in result[name].dims:
        raise SettingError(f"A picture over time needs {name!r} with a time axis, as ds.simulate returns it.")
    if "bandit" not in result[name].dims:  # chosen or averaged over before
        if bandit is not None:
            raise SettingError("This result holds one bandit only. Leave bandit= out.")
        return result, f"bandit {result.bandit.item()}" if "bandit" in result.coords else ""
    known = result.bandit.values.tolist()
    if bandit is None:
        if len(known) == 1:
            return result.isel(bandit=0), "" if known == [0] else f"bandit {known[0]}"
        return result, f"mean of {len(known)} bandits, band: {_MANY[0]:.0%} to {_MANY[1]:.0%} of them"
    if bandit not in known:
        some = ", ".join(map(repr, known[:5])) + (f" and {len(known) - 5} others" if len(known) > 5 else "")
        raise SettingError(f"bandit must be one of {some}, got {checks.shown(bandit)}.")
    return result.isel(bandit=known.index(bandit)), f"bandit {bandit}"


def _band(cell: xr.Dataset, name: str, band: str | None) -> tuple[Any, Any] | None:
    """Return the edges of the band around a line: between bandits, or of a variable that says how wide it is."""
    if "bandit" in cell[name].dims:
        low, high = cell[name].quantile(list(_MANY), dim="bandit").values
        return low, high
    if band is None or band not in cell or np.isnan(cell[band]).all():
        return None
    return (cell[name] - cell[band]).values, (cell[name] + cell[band]).values


def _lines(
    result: xr.Dataset, name: str, label: str, bandit: int | str | None, ax: Axes | None, band: str | None = None
) -> tuple[Figure, Axes]:
    """Draw one line per policy over time, each with a band where there is one."""
    chosen, title = _choose(result, name, bandit)
    if ax is None:
        figure: Any = NotebookFigure(figsize=(7.0, 4.2), layout="constrained")
        axes = figure.subplots()
    elif isinstance(ax, Axes):
        axes, figure = ax, ax.figure
    else:
        raise SettingError(f"ax must be matplotlib axes, got {checks.shown(ax)}.")
    if "policy" not in chosen[name].dims:
        chosen = chosen.expand_dims("policy")
    time = chosen.time.values
    for i in range(chosen.sizes["policy"]):
        cell = chosen.isel(policy=i)
        middle = cell[name].mean("bandit").values if "bandit" in cell[name].dims else cell[name].values
        axes.plot(time, middle, label=str(cell.policy.item()) if "policy" in cell.coords else None, **look(i))
        edges = _band(cell, name, band)
        if edges is not None:
            axes.fill_between(time, *edges, color=look(i)["color"], alpha=0.12, linewidth=0)
    axes.set(xlabel="time step t", ylabel=label, xlim=(time[0], max(time[-1], time[0] + 1)))
    if title:
        axes.set_title(title, fontsize="medium")
    if "policy" in chosen.coords:
        axes.legend(framealpha=0.85, edgecolor="none")
    plain(axes)
    return figure, axes


def draw_regret(
    result: xr.Dataset, *, bandit: int | str | None = None, spread: str = "error", ax: Axes | None = None
) -> Figure:
    """Draw cumulative expected regret, with a band of two standard errors ("error") or one deviation ("std")."""
    checks.one_of("spread", spread, ("error", "std"))
    width, words = f"cumulative_regret_{spread}", ""
    if width in result and not np.isnan(result[width]).all():
        result = result.assign(band=result[width] * (2.0 if spread == "error" else 1.0))
        one = "bandit" not in result["band"].dims or result.sizes["bandit"] == 1 or bandit is not None
        words = f" ({'± 2 standard errors' if spread == 'error' else '± standard deviation'})" if one else ""
    figure, axes = _lines(result, "cumulative_regret", f"cumulative regret{words}", bandit, ax, "band")
    axes.set_ylim(bottom=min(0.0, float(np.nanmin(result.cumulative_regret))))
    return figure


def draw_optimal_arm(result: xr.Dataset, *, bandit: int | str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the share of realizations that play the best arm."""
    figure, axes = _lines(result, "optimal_arm_rate", "share playing the best arm", bandit, ax)
    axes.set_ylim(0.0, 1.02)
    return figure


def draw_candidates(result: xr.Dataset, *, bandit: int | str | None = None, ax: Axes | None = None) -> Figure:
    """Draw the mean number of candidates."""
    figure, axes = _lines(result, "candidates", "mean candidates drawn, N", bandit, ax)
    axes.set_yscale("log")
    return figure
