"""Tables that spare simulations work: p_FA by two counts of samples, and N by one count of two arms."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.cached import kept_for
from doublesampling.rules.choose import candidates

FloatArray = NDArray[np.float64]


@functools.cache
def _fill_false_alarms(false_alarm_rule: int) -> Callable[..., None]:
    @kept_for(false_alarm_rule)
    def fill(samples: int, table: FloatArray) -> None:
        for best in range(samples + 1):
            for count in range(min(best, samples - best) + 1):
                rest = (samples - best) / samples
                table[count, best] = candidates.false_alarm(false_alarm_rule, count / samples, best / samples, rest)

    return fill


def false_alarm_table(false_alarm_rule: int, samples: int) -> FloatArray:
    """Return p_FA by (count of the arm, count of the leader), float array (samples + 1, samples + 1)."""
    table = np.zeros((samples + 1, samples + 1))
    _fill_false_alarms(false_alarm_rule)(samples, table)
    return table


@functools.cache
def _fill_two_arm_counts(false_alarm_rule: int) -> Callable[..., None]:
    @kept_for(false_alarm_rule)
    def fill(samples: int, rate: float, cap: int, numbers: FloatArray) -> None:
        for count in range(samples + 1):
            loser = min(count, samples - count)
            share = loser / samples
            p_fa = candidates.false_alarm(false_alarm_rule, share, (samples - loser) / samples, share)
            numbers[count, 0] = candidates.number_from_false_alarm(p_fa, rate, cap)

    return fill


def two_arm_counts(false_alarm_rule: int, samples: int, rate: float, cap: int) -> FloatArray:
    """Return N by how many of the M samples found the first of two arms the best, float array (samples + 1, 1)."""
    numbers = np.empty((samples + 1, 1))
    _fill_two_arm_counts(false_alarm_rule)(samples, rate, cap, numbers)
    return numbers
