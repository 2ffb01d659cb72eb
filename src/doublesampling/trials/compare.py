"""``ds.compare_designs``: designs side by side, as a table and a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import xarray as xr

from doublesampling.checks import shown
from doublesampling.errors import SettingError
from doublesampling.trials.summary import table_of
from doublesampling.trials.trial import Trial

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class DesignComparison:
    """Operating characteristics of several designs, on the same scenarios and random numbers."""

    data: xr.Dataset
    """The variables of ``trial.simulate`` with a first dimension ``design``."""

    def table(self) -> "pd.DataFrame":
        """Return one row per design and scenario, with Monte Carlo errors."""
        return table_of(self.data)

    def plot(self) -> "Figure":
        """Draw error or power, size, failures and the share on the best arm, by scenario."""
        from doublesampling.trials.figures import draw_comparison

        return draw_comparison(self.data)

    def __str__(self) -> str:
        return str(self.table().to_string(index=False))

    def _repr_html_(self) -> str:
        return str(self.table().to_html(index=False))


def compare_designs(
    designs: Sequence[Trial] | Mapping[str, Trial], truths: Any, *, realizations: int = 1000, seed: int = 0, **run: Any
) -> DesignComparison:
    """Simulate several designs of the same arms on the same scenarios, side by side.

    ``designs`` is a list, or a dictionary whose keys name them. ``truths`` as in ``trial.simulate``; ``run`` are its
    delay, dropout, trend and threads.

    >>> import doublesampling as ds
    >>> made = {floor: ds.Trial(
    ...     arms=["a", "b"], belief=ds.BetaBernoulli(arms=2), policy=ds.ThompsonSampling(),
    ...     allocation=ds.Allocation(floor=floor, update="look"), stopping=ds.Stopping(looks=50, superiority=0.98),
    ...     horizon=200,
    ... ) for floor in (0.1, 0.4)}
    >>> found = ds.compare_designs(made, [[0.5, 0.5], [0.4, 0.6]], realizations=100, seed=1)
    >>> found.data.probability_superiority.dims
    ('design', 'scenario')
    """
    named = _named(designs)
    arms = {tuple(trial.arms) for trial in named.values()}
    if len(arms) > 1:
        raise SettingError(f"Designs that are compared must have the same arms, got {shown(sorted(arms))}.")
    options = {"realizations": realizations, "seed": seed, "equal": False} | run
    parts = [trial.simulate(truths, **options) for trial in named.values()]
    data = xr.concat(parts, dim="design", combine_attrs="drop_conflicts", data_vars="all")
    data["truth"] = parts[0].truth
    return DesignComparison(data.assign_coords(design=list(named)))


def _named(designs: object) -> dict[str, Trial]:
    if isinstance(designs, Mapping):
        named = {str(name): trial for name, trial in designs.items()}
    elif isinstance(designs, (list, tuple)):
        named = {f"design {i + 1}": trial for i, trial in enumerate(designs)}
    else:
        raise SettingError(f"designs must be a list or dictionary of Trials, got {shown(designs)}.")
    if not named:
        raise SettingError("compare_designs needs at least one Trial, got none.")
    for trial in named.values():
        if not isinstance(trial, Trial):
            raise SettingError(f"designs must be Trials, got {shown(trial)}.")
    return named
