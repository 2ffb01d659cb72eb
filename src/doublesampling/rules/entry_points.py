"""The functions of the rules that Python calls: each allocates arrays and calls code compiled for its constants.

More entry points: sample_twice.py, many.py, tables.py, tallies.py, updates.py.

Nothing of another law, and nothing for more arms than there are, is compiled before it is needed.
"""

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import dirichlet, draws, laws
from doublesampling.rules.cached import kept, kept_for
from doublesampling.rules.choose import baselines, mode
from doublesampling.rules.choose import choose as choosing
from doublesampling.rules.choose import propensities as propensities_of
from doublesampling.rules.choose.shares import share_modes
from doublesampling.rules.compiled import inlined
from doublesampling.rules.optimal_arm import (
    compare_whole_beta,
    quadrature,
    small_probabilities,
)
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, PANEL_ROWS
from doublesampling.rules.optimal_arm.regions import EXACT, SURVEY_COLUMNS

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]


@inlined
def address_of(words: WordArray) -> draws.Address:
    """Return a random address from an array of its four words."""
    return words[0], words[1], words[2], words[3]


def quadrature_space(arms: int) -> tuple[FloatArray, FloatArray]:
    """Return work space for the quadrature of so many arms: a survey and a panel."""
    return np.empty((arms, SURVEY_COLUMNS)), np.empty((arms + 1, PANEL_ROWS, PANEL_NODES))


@functools.cache
def _fill_optimality(law: int) -> Callable[..., bool]:
    @kept_for(law)
    def fill(parameters: FloatArray, p: FloatArray, survey: FloatArray, panel: FloatArray) -> bool:
        quadrature.probability_optimal(law, parameters, EXACT, p, survey, panel)
        small = False
        for a in range(p.size):
            small = small or p[a] < small_probabilities.SMALL
        return small

    return fill


@functools.cache
def _fill_small_optimality(law: int) -> Callable[..., None]:
    @kept_for(law)
    def fill(
        parameters: FloatArray,
        p: FloatArray,
        survey: FloatArray,
        panel: FloatArray,
        edges: FloatArray,
        below: FloatArray,
    ) -> None:
        small_probabilities.probability_optimal(law, parameters, p, survey, panel, edges, below)

    return fill


@kept
def _compare_whole_beta(parameters: FloatArray, p: FloatArray) -> bool:
    found = compare_whole_beta.fill_optimality(parameters, p)
    return found and p[0] >= small_probabilities.SMALL and p[1] >= small_probabilities.SMALL


def exact_optimality(law: int, parameters: FloatArray) -> FloatArray:
    """Return p, float array (arm), from marginals (arm, 3), by a sum or by quadrature; small ones keep their digits."""
    if law == laws.BETA and parameters.shape[0] == 2:
        p = np.empty(2)
        if _compare_whole_beta(parameters, p):
            return p
    return quadrature_optimality(law, parameters)


def quadrature_optimality(law: int, parameters: FloatArray) -> FloatArray:
    """Return the same by quadrature, also where a sum would do."""
    law = laws.STUDENT if law == laws.LOGISTIC else law  # log odds rank arms as probabilities do
    arms = parameters.shape[0]
    p, (survey, panel) = np.empty(arms), quadrature_space(arms)
    if _fill_optimality(law)(parameters, p, survey, panel):  # some are small
        edges = np.empty(small_probabilities.MOST_EDGES)
        below = np.empty((edges.size, arms))
        _fill_small_optimality(law)(parameters, p, survey, panel, edges, below)
    return p


@kept
def _fill_estimate(estimate: FloatArray, samples: int, words: WordArray, counts: IntArray) -> None:
    quadrature.sampled_optimality(address_of(words), samples, estimate, counts)


def estimated_optimality(p: FloatArray, samples: int, words: WordArray) -> FloatArray:
    """Return p_hat, float array (arm), as M posterior samples would give it."""
    estimate = p.copy()
    _fill_estimate(estimate, samples, words, np.empty(p.size, dtype=np.int64))
    return estimate


@kept
def _choose_candidate(p: FloatArray, number: int, first_of_ties: bool, words: WordArray, votes: IntArray) -> int:
    return mode.mode_of_candidates(address_of(words), number, p, first_of_ties, votes)


def choose_candidate(
    p: FloatArray, number: int, first_of_ties: bool, words: WordArray
) -> tuple[int, IntArray, FloatArray]:
    """Return the arm played, the votes that elected it, and the propensity of every arm."""
    votes = np.empty(p.size, dtype=np.int64)
    arm = _choose_candidate(p, number, first_of_ties, words, votes)
    return arm, votes, mode_propensities(number, p, first_of_ties)


@kept
def _fill_mode_propensities(
    number: int, p: FloatArray, first_of_ties: bool, space: propensities_of.ModeScratch, out: FloatArray
) -> None:
    share_modes(number, p, first_of_ties, space, out)


