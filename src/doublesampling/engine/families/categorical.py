"""Rewards in categories of known value, under Dirichlet beliefs: sampling one as the paper writes it."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from doublesampling.bandits import CategoricalBandit
from doublesampling.beliefs import DirichletCategorical
from doublesampling.beliefs.marginals import draws_that_fit
from doublesampling.engine.families.common import Family, PackedPolicy, PackedProblem
from doublesampling.errors import SettingError
from doublesampling.rules import categories, directed, play
from doublesampling.rules.doors import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_SAMPLES = 1000  # of policies that do not say how many


@kernel
def play_categories(
    seed: np.uint64, bandit: np.uint64, first: int, horizon: int,
    chances: FloatArray, outcomes: FloatArray, prior: FloatArray, discount: float,
    whole: IntArray, real: FloatArray, alarms: FloatArray, columns: IntArray,
    means: FloatArray, squares: FloatArray, final: FloatArray, kept: FloatArray,
    concentration: FloatArray, truth: FloatArray, shares: FloatArray, draws: FloatArray, work: FloatArray,
    p: FloatArray, votes: IntArray, values: FloatArray,
) -> None:  # fmt: skip
    """Play a block of realizations with Dirichlet beliefs.

    chances : float array (arm, category); outcomes : what each category is worth. From concentration on: work space,
    see categories_work. The rest as in beta.play_beta.
    """
    best = -math.inf
    for a in range(truth.size):
        truth[a] = categories.mean_value(chances[a], outcomes)
        best = max(best, truth[a])
    for r in range(final.size):
        for a in range(truth.size):
            p[a] = math.nan
            for k in range(outcomes.size):
                concentration[a, k] = prior[a, k]
        regret = observed = 0.0
        for t in range(horizon):
            address = (seed, bandit, np.uint64(first + r), np.uint64(t + 1))
            arm, number, paid = categories.categories_step(
                address, t + 1.0, truth, chances, outcomes, prior, discount, whole, real, alarms, concentration,
                shares, draws, work, p, votes, values,
            )  # fmt: skip
            regret += best - truth[arm]
            observed += best - paid
            play.note(
                r, t, arm, paid, number, truth[arm] == best, regret, observed, p, columns, means, squares, kept
            )  # fmt: skip
        final[r] = regret


def categories_work(problem: PackedProblem, policy: PackedPolicy) -> tuple[Any, ...]:
    """The work space of play_categories, in its order."""
    arms, size = problem.arms, problem.dimension
    exact = DirichletCategorical.many if policy.kind == play.DOUBLE_SAMPLING else _SAMPLES
    samples = draws_that_fit(int(policy.whole[play.SAMPLES]) or exact, arms)
    return (
        np.empty((arms, size)), np.empty(arms), np.empty(size), np.empty((samples, arms)),
        np.empty((arms + directed.EXTRA_ROWS, arms)), np.empty(arms), np.empty(arms, dtype=np.int64), np.empty(arms),
    )  # fmt: skip


def _pack(bandit: CategoricalBandit, belief: DirichletCategorical) -> PackedProblem:
    if belief.values != bandit.values:
        raise SettingError(
            f"The belief knows the values {belief.values}, the bandit pays {bandit.values}. Give both the same."
        )
    world = (np.array(bandit.probabilities), np.array(bandit.values))
    prior = (np.array(belief.prior().concentration), belief.discount)
    return PackedProblem("categorical", bandit.arms, len(bandit.values), world, prior)


FAMILY = Family(
    name="categorical",
    defaults={CategoricalBandit: lambda bandit: DirichletCategorical(arms=bandit.arms, values=bandit.values)},
    beliefs=(DirichletCategorical,),
    takes=lambda bandit, belief: isinstance(bandit, CategoricalBandit) and isinstance(belief, DirichletCategorical),
    pack=_pack,
    kernel=play_categories,
    work=categories_work,
    samples_itself=True,
)
