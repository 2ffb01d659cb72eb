"""Double sampling in one compiled call: the estimate, N, the candidates, their mode and the propensities."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import entry_points
from doublesampling.rules.bundles import Policy
from doublesampling.rules.cached import kept_for
from doublesampling.rules.choose import choose as choosing
from doublesampling.rules.choose import mode
from doublesampling.rules.choose import propensities as propensities_of
from doublesampling.rules.optimal_arm import quadrature

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]


@functools.cache
def _sample_twice(form: int) -> Callable[..., tuple[int, int]]:
    @kept_for(form)
    def play(
        settings: FloatArray, words: WordArray, p: FloatArray, votes: IntArray, propensities: FloatArray
    ) -> tuple[int, int]:
        samples, cap, first_of_ties = int(settings[0]), int(settings[1]), settings[2] > 0.0
        address, no_table = entry_points.address_of(words), propensities.reshape((1, propensities.size))
        policy = Policy(
            samples, cap, first_of_ties, int(settings[3]), settings[4], settings[5], 0.0, no_table
        )  # in the order of settings_array; no form reads the table, so any array stands in for it
        if samples > 0:  # how many of M posterior samples favour each arm, drawn at once
            quadrature.sampled_optimality(address, samples, p, votes)
        number = choosing.count_candidates(form, policy, float(address[3]), p, votes)
        mode.draw_candidates(address, number, p, votes)
        if p.size == 2:
            propensities_of.fill_propensities_of_two(number, p, first_of_ties, propensities)
        return mode.mode(votes, first_of_ties, address), number

    return play


def settings_array(policy: Policy) -> FloatArray:
    """Return the settings of double sampling as sample_twice takes them."""
    return np.array(policy[:6], dtype=np.float64)


def sample_twice(
    form: int, settings: FloatArray, p: FloatArray, words: WordArray
) -> tuple[int, int, FloatArray, IntArray, FloatArray]:
    """Return the arm, N, the estimate p_hat, the votes and the propensities of double sampling, from exact p.

    ``settings`` of zero samples take p as it is.
    """
    arms = p.size
    estimate, votes, propensities = p.copy(), np.empty(arms, dtype=np.int64), np.empty(arms)
    arm, number = _sample_twice(form)(settings, words, estimate, votes, propensities)
    if arms > 2:
        propensities = entry_points.mode_propensities(number, estimate, settings[2] > 0.0)
    return arm, number, estimate, votes, propensities
