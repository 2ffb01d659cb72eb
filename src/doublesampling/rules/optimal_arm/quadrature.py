"""Sampling one: the probability that each arm is the best.

Exactly, p_a = integral of f_a(x) prod_{b != a} F_b(x) dx (the paper's marginalization of the indicator I_a), by
Gauss-Legendre panels walked from the highest reward downwards. Tail integrals gathered on the way give every F_b,
so no incomplete beta function is needed. The walk ends where some arm is certain to be better.

From M posterior samples, the counts of "arm a was best" are Multinomial(M, p): one multinomial draw has exactly the
law of the paper's M x A posterior draws.
"""

import math

import numpy as np
from numpy.typing import NDArray

from doublesampling.rules.compiled import inlined, rule
from doublesampling.rules.draws import OPTIMALITY, Address, multinomial_draw
from doublesampling.rules.optimal_arm.panels import panel_densities, panel_masses
from doublesampling.rules.optimal_arm.regions import LOWER, UPPER, Fineness, panel_bottom, survey
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]


@rule
def complete(floor: float, masses: FloatArray, arms: FloatArray) -> None:
    """Scale the probabilities to 1, and give what is missing to the arms that are surely best below the floor.

    Much is missing only where an arm is narrower than the spacing of floating-point numbers: no panel entered it.
    """
    total = 0.0
    surest = 0
    for a in range(masses.size):
        total += masses[a]
        surest += arms[a, LOWER] == floor
    if total < 1.0 - 1e-9:
        for a in range(masses.size):
            if arms[a, LOWER] == floor:
                masses[a] += (1.0 - total) / surest
        total = 1.0
    for a in range(masses.size):
        masses[a] /= total


@specialised(rule)
def probability_optimal(
    law: Constant, parameters: FloatArray, fineness: Fineness, masses: FloatArray, arms: FloatArray, panel: FloatArray
) -> None:
    """Fill masses with p_a, the probability that arm a has the highest expected reward, by quadrature.

    parameters : float array (arm, 3), the marginals. Work space: arms (arm, 7), panel (arm + 1, 4, 10).
    """
    count = parameters.shape[0]
    floor = survey(law, parameters, fineness, arms)
    top = -math.inf
    for a in range(count):
        masses[a] = 0.0
        top = max(top, arms[a, UPPER])
    while top > floor:
        bottom = panel_bottom(law, parameters, fineness[1], arms, top, floor)
        if not bottom < top:  # narrower than the spacing of floating-point numbers
            break
        panel_densities(law, parameters, arms, top, 0.5 * (top - bottom), panel)
        panel_masses(count, panel, masses)
        top = bottom
    complete(floor, masses, arms)


@inlined
def sampled_optimality(address: Address, samples: int, p: FloatArray, counts: NDArray[np.int64]) -> None:
    """Replace the exact p by the paper's estimate p_hat = counts / M, counts ~ Multinomial(M, p)."""
    multinomial_draw(address, OPTIMALITY, samples, p, counts)
    for a in range(p.size):
        p[a] = counts[a] / samples


@rule
def optimality_deviation(p: float) -> float:
    """Second-order statistic: sigma_hat of the indicator I_a, whose variance is p (1 - p)."""
    return math.sqrt(p * (1.0 - p))
