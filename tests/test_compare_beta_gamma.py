"""Two Beta or Gamma arms in closed form, or nearly so, against the general quadrature and SciPy."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

import doublesampling as ds
from doublesampling.engine.families.beta import start_track
from doublesampling.rules import entry_points, tallies
from doublesampling.rules.choose import information_directed
from doublesampling.rules.laws import BETA, GAMMA, INVERSE_GAMMA, STUDENT
from doublesampling.rules.optimal_arm import compare_beta_gamma, compare_whole_beta, recurrence
from doublesampling.rules.optimal_arm.panels import PANEL_NODES, PANEL_ROWS
from doublesampling.rules.optimal_arm.regions import EXACT, SURVEY_COLUMNS
from tests.compiled_rules import CallableRules

information_directed = CallableRules(information_directed)  # type: ignore[assignment]
compare_beta_gamma = CallableRules(compare_beta_gamma)  # type: ignore[assignment]
compare_whole_beta = CallableRules(compare_whole_beta)  # type: ignore[assignment]
recurrence = CallableRules(recurrence)  # type: ignore[assignment]

RANGES = [(0.5, 3.0), (1.0, 30.0), (0.3, 1e3), (5.0, 1e5), (0.3, 1e6)]


def beta_arms(rng: np.random.Generator, least: float, most: float) -> np.ndarray:
    """Two marginals (arm, 3); every other time so near to each other that there is doubt."""
    counts = np.exp(rng.uniform(math.log(least), math.log(most), (2, 2)))
    if rng.random() < 0.5:
        away = rng.normal() * math.sqrt((1.0 / counts).sum())
        share = special.expit(math.log(counts[0, 0] / counts[0, 1]) + away)
        counts[1] = np.clip(counts[1].sum() * np.array([share, 1.0 - share]), least, most)
    return np.column_stack([counts, np.zeros(2)])


def by_quadrature(family: int, arms: np.ndarray) -> np.ndarray:
    """What directed sampling needs, integrated in panels, whatever closed form there is."""
    work, survey = (
        np.empty((len(arms) + information_directed.EXTRA_ROWS, len(arms))),
        np.empty((len(arms), SURVEY_COLUMNS)),
    )
    panel, partial = np.empty((len(arms) + 1, PANEL_ROWS, PANEL_NODES)), np.empty((len(arms) + 2, PANEL_NODES))
    information_directed.tally_exactly(family, arms, EXACT, survey, panel, partial, work)
    return work


@pytest.mark.parametrize(("least", "most"), RANGES)
def test_beta_arms_agree_with_the_quadrature_of_any_number_of_arms(least: float, most: float) -> None:
    """Within 1e-6, and small probabilities to a thousandth of themselves; the overlap is a ratio of beta functions."""
    rng = np.random.default_rng(1)
    for _ in range(1500):
        arms = beta_arms(rng, least, most)
        assert compare_beta_gamma.resolved(BETA, arms)
        found, exact = compare_beta_gamma.first_above_second(BETA, arms), entry_points.exact_optimality(BETA, arms)
        np.testing.assert_allclose(found[:2], exact, rtol=0, atol=1e-6)
        if exact.min() > 1e-6:
            assert min(found[:2]) == pytest.approx(exact.min(), rel=1e-3)
        overlap = math.exp(special.betaln(*arms[:, :2].sum(axis=0)) - special.betaln(arms[:, 0], arms[:, 1]).sum())
        assert found[2] == pytest.approx(overlap, rel=1e-3, abs=1e-6)


def test_arms_in_the_other_order_mirrored_equal_and_far_away() -> None:
    """What symmetry says, to the last digits."""
    arms = np.array([[7.5, 3.25, 0.0], [20.0, 11.5, 0.0]])
    p, rest, overlap = compare_beta_gamma.first_above_second(BETA, arms)
    assert p + rest == pytest.approx(1.0, abs=1e-15)
    assert compare_beta_gamma.first_above_second(BETA, arms[::-1]) == pytest.approx((rest, p, overlap), abs=1e-15)
    assert compare_beta_gamma.first_above_second(BETA, arms[:, [1, 0, 2]]) == pytest.approx(
        (rest, p, overlap), abs=1e-15
    )
    assert compare_beta_gamma.first_above_second(BETA, arms[[0, 0]])[:2] == pytest.approx((0.5, 0.5), abs=1e-7)
    far = np.array([[900.0, 100.0, 0.0], [100.0, 900.0, 0.0]])
    assert compare_beta_gamma.first_above_second(BETA, far) == (1.0, 0.0, 0.0)


def test_what_it_is_not_made_for_is_left_to_the_general_quadrature() -> None:
    """Tiny counts, huge ones, more arms, other families."""
    arms = np.full((2, 3), 2.0)
    assert compare_beta_gamma.resolved(BETA, arms)
    assert not compare_beta_gamma.resolved(STUDENT, arms)
    assert not compare_beta_gamma.resolved(BETA, np.full((3, 3), 2.0))
    assert not compare_beta_gamma.resolved(BETA, arms * [[1.0, 0.1, 1.0]])
    assert not compare_beta_gamma.resolved(BETA, arms * [[1.0, 1e7, 1.0]])


@pytest.mark.parametrize("family", [GAMMA, INVERSE_GAMMA])
def test_gamma_arms_by_the_incomplete_beta_function(family: int) -> None:
    """SciPy's, for shapes and rates of any size."""
    rng = np.random.default_rng(2)
    for _ in range(300):
        arms = np.exp(rng.uniform(-3.0, 6.0, (2, 3)))
        (first, rate, _), (second, other_rate, _) = arms
        below = special.betainc(first, second, rate / (rate + other_rate))
        above = special.betaincc(first, second, rate / (rate + other_rate))
        p, rest = (below, above) if family == INVERSE_GAMMA else (above, below)
        assert compare_beta_gamma.first_above_second(family, arms)[:2] == pytest.approx((p, rest), rel=1e-8, abs=1e-300)


