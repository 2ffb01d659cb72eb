"""``ds.calibrate``: the threshold whose type I error is at most alpha, whatever the null."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.arm_shares import find_arm
from doublesampling.checks import shown
from doublesampling.errors import SettingError
from doublesampling.trials.trial import Trial

FloatArray = NDArray[np.float64]

PARAMETERS = ("superiority", "equivalence", "futility")
METHODS = ("auto", "exact", "simulate")
_LOWEST, _HIGHEST = 0.5, 1.0 - 1e-9
_LONGEST_AUTO = 120  # decisions; beyond, some twenty exact passes take longer than people wait


@dataclass(frozen=True)
class Calibration:
    """A calibrated threshold, its trial, and how sure both are."""

    parameter: str
    """The threshold that was calibrated."""
    threshold: float
    """The smallest threshold found whose type I error is at most alpha at every null."""
    threshold_error: float
    """Its error: by how much one Monte Carlo error of the type I error moves the threshold, at least the tolerance."""
    type_1_error: float
    """The largest type I error over the nulls, with the threshold."""
    type_1_error_error: float
    """Its Monte Carlo error; 0 where it is exact."""
    alpha: float
    realizations: int
    """How many trials were simulated at each null; 0 where the error is exact."""
    trial: Trial
    """The design with the calibrated threshold."""
    characteristics: xr.Dataset
    """Its operating characteristics at the nulls."""
    steps: tuple[tuple[float, float], ...]
    """Thresholds that were tried, and their type I errors."""

    def __str__(self) -> str:
        nulls = self.characteristics.sizes["scenario"]
        if not self.realizations:
            return (
                f"{self.parameter} {self.threshold:.5f}: exact type I error {self.type_1_error:.6f}, at most "
                f"{self.alpha:g} over {nulls} nulls"
            )
        return (
            f"{self.parameter} {self.threshold:.5f} ± {self.threshold_error:.5f}: type I error "
            f"{self.type_1_error:.4f} ± {self.type_1_error_error:.4f} at most {self.alpha:g} over "
            f"{nulls} nulls, {self.realizations} realizations each (± is one Monte "
            "Carlo error)"
        )


def with_threshold(trial: Trial, parameter: str, threshold: float, mirror: bool) -> Trial:
    """Return a trial with another threshold; with ``mirror``, inferiority becomes 1 - superiority."""
    changes = {parameter: threshold}
    if mirror:
        changes["inferiority"] = 1.0 - threshold
    return replace(trial, stopping=replace(trial.stopping, **changes))  # type: ignore[type-var]


def calibrate(
    trial: Trial,
    nulls: Any,
    alpha: float = 0.05,
    parameter: str = "superiority",
    *,
    mirror: bool = False,
    realizations: int = 1000,
    tolerance: float = 1e-4,
    seed: int = 0,
    method: str = "auto",
    **circumstances: Any,
) -> Calibration:
    """Find the threshold of a stopping rule whose type I error is at most ``alpha`` at every null.

    ``nulls`` are scenarios as in ``trial.simulate`` in which the trial should not end for ``parameter``:
    "superiority", "equivalence" or "futility". The error depends on where the null lies: give a grid of them. With
    ``mirror``, inferiority moves along as 1 - superiority. All thresholds meet the same random numbers, and bisection
    ends when the threshold is known to the ``tolerance``. ``circumstances`` are delay, dropout, trend and threads.

    ``method`` is "simulate", "exact" (where ``trial.exact`` is possible: two binary arms; no Monte Carlo error), or
    "auto": exact where that is possible within seconds.

    >>> import doublesampling as ds
    >>> trial = ds.Trial(
    ...     arms=["control", "new"], belief=ds.BetaBernoulli(arms=2), policy=ds.ThompsonSampling(),
    ...     allocation=ds.Allocation(floor=0.2, update="look"), stopping=ds.Stopping(looks=50, superiority=0.99),
    ...     horizon=200,
    ... )
    >>> found = ds.calibrate(trial, [[0.3, 0.3], [0.5, 0.5]], realizations=500, seed=1)
    >>> found.type_1_error <= 0.05 and 0.96 < found.threshold < 0.995
    True
    """
    alpha = checks.within("alpha", alpha, 1e-6, 0.5)
    tolerance = checks.within("tolerance", tolerance, 1e-8, 0.1)
    realizations = checks.integer("realizations", realizations, least=10, most=10**8)
    _check(trial, parameter, mirror)
    if parameter == "superiority":
        _check_nulls(trial, nulls)
    if _is_exact(trial, method, circumstances):
        realizations = 0
    run = {"realizations": realizations, "seed": seed, "equal": False} | circumstances
    tried: dict[float, xr.Dataset] = {}

    def error_at(threshold: float) -> float:
        if threshold not in tried:
            design = with_threshold(trial, parameter, threshold, mirror)
            if realizations:
                tried[threshold] = design.simulate(nulls, **run)
            else:
                tried[threshold] = design.exact(nulls, equal=False, threads=circumstances.get("threads"))
        return float(tried[threshold][f"probability_{parameter}"].max())

    low, high = _bracket(trial, error_at, alpha, mirror)
    while high - low > tolerance:
        middle = _between(low, high)
        low, high = (middle, high) if error_at(middle) > alpha else (low, middle)
    error = error_at(high)
    spread = math.sqrt(max(alpha * (1.0 - alpha), error * (1.0 - error)) / realizations) if realizations else 0.0
    return Calibration(
        parameter=parameter,
        threshold=high,
        threshold_error=max(spread * _distance_per_error(high, error_at) if realizations else 0.0, high - low),
        type_1_error=error,
        type_1_error_error=spread,
        alpha=alpha,
        realizations=realizations,
        trial=with_threshold(trial, parameter, high, mirror),
        characteristics=tried[high],
        steps=tuple((threshold, error_at(threshold)) for threshold in sorted(tried)),
    )


def _check(trial: object, parameter: str, mirror: bool) -> None:
    if not isinstance(trial, Trial) or trial.stopping is None:
        raise SettingError(f"calibrate needs a Trial with a stopping rule, got {shown(trial)}.")
    checks.one_of("parameter", parameter, PARAMETERS)
    if checks.flag("mirror", mirror) and parameter != "superiority":
        raise SettingError(f"mirror ties inferiority to superiority; it does not go with parameter={parameter!r}.")
    if getattr(trial.stopping, parameter) is None:
        raise SettingError(
            f"The stopping rule has no {parameter} to calibrate. Give it one, such as Stopping({parameter}=0.99)."
        )


def _check_nulls(trial: Trial, nulls: Any) -> None:
    """Refuse scenarios in which an arm is superior: an end for superiority would be no error there."""
    control = trial.stopping.control if trial.stopping is not None else None
    each = nulls.values() if isinstance(nulls, Mapping) else nulls if isinstance(nulls, (list, tuple)) else ()
    for null in each:
        means = np.asarray(null) if isinstance(null, (list, tuple, np.ndarray)) else np.empty(0)
        if means.dtype.kind not in "iuf" or means.shape != (len(trial.arms),):
            continue  # weights of contexts, or refused with the other scenarios
        if control is None:
            right, wanted = (means == means.max()).sum() > 1, "the best arm must have an equal"
        else:
            place = find_arm("control", control, trial.arms)
            right, wanted = means.max() <= means[place], f"no arm may be better than the control {control!r}"
        if not right:
            raise SettingError(
                f"In a null {wanted}, got {shown(null)}. Where an arm is superior, finding it is no error."
            )


def _is_exact(trial: Trial, method: str, circumstances: dict[str, Any]) -> bool:
    """Return whether errors are to be computed exactly; refuse where that was asked for and cannot be."""
    if checks.one_of("method", method, METHODS) == "simulate":
        return False
    from doublesampling.exact.trial import TrialPass

    simulated = [name for name, value in circumstances.items() if name != "threads" and value]
    try:
        if simulated:
            raise SettingError(f"Exact errors know no {', '.join(simulated)}. Use method='simulate'.")
        TrialPass(trial)
    except SettingError:
        if method == "exact":
            raise
        return False
    return method == "exact" or trial.horizon <= _LONGEST_AUTO


def _between(low: float, high: float) -> float:
    """Return the middle of two thresholds by their log odds: those near 1 are told apart."""
    middle = 0.5 * (math.log(low / (1.0 - low)) + math.log(high / (1.0 - high)))
    return 1.0 / (1.0 + math.exp(-middle))


def _bracket(trial: Trial, error_at: Any, alpha: float, mirror: bool) -> tuple[float, float]:
    """Return a threshold whose error is above alpha, or the lowest one that makes sense, and one whose error is not."""
    lowest = _LOWEST
    if mirror:
        lowest = 1.0 - 1.0 / len(trial.arms) + 1e-9
    low, high = max(lowest, 0.9), 0.99
    while error_at(high) > alpha:
        if high >= _HIGHEST:
            raise SettingError(f"No threshold up to {_HIGHEST} has a type I error of at most {alpha:g} at these nulls.")
        low, high = high, min(1.0 - 0.1 * (1.0 - high), _HIGHEST)
    while low > lowest and error_at(low) <= alpha:
        low, high = max(lowest, 1.0 - 3.0 * (1.0 - low)), low
    return low, high


def _distance_per_error(threshold: float, error_at: Any) -> float:
    """Return by how much the threshold moves per unit of type I error, from two thresholds around it."""
    odds = math.log(threshold / (1.0 - threshold))
    lower, upper = (1.0 / (1.0 + math.exp(-(odds + step))) for step in (-0.4, 0.4))
    change = error_at(lower) - error_at(upper)
    return (upper - lower) / change if change > 0.0 else 0.0
