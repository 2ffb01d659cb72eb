"""One decision of a simulation, for every policy and law. ``ds.decide`` calls its parts: see sample_twice.py."""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.bundles import Policy, Scratch
from doublesampling.rules.choose import kinds
from doublesampling.rules.choose.baselines import (
    bayes_ucb_log_tail,
    fill_reward_draws,
    imed_index,
    kl_ucb_index,
    sample_quantile,
    sample_rank,
    second_of_two,
    ucb1_index,
)
from doublesampling.rules.choose.candidates import (
    log_false_alarm,
    log_false_alarm_of_counts,
    number_of_candidates,
    number_of_candidates_until,
)
from doublesampling.rules.choose.gittins import fill_gittins
from doublesampling.rules.choose.information_directed import directed_choice, tally_draws, tally_exactly
from doublesampling.rules.choose.mode import draw_candidates, explore, mode
from doublesampling.rules.choose.relaxation import fill_relaxed
from doublesampling.rules.compiled import inlined, rule, spliced
from doublesampling.rules.draws import (
    CANDIDATES,
    EXPLORATION,
    OPTIMALITY,
    POSTERIOR,
    TIES,
    Address,
    binomial_from_uniform,
    logit_beta_draw,
    uniform,
)
from doublesampling.rules.optimal_arm import compare_beta_gamma
from doublesampling.rules.optimal_arm.quadrature import sampled_optimality
from doublesampling.rules.optimal_arm.regions import QUICK_BETA
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@specialised(spliced)
def choose(
    kind: Constant, form: Constant, law: Constant, policy: Policy, address: Address, scratch: Scratch
) -> tuple[int, int]:
    """The arm and N. ``kind``, ``form`` and ``law`` are constants where this is compiled: only what they need is.

    scratch : parameters and truth are filled; p, too, where the policy needs it (kinds.needs_optimality), and it is
    left holding the estimate p_hat; samples, too, where the law is SAMPLED.
    """
    number = 1
    if kind == kinds.DOUBLE_SAMPLING:
        arm, number = double_sampling(form, law, policy, address, scratch)
    elif kind == kinds.TOP_TWO:
        arm = second_of_two(
            address, one_candidate(policy, address, scratch.p, scratch.votes), policy.setting, scratch.p
        )
    elif kind == kinds.EPSILON_THOMPSON:
        fill_values(kind, form, law, policy, address, scratch)
        arm = mode(scratch.values, policy.first_of_ties, address)
        if uniform(address, EXPLORATION, np.uint64(0)) < policy.setting:
            arm = one_candidate(policy, address, scratch.p, scratch.votes)
    elif kind == kinds.INFORMATION_DIRECTED:
        fill_tally(form, law, address, scratch)
        arm = directed_choice(address, scratch.tally)
    else:
        fill_values(kind, form, law, policy, address, scratch)
        arm = mode(scratch.values, policy.first_of_ties, address)
        if kind in (kinds.EPSILON_GREEDY, kinds.GITTINS):
            arm = explore(arm, scratch.values.size, policy.setting, address)
    return arm, number


@inlined
def _double_sampling_of_two(policy: Policy, address: Address, p: FloatArray) -> tuple[int, int]:
    """The same with two arms, written out: the table holds N by how many of the M samples favour the first arm."""
    # both at once: neither waits for the other
    first, second = uniform(address, OPTIMALITY, np.uint64(0)), uniform(address, CANDIDATES, np.uint64(0))
    samples = policy.samples
    count = binomial_from_uniform(first, samples, p[0])
    p[0] = count / samples
    p[1] = (samples - count) / samples
    number = int(policy.table[count, 0])
    twice = 2 * binomial_from_uniform(second, number, p[0])
    if twice == number and not policy.first_of_ties:
        return int(uniform(address, TIES, np.uint64(0)) * 2.0), number
    return 0 if twice >= number else 1, number


@specialised(spliced)
def double_sampling(
    form: Constant, law: Constant, policy: Policy, address: Address, scratch: Scratch
) -> tuple[int, int]:
    """The arm and N, and their p: it holds the exact probabilities and is left holding the estimate."""
    p, votes = scratch.p, scratch.votes
    if form == kinds.TWO_ARM_TABLE:
        arm, number = _double_sampling_of_two(policy, address, p)
    else:
        if law != laws.SAMPLED:  # noqa: SIM102 - where only samples tell, p is the estimate already
            if policy.samples > 0:
                sampled_optimality(address, policy.samples, p, votes)
        number = count_candidates(form, policy, float(address[3]), p, votes)
        draw_candidates(address, number, p, votes)
        arm = mode(votes, policy.first_of_ties, address)
    return arm, number


