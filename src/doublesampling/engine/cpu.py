"""Realizations on CPU threads: one call plays one block of them, outside Python and outside its lock."""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import belief, carried, lane, optimality, play, recurrence, reward
from doublesampling.rules.doors import door

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@door
def play_beta(
    seed: np.uint64, bandit: np.uint64, first: int, count: int, horizon: int,
    truth: FloatArray, prior_alpha: FloatArray, prior_beta: FloatArray, start: FloatArray,
    whole: IntArray, real: FloatArray, alarms: FloatArray, columns: IntArray,
    means: FloatArray, squares: FloatArray, final: FloatArray, kept: FloatArray,
) -> None:  # fmt: skip
    """Play a block of realizations of a Bernoulli bandit with Beta beliefs.

    truth : float array (arm). columns : int array (time), where a step is recorded, -1 for nowhere.
    means (4 + arm, column), squares (2, column) and final (realization) are filled.
    kept : float array (realization, time, 3 + arm) of arm, reward, N and p; or empty.
    """
    family = belief.BETA
    arms = truth.size
    kind = whole[play.KIND]
    tracked = start.size > 0 and (kind == play.DOUBLE_SAMPLING or kind == play.THOMPSON)
    parameters = np.zeros((arms, 3))
    alpha, beta = parameters[:, 0], parameters[:, 1]
    p, values, starts = np.empty(arms), np.empty(arms), np.empty(arms)
    votes, track = np.empty(arms, dtype=np.int64), np.empty(start.size)
    carries = kind == play.DOUBLE_SAMPLING and not tracked
    survey, notes = np.empty((arms, optimality.SURVEY_COLUMNS)), np.empty((arms + 1, carried.NOTE_COLUMNS))
    panels = carried.MOST_PANELS if carries else 0
    book = np.empty((panels, arms + 1, optimality.PANEL_ROWS, optimality.PANEL_NODES))
    best = truth[0]
    for a in range(arms):
        best = max(best, truth[a])
    for r in range(count):
        for a in range(arms):
            alpha[a], beta[a], starts[a], p[a] = prior_alpha[a], prior_beta[a], math.nan, math.nan
        for i in range(start.size):
            track[i] = start[i]
        regret = observed = 0.0
        serves = False
        for t in range(horizon):
            address = (seed, bandit, np.uint64(first + r), np.uint64(t + 1))
            number = 1
            if tracked:
                recurrence.tracked_optimality(track, p)
            elif carries:
                carried.carried_optimality(parameters, not serves, p, survey, book, notes)
            if kind == play.DOUBLE_SAMPLING:
                arm, number = play.double_sampling(whole, real, alarms, t + 1.0, address, p, votes)
            elif tracked:
                arm = play.one_candidate(whole, address, p, votes)
            else:
                arm = play.choose_by_value(whole, real, family, parameters, truth, t + 1.0, address, values, starts)
            paid = reward.bernoulli_reward(truth[arm], arm, address)
            regret += best - truth[arm]
            observed += best - paid
            if columns[t] >= 0:
                correct = truth[arm] == best
                play.record(columns[t], 1.0 / (r + 1), regret, observed, correct, number, p, means, squares)
            if kept.shape[0] > 0:
                play.keep(kept[r, t], arm, paid, number, p)
            if tracked:
                if arms == 2:
                    recurrence.follow_two(alpha, beta, track, arm, paid > 0.5)
                else:
                    recurrence.follow_three(alpha, beta, track, arm, paid > 0.5)
            elif carries:
                serves = carried.carry(parameters, arm, paid > 0.5, book, notes)
            alpha[arm], beta[arm] = belief.beta_update(alpha[arm], beta[arm], paid)
        final[r] = regret


@door
def play_gaussian(
    seed: np.uint64, bandit: np.uint64, first: int, count: int, horizon: int,
    weights: FloatArray, noise: FloatArray, context_kind: int, path: FloatArray, shared: bool, binary: bool,
    prior_mean: FloatArray, prior_root: FloatArray, prior_alpha: FloatArray, prior_beta: FloatArray,
    known_noise: FloatArray, sees_context: bool,
    whole: IntArray, real: FloatArray, alarms: FloatArray, columns: IntArray,
    means: FloatArray, squares: FloatArray, final: FloatArray, kept: FloatArray,
) -> None:  # fmt: skip
    """Play a block of realizations with Normal-Inverse-Gamma beliefs, on any world that pays x^T w.

    weights : float array (arm, dimension of the world). A belief that does not see the context sees a constant 1.
    binary : rewards are 0 or 1 with probability x^T w, instead of Gaussian. The rest as in play_beta.
    """
    arms, size = prior_mean.shape
    parameters = np.empty((arms, 3))
    mean, root = np.empty((arms, size)), np.empty((arms, size, size))
    alpha, beta, work = np.empty(arms), np.empty(arms), np.empty(size)
    shown, seen, truth = np.empty(weights.shape[1]), np.ones(size), np.empty(arms)
    p, values, starts, votes = np.empty(arms), np.empty(arms), np.empty(arms), np.empty(arms, dtype=np.int64)
    survey = np.empty((arms, optimality.SURVEY_COLUMNS))
    panel = np.empty((arms + 1, optimality.PANEL_ROWS, optimality.PANEL_NODES))
    for r in range(count):
        for a in range(arms):
            alpha[a], beta[a], starts[a], p[a] = prior_alpha[a], prior_beta[a], math.nan, math.nan
            for i in range(size):
                mean[a, i] = prior_mean[a, i]
                for j in range(size):
                    root[a, i, j] = prior_root[a, i, j]
        regret = observed = 0.0
        for t in range(horizon):
            address = (seed, bandit, np.uint64(first + r), np.uint64(t + 1))
            where = (seed, bandit, np.uint64(0) if shared else np.uint64(first + r), np.uint64(t + 1))
            arm, number, paid, best = lane.gaussian_step(
                address, where, t + 1.0, weights, noise, context_kind, path, binary, known_noise, sees_context,
                whole, real, alarms, mean, root, alpha, beta, shown, seen, work, truth, parameters, p, votes, values,
                starts, survey, panel,
            )  # fmt: skip
            regret += best - truth[arm]
            observed += best - paid
            if columns[t] >= 0:
                correct = truth[arm] == best
                play.record(columns[t], 1.0 / (r + 1), regret, observed, correct, number, p, means, squares)
            if kept.shape[0] > 0:
                play.keep(kept[r, t], arm, paid, number, p)
        final[r] = regret
