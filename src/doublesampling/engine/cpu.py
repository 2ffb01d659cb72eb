"""Realizations on CPU threads: one call plays one block of them, outside Python and outside its lock."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.engine.plan import PackedPolicy, PackedProblem
from doublesampling.rules import carried, lane, optimality, play
from doublesampling.rules.compiled import plain
from doublesampling.rules.doors import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def play_beta(
    seed: np.uint64, bandit: np.uint64, first: int, horizon: int,
    truth: FloatArray, prior_alpha: FloatArray, prior_beta: FloatArray, start: FloatArray,
    whole: IntArray, real: FloatArray, alarms: FloatArray, columns: IntArray,
    means: FloatArray, squares: FloatArray, final: FloatArray, kept: FloatArray,
    parameters: FloatArray, priors: Any, track: FloatArray, p: FloatArray, votes: IntArray, values: FloatArray,
    starts: FloatArray, survey: Any, book: Any, notes: Any,
) -> None:  # fmt: skip
    """Play a block of realizations of a Bernoulli bandit with Beta beliefs.

    truth : float array (arm). columns : int array (time), where a step is recorded, -1 for nowhere.
    start : the recurrence of two or three arms; empty for more. means (4 + arm, column), squares (2, column) and final
    (realization) are filled. kept : float array (realization, time, 3 + arm) of arm, reward, N and p; or empty.
    From parameters on: work space, see beta_work.
    """
    kind = whole[play.KIND]
    tracked = start.size > 0 and (play.sees_optimality(kind) or kind == play.THOMPSON)
    alpha, beta = parameters[:, 0], parameters[:, 1]
    best = truth[0]
    for a in range(truth.size):
        best = max(best, truth[a])
    for r in range(final.size):
        for a in range(truth.size):
            alpha[a], beta[a], starts[a], p[a] = prior_alpha[a], prior_beta[a], math.nan, math.nan
        for i in range(start.size):
            track[i] = start[i]
        regret = observed = 0.0
        serves = False
        for t in range(horizon):
            address = (seed, bandit, np.uint64(first + r), np.uint64(t + 1))
            arm, number, paid, serves = lane.beta_step(
                address, t + 1.0, truth, whole, real, alarms, tracked, serves, parameters, priors, alpha, beta, track,
                p, votes, values, starts, survey, book, notes, None,
            )  # fmt: skip
            regret += best - truth[arm]
            observed += best - paid
            if columns[t] >= 0:
                correct = truth[arm] == best
                play.record(columns[t], 1.0 / (r + 1), regret, observed, correct, number, p, means, squares)
            if kept.shape[0] > 0:
                play.keep(kept[r, t], arm, paid, number, p)
        final[r] = regret


def beta_work(problem: PackedProblem, policy: PackedPolicy) -> tuple[Any, ...]:
    """The work space of play_beta, in its order: its rules make no arrays."""
    arms, start, kind = problem.arms, problem.prior[-1], policy.whole[play.KIND]
    # what is not needed is None, which is another type: Numba compiles play_beta without it
    priors = np.column_stack(problem.prior[:2]) if plain(play.counts_wins)(kind) else None
    own = (np.zeros((arms, 3)), priors, np.empty(start.size), np.empty(arms), np.empty(arms, dtype=np.int64))
    panels: tuple[Any, ...] = (None, None, None)
    if start.size == 0 and plain(play.sees_optimality)(kind):
        panels = (
            np.empty((arms, optimality.SURVEY_COLUMNS)),
            np.empty((carried.MOST_PANELS, arms + 1, optimality.PANEL_ROWS, optimality.PANEL_NODES)),
            np.empty((arms + 1, carried.NOTE_COLUMNS)),
        )
    return (*own, np.empty(arms), np.empty(arms), *panels)


@kernel
def play_gaussian(
    seed: np.uint64, bandit: np.uint64, first: int, horizon: int,
    weights: FloatArray, noise: FloatArray, context_kind: int, path: FloatArray, shared: bool, binary: bool,
    prior_mean: FloatArray, prior_root: FloatArray, prior_alpha: FloatArray, prior_beta: FloatArray,
    known_noise: FloatArray, sees_context: bool,
    whole: IntArray, real: FloatArray, alarms: FloatArray, columns: IntArray,
    means: FloatArray, squares: FloatArray, final: FloatArray, kept: FloatArray,
    mean: FloatArray, root: FloatArray, alpha: FloatArray, beta: FloatArray, shown: FloatArray, seen: FloatArray,
    work: FloatArray, truth: FloatArray, parameters: FloatArray, p: FloatArray, votes: IntArray, values: FloatArray,
    starts: FloatArray, survey: FloatArray, panel: FloatArray,
) -> None:  # fmt: skip
    """Play a block of realizations with Normal-Inverse-Gamma beliefs, on any world that pays x^T w.

    weights : float array (arm, dimension of the world). A belief that does not see the context sees a constant 1.
    binary : rewards are 0 or 1 with probability x^T w, instead of Gaussian. From mean on: work space, see
    gaussian_work. The rest as in play_beta.
    """
    arms, size = prior_mean.shape
    for r in range(final.size):
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


def gaussian_work(problem: PackedProblem, policy: PackedPolicy) -> tuple[Any, ...]:
    """The work space of play_gaussian, in its order."""
    arms, size = problem.arms, problem.dimension
    weights = problem.world[0]
    return (
        np.empty((arms, size)), np.empty((arms, size, size)), np.empty(arms), np.empty(arms),
        np.empty(weights.shape[1]), np.ones(size), np.empty(size), np.empty(arms), np.empty((arms, 3)),
        np.empty(arms), np.empty(arms, dtype=np.int64), np.empty(arms), np.empty(arms),
        np.empty((arms, optimality.SURVEY_COLUMNS)),
        np.empty((arms + 1, optimality.PANEL_ROWS, optimality.PANEL_NODES)),
    )  # fmt: skip
