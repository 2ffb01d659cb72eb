"""Rewards of 0 and 1 with a context, under logistic beliefs: the step of linear.py, where x^T w are log odds."""

import numpy as np

from doublesampling.bandits import LogisticBandit
from doublesampling.beliefs import Logistic
from doublesampling.engine.families.common import Family
from doublesampling.engine.families.linear import check_dimension, pack_world, weights_state
from doublesampling.engine.packed import PackedProblem
from doublesampling.rules import laws, steps
from doublesampling.rules.bundles import WeightsPrior


def _pack(bandit: LogisticBandit, belief: Logistic) -> PackedProblem:
    check_dimension(bandit, belief)
    state, size = belief.prior(), belief.dimension
    ones = np.ones(belief.arms)  # a known noise of 1: the marginals are normal
    nothing = np.empty((0, size + 1, size + 2))
    prior = WeightsPrior(np.array(state.mean), np.array(state.root), ones, ones, ones, True, nothing)
    return PackedProblem("logistic", laws.LOGISTIC, bandit.arms, size, pack_world(bandit), prior)


FAMILY = Family(
    name="logistic",
    step_code=lambda problem, policy, carries: steps.WEIGHTS,
    defaults={LogisticBandit: lambda bandit: Logistic(arms=bandit.arms, dimension=bandit.dimension)},
    beliefs=(Logistic,),
    takes=lambda bandit, belief: isinstance(bandit, LogisticBandit) and isinstance(belief, Logistic),
    pack=_pack,
    state=weights_state,
)
