"""One step of a realization: see, decide, be paid, learn."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import belief, carried, directed, optimality, play, recurrence, reward, special, two_students
from doublesampling.rules.compiled import inlined, spliced
from doublesampling.rules.draws import Address

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@spliced
def beta_step(
    address: Address, time: float, truth: FloatArray, whole: IntArray, real: FloatArray, alarms: FloatArray,
    tracked: bool, serves: bool, parameters: FloatArray, priors: Any, alpha: FloatArray, beta: FloatArray,
    track: FloatArray, p: FloatArray, votes: IntArray, values: FloatArray, starts: FloatArray,
    survey: Any, book: Any, notes: Any, panel: Any, sample: Any,
) -> tuple[int, int, float, bool]:  # fmt: skip
    """A Bernoulli bandit under Beta beliefs: the arm, N, the reward, and whether the carried nodes still serve.

    tracked : p follows the recurrence of two or three arms; else double sampling finds it from carried densities, or
    anew in a panel. What is not needed is None: Numba drops the branches of a None, and compiling the densities takes
    as long as all the rest. alpha and beta are columns of parameters.
    """
    kind = whole[play.KIND]
    number = 1
    if tracked:
        recurrence.tracked_optimality(track, p)
    if notes is not None:
        carried.carried_optimality(parameters, not serves, p, survey, book, notes)
    if panel is not None:  # noqa: SIM102 - a condition of its own, which Numba decides when it compiles
        if play.sees_optimality(kind) and not tracked:
            optimality.probability_optimal(belief.BETA, parameters, optimality.QUICK_BETA, p, survey, panel)
    if kind == play.DOUBLE_SAMPLING:
        arm, number = play.double_sampling(whole, real, alarms, time, address, p, votes)
    elif kind == play.TOP_TWO:
        arm = play.top_two(whole, real, address, p, votes)
    elif tracked:
        if sample is not None:
            recurrence.tally(alpha, beta, track, sample[1])
            arm = directed.directed_choice(address, sample[1])
        else:
            arm = play.one_candidate(whole, address, p, votes)
    else:
        arm = play.choose_by_value(
            whole, real, belief.BETA, parameters, priors, truth, time, address, values, starts, sample
        )
    paid = reward.bernoulli_reward(truth[arm], arm, address)
    if tracked:
        if truth.size == 2:
            recurrence.follow_two(alpha, beta, track, arm, paid > 0.5)
        else:
            recurrence.follow_three(alpha, beta, track, arm, paid > 0.5)
    if notes is not None:
        serves = carried.carry(parameters, arm, paid > 0.5, book, notes)
    alpha[arm], beta[arm] = belief.beta_update(alpha[arm], beta[arm], paid)
    return arm, number, paid, serves


@inlined
def student_optimality(parameters: FloatArray, p: FloatArray, survey: FloatArray, panel: FloatArray) -> None:
    """Sampling one under Normal-Inverse-Gamma beliefs, right to 1e-6."""
    if p.size == 2:
        first, scale, freedom = parameters[0, 0], parameters[0, 1], parameters[0, 2]
        second, other_scale, other_freedom = parameters[1, 0], parameters[1, 1], parameters[1, 2]
        if two_students.resolved(scale, freedom, other_scale, other_freedom):
            p[0] = two_students.first_above_second(first, scale, freedom, second, other_scale, other_freedom)
            p[1] = 1.0 - p[0]
            return
    optimality.probability_optimal(belief.STUDENT, parameters, optimality.QUICK_STUDENT, p, survey, panel)


@spliced
def gaussian_step(
    address: Address, where: Address,
    weights: FloatArray, noise: FloatArray, context_kind: int, path: FloatArray, pays: int,
    known_noise: FloatArray, sees_context: bool, whole: IntArray, real: FloatArray, alarms: FloatArray,
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray,
    shown: FloatArray, seen: FloatArray, work: FloatArray, truth: FloatArray, parameters: FloatArray, p: FloatArray,
    votes: IntArray, values: FloatArray, starts: FloatArray, survey: FloatArray, panel: FloatArray,
    scaled: Any, anchors: Any, sample: Any,
) -> tuple[int, int, float, float]:  # fmt: skip
    """Any world that pays x^T w, under beliefs about w: the arm, N, the reward, the best arm's mean.

    scaled : work space (dimension) where x^T w are log odds of rewards of 0 and 1; else None, and w and the noise have
    Normal-Inverse-Gamma laws. anchors : what beliefs that forget return to, see belief.nig_forget; else None.
    """
    time = float(address[3])
    family = belief.STUDENT if scaled is None else belief.LOGISTIC
    reward.fill_context(context_kind, path, where, shown)
    if sees_context:
        for i in range(seen.size):
            seen[i] = shown[i]
    best = -math.inf
    for a in range(truth.size):
        truth[a] = reward.linear_mean(weights[a], shown)
        if pays == reward.LOGIT:
            truth[a] = special.logistic(truth[a])
        best = max(best, truth[a])
        location, scale, freedom = belief.nig_marginal(mean[a], root[a], alpha[a], beta[a], known_noise[a], seen)
        parameters[a, 0], parameters[a, 1], parameters[a, 2] = location, scale, freedom
    number = 1
    kind = whole[play.KIND]
    if play.sees_optimality(kind):
        student_optimality(parameters, p, survey, panel)
    if kind == play.DOUBLE_SAMPLING:
        arm, number = play.double_sampling(whole, real, alarms, time, address, p, votes)
    elif kind == play.TOP_TWO:
        arm = play.top_two(whole, real, address, p, votes)
    else:
        arm = play.choose_by_value(whole, real, family, parameters, None, truth, time, address, values, starts, sample)
    if pays == reward.GAUSSIAN:
        paid = reward.gaussian_reward(truth[arm], noise[arm], arm, address)
    else:
        paid = reward.bernoulli_reward(truth[arm], arm, address)
    if anchors is not None:
        for a in range(truth.size):
            alpha[a], beta[a] = belief.nig_forget(mean[a], root[a], alpha[a], beta[a], anchors[a], work)
    if scaled is not None:
        belief.logistic_update(mean[arm], root[arm], seen, paid, scaled, work)
        return arm, number, paid, best
    alpha[arm], beta[arm] = belief.nig_update(mean[arm], root[arm], alpha[arm], beta[arm], seen, paid, work)
    return arm, number, paid, best
