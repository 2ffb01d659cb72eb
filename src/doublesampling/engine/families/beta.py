"""Bernoulli bandits under Beta beliefs that never forget: the quickest family, by recurrences and carried densities."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.bandits import BernoulliBandit
from doublesampling.beliefs import BetaBernoulli
from doublesampling.engine.families.common import Family, PackedPolicy, PackedProblem, sample_space
from doublesampling.rules import belief as belief_rules
from doublesampling.rules import carried, doors, lane, optimality, play, recurrence
from doublesampling.rules.compiled import plain
from doublesampling.rules.doors import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
_MOST_COUNTS, _LEAST_OVERLAP = 1e6, 1e-200


@kernel
def play_beta(
    seed: np.uint64, bandit: np.uint64, first: int, horizon: int,
    truth: FloatArray, prior_alpha: FloatArray, prior_beta: FloatArray, start: FloatArray,
    whole: IntArray, real: FloatArray, alarms: FloatArray, columns: IntArray,
    means: FloatArray, squares: FloatArray, final: FloatArray, kept: FloatArray,
    parameters: FloatArray, priors: Any, track: FloatArray, p: FloatArray, votes: IntArray, values: FloatArray,
    starts: FloatArray, survey: Any, book: Any, notes: Any, sample: Any,
) -> None:  # fmt: skip
    """Play a block of realizations of a Bernoulli bandit with Beta beliefs.

    truth : float array (arm). columns : int array (time), where a step is recorded, -1 for nowhere.
    start : the recurrence of two or three arms; empty for more. means (4 + arm, column), squares (2, column) and final
    (realization) are filled. kept : float array (realization, time, 3 + arm) of arm, reward, N and p; or empty.
    From parameters on: work space, see beta_work.
    """
    kind = whole[play.KIND]
    tracked = start.size > 0 and play.may_follow(kind, whole[play.SAMPLES])
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
                p, votes, values, starts, survey, book, notes, None, sample,
            )  # fmt: skip
            regret += best - truth[arm]
            observed += best - paid
            play.note(
                r, t, arm, paid, number, truth[arm] == best, regret, observed, p, columns, means, squares, kept
            )  # fmt: skip
        final[r] = regret


def beta_work(problem: PackedProblem, policy: PackedPolicy) -> tuple[Any, ...]:
    """The work space of play_beta, in its order: its rules make no arrays."""
    arms, start, kind = problem.arms, problem.prior[-1], policy.kind
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
    return (*own, np.empty(arms), np.empty(arms), *panels, sample_space(arms, policy))


def start_track(alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """The recurrence of two or three Beta arms at their prior; empty for more, and where it would be inexact.

    Counts above a million round the beta functions away; an overlap that underflows would never come back.
    """

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    def overlap(a: float, b: float, c: float, d: float) -> float:
        return math.exp(log_beta(a + c, b + d) - log_beta(a, b) - log_beta(c, d))

    def exact(a: Any, b: Any) -> FloatArray:
        if len(set(zip(a, b, strict=True))) == 1:  # equal arms are equally probable: nothing to compile or integrate
            return np.full(len(a), 1.0 / len(a))
        return doors.exact_optimality(belief_rules.BETA, np.column_stack([a, b, np.zeros(len(a))]))

    if alpha.size > 3 or max(alpha.max(), beta.max()) > _MOST_COUNTS:
        return np.empty(0)
    track = np.zeros(recurrence.TRACK_SIZE)
    track[: alpha.size] = exact(alpha, beta)
    if alpha.size == 2:
        track[1] = overlap(alpha[0], beta[0], alpha[1], beta[1])
        return track if track[1] > _LEAST_OVERLAP else np.empty(0)
    for third in range(3):
        i, j = (third + 1) % 3, (third + 2) % 3
        a, b = alpha[i] + alpha[j], beta[i] + beta[j]
        track[recurrence.PAIR + third] = overlap(alpha[i], beta[i], alpha[j], beta[j])
        track[recurrence.BELOW + third] = exact([a, alpha[third]], [b, beta[third]])[0]
        track[recurrence.PAIR_BELOW + third] = overlap(a, b, alpha[third], beta[third])
    overlaps = track[[recurrence.PAIR + i for i in range(3)] + [recurrence.PAIR_BELOW + i for i in range(3)]]
    return track if overlaps.min() > _LEAST_OVERLAP else np.empty(0)


def _pack(bandit: BernoulliBandit, belief: BetaBernoulli) -> PackedProblem:
    state = belief.prior()
    prior = (state.alpha.copy(), state.beta.copy(), start_track(state.alpha, state.beta))
    return PackedProblem(
        "beta", bandit.arms, 1, (np.array(bandit.probabilities),), prior, on_device=True, counts_wins=True
    )


FAMILY = Family(
    name="beta",
    defaults={BernoulliBandit: lambda bandit: BetaBernoulli(arms=bandit.arms)},
    beliefs=(BetaBernoulli,),
    takes=lambda bandit, belief: (
        isinstance(bandit, BernoulliBandit) and isinstance(belief, BetaBernoulli) and belief.discount == 1.0
    ),
    pack=_pack,
    kernel=play_beta,
    work=beta_work,
)
