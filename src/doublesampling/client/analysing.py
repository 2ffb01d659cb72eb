"""Requests for analyses: estimates, exact tests and confidence sequences, and their responses as in ``ds.Experiment``.

Libraries that only analyses need are imported when one is asked for.
"""

import math
from collections.abc import Sequence as Listed
from typing import TYPE_CHECKING, Any

import numpy as np

from doublesampling import checks
from doublesampling.client.calls import FRESH, Call, experiment_path
from doublesampling.client.errors import ForbiddenError, make_error
from doublesampling.errors import ArmError, SettingError

if TYPE_CHECKING:
    from doublesampling.exact.significance import ExactTest
    from doublesampling.inference import Analysis, Sequence
    from doublesampling.inference.analysis import AnalysisSettings

POINTS = 1025
"""The points of a confidence sequence that a service keeps at most."""
_MOST_ARMS = 10_000


def _listed(contrast: object) -> list[object]:
    """The arms of a contrast, each a name or an index."""
    given = contrast.tolist() if isinstance(contrast, np.ndarray | np.generic) else contrast
    return list(given) if isinstance(given, tuple | list) else [given]


def needs_names(contrast: object) -> bool:
    """Return whether an arm of a contrast is given by its name, so that the names of all arms must be known."""
    return any(isinstance(each, str) for each in _listed(contrast))


def arm_names(name: str) -> Call[Listed[str]]:
    """Return the request for the names of all arms; keys that may not see results may not analyse."""

    def parse(found: Any, _: bool) -> list[str]:
        if found["results"] is None:
            raise ForbiddenError("This key may not see results, and an analysis is one. Use a key with the scope read.")
        return [arm["name"] for arm in found["arms"]]

    return Call(method="GET", path=experiment_path(name), headers=FRESH, parse=parse)


def check_contrast(contrast: object, names: Listed[str]) -> tuple[int, ...]:
    """Return the indices of a contrast: two different arms, or one. ``names`` are needed for arms given by name.

    >>> check_contrast(("20 mg", 0), ["placebo", "20 mg"])
    (1, 0)
    """
    given = _listed(contrast)
    if len(given) not in (1, 2):
        raise ArmError(f"contrast must name two arms, or one, got {checks.shown(contrast)}.")
    arms = tuple(_arm(each, names) for each in given)
    if len(set(arms)) < len(arms):
        raise ArmError(f"contrast must name two different arms, got {checks.shown(contrast)}.")
    return arms


def _arm(given: object, names: Listed[str]) -> int:
    if isinstance(given, str):
        if given not in names:
            raise ArmError(f"There is no arm {given!r}. The arms are {', '.join(map(repr, names))}.")
        return names.index(given)
    return checks.integer("arm", given, least=0, most=_MOST_ARMS - 1, hint="Arms are counted from 0.", error=ArmError)


def _contrast_query(arms: tuple[int, ...]) -> dict[str, str | int]:
    return {"arm": arms[0], "reference": arms[-1]}  # a service takes the same arm twice as the mean of one


def check_settings(method: str, level: float, *, context: object = (), **settings: Any) -> "AnalysisSettings":
    """Return the settings of an analysis, checked as ``ds.analyse`` does."""
    from doublesampling.inference.analysis import AnalysisSettings

    if not isinstance(context, tuple | list) or context:
        raise SettingError(
            "context names columns of a log, and a service has none to name. Leave it out, or export the decisions and "
            "use ds.analyse."
        )
    return AnalysisSettings(method=method, level=level, **settings)


def analysis(name: str, arms: tuple[int, ...], settings: "AnalysisSettings") -> Call["Analysis"]:
    """Return the request for an estimate with its confidence interval."""
    numbers = {"level": settings.level, "null": settings.null, "decay": settings.decay, "initial": settings.initial}
    if settings.bounds is not None:
        numbers |= {"least": settings.bounds[0], "largest": settings.bounds[1]}
    given = {each: repr(value) for each, value in numbers.items() if value is not None}
    return Call(
        method="GET",
        path=experiment_path(name, "analysis"),
        query={**_contrast_query(arms), "method": settings.method, "weights": settings.weights, **given},
        parse=lambda found, _: _parse_analysis(found),
    )


