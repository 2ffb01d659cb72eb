"""Beliefs of two numbers per arm, Beta and Gamma, that may forget: rewards, updates, probability of being best."""

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules import laws, posterior, worlds
from doublesampling.rules.compiled import inlined
from doublesampling.rules.draws import Address
from doublesampling.rules.optimal_arm import compare_beta_gamma, quadrature
from doublesampling.rules.optimal_arm.regions import QUICK_BETA
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]


@specialised(inlined)
def learn(
    law: Constant, first: FloatArray, second: FloatArray, prior_first: FloatArray, prior_second: FloatArray,
    discount: float, arm: int, paid: float,
) -> None:  # fmt: skip
    """Update in place: every arm forgets by the discount, then the played one learns; float arrays (arm)."""
    if discount < 1.0:
        for a in range(first.size):
            first[a] = posterior.forget(first[a], prior_first[a], discount)
            second[a] = posterior.forget(second[a], prior_second[a], discount)
    if law == laws.BETA:
        first[arm], second[arm] = posterior.beta_update(first[arm], second[arm], paid)
    elif law == laws.GAMMA:
        first[arm], second[arm] = posterior.gamma_poisson_update(first[arm], second[arm], paid)
    else:
        first[arm], second[arm] = posterior.gamma_exponential_update(first[arm], second[arm], paid)


@specialised(inlined)
def pay(law: Constant, mean: float, arm: int, address: Address) -> float:
    """Return what an arm pays in the world that fits this law."""
    if law == laws.BETA:
        paid = worlds.bernoulli_reward(mean, arm, address)
    elif law == laws.GAMMA:
        paid = worlds.poisson_reward(mean, arm, address)
    else:
        paid = worlds.exponential_reward(mean, arm, address)
    return paid


@specialised(inlined)
def fill_optimality(
    law: Constant, parameters: FloatArray, p: FloatArray, survey: FloatArray, panel: FloatArray
) -> None:
    """Fill p, to 1e-6."""
    if compare_beta_gamma.resolved(law, parameters):
        p[0], p[1], _ = compare_beta_gamma.first_above_second(law, parameters)
    else:
        quadrature.probability_optimal(law, parameters, QUICK_BETA, p, survey, panel)
