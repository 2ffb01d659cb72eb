"""Regret and information of information-directed sampling, and its choice, as Python calls them."""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.cached import kept, kept_for
from doublesampling.rules.choose import information_directed
from doublesampling.rules.entry_points import address_of, quadrature_space
from doublesampling.rules.optimal_arm import compare_beta_gamma
from doublesampling.rules.optimal_arm.panels import PANEL_NODES
from doublesampling.rules.optimal_arm.regions import EXACT

FloatArray = NDArray[np.float64]
WordArray = NDArray[np.uint64]


@kept
def _tally_draws(samples: FloatArray, tally: FloatArray) -> None:
    information_directed.tally_draws(samples, tally)


def _new_tally(arms: int) -> FloatArray:
    return np.empty((arms + information_directed.EXTRA_ROWS, arms))


def tally_draws(samples: FloatArray) -> FloatArray:
    """Return what information-directed sampling knows of posterior draws (sample, arm)."""
    tally = _new_tally(samples.shape[1])
    _tally_draws(samples, tally)
    return tally


@functools.cache
def _tally_exactly(law: int) -> Callable[..., None]:
    @kept_for(law)
    def fill(
        parameters: FloatArray, survey: FloatArray, panel: FloatArray, partial: FloatArray, tally: FloatArray
    ) -> None:
        closed = False
        if law != laws.BETA:
            closed = compare_beta_gamma.resolved(law, parameters)
        if closed:
            compare_beta_gamma.tally_two(law, parameters, tally)
        else:
            information_directed.tally_exactly(law, parameters, EXACT, survey, panel, partial, tally)

    return fill


def tally_exactly(law: int, parameters: FloatArray) -> FloatArray:
    """Return the same from marginals (arm, 3): in closed form where there is one, else by quadrature."""
    arms = parameters.shape[0]
    tally, (survey, panel) = _new_tally(arms), quadrature_space(arms)
    _tally_exactly(law)(parameters, survey, panel, np.empty((arms + 2, PANEL_NODES)), tally)
    return tally


@kept
def _directed_choice(tally: FloatArray, words: WordArray) -> int:
    return information_directed.directed_choice(address_of(words), tally)


def directed_choice(tally: FloatArray, words: WordArray) -> tuple[int, FloatArray]:
    """Return information-directed sampling's arm, and the chance that each arm had, from a tally."""
    return _directed_choice(tally, words), tally[-1].copy()
