"""Rewards of 0 and 1 with a context, under logistic beliefs: the loop of linear.py, where x^T w are log odds."""

from typing import Any

import numpy as np

from doublesampling.bandits import LogisticBandit
from doublesampling.beliefs import Logistic
from doublesampling.engine.families.common import Family, PackedPolicy, PackedProblem
from doublesampling.engine.families.linear import check_dimension, linear_work, pack_world, play_linear


def _pack(bandit: LogisticBandit, belief: Logistic) -> PackedProblem:
    check_dimension(bandit, belief)
    state = belief.prior()
    ones = np.ones(belief.arms)  # a known noise of 1: the marginals are normal
    prior = (np.array(state.mean), np.array(state.root), ones, ones, ones, True, None)
    return PackedProblem("logistic", bandit.arms, belief.dimension, pack_world(bandit), prior)


def _work(problem: PackedProblem, policy: PackedPolicy) -> tuple[Any, ...]:
    *space, _, sample = linear_work(problem, policy)
    return (*space, np.empty(problem.dimension), sample)


FAMILY = Family(
    name="logistic",
    defaults={LogisticBandit: lambda bandit: Logistic(arms=bandit.arms, dimension=bandit.dimension)},
    beliefs=(Logistic,),
    takes=lambda bandit, belief: isinstance(bandit, LogisticBandit) and isinstance(belief, Logistic),
    pack=_pack,
    kernel=play_linear,
    work=_work,
)
