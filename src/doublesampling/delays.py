"""How long outcomes take to become known, in further decisions: fixed, or drawn from a law."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from doublesampling import checks
from doublesampling.checks import shown
from doublesampling.errors import SettingError

FloatArray = NDArray[np.float64]

_LONGEST = 10**6
_LEFT_OUT = 1e-12  # of a law's upper tail
LAWS = ("geometric", "poisson", "uniform")
_FORMS = (
    'Write delay=20, delay={"law": "poisson", "mean": 20}, delay={"law": "geometric", "mean": 20}, '
    'delay={"law": "uniform", "low": 0, "high": 40}, or a list of the probabilities of 0, 1, 2, ... further decisions.'
)


class Delay(NamedTuple):
    """A delay as the rules take it."""

    fixed: int
    """Further decisions; -1 where it is drawn."""
    cumulative: FloatArray
    """(d): P(delay <= d), where it is drawn."""

    @property
    def longest(self) -> int:
        """The longest possible delay."""
        return self.fixed if self.fixed >= 0 else self.cumulative.size - 1


def check_delay(delay: Any) -> Delay:
    """Return a delay, from a number, a law with its settings, or a list of probabilities.

    >>> check_delay({"law": "geometric", "mean": 1.0}).cumulative[:2].tolist()
    [0.5, 0.75]
    """
    if delay is None:
        return Delay(0, np.empty(0))
    if isinstance(delay, Mapping):
        return Delay(-1, _cumulative(_law(delay)))
    if isinstance(delay, (list, tuple, np.ndarray)) and np.ndim(delay) == 1:
        given = checks.array("delay", delay, error=SettingError)
        if not given.size or given.min() < 0.0 or abs(given.sum() - 1.0) > 1e-9:
            raise SettingError(f"delay must list probabilities that add up to 1, got {shown(delay)}. {_FORMS}")
        return Delay(-1, _cumulative(given))
    return Delay(checks.integer("delay", delay, least=0, most=_LONGEST, hint=_FORMS), np.empty(0))


def _cumulative(probabilities: FloatArray) -> FloatArray:
    found = np.cumsum(probabilities)
    found[-1] = 1.0
    return found


def _law(given: Mapping[str, Any]) -> FloatArray:
    """Return the probabilities of 0, 1, 2, ... further decisions."""
    law = checks.one_of("delay's law", given.get("law"), LAWS)
    wanted = {"law", "low", "high"} if law == "uniform" else {"law", "mean"}
    if set(given) != wanted:
        raise SettingError(f"delay of law {law!r} has the settings {', '.join(sorted(wanted))}. {_FORMS}")
    if law == "uniform":
        low = checks.integer("delay's low", given["low"], least=0, most=_LONGEST)
        high = checks.integer("delay's high", given["high"], least=low, most=_LONGEST)
        return np.where(np.arange(high + 1) >= low, 1.0 / (high - low + 1), 0.0)
    mean = checks.within("delay's mean", given["mean"], 1e-6, 1e4)
    if law == "geometric":
        stay = mean / (1.0 + mean)
        return np.asarray((1.0 - stay) * stay ** np.arange(math.ceil(math.log(_LEFT_OUT) / math.log(stay)) + 1))
    numbers = np.arange(math.ceil(mean + 8.0 * math.sqrt(mean) + 30.0))
    logs = numbers * math.log(mean) - mean - np.array([math.lgamma(n + 1.0) for n in numbers])
    return np.asarray(np.exp(logs))
