"""The doors through which Python calls the rules: compiled once per machine, kept on disk by Numba.

Numba's cache looks only at the file of the function it keeps, so a door would outlive an edit of a rule behind it.
Every door therefore carries a digest of this folder's sources in its name: another source, another door.
"""

import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import (
    belief,
    candidates,
    categories,
    choice,
    directed,
    draws,
    optimality,
    pairs,
    play,
    propensity,
    rivals,
    small_probabilities,
    two_pairs,
)
from doublesampling.rules.compiled import SIMULATED, rule

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
WordArray = NDArray[np.uint64]
P = ParamSpec("P")
R = TypeVar("R")


def sources_digest() -> str:
    """A digest of the source of every rule."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


_DIGEST = sources_digest()


def door(function: Callable[P, R]) -> Callable[P, R]:
    """Compile for calls from Python and keep the machine code on disk under a name that knows its sources."""
    return _kept_on_disk(function)


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A door that makes no arrays, and so need not count references: for loops."""
    return _kept_on_disk(function, _nrt=False)


def _kept_on_disk(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    if SIMULATED:
        return function
    function.__qualname__ = f"{function.__qualname__}_{_DIGEST}"
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        return cast(Callable[P, R], numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no folder to keep machine code in: compile anew in each process
        return cast(Callable[P, R], numba.njit(**options)(function))


@rule
def _address(words: WordArray) -> draws.Address:
    return words[0], words[1], words[2], words[3]


@door
def exact_optimality(family: int, parameters: FloatArray) -> FloatArray:
    """p, float array (arm), by quadrature from marginals (arm, 3)."""
    count = parameters.shape[0]
    p = np.empty(count)
    arms = np.empty((count, optimality.SURVEY_COLUMNS))
    panel = np.empty((count + 1, optimality.PANEL_ROWS, optimality.PANEL_NODES))
    if not small_probabilities.expected(family, parameters, arms):
        optimality.probability_optimal(family, parameters, optimality.EXACT, p, arms, panel)
        if p.min() >= small_probabilities.SMALL:
            return p
    small_probabilities.probability_optimal(family, parameters, p, arms, panel)
    return p


@door
def estimated_optimality(p: FloatArray, samples: int, words: WordArray) -> FloatArray:
    """p_hat, float array (arm), as M posterior samples would give it."""
    estimate = np.empty(p.size)
    for a in range(p.size):
        estimate[a] = p[a]
    optimality.sampled_optimality(_address(words), samples, estimate, np.empty(p.size, dtype=np.int64))
    return estimate


@door
def count_candidates(p: FloatArray, kind: int, rate: float, cap: int, remaining: float) -> int:
    """N, from the doubt in p_hat; from the decisions that remain, too, where they are known (not nan)."""
    if math.isnan(remaining):
        return candidates.number_of_candidates(candidates.log_false_alarm(kind, p), rate, cap)
    return candidates.number_of_candidates_until(remaining, p, cap)


@door
def false_alarm_table(kind: int, samples: int) -> FloatArray:
    """p_FA by (count of the arm, count of the leader), float array (samples + 1, samples + 1)."""
    table = np.zeros((samples + 1, samples + 1))
    for best in range(samples + 1):
        for count in range(min(best, samples - best) + 1):
            rest = (samples - best) / samples
            table[count, best] = candidates.false_alarm(kind, count / samples, best / samples, rest)
    return table


@door
def two_arm_counts(alarms: FloatArray, rate: float, cap: int) -> FloatArray:
    """N by how many of the M samples found the first of two arms the best, from their table of p_FA."""
    samples = alarms.shape[0] - 1
    numbers = np.empty(samples + 1)
    for count in range(samples + 1):
        loser = min(count, samples - count)
        alarm = alarms[loser, samples - loser]
        log_alarm = math.log(alarm) if alarm > 0.0 else -math.inf
        numbers[count] = candidates.number_of_candidates(log_alarm, rate, cap)
    return numbers


@door
def choose_candidate(
    p: FloatArray, number: int, first_of_ties: bool, words: WordArray
) -> tuple[int, IntArray, FloatArray]:
    """The arm played, the votes that elected it, and the propensity of every arm."""
    address = _address(words)
    votes = np.empty(p.size, dtype=np.int64)
    choice.draw_candidates(address, number, p, votes)
    return choice.mode(votes, first_of_ties, address), votes, propensity.mode_propensities(number, p, first_of_ties)


@door
def choose_largest(values: FloatArray, first_of_ties: bool, words: WordArray) -> int:
    """The arm of the largest value."""
    return choice.mode(values, first_of_ties, _address(words))


@door
def indices(kind: int, seen: FloatArray, time: float) -> FloatArray:
    """The index of every arm, from its wins and losses, float array (arm, 2); the largest is played."""
    values = np.empty(seen.shape[0])
    play.fill_indices(kind, seen, np.zeros(seen.shape), time, values)
    return values


@door
def second_of_two(first: int, share: float, p: FloatArray, words: WordArray) -> int:
    """Top-two sampling's arm, after the first was drawn."""
    return rivals.second_of_two(_address(words), first, share, p)


@door
def upper_quantiles(family: int, parameters: FloatArray, log_tail: float) -> FloatArray:
    """Each arm's quantile, float array (arm), in the family's own coordinate."""
    out = np.empty(parameters.shape[0])
    for a in range(out.size):
        first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
        out[a] = belief.marginal_upper_quantile(family, first, second, third, log_tail, math.nan)[0]
    return out


@door
def posterior_draws(family: int, parameters: FloatArray, samples: int, words: WordArray) -> FloatArray:
    """Posterior draws of the expected rewards, float array (sample, arm)."""
    out = np.empty((samples, parameters.shape[0]))
    rivals.fill_reward_draws(family, parameters, _address(words), out)
    return out


@door
def dirichlet_draws(concentration: FloatArray, values: FloatArray, samples: int, words: WordArray) -> FloatArray:
    """Posterior draws of the mean value, float array (sample, arm), from concentrations (arm, category)."""
    out = np.empty((samples, concentration.shape[0]))
    categories.fill_reward_draws(concentration, values, _address(words), np.empty(values.size), out)
    return out


@door
def tally_draws(draws: FloatArray) -> FloatArray:
    """What information-directed sampling knows of posterior draws (sample, arm)."""
    work = np.empty((draws.shape[1] + directed.EXTRA_ROWS, draws.shape[1]))
    directed.tally_draws(draws, work)
    return work


@door
def tally_exactly(family: int, parameters: FloatArray) -> FloatArray:
    """The same from marginals (arm, 3): in closed form where there is one, else by quadrature."""
    count = parameters.shape[0]
    work, arms = np.empty((count + directed.EXTRA_ROWS, count)), np.empty((count, optimality.SURVEY_COLUMNS))
    panel = np.empty((count + 1, optimality.PANEL_ROWS, optimality.PANEL_NODES))
    partial = np.empty((count + 2, optimality.PANEL_NODES))
    if family != belief.BETA and two_pairs.resolved(family, parameters):
        two_pairs.tally_two(family, parameters, work)
    else:
        directed.tally_exactly(family, parameters, optimality.EXACT, arms, panel, partial, work)
    return work


@door
def directed_choice(work: FloatArray, words: WordArray) -> tuple[int, FloatArray]:
    """Information-directed sampling's arm, and the chance that each arm had, from a work that was tallied."""
    return directed.directed_choice(_address(words), work), work[-1].copy()


@door
def marginal_means(family: int, parameters: FloatArray) -> FloatArray:
    """The mean of each arm's expected reward, float array (arm)."""
    out = np.empty(parameters.shape[0])
    for a in range(out.size):
        out[a] = belief.marginal_mean(family, parameters[a, 0], parameters[a, 1])
    return out


@door
def uniform_at(words: WordArray, purpose: np.uint64, index: np.uint64) -> float:
    """One uniform, found at its address."""
    return draws.uniform(_address(words), purpose, index)


@door
def nig_follow(
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray, arms: IntArray, contexts: FloatArray,
    rewards: FloatArray, forgets: bool, anchors: FloatArray,
) -> None:  # fmt: skip
    """A history, one observation after another, in place; before each one every arm may forget."""
    work = np.empty(mean.shape[1])
    for i in range(arms.size):
        if forgets:
            for a in range(alpha.size):
                alpha[a], beta[a] = belief.nig_forget(mean[a], root[a], alpha[a], beta[a], anchors[a], work)
        a = arms[i]
        alpha[a], beta[a] = belief.nig_update(mean[a], root[a], alpha[a], beta[a], contexts[i], rewards[i], work)


@door
def logistic_follow(
    mean: FloatArray, root: FloatArray, arms: IntArray, contexts: FloatArray, rewards: FloatArray
) -> None:
    """A history, one observation after another, in place."""
    work, scaled = np.empty(mean.shape[1]), np.empty(mean.shape[1])
    for i in range(arms.size):
        belief.logistic_update(mean[arms[i]], root[arms[i]], contexts[i], rewards[i], scaled, work)


@door
def pairs_follow(
    kind: int, first: FloatArray, second: FloatArray, arms: IntArray, rewards: FloatArray,
    prior_first: FloatArray, prior_second: FloatArray, discount: float,
) -> None:  # fmt: skip
    """A history of a belief with two numbers per arm (Beta or Gamma), one observation after another, in place."""
    for i in range(arms.size):
        pairs.learn(kind, first, second, prior_first, prior_second, discount, arms[i], rewards[i])


@door
def categories_follow(
    concentration: FloatArray, prior: FloatArray, discount: float, arms: IntArray, found: IntArray
) -> None:
    """A history of categories, one observation after another, in place."""
    for i in range(arms.size):
        categories.learn(concentration, prior, discount, arms[i], found[i])


@door
def nig_marginals(
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray, noise: FloatArray, context: FloatArray
) -> FloatArray:
    """The marginals of every arm at a context, float array (arm, 3)."""
    out = np.empty((mean.shape[0], 3))
    for a in range(mean.shape[0]):
        location, scale, freedom = belief.nig_marginal(mean[a], root[a], alpha[a], beta[a], noise[a], context)
        out[a, 0], out[a, 1], out[a, 2] = location, scale, freedom
    return out


@door
def explore(arm: int, arms: int, epsilon: float, words: WordArray) -> int:
    """Epsilon-greedy's second thought."""
    return choice.explore(arm, arms, epsilon, _address(words))
