"""One decision of a simulated realization: every policy, on the same rules that decide a live one."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import two_pairs
from doublesampling.rules.belief import marginal_draw, marginal_mean, marginal_upper_quantile
from doublesampling.rules.candidates import (
    log_false_alarm,
    log_false_alarm_of_counts,
    number_of_candidates,
    number_of_candidates_until,
)
from doublesampling.rules.choice import draw_candidates, explore, mode
from doublesampling.rules.compiled import inlined, rule, spliced
from doublesampling.rules.directed import directed_choice, tally_draws, tally_exactly
from doublesampling.rules.draws import (
    CANDIDATES,
    OPTIMALITY,
    POSTERIOR,
    TIES,
    Address,
    binomial_from_uniform,
    logit_beta_draw,
    uniform,
)
from doublesampling.rules.optimality import QUICK_BETA, sampled_optimality
from doublesampling.rules.rivals import (
    bayes_ucb_log_tail,
    fill_reward_draws,
    imed_index,
    kl_ucb_index,
    sample_rank,
    second_of_two,
    ucb1_index,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# policies
DOUBLE_SAMPLING = 0
THOMPSON = 1
BAYES_UCB = 2
GREEDY = 3
EPSILON_GREEDY = 4
ORACLE = 5
TOP_TWO = 6
UCB1 = 7
KL_UCB = 8
IMED = 9
LIN_UCB = 10
INFORMATION_DIRECTED = 11

# where a policy's settings stand in its whole numbers and in its real ones
KIND, SAMPLES, CAP, FIRST_OF_TIES, ALARM = range(5)
RATE, HORIZON, EPSILON = range(3)  # EPSILON: of epsilon-greedy; top-two's share; LinUCB's width


@inlined
def _double_sampling_of_two(whole: IntArray, numbers: FloatArray, address: Address, p: FloatArray) -> tuple[int, int]:
    """The same with two arms, written out: numbers holds N by how many of the M samples favour the first arm."""
    # both at once: neither waits for the other
    first, second = uniform(address, OPTIMALITY, np.uint64(0)), uniform(address, CANDIDATES, np.uint64(0))
    samples = whole[SAMPLES]
    count = binomial_from_uniform(first, samples, p[0])
    p[0] = count / samples
    p[1] = (samples - count) / samples
    number = int(numbers[count, 0])
    twice = 2 * binomial_from_uniform(second, number, p[0])
    if twice == number and whole[FIRST_OF_TIES] == 0:
        return int(uniform(address, TIES, np.uint64(0)) * 2.0), number
    return 0 if twice >= number else 1, number


@spliced
def double_sampling(
    whole: IntArray, real: FloatArray, alarms: FloatArray, time: float, address: Address, p: FloatArray, votes: IntArray
) -> tuple[int, int]:
    """The arm and N, and their p: it holds the exact probabilities and is left holding the estimate."""
    if alarms.shape[1] == 1:  # two arms: N of a count is known beforehand
        return _double_sampling_of_two(whole, alarms, address, p)
    if whole[SAMPLES] > 0:
        sampled_optimality(address, whole[SAMPLES], p, votes)
    return elect(whole, real, alarms, time, address, p, votes)


@spliced
def elect(
    whole: IntArray, real: FloatArray, alarms: FloatArray, time: float, address: Address, p: FloatArray, votes: IntArray
) -> tuple[int, int]:
    """The arm and N from an estimate p; where it came from M samples, votes holds their counts."""
    if alarms.size > 0:  # p_FA of counts is known beforehand
        log_alarm = log_false_alarm_of_counts(alarms, votes)
        number = number_of_candidates(log_alarm, real[RATE], whole[CAP])
    elif math.isnan(real[HORIZON]):
        number = number_of_candidates(log_false_alarm(whole[ALARM], p), real[RATE], whole[CAP])
    else:
        number = number_of_candidates_until(max(real[HORIZON] - time, 1.0), p, whole[CAP])
    draw_candidates(address, number, p, votes)
    return mode(votes, whole[FIRST_OF_TIES] == 1, address), number


@inlined
def sees_optimality(kind: int) -> bool:
    """Whether a policy needs p, the probability of each arm being the best."""
    return kind in (DOUBLE_SAMPLING, TOP_TWO)


@inlined
def may_follow(kind: int, samples: int) -> bool:
    """Whether p as the recurrence follows it is all that a policy needs."""
    return sees_optimality(kind) or kind == THOMPSON or (kind == INFORMATION_DIRECTED and samples == 0)


@inlined
def counts_wins(kind: int) -> bool:
    """Whether a policy's index comes from wins and losses."""
    return kind in (UCB1, KL_UCB, IMED)


@rule
def one_candidate(whole: IntArray, address: Address, p: FloatArray, votes: IntArray) -> int:
    """Thompson sampling where p is known: double sampling's choice with N = 1."""
    draw_candidates(address, min(whole[CAP], 1), p, votes)
    return mode(votes, whole[FIRST_OF_TIES] == 1, address)


@rule
def top_two(whole: IntArray, real: FloatArray, address: Address, p: FloatArray, votes: IntArray) -> int:
    """Top-two Thompson sampling where p is known."""
    return second_of_two(address, one_candidate(whole, address, p, votes), real[EPSILON], p)