def mode_propensities(number: int, p: FloatArray, first_of_ties: bool) -> FloatArray:
    """Return P(arm is the mode of N draws from Cat(p)), float array (arm). Arms with p = 0 are never played."""
    share, out = p / sum(p.tolist()), np.empty(p.size)
    if number == 1:
        return np.minimum(share, 1.0)
    _fill_mode_propensities(number, share, first_of_ties, propensities_of.mode_scratch(number, p.size), out)
    return out


@kept
def choose_largest(values: FloatArray, first_of_ties: bool, words: WordArray) -> int:
    """Return the arm of the largest value."""
    return mode.mode(values, first_of_ties, address_of(words))


@functools.cache
def _fill_indices(kind: int) -> Callable[..., None]:
    @kept_for(kind)
    def fill(seen: FloatArray, priors: FloatArray, time: float, values: FloatArray) -> None:
        choosing.fill_indices(kind, seen, priors, time, values)

    return fill


def indices(kind: int, seen: FloatArray, time: float) -> FloatArray:
    """Return the index of every arm, from its wins and losses, float array (arm, 2); the largest is played."""
    values = np.empty(seen.shape[0])
    _fill_indices(kind)(np.ascontiguousarray(seen, dtype=np.float64), np.zeros(seen.shape), time, values)
    return values


@kept
def second_of_two(first: int, share: float, p: FloatArray, words: WordArray) -> int:
    """Return top-two sampling's arm, after the first was drawn."""
    return baselines.second_of_two(address_of(words), first, share, p)


@functools.cache
def _fill_upper_quantiles(law: int) -> Callable[..., None]:
    @kept_for(law)
    def fill(parameters: FloatArray, log_tail: float, out: FloatArray) -> None:
        for a in range(out.size):
            first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
            out[a] = laws.upper_quantile(law, first, second, third, log_tail, np.nan)[0]

    return fill


def upper_quantiles(law: int, parameters: FloatArray, log_tail: float) -> FloatArray:
    """Return each arm's quantile, float array (arm), in the law's own coordinate."""
    out = np.empty(parameters.shape[0])
    _fill_upper_quantiles(law)(parameters, log_tail, out)
    return out


@functools.cache
def _fill_draws(law: int) -> Callable[..., None]:
    @kept_for(law)
    def fill(parameters: FloatArray, words: WordArray, out: FloatArray) -> None:
        baselines.fill_reward_draws(law, parameters, address_of(words), out)

    return fill


def posterior_draws(law: int, parameters: FloatArray, samples: int, words: WordArray) -> FloatArray:
    """Return posterior draws of the expected rewards, float array (sample, arm)."""
    out = np.empty((samples, parameters.shape[0]))
    _fill_draws(law)(parameters, words, out)
    return out


@kept
def _fill_dirichlet_draws(
    concentration: FloatArray, values: FloatArray, words: WordArray, shares: FloatArray, out: FloatArray
) -> None:
    dirichlet.fill_reward_draws(concentration, values, address_of(words), shares, out)


def dirichlet_draws(concentration: FloatArray, values: FloatArray, samples: int, words: WordArray) -> FloatArray:
    """Return posterior draws of the mean value, float array (sample, arm), from concentrations (arm, category)."""
    out = np.empty((samples, concentration.shape[0]))
    _fill_dirichlet_draws(concentration, values, words, np.empty(values.size), out)
    return out


@kept
def uniform_at(words: WordArray, purpose: np.uint64, index: np.uint64) -> float:
    """Return one uniform, found at its address."""
    return draws.uniform(address_of(words), purpose, index)


@kept
def explore(arm: int, arms: int, epsilon: float, words: WordArray) -> int:
    """Return epsilon-greedy's second thought."""
    return mode.explore(arm, arms, epsilon, address_of(words))


@functools.cache
def _fill_means(law: int) -> Callable[..., None]:
    @kept_for(law)
    def fill(parameters: FloatArray, out: FloatArray) -> None:
        for a in range(out.size):
            out[a] = laws.mean(law, parameters[a, 0], parameters[a, 1])

    return fill


def precisions(law: int, parameters: FloatArray) -> FloatArray:
    """Return how well each arm is known, float array (arm): laws.precision of every arm."""
    first, second = parameters[:, 0], parameters[:, 1]
    if law == laws.BETA:
        return np.asarray(first + second)
    if law == laws.GAMMA:
        return second.copy()
    return first.copy() if law == laws.INVERSE_GAMMA else np.asarray(1.0 / (second * second))


def marginal_means(law: int, parameters: FloatArray) -> FloatArray:
    """Return the mean of each arm's expected reward, float array (arm)."""
    first, second = parameters[:, 0], parameters[:, 1]
    if law == laws.BETA:
        return np.asarray(first / (first + second))
    if law == laws.STUDENT:
        return first.copy()
    out = np.empty(parameters.shape[0])
    _fill_means(law)(parameters, out)
    return out
