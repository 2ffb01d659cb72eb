"""Operating characteristics as a table: one row per scenario, allocation or design."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from doublesampling.errors import SettingError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "probability_superiority": "P(superiority)",
    "probability_equivalence": "P(equivalence)",
    "probability_futility": "P(futility)",
    "probability_maximum": "P(maximum)",
    "probability_best_selected": "P(best selected)",
    "expected_size": "size",
    "expected_failures": "failures",
    "expected_inferior": "on inferior arms",
}
BEST = "share on the best arm"


def share_on_best(data: xr.Dataset, suffix: str = "") -> xr.DataArray:
    """Return the expected share of participants on arms whose expected outcome is the highest."""
    best = data.truth == data.truth.max("arm")
    return data[f"expected_share{suffix}"].where(best, 0.0).sum("arm")


def table_of(data: xr.Dataset) -> "pd.DataFrame":
    """Return one row per scenario and allocation, or per design and scenario; "±" columns are Monte Carlo errors."""
    import pandas as pd

    if "probability_superiority" not in data or "truth" not in data:
        raise SettingError("This table needs a result of trial.simulate or ds.compare_designs.")
    several = "design" in data.dims
    rows: list[dict[str, Any]] = []
    for design in data.design.values.tolist() if several else [None]:
        for scenario in data.scenario.values.tolist():
            for suffix in ("", "_equal"):
                if f"probability_superiority{suffix}" in data:
                    cell = data.sel(scenario=scenario) if design is None else data.sel(scenario=scenario, design=design)
                    first = {"allocation": "equal" if suffix else "adaptive"} if design is None else {"design": design}
                    rows.append({"scenario": scenario} | first | _row(cell, suffix))
    return pd.DataFrame(rows)


def _row(cell: xr.Dataset, suffix: str) -> dict[str, Any]:
    found: dict[str, Any] = {"truth": ", ".join(f"{mean:g}" for mean in cell.truth.values.tolist())}
    for name, label in COLUMNS.items():
        if f"{name}{suffix}" in cell:
            found[label] = float(cell[f"{name}{suffix}"])
            error = cell.get(f"{name}{suffix}_error")  # exact characteristics have none
            found[f"± {label}"] = float("nan") if error is None else float(error)
    found[BEST] = float(share_on_best(cell, suffix))
    return found


def text_of(data: xr.Dataset) -> list[tuple[str, ...]]:
    """Return the same table as texts, header first: numbers with their Monte Carlo errors."""
    table = table_of(data)
    words = [name for name in ("scenario", "design", "allocation", "truth") if name in table]
    labels = [label for label in COLUMNS.values() if label in table]
    rows: list[tuple[str, ...]] = [(*words, *labels, BEST)]
    for row in table.to_dict("records"):
        cells = [_shown(row[label], row[f"± {label}"], label.startswith("P(")) for label in labels]
        rows.append((*(str(row[word]) for word in words), *cells, f"{row[BEST]:.1%}"))
    return rows


def _shown(value: float, error: float, probability: bool) -> str:
    if probability:
        return f"{value:.1%} ± {error:.1%}" if np.isfinite(error) else f"{value:.1%}"
    return f"{value:.1f} ± {error:.1f}" if np.isfinite(error) else f"{value:.1f}"