@pytest.mark.parametrize("family", [BETA, GAMMA, INVERSE_GAMMA])
def test_what_directed_sampling_needs_of_two_arms(family: int) -> None:
    """Rewards where each arm is best, regret and information, as the quadrature finds them."""
    rng = np.random.default_rng(3)
    for _ in range(300):  # not so heavy a tail that the quadrature leaves out what it pays
        arms = np.column_stack([np.exp(rng.uniform([1.2, 0.2], 4.0, (2, 2))), np.zeros(2)])
        work, exact = np.empty((2 + information_directed.EXTRA_ROWS, 2)), by_quadrature(family, arms)
        compare_beta_gamma.tally_two(family, arms, work)
        if exact[2].min() < 1e-6:
            continue
        np.testing.assert_allclose(work[:3], exact[:3], rtol=1e-3, atol=1e-6)
        for tallied in (work, exact):
            information_directed.fill_regret_and_information(tallied)
        np.testing.assert_allclose(work[3:5], exact[3:5], rtol=5e-3, atol=1e-6)


@pytest.mark.parametrize("shape", [1.1, 2.0, 40.0])
def test_what_a_heavy_tail_pays(shape: float) -> None:
    """An inverse Gamma law times its reward is one of a shape less, however far its tail reaches: SciPy's numbers."""
    arms = np.array([[shape, 3.0, 0.0], [shape + 0.5, 4.0, 0.0]])
    work = np.empty((2 + information_directed.EXTRA_ROWS, 2))
    compare_beta_gamma.tally_two(INVERSE_GAMMA, arms, work)
    first, second = 3.0 / (shape - 1.0), 4.0 / (shape - 0.5)
    assert work[0, 0] == pytest.approx(first * special.betainc(shape - 1.0, shape + 0.5, 3.0 / 7.0), rel=1e-9)
    assert work[0, 1] == pytest.approx(second * special.betainc(shape, shape - 0.5, 3.0 / 7.0), rel=1e-9)
    assert work[:2].sum(axis=0) == pytest.approx([first, second], rel=1e-12)
    exact = by_quadrature(INVERSE_GAMMA, arms)
    np.testing.assert_allclose(exact[:3], work[:3], rtol=1e-6)


