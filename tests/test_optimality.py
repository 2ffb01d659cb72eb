"""Sampling one: the probability of being optimal, by quadrature and by samples."""

import itertools

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.rules import entry_points
from doublesampling.rules.laws import BETA, STUDENT
from doublesampling.rules.optimal_arm.quadrature import optimality_deviation
from tests import oracle
from tests.chance import assert_counts, assert_mean
from tests.compiled_rules import callable_rule

U = np.uint64


def betas(rng, arms, spread):
    """Marginals after 1 to 10^6 observations per arm, near or far from each other."""
    seen = np.round(10 ** rng.uniform(0, 6, arms))
    rate = np.clip(0.5 + spread * rng.normal(size=arms), 0.02, 0.98)
    wins = np.round(seen * rate)
    return np.column_stack([1 + wins, 1 + seen - wins, np.zeros(arms)])


def students(rng, arms, spread, known=False):
    seen = np.round(10 ** rng.uniform(0, 6, arms))
    return np.column_stack([spread * rng.normal(size=arms), seen**-0.5, np.full(arms, np.inf) if known else 2 + seen])


@pytest.mark.parametrize("spread", [0.3, 1e-2, 1e-3])
@pytest.mark.parametrize("arms", [2, 3, 10, 50])
def test_beta_arms_against_scipy(arms, spread):
    rng = np.random.default_rng(arms)
    for _ in range(4 if arms < 50 else 1):  # the slow twin takes a second
        marginals = betas(rng, arms, spread)
        ours = entry_points.exact_optimality(BETA, marginals)
        assert ours.sum() == pytest.approx(1.0, abs=1e-12)
        np.testing.assert_allclose(ours, oracle.probability_optimal("beta", marginals), atol=1e-8, rtol=0)


@pytest.mark.parametrize("known", [True, False], ids=["normal", "student"])
@pytest.mark.parametrize("spread", [1.0, 1e-2])
@pytest.mark.parametrize("arms", [2, 3, 10, 50])
def test_student_arms_against_scipy(arms, spread, known):
    rng = np.random.default_rng(arms)
    for _ in range(4 if arms < 50 else 1):
        marginals = students(rng, arms, spread, known)
        ours = entry_points.exact_optimality(STUDENT, marginals)
        np.testing.assert_allclose(ours, oracle.probability_optimal("student", marginals), atol=1e-8, rtol=0)


def test_two_whole_betas_against_the_finite_sum():
    for a, b, c, d in itertools.product((1, 2, 7, 40), repeat=4):
        ours = entry_points.exact_optimality(BETA, np.array([[a, b, 0.0], [c, d, 0.0]]))
        assert ours[0] == pytest.approx(oracle.two_betas(a, b, c, d), abs=1e-10)


def test_narrow_beside_wide():
    """One observation beside 10^6, where a fixed grid would miss the narrow arm altogether."""
    for rate in (0.2, 0.5, 0.9, 0.999):
        narrow = [1 + 1e6 * rate, 1 + 1e6 * (1 - rate), 0.0]
        marginals = np.array([[1.0, 2.0, 0.0], narrow, [2.0, 1.0, 0.0]])
        np.testing.assert_allclose(
            entry_points.exact_optimality(BETA, marginals),
            oracle.probability_optimal("beta", marginals),
            atol=1e-9,
            rtol=0,
        )


@pytest.mark.parametrize("prior", [1e-6, 1e-3, 0.05, 0.5])
def test_small_priors_are_symmetric_and_certain_where_they_should_be(prior):
    """Densities that are infinite at the ends are smooth in the log odds."""
    same = entry_points.exact_optimality(BETA, np.array([[prior, prior, 0.0]] * 3))
    np.testing.assert_allclose(same, 1 / 3, atol=1e-10)
    # Beta(e, e) is nearly a coin at 0 or 1, so it beats Beta(1, 1) half the time
    coin = entry_points.exact_optimality(BETA, np.array([[prior, prior, 0.0], [1.0, 1.0, 0.0]]))
    np.testing.assert_allclose(coin, 0.5, atol=1e-10)


