"""One step of a realization: see, decide, be paid, learn.

engine/cpu.py has beta_step written out in its loop: on a CPU, Numba counts references to every array that is passed
on, which costs more than such a short step.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import belief, carried, optimality, play, recurrence, reward
from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.draws import Address

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@rule
def beta_step(
    address: Address, time: float, truth: FloatArray, whole: IntArray, real: FloatArray, alarms: FloatArray,
    tracked: bool, carries: bool, serves: bool, parameters: FloatArray, alpha: FloatArray, beta: FloatArray,
    track: FloatArray, p: FloatArray,
    votes: IntArray, values: FloatArray, starts: FloatArray, survey: FloatArray, book: FloatArray, notes: FloatArray,
) -> tuple[int, int, float, bool]:  # fmt: skip
    """A Bernoulli bandit under Beta beliefs: the arm, N, the reward, and whether the carried nodes still serve.

    tracked : p follows the recurrence of two or three arms. carries : p comes from carried densities. alpha and beta
    are the first columns of parameters, made once: a slice costs more than a step.
    """
    kind = whole[play.KIND]
    number = 1
    if tracked:
        recurrence.tracked_optimality(track, p)
    elif kind == play.DOUBLE_SAMPLING:
        if carries:
            carried.carried_optimality(parameters, not serves, p, survey, book, notes)
        else:
            optimality.probability_optimal(belief.BETA, parameters, optimality.QUICK_BETA, p, survey, book[0])
    if kind == play.DOUBLE_SAMPLING:
        arm, number = play.double_sampling(whole, real, alarms, time, address, p, votes)
    elif tracked:
        arm = play.one_candidate(whole, address, p, votes)
    else:
        arm = play.choose_by_value(whole, real, belief.BETA, parameters, truth, time, address, values, starts)
    paid = reward.bernoulli_reward(truth[arm], arm, address)
    if tracked:
        if truth.size == 2:
            recurrence.follow_two(alpha, beta, track, arm, paid > 0.5)
        else:
            recurrence.follow_three(alpha, beta, track, arm, paid > 0.5)
    elif carries:
        serves = carried.carry(parameters, arm, paid > 0.5, book, notes)
    alpha[arm], beta[arm] = belief.beta_update(alpha[arm], beta[arm], paid)
    return arm, number, paid, serves


@inlined
def gaussian_step(
    address: Address, where: Address, time: float,
    weights: FloatArray, noise: FloatArray, context_kind: int, path: FloatArray, binary: bool,
    known_noise: FloatArray, sees_context: bool, whole: IntArray, real: FloatArray, alarms: FloatArray,
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray,
    shown: FloatArray, seen: FloatArray, work: FloatArray, truth: FloatArray, parameters: FloatArray, p: FloatArray,
    votes: IntArray, values: FloatArray, starts: FloatArray, survey: FloatArray, panel: FloatArray,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Any world that pays x^T w, under Normal-Inverse-Gamma beliefs: the arm, N, the reward, the best arm's mean."""
    reward.fill_context(context_kind, path, where, shown)
    if sees_context:
        for i in range(seen.size):
            seen[i] = shown[i]
    best = -math.inf
    for a in range(truth.size):
        truth[a] = reward.linear_mean(weights[a], shown)
        best = max(best, truth[a])
        location, scale, freedom = belief.nig_marginal(mean[a], root[a], alpha[a], beta[a], known_noise[a], seen)
        parameters[a, 0], parameters[a, 1], parameters[a, 2] = location, scale, freedom
    number = 1
    if whole[play.KIND] == play.DOUBLE_SAMPLING:
        optimality.probability_optimal(belief.STUDENT, parameters, optimality.QUICK_STUDENT, p, survey, panel)
        arm, number = play.double_sampling(whole, real, alarms, time, address, p, votes)
    else:
        arm = play.choose_by_value(whole, real, belief.STUDENT, parameters, truth, time, address, values, starts)
    if binary:
        paid = reward.bernoulli_reward(truth[arm], arm, address)
    else:
        paid = reward.gaussian_reward(truth[arm], noise[arm], arm, address)
    alpha[arm], beta[arm] = belief.nig_update(mean[arm], root[arm], alpha[arm], beta[arm], seen, paid, work)
    return arm, number, paid, best