@pytest.mark.parametrize("arms", [2, 3])
def test_the_recurrence_knows_what_directed_sampling_needs(arms: int) -> None:
    """Along a history, as the quadrature finds it anew."""
    rng = np.random.default_rng(4)
    alpha, beta = rng.uniform(0.5, 3.0, (2, arms))
    track = start_track(alpha, beta)
    for step in range(200):
        if step % 10 == 0:
            work = np.empty((arms + information_directed.EXTRA_ROWS, arms))
            recurrence.tally(alpha, beta, track, work)
            exact = tallies.tally_exactly(BETA, np.column_stack([alpha, beta, np.zeros(arms)]))
            np.testing.assert_allclose(work[: arms + 1], exact[: arms + 1], rtol=1e-6, atol=2e-9)
        arm, success = int(rng.integers(arms)), rng.random() < 0.5
        follow = recurrence.follow_two if arms == 2 else recurrence.follow_three
        follow(alpha, beta, track, arm, success)
        (alpha if success else beta)[arm] += 1.0


CERTAIN = {
    "2 Beta": (ds.BernoulliBandit([0.4, 0.6]), ds.BetaBernoulli(arms=2, alpha=[400, 600], beta=[600, 400])),
    "2 Beta that forget": (
        ds.BernoulliBandit([0.4, 0.6]),
        ds.BetaBernoulli(arms=2, alpha=[400, 600], beta=[600, 400], discount=0.9999),
    ),
    "3 Beta": (
        ds.BernoulliBandit([0.4, 0.6, 0.4]),
        ds.BetaBernoulli(arms=3, alpha=[400, 600, 400], beta=[600, 400, 600]),
    ),
    "Gamma": (ds.PoissonBandit([3.0, 5.0]), ds.GammaPoisson(arms=2, shape=[300, 400], rate=[100, 80])),
    "inverse Gamma": (
        ds.ExponentialBandit([0.4, 2.7]),
        ds.GammaExponential(arms=2, shape=[66, 434], rate=[25, 1189]),
    ),
}


PLAYED: list[Any] = [ds.InformationDirected(), ds.TopTwo(), ds.DoubleSampling()]
COMPILED_ELSEWHERE = [(PLAYED[0], "2 Beta"), (PLAYED[2], "2 Beta"), (PLAYED[2], "3 Beta"), (PLAYED[2], "Gamma")]
SURE = [
    pytest.param(policy, name, marks=() if (policy, name) in COMPILED_ELSEWHERE else pytest.mark.slow)
    for policy in PLAYED
    for name in CERTAIN
]


@pytest.mark.parametrize(("policy", "name"), SURE, ids=str)
def test_what_is_certain_is_played(policy: Any, name: str) -> None:
    """Where the posterior leaves no doubt, rounding must not make one: in the engine as in decide."""
    bandit, known = CERTAIN[name]
    seen = ds.simulate(bandit, [policy], belief=known, horizon=50, realizations=2, seed=1, keep="trajectories",
                       device="cpu")  # fmt: skip
    assert (seen.trajectory_arm.values == 1).all()
    decision = ds.decide(policy, known, known.prior(), seed=1)
    assert decision.arm == 1
    assert decision.propensities[1] == pytest.approx(1.0)


def test_a_prior_that_is_sure_of_the_wrong_arm_can_be_convinced() -> None:
    """The overlap of its arms underflows: no recurrence could bring it back."""
    known = ds.BetaBernoulli(arms=2, alpha=[4000, 1600], beta=[4000, 6400])
    assert start_track(np.array([4000.0, 1600.0]), np.array([4000.0, 6400.0])).size == 0
    assert start_track(np.array([1.0, 1e12]), np.array([1.0, 1e12])).size == 0
    assert start_track(np.array([4000.0, 1600.0, 1.0]), np.array([4000.0, 6400.0, 1.0])).size == 0
    seen = ds.simulate(ds.BernoulliBandit([0.0, 0.2]), [ds.DoubleSampling(horizon=16_000, count="doubt")], belief=known,
                       horizon=16_000, realizations=1, seed=1, times=[16_000], device="cpu")  # fmt: skip
    assert seen.probability_optimal.values.ravel()[1] > 0.9


