"""Bernoulli bandits under Beta beliefs that never forget: the quickest family, by recurrences and carried densities."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.bandits import BernoulliBandit
from doublesampling.beliefs import BetaBernoulli
from doublesampling.engine.families.common import Family
from doublesampling.engine.packed import PackedPolicy, PackedProblem
from doublesampling.rules import entry_points, laws, steps
from doublesampling.rules.bundles import BernoulliWorld, BetaPrior, BetaState
from doublesampling.rules.choose import kinds
from doublesampling.rules.optimal_arm import recurrence
from doublesampling.rules.optimal_arm.carried_densities import MOST_PANELS, NOTE_COLUMNS
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, PANEL_ROWS

FloatArray = NDArray[np.float64]
_MOST_COUNTS, _LEAST_OVERLAP = 1e6, 1e-200


def step_code(problem: PackedProblem, policy: PackedPolicy, carries: bool) -> int:
    """Return how the arms find p for a policy; ``carries``: whether densities may be carried, as on CPUs."""
    if problem.prior.track.size and kinds.follows_recurrence(policy.kind, policy.settings.samples):
        return steps.TRACKED
    return steps.CARRIED if carries and kinds.needs_optimality(policy.kind) else steps.FRESH


def _state(problem: PackedProblem, policy: PackedPolicy, parameters: FloatArray) -> BetaState:
    arms = problem.arms
    panels = MOST_PANELS if step_code(problem, policy, True) == steps.CARRIED else 0
    return BetaState(
        track=np.empty(problem.prior.track.size),
        panels=np.empty((panels, arms + 1, PANEL_ROWS, PANEL_NODES)),
        notes=np.empty((arms + 1, NOTE_COLUMNS)),
        alpha=parameters[:, 0],
        beta=parameters[:, 1],
    )


def start_track(alpha: FloatArray, beta: FloatArray) -> FloatArray:
    """Return the recurrence of two or three Beta arms at their prior; empty for more, and where it would be inexact.

    Counts above a million round the beta functions away; an overlap that underflows would never come back.
    """

    def log_beta(a: float, b: float) -> float:
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)

    def overlap(a: float, b: float, c: float, d: float) -> float:
        return math.exp(log_beta(a + c, b + d) - log_beta(a, b) - log_beta(c, d))

    def exact(a: Any, b: Any) -> FloatArray:
        if len(set(zip(a, b, strict=True))) == 1:  # equal arms are equally probable: nothing to compile or integrate
            return np.full(len(a), 1.0 / len(a))
        return entry_points.quadrature_optimality(laws.BETA, np.column_stack([a, b, np.zeros(len(a))]))

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
    prior = BetaPrior(state.alpha.copy(), state.beta.copy(), start_track(state.alpha, state.beta))
    world = BernoulliWorld(np.array(bandit.probabilities))
    return PackedProblem("beta", laws.BETA, bandit.arms, 1, world, prior, counts_wins=True)


FAMILY = Family(
    name="beta",
    step_code=step_code,
    defaults={BernoulliBandit: lambda bandit: BetaBernoulli(arms=bandit.arms)},
    beliefs=(BetaBernoulli,),
    takes=lambda bandit, belief: (
        isinstance(bandit, BernoulliBandit) and isinstance(belief, BetaBernoulli) and belief.discount == 1.0
    ),
    pack=_pack,
    state=_state,
)
