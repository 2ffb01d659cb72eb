"""Double sampling as Python calls it: one decision with its record, or only the number of candidates.

The settings of a policy are passed as one array of numbers: at every call from Python, Numba looks at the type of each
argument, and it looks at a named tuple field by field.
"""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import entry_points
from doublesampling.rules.bundles import PolicySettings
from doublesampling.rules.cached import kept_for
from doublesampling.rules.choose import double_sampling
from doublesampling.rules.compiled import spliced
from doublesampling.rules.specialise import specialised

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]


def settings_array(policy: PolicySettings) -> FloatArray:
    """Return the settings of double sampling as numbers, in the order of their fields; the table is left out."""
    return np.array(policy[:6], dtype=np.float64)


@specialised(spliced)
def settings_of(numbers: FloatArray, no_table: FloatArray) -> PolicySettings:
    """Return the settings that settings_array wrote. Nothing reads the table: any array (row, column) stands for it."""
    return PolicySettings(
        int(numbers[0]), int(numbers[1]), numbers[2] > 0.0, int(numbers[3]), numbers[4], numbers[5], 0.0, no_table
    )


@functools.cache
def _sample_twice(form: int) -> Callable[..., tuple[int, int]]:
    @kept_for(form)
    def play(
        settings: FloatArray, words: WordArray, p: FloatArray, precisions: FloatArray, votes: IntArray,
        propensities: FloatArray,
    ) -> tuple[int, int]:  # fmt: skip
        address = entry_points.address_of(words)
        policy = settings_of(settings, propensities.reshape((1, propensities.size)))
        return double_sampling.double_sampling_recorded(form, policy, address, p, precisions, votes, propensities)

    return play


def sample_twice(
    form: int, settings: FloatArray, p: FloatArray, precisions: FloatArray, words: WordArray
) -> tuple[int, int, FloatArray, IntArray, FloatArray]:
    """Return the arm, N, the estimate p_hat, the votes and the propensities of double sampling, from exact p.

    ``settings`` of zero samples take p as it is. ``precisions`` may be any array for forms that do not weigh them.
    """
    arms = p.size
    estimate, votes, propensities = p.copy(), np.empty(arms, dtype=np.int64), np.empty(arms)
    arm, number = _sample_twice(form)(settings, words, estimate, precisions, votes, propensities)
    if arms > 2:
        propensities = entry_points.mode_propensities(number, estimate, settings[2] > 0.0)
    return arm, number, estimate, votes, propensities


@functools.cache
def _count_candidates(form: int) -> Callable[..., int]:
    @kept_for(form)
    def count(settings: FloatArray, time: float, p: FloatArray, precisions: FloatArray, votes: IntArray) -> int:
        policy = settings_of(settings, p.reshape((1, p.size)))
        return double_sampling.count_candidates(form, policy, time, p, precisions, votes)

    return count


def count_candidates(form: int, settings: FloatArray, time: float, p: FloatArray, precisions: FloatArray) -> int:
    """Return N from the doubt in p; not all forms look at the time and at the precisions."""
    return _count_candidates(form)(settings, time, p, precisions, np.empty(p.size, dtype=np.int64))
