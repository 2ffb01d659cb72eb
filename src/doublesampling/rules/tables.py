"""Tables that spare simulations work: p_FA by two counts of samples, and N by one count of two arms."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.cached import kept_for
from doublesampling.rules.choose import candidates

FloatArray = NDArray[np.float64]


@functools.cache
def _fill_alarms(alarm: int) -> Callable[..., None]:
    @kept_for(alarm)
    def fill(samples: int, table: FloatArray) -> None:
        for best in range(samples + 1):
            for count in range(min(best, samples - best) + 1):
                rest = (samples - best) / samples
                table[count, best] = candidates.false_alarm(alarm, count / samples, best / samples, rest)

    return fill


def false_alarm_table(alarm: int, samples: int) -> FloatArray:
    """Return p_FA by (count of the arm, count of the leader), float array (samples + 1, samples + 1)."""
    table = np.zeros((samples + 1, samples + 1))
    _fill_alarms(alarm)(samples, table)
    return table


@functools.cache
def _fill_two_arm_counts(alarm: int) -> Callable[..., None]:
    @kept_for(alarm)
    def fill(samples: int, rate: float, cap: int, numbers: FloatArray) -> None:
        for count in range(samples + 1):
            loser = min(count, samples - count)
            numbers[count, 0] = candidates.number_from_alarm(
                candidates.false_alarm(alarm, loser / samples, (samples - loser) / samples, loser / samples), rate, cap
            )

    return fill


def two_arm_counts(alarm: int, samples: int, rate: float, cap: int) -> FloatArray:
    """Return N by how many of the M samples found the first of two arms the best, float array (samples + 1, 1)."""
    numbers = np.empty((samples + 1, 1))
    _fill_two_arm_counts(alarm)(samples, rate, cap, numbers)
    return numbers
