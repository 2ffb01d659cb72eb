"""``dataset.ds``: tables and pictures of a simulation, registered with xarray without importing it.

xarray takes half a second to import, and most of this package does without it. So the accessor is registered at once
where xarray is loaded already, and else when it is: a dataset that was read from a file has it, too.
"""

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Accessor:
    """Tables and pictures of a simulation. Pictures are matplotlib figures; they are returned, not shown."""

    def __init__(self, dataset: "xr.Dataset") -> None:
        self._dataset = dataset

    def plot_regret(
        self, *, bandit: int | str | None = None, spread: str = "error", ax: "Axes | None" = None
    ) -> "Figure":
        """Draw cumulative expected regret over time, with a band of two standard errors or of a deviation ("std").

        Several bandits are averaged, with a band from the 10th to the 90th per cent of them, unless one is named.
        """
        figure: Figure = _load("plots").draw_regret(self._dataset, bandit=bandit, spread=spread, ax=ax)
        return figure

    def plot_optimal_arm(self, *, bandit: int | str | None = None, ax: "Axes | None" = None) -> "Figure":
        """Draw the share of realizations that play the best arm over time."""
        figure: Figure = _load("plots").draw_optimal_arm(self._dataset, bandit=bandit, ax=ax)
        return figure

    def plot_candidates(self, *, bandit: int | str | None = None, ax: "Axes | None" = None) -> "Figure":
        """Draw the mean number of candidates over time."""
        figure: Figure = _load("plots").draw_candidates(self._dataset, bandit=bandit, ax=ax)
        return figure

    def plot_characteristics(self) -> "Figure":
        """Draw how a trial ends in each scenario and how large it gets, for a result of ``trial.simulate``."""
        figure: Figure = _load("trials.figures").draw_characteristics(self._dataset)
        return figure

    def characteristics(self) -> "pd.DataFrame":
        """Return one row per scenario of a result of ``trial.simulate``, with Monte Carlo errors."""
        table: pd.DataFrame = _load("trials.summary").table_of(self._dataset)
        return table

    def table(self) -> "pd.DataFrame":
        """Return one row per bandit and policy at the last recorded step: regret, its error, share on the best arm."""
        table: pd.DataFrame = _load("results").table(self._dataset)
        return table


def _load(module: str) -> Any:
    """Import a module of this package when it is needed: it imports xarray."""
    return importlib.import_module(f"doublesampling.{module}")


def register() -> None:
    """Give every dataset the accessor ``ds``, now or as soon as xarray is imported."""
    if "xarray" in sys.modules:
        _register(sys.modules["xarray"])
    else:
        sys.meta_path.insert(0, _WhenImported())


def _register(xarray: Any) -> None:
    if hasattr(xarray, "register_dataset_accessor") and not hasattr(xarray.Dataset, "ds"):
        xarray.register_dataset_accessor("ds")(Accessor)


class _WhenImported(MetaPathFinder):
    """Waits for ``import xarray``, once."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "xarray":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            spec.loader = _Registering(spec.loader)
        return spec


class _Registering(Loader):
    """Loads xarray as its own loader does, then registers the accessor."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _register(module)
