"""Rewards in categories of known value, under Dirichlet beliefs: sampling one as the paper writes it."""

import numpy as np

from doublesampling.bandits import CategoricalBandit
from doublesampling.beliefs import DirichletCategorical
from doublesampling.beliefs.marginals import draws_that_fit
from doublesampling.engine.families.common import Family
from doublesampling.engine.packed import PackedPolicy, PackedProblem
from doublesampling.errors import SettingError
from doublesampling.rules import laws, steps
from doublesampling.rules.bundles import CategoricalWorld, DirichletPrior, DirichletState
from doublesampling.rules.choose import kinds

_SAMPLES = 1000  # of policies that do not say how many


def _samples(problem: PackedProblem, policy: PackedPolicy) -> int:
    exact = DirichletCategorical.many if policy.kind == kinds.DOUBLE_SAMPLING else _SAMPLES
    return draws_that_fit(policy.settings.samples or exact, problem.arms)


def _pack(bandit: CategoricalBandit, belief: DirichletCategorical) -> PackedProblem:
    if belief.values != bandit.values:
        raise SettingError(
            f"The belief knows the values {belief.values}, the bandit pays {bandit.values}. Give both the same."
        )
    world = CategoricalWorld(np.array(bandit.probabilities), np.array(bandit.values))
    prior = DirichletPrior(np.array(belief.prior().concentration), belief.discount)
    size = len(bandit.values)
    return PackedProblem("categorical", laws.SAMPLED, bandit.arms, size, world, prior, samples_itself=True)


FAMILY = Family(
    name="categorical",
    step_code=lambda problem, policy, carries: steps.CATEGORIES,
    defaults={CategoricalBandit: lambda bandit: DirichletCategorical(arms=bandit.arms, values=bandit.values)},
    beliefs=(DirichletCategorical,),
    takes=lambda bandit, belief: isinstance(bandit, CategoricalBandit) and isinstance(belief, DirichletCategorical),
    pack=_pack,
    state=lambda problem, policy, parameters: DirichletState(
        np.empty((problem.arms, problem.dimension)), np.empty(problem.dimension)
    ),
    samples=_samples,
)