@specialised(spliced)
def count_candidates(form: Constant, policy: Policy, time: float, p: FloatArray, votes: IntArray) -> int:
    """N from an estimate p; where it came from M samples, votes holds their counts."""
    if form == kinds.TABLE:
        number = number_of_candidates(log_false_alarm_of_counts(policy.table, votes), policy.rate, policy.cap)
    elif form == kinds.UNTIL_HORIZON:
        number = number_of_candidates_until(max(policy.horizon - time, 1.0), p, policy.cap)
    else:
        number = number_of_candidates(log_false_alarm(policy.alarm, p), policy.rate, policy.cap)
    return number


@rule
def one_candidate(policy: Policy, address: Address, p: FloatArray, votes: IntArray) -> int:
    """Thompson sampling where p is known: double sampling's choice with N = 1."""
    draw_candidates(address, min(policy.cap, 1), p, votes)
    return mode(votes, policy.first_of_ties, address)


@specialised(spliced)
def fill_values(
    kind: Constant, form: Constant, law: Constant, policy: Policy, address: Address, scratch: Scratch
) -> None:
    """A number per arm, the largest of which is played."""
    parameters, values = scratch.parameters, scratch.values
    if kind == kinds.UCB1 or kind == kinds.KL_UCB or kind == kinds.IMED:
        fill_indices(kind, parameters, scratch.priors, float(address[3]), values)
    elif kind == kinds.GITTINS:
        fill_gittins(parameters, scratch.priors, policy, float(address[3]), values)
    elif kind == kinds.RELAXATION:
        fill_relaxed(parameters, policy.horizon, address, values)
    elif kind == kinds.BAYES_UCB:
        if law == laws.SAMPLED:
            for a in range(values.size):
                rank = sample_rank(scratch.samples.shape[0], bayes_ucb_log_tail(float(address[3])))
                values[a] = sample_quantile(scratch.samples, a, rank)
        else:
            fill_quantiles(form, law, policy, address, scratch)
    else:
        for a in range(values.size):
            first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
            if kind == kinds.ORACLE:
                values[a] = scratch.truth[a]
            elif kind == kinds.THOMPSON:
                if law == laws.SAMPLED:
                    values[a] = scratch.samples[0, a]
                else:
                    values[a] = laws.draw(law, first, second, third, address, POSTERIOR, np.uint64(a))
            elif kind == kinds.LIN_UCB:
                values[a] = first + policy.setting * second
            else:
                values[a] = laws.mean(law, first, second)


@specialised(spliced)
def fill_quantiles(form: Constant, law: Constant, policy: Policy, address: Address, scratch: Scratch) -> None:
    """Bayes-UCB's quantiles; each search starts where the arm's last one ended.

    With samples, the k-th of M sorted posterior draws has the law of the quantile at a Beta(k, M - k + 1) level: one
    draw of the level stands for all M.
    """
    parameters, values, starts, samples = scratch.parameters, scratch.values, scratch.starts, policy.samples
    log_tail = bayes_ucb_log_tail(float(address[3]))
    for a in range(values.size):
        first, second, third = parameters[a, 0], parameters[a, 1], parameters[a, 2]
        twin, tail = -1, log_tail
        if form == kinds.SAMPLES:
            k = sample_rank(samples, log_tail) + 1.0
            odds = logit_beta_draw(address, POSTERIOR, np.uint64(a), k, samples - k + 1.0)
            tail = -math.log1p(math.exp(odds)) if odds < 30.0 else -odds
        else:
            for b in range(a - 1, -1, -1):  # equal laws must tie to the last bit, wherever their searches came from
                if parameters[b, 0] == first and parameters[b, 1] == second and parameters[b, 2] == third:
                    twin = b
        if twin >= 0:
            values[a], starts[a] = values[twin], starts[twin]
        else:
            values[a], starts[a] = laws.upper_quantile(law, first, second, third, tail, starts[a])


@specialised(spliced)
def fill_indices(kind: Constant, parameters: FloatArray, priors: FloatArray, time: float, values: FloatArray) -> None:
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
        if kind == kinds.UCB1:
            values[a] = ucb1_index(mean, count, time)
        elif kind == kinds.KL_UCB:
            values[a] = kl_ucb_index(mean, count, time)
        else:
            values[a] = imed_index(mean, count, best)


@specialised(spliced)
def fill_tally(form: Constant, law: Constant, address: Address, scratch: Scratch) -> None:
    """What information-directed sampling knows of every two arms, from samples or right to 1e-6."""
    parameters, samples, tally = scratch.parameters, scratch.samples, scratch.tally
    if law == laws.SAMPLED:
        tally_draws(samples, tally)
    elif form == kinds.SAMPLES:
        fill_reward_draws(law, parameters, address, samples)
        tally_draws(samples, tally)
    elif compare_beta_gamma.resolved(law, parameters):
        compare_beta_gamma.tally_two(law, parameters, tally)
    else:
        tally_exactly(law, parameters, QUICK_BETA, scratch.survey, scratch.panel, scratch.partial, tally)
