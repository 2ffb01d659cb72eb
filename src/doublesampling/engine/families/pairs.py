"""Counts, waiting times, and Beta beliefs that forget: two numbers per arm, and a truth that may move."""

from typing import Any

import numpy as np

from doublesampling.bandits import BernoulliBandit, ChangingBernoulliBandit, ExponentialBandit, PoissonBandit
from doublesampling.beliefs import BetaBernoulli, GammaExponential, GammaPoisson
from doublesampling.engine.families.common import Family
from doublesampling.engine.packed import PackedProblem
from doublesampling.rules import steps
from doublesampling.rules.bundles import NoState, PairPrior, StagedWorld

_WORLDS: dict[type, tuple[type, ...]] = {
    BetaBernoulli: (BernoulliBandit, ChangingBernoulliBandit),
    GammaPoisson: (PoissonBandit,),
    GammaExponential: (ExponentialBandit,),
}


def _pack(bandit: Any, belief: Any) -> PackedProblem:
    means = bandit.probabilities if hasattr(bandit, "probabilities") else bandit.means
    first, second = belief.prior().pair
    world = StagedWorld(np.atleast_2d(np.array(means)), getattr(bandit, "every", 1))
    counts = isinstance(belief, BetaBernoulli) and belief.discount == 1.0
    prior = PairPrior(first.copy(), second.copy(), belief.discount)
    return PackedProblem("pairs", belief.law, bandit.arms, 1, world, prior, counts_wins=counts)


FAMILY = Family(
    name="pairs",
    step_code=lambda problem, policy, carries: steps.PAIRS,
    defaults={
        PoissonBandit: lambda bandit: GammaPoisson(arms=bandit.arms),
        ExponentialBandit: lambda bandit: GammaExponential(arms=bandit.arms),
        ChangingBernoulliBandit: lambda bandit: BetaBernoulli(arms=bandit.arms),
    },
    beliefs=tuple(_WORLDS),
    takes=lambda bandit, belief: isinstance(bandit, _WORLDS.get(type(belief), ())),
    pack=_pack,
    state=lambda problem, policy, parameters: NoState(),
)
