"""One decision of a simulation, for every policy and law. ``ds.decide`` calls its parts: see sample_twice.py."""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws
from doublesampling.rules.bundles import PolicySettings, Scratch
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
from doublesampling.rules.choose.double_sampling import choose_candidate, count_candidates, double_sampling
from doublesampling.rules.choose.gittins import fill_gittins
from doublesampling.rules.choose.information_directed import directed_choice, tally_draws, tally_exactly
from doublesampling.rules.choose.mode import explore, mode, mode_of_candidates
from doublesampling.rules.choose.relaxation import fill_relaxed
from doublesampling.rules.compiled import rule, spliced
from doublesampling.rules.draws import EXPLORATION, POSTERIOR, Address, logit_beta_draw, uniform
from doublesampling.rules.optimal_arm import compare_beta_gamma
from doublesampling.rules.optimal_arm.regions import QUICK_BETA
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@specialised(spliced)
def choose(
    kind: Constant, form: Constant, law: Constant, policy: PolicySettings, address: Address, scratch: Scratch
) -> tuple[int, int]:
    """Return the arm and N. ``kind``, ``form`` and ``law`` are constants: only what they need is compiled.

    scratch : parameters and truth are filled; p, too, where the policy needs it (kinds.needs_optimality), and it is
    left holding the estimate p_hat; samples, too, where the law is SAMPLED.
    """
    number = 1
    if kind == kinds.DOUBLE_SAMPLING:
        fill_precisions(form, law, scratch.parameters, scratch.values)
        if law == laws.SAMPLED:  # p is an estimate from samples already
            number = count_candidates(form, policy, float(address[3]), scratch.p, scratch.values, scratch.votes)
            arm = choose_candidate(form, number, policy, address, scratch.p, scratch.votes)
        else:
            arm, number = double_sampling(form, policy, address, scratch.p, scratch.values, scratch.votes)
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


@specialised(spliced)
def fill_precisions(form: Constant, law: Constant, parameters: FloatArray, precisions: FloatArray) -> None:
    """Fill how well each arm is known, where the form of double sampling weighs challengers by it."""
    if form == kinds.CHALLENGER or form == kinds.ANYTIME:
        for a in range(precisions.size):
            precisions[a] = laws.precision(law, parameters[a, 0], parameters[a, 1])


@rule
def one_candidate(policy: PolicySettings, address: Address, p: FloatArray, votes: IntArray) -> int:
    """Return Thompson sampling's arm where p is known: double sampling's choice with N = 1."""
    return mode_of_candidates(address, min(policy.cap, 1), p, policy.first_of_ties, votes)


@specialised(spliced)
def fill_values(
    kind: Constant, form: Constant, law: Constant, policy: PolicySettings, address: Address, scratch: Scratch
) -> None:
    """Fill one number per arm, the largest of which is played."""
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
def fill_quantiles(form: Constant, law: Constant, policy: PolicySettings, address: Address, scratch: Scratch) -> None:
    """Fill Bayes-UCB's quantiles; each search starts where the arm's last one ended.

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
    """Fill the index of every Beta arm, from its wins and losses."""
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
    """Fill what information-directed sampling needs for every two arms, from samples, or exactly to 1e-6."""
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