@pytest.mark.parametrize("small", [1e-4, 0.02, 0.3])
def test_small_priors_against_their_closed_form(small):
    """P(X > Y) for X ~ Beta(e, 1), Y ~ Beta(1, 1) is E X = e / (1 + e)."""
    p = entry_points.exact_optimality(BETA, np.array([[small, 1.0, 0.0], [1.0, 1.0, 0.0]]))
    assert p[0] == pytest.approx(small / (1 + small), abs=1e-10)
    q = entry_points.exact_optimality(BETA, np.array([[1.0, small, 0.0], [1.0, 1.0, 0.0]]))
    assert q[0] == pytest.approx(1 / (1 + small), abs=1e-10)
    # Beta(e, 1) is below x with probability x^e
    r = entry_points.exact_optimality(BETA, np.array([[small, 1.0, 0.0], [2 * small, 1.0, 0.0]]))
    assert r[0] == pytest.approx(1 / 3, abs=1e-10)


def test_heavy_tails_are_followed_to_the_end():
    """Cauchy arms, and heavier: P(first is best) from the symmetry of their difference."""
    for freedom in (0.1, 0.5, 1.0):
        p = entry_points.exact_optimality(STUDENT, np.array([[0.0, 1.0, freedom], [0.0, 1.0, freedom]]))
        np.testing.assert_allclose(p, 0.5, atol=1e-10)
    # the difference of two Cauchys of scale 1 is a Cauchy of scale 2
    p = entry_points.exact_optimality(STUDENT, np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    assert p[0] == pytest.approx(0.5 + np.arctan(0.5) / np.pi, abs=1e-10)


def test_arms_narrower_than_the_spacing_of_numbers():
    far = np.array([[1e6, 1e-14, np.inf], [1e6, 1.0, np.inf]])
    np.testing.assert_allclose(entry_points.exact_optimality(STUDENT, far), 0.5, atol=1e-8)
    apart = np.array([[1e6, 1e-14, np.inf], [1e6 + 1, 1e-14, np.inf]])
    np.testing.assert_allclose(entry_points.exact_optimality(STUDENT, apart), [0.0, 1.0])
    same = np.array([[1e6, 1e-14, np.inf], [1e6, 1e-14, np.inf]])
    np.testing.assert_allclose(entry_points.exact_optimality(STUDENT, same), 0.5)


def test_a_context_of_zeros_makes_all_arms_equal():
    belief = ds.LinearGaussian(arms=2, dimension=2)
    state = belief.update(belief.prior(), 0, 5.0, [1.0, 0.0])
    np.testing.assert_allclose(ds.probability_optimal(belief, state, [0.0, 0.0]), 0.5)
    assert ds.decide(ds.BayesUCB(), belief, belief.prior(), [0.0, 0.0], time=1).arm in (0, 1)


def test_an_arm_that_cannot_win_has_no_probability():
    p = entry_points.exact_optimality(BETA, np.array([[10.0, 1e6, 0.0], [1e6, 10.0, 0.0]]))
    assert p[0] < 1e-300
    assert p[1] == 1.0


def test_relabelling_arms_relabels_probabilities():
    marginals = betas(np.random.default_rng(3), 6, 0.05)
    order = np.random.default_rng(4).permutation(6)
    np.testing.assert_allclose(
        entry_points.exact_optimality(BETA, marginals[order]),
        entry_points.exact_optimality(BETA, marginals)[order],
        atol=1e-12,
    )


def test_posterior_draws_agree_with_quadrature():
    """The definition itself: how often each arm is the best of posterior draws."""
    belief = ds.BetaBernoulli(arms=4)
    rng = np.random.default_rng(0)
    state = belief.update_batch(belief.prior(), rng.integers(0, 4, 60), rng.integers(0, 2, 60))
    best = belief.marginals(state).draws(20_000, seed=1).argmax(axis=1)
    assert_counts(np.bincount(best, minlength=4), ds.probability_optimal(belief, state))


def test_the_estimate_has_the_law_of_m_posterior_draws():
    """p_hat from one multinomial draw, against counting the best of M x A posterior draws."""
    belief = ds.BetaBernoulli(arms=2)
    state = belief.update_batch(belief.prior(), [0, 0, 1, 1, 1], [1, 0, 1, 1, 0])
    p = ds.probability_optimal(belief, state)
    samples, times = 20, 4000
    multinomial = [
        entry_points.estimated_optimality(p, samples, np.array([9, 0, 0, t], dtype=U))[0] for t in range(times)
    ]
    laws = belief.marginals(state)
    counted = [(laws.draws(samples, seed=9, time=t + 1).argmax(axis=1) == 0).mean() for t in range(times)]
    from scipy import stats

    pmf = stats.binom(samples, p[0]).pmf(np.arange(samples + 1))
    for estimate in (multinomial, counted):
        assert_counts(np.bincount(np.round(np.array(estimate) * samples).astype(int), minlength=samples + 1), pmf)
        assert_mean(estimate, p[0])


def test_second_order_statistic_is_that_of_the_indicator():
    indicator = np.array([1, 0, 0, 1, 0])
    assert callable_rule(optimality_deviation)(indicator.mean()) == pytest.approx(indicator.std())


@pytest.mark.parametrize("prior", [0.01, 0.1, 0.5])
def test_long_tails_that_end_in_a_cliff(prior):
    """An arm that has hardly ever failed: its log odds fall slowly above the peak and at once below it."""
    rng = np.random.default_rng(int(prior * 100))
    for _ in range(20):
        seen = np.round(10 ** rng.uniform(0, 5, 2))
        lost = rng.integers(0, 2, 2) * prior * rng.uniform(0, 1, 2)
        marginals = np.column_stack([prior + seen, prior + lost, np.zeros(2)])
        x = np.concatenate([-np.geomspace(60 / prior, 1e-9, 101), np.geomspace(1e-9, 60 / prior, 101)[1:]])
        exact = _two_betas_by_fine_panels(marginals, np.log(marginals[:, 0] / marginals[:, 1]).mean() + x)
        np.testing.assert_allclose(entry_points.exact_optimality(BETA, marginals)[0], exact, atol=1e-8, rtol=0)
        mirrored = marginals[:, [1, 0, 2]]
        np.testing.assert_allclose(entry_points.exact_optimality(BETA, mirrored)[0], 1 - exact, atol=1e-8, rtol=0)


def _two_betas_by_fine_panels(marginals, edges):
    """P(first > second) over the log odds, with many narrow panels and SciPy's incomplete beta."""
    from scipy import special

    node, weight = np.polynomial.legendre.leggauss(12)
    z = (0.5 * (edges[1:] + edges[:-1])[:, None] + 0.5 * np.diff(edges)[:, None] * node).ravel()
    w = (0.5 * np.diff(edges)[:, None] * weight).ravel()
    (a, b, _), (c, d, _) = marginals
    log_density = -a * np.logaddexp(0, -z) - b * np.logaddexp(0, z) - special.betaln(a, b)
    below = np.where(z < 0, special.betainc(c, d, special.expit(z)), special.betaincc(d, c, special.expit(-z)))
    far = z > 300  # where 1 - x nears underflow, the tail is its leading term
    below[far] = -np.expm1(-d * z[far] - np.log(d) - special.betaln(c, d))
    return np.sum(w * np.exp(log_density) * below)


@pytest.mark.parametrize("location", [0.0, 1e6, 1e9, 1e12])
def test_large_locations_do_not_round_small_scales_away(location):
    from scipy import stats

    for gap in (0.0, 1.0, 2.5):
        marginals = np.array([[location + gap, 1.0, np.inf], [location, 2.0, np.inf]])
        exact = stats.norm.cdf((marginals[0, 0] - marginals[1, 0]) / np.sqrt(5.0))
        assert entry_points.exact_optimality(STUDENT, marginals)[0] == pytest.approx(exact, abs=1e-9)
    gap = np.spacing(1e10)  # neighbours among floating-point numbers, some deviations apart
    near = np.array([[1e10 + gap, 5e-7, np.inf], [1e10, 5e-7, np.inf]])
    exact = stats.norm.cdf(gap / (5e-7 * np.sqrt(2.0)))
    assert entry_points.exact_optimality(STUDENT, near)[0] == pytest.approx(exact, abs=1e-9)
    tiny = np.array([[1e10, 1e-6, np.inf], [1e10, 1e-7, np.inf]])
    np.testing.assert_allclose(entry_points.exact_optimality(STUDENT, tiny), 0.5, atol=1e-9)
