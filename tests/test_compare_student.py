"""Two Student arms without work space, against the general quadrature."""

import math

import numpy as np
import pytest

from doublesampling.rules import entry_points
from doublesampling.rules.laws import STUDENT
from doublesampling.rules.optimal_arm import compare_student
from tests.compiled_rules import CallableRules

compare_student = CallableRules(compare_student)  # type: ignore[assignment]

FREEDOMS = [1.0, 2.0, 3.0, 4.5, 6.0, 7.0, 10.0, 31.5, 100.0, 2001.0, 1e6, 1e12, math.inf]


def arms(rng: np.random.Generator, spread: float) -> np.ndarray:
    """Two marginals (arm, 3), near enough to each other for doubt."""
    scale = math.exp(rng.uniform(-spread, spread))
    gap = rng.normal() * math.hypot(1.0, scale) * rng.choice([0.3, 1.0, 3.0])
    return np.array([[0.0, 1.0, rng.choice(FREEDOMS)], [gap, scale, rng.choice(FREEDOMS)]])


@pytest.mark.parametrize("spread", [0.1, 0.5, 5.0])
def test_it_agrees_with_the_quadrature_of_any_number_of_arms(spread: float) -> None:
    """Within 1e-6 wherever it says that it resolves the arms."""
    rng = np.random.default_rng(1)
    worst, tried = 0.0, 0
    for _ in range(5000):
        first, second = pair = arms(rng, spread)
        if compare_student.resolved(first[1], first[2], second[1], second[2]):
            tried += 1
            p = compare_student.first_above_second(*first, *second)
            worst = max(worst, abs(p - entry_points.exact_optimality(STUDENT, pair)[0]))
    assert tried > 1500
    assert worst < 1e-6


def test_arms_in_the_other_order_and_far_away() -> None:
    """The two probabilities add up to one, locations may be large, and certainty is certain."""
    first, second = (1e6 + 0.3, 0.2, 12.0), (1e6, 0.4, 7.0)
    p = compare_student.first_above_second(*first, *second)
    assert compare_student.first_above_second(*second, *first) == pytest.approx(1.0 - p, abs=1e-15)
    assert p == pytest.approx(compare_student.first_above_second(0.3, 0.2, 12.0, 0.0, 0.4, 7.0), abs=1e-9)
    assert compare_student.first_above_second(100.0, 1.0, 50.0, 0.0, 1.0, 50.0) == 1.0
    assert compare_student.first_above_second(0.0, 1.0, 50.0, 100.0, 1.0, 50.0) == 0.0
    assert compare_student.first_above_second(1.0, 2.0, 9.0, 1.0, 2.0, 9.0) == pytest.approx(0.5, abs=1e-9)


def test_heavy_tails_are_left_to_the_general_quadrature() -> None:
    """Out there its steps are too long, and it says so."""
    assert not compare_student.resolved(1.0, 2.0, 1.5, 100.0)
    assert not compare_student.resolved(1.0, 100.0, 1.0, 3.0)
    assert compare_student.resolved(1.0, 100.0, 5.0, 2.0)