@pytest.mark.parametrize("truth", [[0.4, 0.8], [0.3, 0.5, 0.6]])
def test_directed_sampling_in_the_engine_walks_the_steps_of_decide(truth: list[float]) -> None:
    """By the recurrence there, by quadrature here, for as long as they are in doubt and after."""
    known = ds.BetaBernoulli(arms=len(truth))
    seen = ds.simulate(ds.BernoulliBandit(truth), [ds.InformationDirected()], horizon=300, realizations=1, seed=3,
                       keep="trajectories", device="cpu")  # fmt: skip
    state = known.prior()
    for t in range(300):
        arm = int(seen.trajectory_arm[0, 0, 0, t])
        assert ds.decide(ds.InformationDirected(), known, state, seed=3, time=t + 1).arm == arm
        state = known.update(state, arm, float(seen.trajectory_reward[0, 0, 0, t]))


def test_propensities_of_top_two_sum_to_one_where_doubt_ends() -> None:
    """As the arms are played, from some doubt to none."""
    known = ds.BetaBernoulli(arms=2)
    for wins in (60, 45, 40, 35, 30, 20):
        state = known.update_batch(
            known.prior(), [0] * 100 + [1] * 100, ([1] * wins + [0] * (100 - wins)) + [1] * 70 + [0] * 30
        )
        found = [ds.decide(ds.TopTwo(), known, state, seed=1, time=t) for t in range(1, 200)]
        assert found[0].propensities.sum() == pytest.approx(1.0)
        assert np.mean([d.arm == 0 for d in found]) == pytest.approx(found[0].propensities[0], abs=0.2)


def test_an_arm_that_is_as_good_as_never_best_costs_no_regret() -> None:
    """Else the leader's ratio would be infinite, and the loser's whatever rounding makes of it."""
    work = np.zeros((2 + information_directed.EXTRA_ROWS, 2))
    work[:3] = [[0.6, 0.4], [0.4e-13, 0.5e-13], [1.0, 1e-13]]
    information_directed.fill_regret_and_information(work)
    assert work[3].tolist() == [0.0, pytest.approx(0.2)]
    chances = np.empty(2)
    information_directed.fill_chances(work[3], np.array([0.0, 1e-28]), chances)
    assert chances.tolist() == [1.0, 0.0]


def test_whole_counts_give_the_finite_sum():
    """Against fractions of whole numbers, and against the quadrature where only one count is whole."""
    from fractions import Fraction

    def above(a: int, b: int, c: int, d: int) -> Fraction:
        """P(Beta(a, b) > Beta(c, d)), exactly."""

        def beta(x: int, y: int) -> Fraction:
            return Fraction(math.factorial(x - 1) * math.factorial(y - 1), math.factorial(x + y - 1))

        terms = (beta(c + i, b + d) / ((b + i) * beta(1 + i, b) * beta(c, d)) for i in range(a))
        return sum(terms, Fraction(0))

    rng = np.random.default_rng(3)
    for _ in range(60):
        a, b, c, d = (1 + int(10**exponent) for exponent in rng.uniform(0.0, 2.0, 4))
        p = np.empty(2)
        assert compare_whole_beta.fill_optimality(np.array([[a, b, 0.0], [c, d, 0.0]]), p)
        wanted = float(above(a, b, c, d))
        np.testing.assert_allclose(p, [wanted, 1.0 - wanted], rtol=0, atol=1e-12)
    for arms in (
        [[0.5, 2.0, 0.0], [1.7, 3.3, 0.0]],
        [[3.0, 0.2, 0.0], [0.7, 0.9, 0.0]],
        [[0.3, 0.4, 0.0], [0.6, 7.0, 0.0]],
    ):
        p = np.empty(2)
        assert compare_whole_beta.fill_optimality(np.array(arms), p)
        np.testing.assert_allclose(p, entry_points.quadrature_optimality(BETA, np.array(arms)), rtol=0, atol=1e-10)


def test_counts_that_are_not_whole_or_too_large_are_left_to_the_quadrature():
    p = np.empty(2)
    for arms in (
        [[0.5, 0.5, 0.0], [1.5, 2.5, 0.0]],
        [[9e3, 8e3, 0.0], [7e3, 6e3, 0.0]],
        [[2e3, 2e3, 0.0], [2e3, 3e3, 0.0]],
    ):
        assert not compare_whole_beta.fill_optimality(np.array(arms), p)