_PLAIN = ("method", "level", "contrast", "null", "rows", "pending", "missing", "imputed", "voided", "unavailable",
          "used_up", "trust")  # fmt: skip
_NUMBERS = {
    "estimate": math.nan, "low": -math.inf, "high": math.inf, "p_value": math.nan, "standard_error": math.nan,
    "effective_sample_size": math.nan, "degrees_of_freedom": math.inf, "least_propensity": math.nan,
}  # fmt: skip
"""Numbers of an analysis, and what each is where the service says null."""


def _parse_analysis(found: dict[str, Any]) -> "Analysis":
    from doublesampling.inference import Analysis

    numbers: dict[str, Any] = {name: _number(found[name], otherwise) for name, otherwise in _NUMBERS.items()}
    worst, ends = found["worst_case"], (-math.inf, math.inf)
    return Analysis(
        outcomes=tuple(found["outcomes"]),
        worst_case=None if worst is None else (_number(worst[0], ends[0]), _number(worst[1], ends[1])),
        **numbers,
        **{name: found[name] for name in _PLAIN},
    )


def _number(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def exact_test(name: str, statistic: object, alternative: str, late: str) -> Call["ExactTest"]:
    """Return the request for the exact test of two binary arms."""
    from doublesampling.exact.significance import ALTERNATIVES, STATISTICS, ExactTest
    from doublesampling.live.exact_testing import LATE

    if callable(statistic):
        raise SettingError(
            f"statistic must be one of {', '.join(map(repr, STATISTICS))}: a function cannot be sent to a service."
        )

    def parse(found: Any, _: bool) -> ExactTest:
        value = _number(found["statistic"], math.nan)
        return ExactTest(found["p_value"], value, found["states"], found["alternative"], found["assumes"])

    return Call(
        method="GET",
        path=experiment_path(name, "exact-test"),
        query={
            "statistic": checks.one_of("statistic", statistic, STATISTICS),
            "alternative": checks.one_of("alternative", alternative, ALTERNATIVES),
            "late": checks.one_of("late", late, LATE),
        },
        parse=parse,
    )


def check_sequence(level: object, method: object) -> tuple[float, str]:
    """Return the settings of a confidence sequence, checked as ``ds.ConfidenceSequence`` does."""
    from doublesampling.inference.streaming import METHODS

    return checks.within("level", level, 0.5, 0.9999), checks.one_of("method", method, METHODS)


def sequence(name: str, arms: tuple[int, ...], level: float, method: str) -> Call["Sequence"]:
    """Return the request for a confidence sequence."""
    return Call(
        method="GET",
        path=experiment_path(name, "sequence"),
        query={**_contrast_query(arms), "level": repr(level), "method": method, "points": POINTS},
        headers=FRESH,
        parse=lambda found, _: _parse_sequence(found),
    )


def _parse_sequence(found: dict[str, Any]) -> "Sequence":
    from doublesampling.inference import Sequence

    if found["refused"] is not None:
        raise make_error(found["refused"], found["reason"], 200)
    nothing = {"outcomes": 0, "estimate": None, "low": None, "high": None}
    points = found["points"] or [nothing]  # before the first outcome there is one point, which says nothing
    estimate, low, high = (
        np.array([_number(point[end], otherwise) for point in points])
        for end, otherwise in (("estimate", math.nan), ("low", -math.inf), ("high", math.inf))
    )
    return Sequence(
        estimate=estimate,
        low=low,
        high=high,
        outcomes=np.array([point["outcomes"] for point in points], dtype=np.int64),
        missing=0,
        contrast=found["title"],
        **{each: found[each] for each in ("method", "level", "pending", "reason")},
    )
