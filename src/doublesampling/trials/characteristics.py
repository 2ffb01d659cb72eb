"""How trials ended, as operating characteristics: a dataset whose every variable has its Monte Carlo error."""

import datetime
import platform
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from doublesampling import __version__
from doublesampling.rules.looks.bundles import EQUIVALENCE, FUTILITY, MAXIMUM, SUPERIORITY
from doublesampling.rules.trials.bundles import (
    ASSIGNED,
    KNOWN,
    KNOWN_SQUARES,
    KNOWN_TOTAL,
    TOTAL,
)
from doublesampling.trials.play import Ends

FloatArray = NDArray[np.float64]

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_LEVEL = 1.959963984540054  # of the naive 95 % interval

LONG_NAMES = {
    "probability_superiority": "probability that the trial ends for superiority",
    "probability_equivalence": "probability that the trial ends for equivalence",
    "probability_futility": "probability that the trial ends for futility",
    "probability_maximum": "probability that the trial ends at its largest size",
    "probability_selected": "probability that the trial selects the arm",
    "probability_superior": "probability that the trial ends because the arm is superior",
    "probability_best_selected": "probability that the selected arm has the highest expected outcome",
    "expected_size": "participants",
    "size_std": "standard deviation of the number of participants",
    "expected_looks": "looks",
    "expected_successes": "sum of the outcomes of all participants (successes, where they are 0 or 1)",
    "expected_failures": "participants whose outcome is 0",
    "expected_inferior": "participants on arms that are not the best",
    "expected_share": "share of the participants on each arm",
    "bias": "bias of the sample mean of each arm",
    "rmse": "root mean squared error of the sample mean of each arm",
    "effect_bias": "bias of the difference of sample means, arm - reference",
    "effect_rmse": "root mean squared error of the difference of sample means, arm - reference",
    "naive_coverage": "coverage of the naive 95 % interval for arm - reference, which ignores that the data chose",
}


def to_dataset(
    trial: Any, scenarios: list[Any], means: FloatArray, played: dict[str, Ends], assumed: dict[str, str]
) -> xr.Dataset:
    """Return the operating characteristics; means : float array (scenario, arm), the truth."""
    reference = trial.control or 0
    variables: dict[str, Any] = {"truth": (("scenario", "arm"), means, {"long_name": "expected outcome of the arm"})}
    for suffix, found in played.items():
        for name, (dims, values, error) in _describe(found, means, reference, trial.belief).items():
            of = {"long_name": LONG_NAMES[name] + (", equal allocation" if suffix else "")}
            variables[f"{name}{suffix}"] = (dims, values, of)
            variables[f"{name}{suffix}_error"] = (dims, error, {"long_name": f"Monte Carlo error of {name}{suffix}"})
        quantiles = np.quantile(found.size, QUANTILES, axis=1).T
        variables[f"size_quantile{suffix}"] = (("scenario", "quantile"), quantiles)
    return xr.Dataset(
        variables,
        coords={"scenario": scenarios, "arm": list(trial.arms), "quantile": list(QUANTILES)},
        attrs={
            "created_with": f"doublesampling {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
            "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "trial": repr(trial),
            "reference": trial.arms[reference],
            **assumed,
        },
    )


def _mean(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return means over realizations, the second axis, and their Monte Carlo errors; nan is no value."""
    there = ~np.isnan(values)
    count = there.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(there, values, 0.0).sum(axis=1) / count
        squares = np.where(there, (values - np.expand_dims(mean, 1)) ** 2, 0.0).sum(axis=1)
        return mean, np.where(count > 1, np.sqrt(squares / (count - 1.0) / count), np.nan)


def _rmse(errors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return root mean squares, and their errors by the delta method."""
    square, error = _mean(errors**2)
    with np.errstate(invalid="ignore", divide="ignore"):
        root = np.sqrt(square)
        return root, np.where(root > 0.0, error / (2.0 * root), 0.0)


def _describe(found: Ends, means: FloatArray, reference: int, belief: Any) -> dict[str, tuple[Any, Any, Any]]:
    """Return every characteristic with its dimensions and its Monte Carlo error."""
    outcome, selected, size, arms = found.outcome, found.selected, found.size.astype(float), found.arms
    count = arms.shape[2]
    one, each = ("scenario",), ("scenario", "arm")
    best = means == means.max(axis=1, keepdims=True)
    chosen = selected[:, :, None] == np.arange(count)
    values: dict[str, tuple[Any, NDArray[Any]]] = {
        "probability_superiority": (one, outcome == SUPERIORITY),
        "probability_equivalence": (one, outcome == EQUIVALENCE),
        "probability_futility": (one, outcome == FUTILITY),
        "probability_maximum": (one, outcome == MAXIMUM),
        "probability_selected": (each, chosen),
        "probability_superior": (each, chosen & (outcome == SUPERIORITY)[:, :, None]),
        "probability_best_selected": (one, (chosen & best[:, None, :]).any(axis=2)),
        "expected_size": (one, size),
        "expected_looks": (one, found.looks),
        "expected_successes": (one, arms[..., TOTAL].sum(axis=2)),
        "expected_inferior": (one, (arms[..., ASSIGNED] * ~best[:, None, :]).sum(axis=2)),
        "expected_share": (each, arms[..., ASSIGNED] / size[:, :, None]),
    }
    if getattr(belief, "binary", False):
        values["expected_failures"] = (one, size - arms[..., TOTAL].sum(axis=2))
    described = {name: (dims, *_mean(np.asarray(given, dtype=float))) for name, (dims, given) in values.items()}
    deviation = size.std(axis=1, ddof=1) if size.shape[1] > 1 else np.full(len(size), np.nan)
    fourth = ((size - size.mean(axis=1, keepdims=True)) ** 4).mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt(np.maximum(fourth - deviation**4, 0.0) / size.shape[1]) / (2.0 * deviation)
    described["size_std"] = (one, deviation, np.where(deviation > 0.0, spread, 0.0))
    return described | _estimates(arms, means, reference)


def _estimates(arms: FloatArray, means: FloatArray, reference: int) -> dict[str, tuple[Any, Any, Any]]:
    """Return bias and error of sample means and their differences, from the outcomes known when the trial ended."""
    each = ("scenario", "arm")
    known = arms[..., KNOWN]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known > 0.0, arms[..., KNOWN_TOTAL] / known, np.nan)
        variance = np.maximum(arms[..., KNOWN_SQUARES] / known - mean**2, 0.0) / known
        off = mean - means[:, None, :]
        effect = off - off[:, :, reference : reference + 1]
        width = _LEVEL * np.sqrt(variance + variance[:, :, reference : reference + 1])
        covered = np.where(np.isnan(effect), np.nan, (np.abs(effect) <= width).astype(float))
    effect[:, :, reference] = covered[:, :, reference] = np.nan  # an arm has no effect against itself
    return {
        "bias": (each, *_mean(off)),
        "rmse": (each, *_rmse(off)),
        "effect_bias": (each, *_mean(effect)),
        "effect_rmse": (each, *_rmse(effect)),
        "naive_coverage": (each, *_mean(covered)),
    }