@rule
def _fill_quantiles(
    family: int, parameters: FloatArray, time: float, samples: int, address: Address, values: FloatArray,
    starts: FloatArray,
) -> None:  # fmt: skip
    """Bayes-UCB's quantiles; each search starts where the arm's last one ended.

    With samples, the k-th of M sorted posterior draws has the law of the quantile at a Beta(k, M - k + 1) level: one
    draw of the level stands for all M.
    """
    log_tail = bayes_ucb_log_tail(time)
    if samples > 0:
        k = sample_rank(samples, log_tail) + 1.0
        for a in range(values.size):
            first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
            odds = logit_beta_draw(address, POSTERIOR, np.uint64(a), k, samples - k + 1.0)
            tail = -math.log1p(math.exp(odds)) if odds < 30.0 else -odds
            values[a], starts[a] = marginal_upper_quantile(family, first, second, third, tail, starts[a])
        return
    for a in range(values.size):
        first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
        twin = -1
        for b in range(a):  # equal laws must tie to the last bit, wherever their searches came from
            if parameters[b, 0] == first and parameters[b, 1] == second and parameters[b, 2] == third:
                twin = b
                break
        if twin >= 0:
            values[a], starts[a] = values[twin], starts[twin]
        else:
            values[a], starts[a] = marginal_upper_quantile(family, first, second, third, log_tail, starts[a])


@rule
def fill_indices(kind: int, parameters: FloatArray, priors: FloatArray, time: float, values: FloatArray) -> None:
    """The index of every Beta arm, from what was seen of it."""
    best = 0.0
    for a in range(values.size):
        wins = parameters[a, 0] - priors[a, 0]
        count = wins + parameters[a, 1] - priors[a, 1]
        best = max(best, wins / count if count > 0.0 else 0.0)
    for a in range(values.size):
        wins = parameters[a, 0] - priors[a, 0]
        count = wins + parameters[a, 1] - priors[a, 1]
        mean = wins / count if count > 0.0 else 0.0
        if kind == UCB1:
            values[a] = ucb1_index(mean, count, time)
        elif kind == KL_UCB:
            values[a] = kl_ucb_index(mean, count, time)
        else:
            values[a] = imed_index(mean, count, best)


@rule
def choose_by_value(
    whole: IntArray,
    real: FloatArray,
    family: int,
    parameters: FloatArray,
    priors: Any,
    truth: FloatArray,
    time: float,
    address: Address,
    values: FloatArray,
    starts: FloatArray,
    sample: Any,
) -> int:
    """The arm of every policy that plays the largest of some number per arm, and of information-directed sampling.

    priors : alpha and beta of Beta arms before any observation, for policies that count wins. sample : work space of
    information-directed sampling. Each is None where it is not needed, and Numba compiles nothing of it.
    """
    kind = whole[KIND]
    if sample is not None:
        draws, work, survey, panel, partial = sample
        if whole[SAMPLES] > 0:
            fill_reward_draws(family, parameters, address, draws)
            tally_draws(draws, work)
        elif two_pairs.resolved(family, parameters):
            two_pairs.tally_two(family, parameters, work)
        else:
            tally_exactly(family, parameters, QUICK_BETA, survey, panel, partial, work)
        return directed_choice(address, work)
    if priors is not None and counts_wins(kind):
        fill_indices(kind, parameters, priors, time, values)
    elif kind == BAYES_UCB:
        _fill_quantiles(family, parameters, time, whole[SAMPLES], address, values, starts)
    else:
        for a in range(values.size):
            first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
            if kind == ORACLE:
                values[a] = truth[a]
            elif kind == THOMPSON:
                values[a] = marginal_draw(family, first, second, third, address, POSTERIOR, np.uint64(a))
            elif kind == LIN_UCB:
                values[a] = first + real[EPSILON] * second
            else:
                values[a] = marginal_mean(family, first, second)
    arm = mode(values, whole[FIRST_OF_TIES] == 1, address)
    if kind == EPSILON_GREEDY:
        return explore(arm, values.size, real[EPSILON], address)
    return arm


@inlined
def _record(
    column: int, inverse: float, regret: float, observed: float, correct: bool, number: int, p: FloatArray,
    means: FloatArray, squares: FloatArray,
) -> None:  # fmt: skip
    """Welford's update of the moments at one time step by one more realization; inverse is 1 / realizations so far."""
    change = regret - means[0, column]
    means[0, column] += change * inverse
    squares[0, column] += change * (regret - means[0, column])
    change = observed - means[1, column]
    means[1, column] += change * inverse
    squares[1, column] += change * (observed - means[1, column])
    means[2, column] += ((1.0 if correct else 0.0) - means[2, column]) * inverse
    means[3, column] += (number - means[3, column]) * inverse
    for a in range(p.size):
        means[4 + a, column] += (p[a] - means[4 + a, column]) * inverse


@inlined
def _keep(row: FloatArray, arm: int, paid: float, number: int, p: FloatArray) -> None:
    """One step of a trajectory that is kept: arm, reward, N and p."""
    row[0], row[1], row[2] = arm, paid, number
    for a in range(p.size):
        row[3 + a] = p[a]


@spliced
def note(
    r: int, t: int, arm: int, paid: float, number: int, correct: bool, regret: float, observed: float, p: FloatArray,
    columns: IntArray, means: FloatArray, squares: FloatArray, kept: FloatArray,
) -> None:  # fmt: skip
    """One step of realization r, as the kernels keep it: in the moments of its column, and in its trajectory."""
    if columns[t] >= 0:
        _record(columns[t], 1.0 / (r + 1), regret, observed, correct, number, p, means, squares)
    if kept.shape[0] > 0:
        _keep(kept[r, t], arm, paid, number, p)
