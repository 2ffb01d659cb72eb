"""The probability that each arm is the best (the paper's first sampling), by quadrature, and its estimate.

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
from doublesampling.rules.optimal_arm.panels import add_panel, panel_densities
from doublesampling.rules.optimal_arm.regions import LOWER, UPPER, Fineness, panel_bottom, survey_arms
from doublesampling.rules.specialise import Constant, specialised

FloatArray = NDArray[np.float64]


@rule
def complete(floor: float, p: FloatArray, survey: FloatArray) -> None:
    """Scale the probabilities to 1, and give what is missing to the arms that are surely best below the floor.

    Much is missing only where an arm is narrower than the spacing of floating-point numbers: no panel entered it.
    """
    total = 0.0
    surest = 0
    for a in range(p.size):
        total += p[a]
        surest += survey[a, LOWER] == floor
    if total < 1.0 - 1e-9:
        for a in range(p.size):
            if survey[a, LOWER] == floor:
                p[a] += (1.0 - total) / surest
        total = 1.0
    for a in range(p.size):
        p[a] /= total


@specialised(rule)
def probability_optimal(
    law: Constant, parameters: FloatArray, fineness: Fineness, p: FloatArray, survey: FloatArray, panel: FloatArray
) -> None:
    """Fill p with p_a, the probability that arm a has the highest expected reward, by quadrature.

    parameters : float array (arm, 3), the marginals. Work space: survey (arm, 7), panel (arm + 1, 4, 10).
    """
    count = parameters.shape[0]
    floor = survey_arms(law, parameters, fineness, survey)
    top = -math.inf
    for a in range(count):
        p[a] = 0.0
        top = max(top, survey[a, UPPER])
    while top > floor:
        bottom = panel_bottom(law, parameters, fineness[1], survey, top, floor)
        if not bottom < top:  # narrower than the spacing of floating-point numbers
            break
        panel_densities(law, parameters, survey, top, 0.5 * (top - bottom), panel)
        add_panel(count, panel, p)
        top = bottom
    complete(floor, p, survey)


@inlined
def sampled_optimality(address: Address, samples: int, p: FloatArray, counts: NDArray[np.int64]) -> None:
    """Replace the exact p by the paper's estimate p_hat = counts / M, counts ~ Multinomial(M, p)."""
    multinomial_draw(address, OPTIMALITY, samples, p, counts)
    for a in range(p.size):
        p[a] = counts[a] / samples


@rule
def optimality_deviation(p: float) -> float:
    """Return sigma_hat, the standard deviation of the indicator I_a: its variance is p (1 - p)."""
    return math.sqrt(p * (1.0 - p))
