"""The package against formulas that share no code with it; benchmarks/audit.py is the long form."""

import math

import mpmath
import numpy as np
import pytest
from scipy import special as scipy_special

import doublesampling as ds
from doublesampling.rules import entry_points, laws, tallies
from doublesampling.rules.choose import kinds
from tests import audit_laws, audit_propensities
from tests import independent as reference
from tests import independent_policies as policies
from tests.chance import FALSE_ALARM, assert_counts

WORDS = np.array([1, 0, 0, 1], dtype=np.uint64)


def best(family, parameters):
    return entry_points.exact_optimality(family, np.array(parameters, dtype=float))


def betas(*arms):
    return best(laws.BETA, [[a, b, 0.0] for a, b in arms])


WHOLE = [
    [(21, 1), (64, 193)],  # 1.9e-12, a narrow arm below a wide one
    [(62, 198), (27, 5), (1, 3)],  # 3e-12
    [(5, 70), (20, 30), (100, 9), (50, 50), (1, 1)],  # 1e-12 and 4e-36
    [(39, 116), (32, 3), (6, 14)],  # 1.6e-14
    [(3, 20), (4, 2), (1, 5), (39, 4), (20, 26), (2, 5), (78, 3), (14, 10), (7, 4), (34, 13)],  # 1.5e-14
]


@pytest.mark.parametrize("arms", WHOLE, ids=len)
def test_tiny_probabilities_of_beta_arms_keep_their_digits(arms):
    wanted = np.array([float(p) for p in reference.best_of_whole_betas(arms)])
    known = wanted > 1e-15
    assert wanted[known].min() < 1e-11
    np.testing.assert_allclose(betas(*arms)[known], wanted[known], rtol=1e-6)


def test_the_quadrature_of_the_reference_agrees_with_its_fractions():
    arms = [(5, 70), (20, 30), (100, 9)]
    found = reference.best_of_laws([reference.beta_law(*arm) for arm in arms])
    np.testing.assert_allclose(found, [float(p) for p in reference.best_of_whole_betas(arms)], rtol=1e-11)


@pytest.mark.parametrize("tail", [1e-9, 1e-12, 1e-15])
def test_tiny_probabilities_of_normal_and_gamma_arms_keep_their_digits(tail):
    """A narrow arm far below a wide one: all depends on the lower tail of the wide one."""
    spread = math.hypot(0.01, 0.5)
    gap = -spread * float(scipy_special.ndtri(tail))
    found = best(laws.STUDENT, [[2.0, 0.01, math.inf], [2.0 + gap, 0.5, math.inf]])
    assert found[0] == pytest.approx(scipy_special.ndtr(-gap / spread), rel=1e-6, abs=0.0)
    share = float(scipy_special.betaincinv(50.0, 3000.0, tail))  # G / (G + G') of two Gamma variables is a Beta one
    found = best(laws.GAMMA, [[50.0, 1.0, 0.0], [3000.0, (1.0 - share) / share, 0.0]])
    assert found[1] == pytest.approx(scipy_special.betainc(50.0, 3000.0, share), rel=1e-6, abs=0.0)


def test_tiny_probabilities_of_student_arms_keep_their_digits():
    arms = [(0.0, 1.0, 5.5), (60.0, 2.0, 12.0), (70.0, 1.0, math.inf)]
    wanted = reference.best_of_laws([reference.student_law(*arm) for arm in arms])
    assert wanted.min() < 1e-8
    np.testing.assert_allclose(best(laws.STUDENT, arms), wanted, rtol=1e-6)


def test_tiny_probabilities_of_heavy_tails_keep_their_digits():
    """The difference of two Cauchy variables is one of their added scales."""
    for gap in (1e3, 1e6, 1e9):
        found = best(laws.STUDENT, [[0.0, 1.0, 1.0], [gap, 1e-3, 1.0]])
        assert found[0] == pytest.approx(math.atan(1.001 / gap) / math.pi, rel=1e-6, abs=0.0)
    np.testing.assert_allclose(best(laws.STUDENT, ENDLESS), BEST_OF_ENDLESS, atol=1e-9, rtol=0)


ENDLESS = [(1.8, 1e-4, math.inf), (184_002.0, 1e-6, 0.1), (20.0, 2.6e-5, 2.0)]  # tails that never end are no small F
BEST_OF_ENDLESS = [3.182907781617e-14, 0.968807195191956, 0.031192804808011]  # by the reference, see below


@pytest.mark.slow
def test_the_reference_gives_the_probabilities_on_file_of_heavy_tails():
    found = reference.best_of_laws([reference.student_law(*arm) for arm in ENDLESS], deepest=700.0, step=8.0)
    np.testing.assert_allclose(found, BEST_OF_ENDLESS, atol=1e-13, rtol=0)


@pytest.mark.parametrize(
    "arms",
    [
        [(1e-6, 1e3), (1e-6, 1e12)],
        [(1e-6, 1.0), (1e-6, 1e9)],
        [(1e-3, 1e3), (1e-3, 1e12)],
        [(0.007, 0.9), (0.007, 5e8), (1e12, 1e-6)],
    ],
)
def test_priors_between_1e_6_and_1e12(arms):
    wanted = reference.best_of_laws([reference.beta_law(*arm) for arm in arms], deepest=80.0)
    np.testing.assert_allclose(betas(*arms), wanted, atol=1e-10, rtol=0)


@pytest.mark.parametrize(("side", "tail"), [(1.0, 0.1), (-1.0, 0.1), (-1.0, 1e-6)])
def test_quantiles_of_gamma_laws_with_huge_shapes(side, tail):
    """By 40-digit quadrature of the tail beyond the quantile, in deviations."""
    shape, family = 1e12, laws.GAMMA if side > 0 else laws.INVERSE_GAMMA
    point = float(entry_points.upper_quantiles(family, np.array([[shape, 1.0, 0.0]]), math.log(tail))[0])
    law = reference.gamma_law(shape, 1.0, inverse=side < 0)
    found = audit_laws.tail_of_law(law, point, 1.0)
    assert found == pytest.approx(tail, rel=1e-5, abs=0.0)


def test_the_imed_index_is_bounded_where_the_best_mean_is_one():
    """The divergence is infinite there, and an infinite number has no whole part: what came out was the machine's."""
    seen = np.array([[5.0, 5.0], [3.0, 0.0], [0.0, 1e11]])
    assert entry_points.indices(kinds.IMED, seen, 30.0) == pytest.approx([-1e9, -math.log(3.0), -1e9], rel=1e-6)


@pytest.mark.parametrize(("truth", "error"), [((0.5, 0.5), 1e-12), ((0.5, 0.5, 0.5), 1e-10), ((0.5,) * 5, 1e-6)])
def test_probabilities_of_a_simulation_after_many_steps(truth, error):
    """The recurrences of two and three arms, the carried densities of more."""
    steps = 3000
    policy = ds.DoubleSampling(samples=None, max_candidates=1)
    found = ds.simulate(ds.BernoulliBandit(truth), [policy], horizon=steps, realizations=1, seed=2,
                        keep="trajectories", times=[steps]).isel(bandit=0, policy=0, realization=0)  # fmt: skip
    arms, rewards = found.trajectory_arm.values[:-1].astype(int), found.trajectory_reward.values[:-1]
    wins, seen = np.bincount(arms, rewards, minlength=len(truth)), np.bincount(arms, minlength=len(truth))
    laws = [reference.beta_law(1.0 + w, 1.0 + n - w) for w, n in zip(wins, seen, strict=True)]
    p = found.trajectory_probability_optimal.transpose(..., "arm").values[-1]
    np.testing.assert_allclose(p, reference.best_of_laws(laws, deepest=40.0, step=8.0), atol=error, rtol=0)


CASES = [
    case
    for case in audit_propensities.cases()
    if case.state in ("2 of 3 Beta arms equal", "3 Beta arms, nearly certain", "Student", "logistic", "draws with ties")
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.policy!r} in {case.state}")
def test_propensities_are_frequencies(case):
    alone = case._replace(decide_many=None)
    assert audit_propensities.smallest_p_value(*audit_propensities.play(alone, 400)) > FALSE_ALARM


def test_a_wrong_propensity_is_noticed():
    rng = np.random.default_rng(0)
    right = rng.dirichlet([1.0, 2.0, 3.0], 4000)
    arms = (rng.random(4000)[:, None] > np.cumsum(right, axis=1)).sum(axis=1)
    assert audit_propensities.smallest_p_value(arms, right) > FALSE_ALARM
    wrong = 0.8 * right + 0.2 / 3.0
    assert audit_propensities.smallest_p_value(arms, wrong) < FALSE_ALARM


@pytest.mark.parametrize("ties", ["random", "first"])
def test_double_sampling_plays_by_the_law_of_both_samplings(ties):
    """Few samples, so that every outcome of the first and of the second sampling can be listed."""
    known = ds.BetaBernoulli(arms=3)
    state = known.update_batch(known.prior(), [0, 0, 1, 2, 2], [0, 1, 1, 1, 1])
    p = [float(v) for v in reference.best_of_whole_betas([(2, 2), (2, 1), (3, 1)])]
    policy = ds.DoubleSampling(samples=6, ties=ties)
    arms = [ds.decide(policy, known, state, seed=seed).arm for seed in range(4000)]
    assert_counts(np.bincount(arms, minlength=3), policies.double_sampling_law(p, 6, ties))


@pytest.mark.parametrize("number", [2, 40, 1000])
def test_propensities_of_the_mode_by_every_outcome(number):
    p = [0.32, 0.33, 0.35]
    for ties in ("random", "first"):
        found = entry_points.choose_candidate(np.array(p), number, ties == "first", WORDS)[2]
        np.testing.assert_allclose(found, policies.mode_law(number, p, ties), atol=1e-11)


def test_propensities_of_the_mode_of_many_arms():
    p = np.linspace(1.0, 1.5, 8) / np.linspace(1.0, 1.5, 8).sum()
    found = entry_points.choose_candidate(p, 40, False, WORDS)[2]
    for arm in (0, 7):
        assert found[arm] == pytest.approx(policies.mode_law_of_many(40, p.tolist(), arm), abs=1e-12)


@pytest.mark.parametrize("p", [(0.5, 0.3, 0.2), (0.99, 0.01), (1e-12, 3e-3, 0.997 - 1e-12), (0.25,) * 4], ids=str)
def test_numbers_of_candidates(p):
    """A large scale shows three digits of log p_FA."""
    shares = np.array(p)
    fine = ds.DoubleSampling(scale=100.0, max_candidates=10_000).number_of_candidates(shares)
    wanted = -100.0 * policies.log_false_alarm(p) / mpmath.log(10)
    assert fine == min(int(mpmath.floor(wanted)), 10_000)
    assert ds.DoubleSampling().number_of_candidates(shares) == policies.number_of_candidates(p)
    known = ds.DoubleSampling(horizon=500, count="doubt").number_of_candidates(shares, 20)
    assert known == policies.number_by_doubt(p, 480)
    for precisions in ([3.0] * len(p), list(range(5, 5 + len(p))), [90.0, *[4.0] * (len(p) - 1)]):
        until = ds.DoubleSampling(horizon=500).number_of_candidates(shares, 20, np.array(precisions))
        assert until == policies.number_by_challenger(p, precisions, 480)
        anytime = ds.DoubleSampling.anytime().number_of_candidates(shares, 20, np.array(precisions))
        assert anytime == policies.number_by_challenger(p, precisions, 20, anytime=True)


def test_kl_ucb_and_imed_by_their_papers():
    for wins, count, time in ((0, 3, 10), (3, 3, 10), (1, 1, 2), (400, 1000, 5000), (1, 75_791, 10**6)):
        found = entry_points.indices(kinds.KL_UCB, np.array([[wins, count - wins]], dtype=float), float(time))[0]
        assert found == pytest.approx(policies.kl_ucb_index(wins, count, time), abs=1e-13)
    seen = [(0, 3), (2, 5), (400, 1000), (9, 10)]
    found = entry_points.indices(kinds.IMED, np.array([[w, n - w] for w, n in seen], dtype=float), 2000.0)
    assert -found == pytest.approx([policies.imed_index(w, n, 0.9) for w, n in seen], abs=2e-9)


@pytest.mark.parametrize(
    "arms", [[(1, 3), (4, 2)], [(1, 1), (5, 9), (10, 9), (7, 10)], [(2, 2), (1, 1), (6, 3)]], ids=len
)
def test_top_two_and_information_directed_sampling_by_their_papers(arms):
    p = [float(v) for v in reference.best_of_whole_betas(arms)]
    known = ds.BetaBernoulli(arms=len(arms), alpha=[a for a, _ in arms], beta=[b for _, b in arms])
    found = ds.decide(ds.TopTwo(0.3), known, known.prior(), seed=1).propensities
    np.testing.assert_allclose(found, policies.top_two_law(p, 0.3), rtol=1e-9)
    work = tallies.tally_exactly(laws.BETA, np.array([[a, b, 0.0] for a, b in arms]))
    tallies.directed_choice(work, WORDS)  # fills the last rows of work
    regret, information = policies.regret_and_information(arms)
    np.testing.assert_allclose(work[len(arms) + 1], regret, rtol=1e-7)
    np.testing.assert_allclose(work[len(arms) + 2], information, rtol=1e-6)
    chances = ds.decide(ds.InformationDirected(), known, known.prior(), seed=1).propensities
    ratio = (chances @ regret) ** 2 / (chances @ information)
    assert ratio <= policies.least_information_ratio(regret, information) * (1.0 + 2e-4)


@pytest.mark.parametrize(("rows", "size"), [(5, 1), (50, 1), (20, 2)])
def test_laplace_is_as_far_off_as_the_docs_say(rows, size):
    """docs/explanation/numerics.md: with the default prior, P(best) is off by 0.01 as a rule, and by less than 0.2."""
    errors = np.array([audit_laws.logistic_errors(seed, rows, size, 1.0)[0] for seed in range(8)])
    assert np.median(errors) < 0.03
    assert errors.max() < 0.2


def test_linucb_is_ridge_regression_where_the_noise_is_one():
    """Li et al. (2010): x^T A^-1 b + width sqrt(x^T A^-1 x), A = I + sum x x^T."""
    rng = np.random.default_rng(3)
    x, y, here = rng.normal(size=(9, 2)), rng.normal(size=9), np.array([0.5, -1.0])
    arms = np.arange(9) % 2
    known = ds.LinearGaussian(arms=2, dimension=2, mean=0.0, covariance=1.0, noise=1.0)
    laws = known.marginals(known.update_batch(known.prior(), arms, y, x), here)
    for arm in (0, 1):
        mine = arms == arm
        inverse = mpmath.inverse(mpmath.eye(2) + mpmath.matrix((x[mine].T @ x[mine]).tolist()))
        ridge = np.array((inverse * mpmath.matrix((x[mine].T @ y[mine]).tolist())).tolist(), dtype=float).ravel()
        width = math.sqrt(float((mpmath.matrix(here.tolist()).T * inverse * mpmath.matrix(here.tolist()))[0]))
        assert laws.parameters[arm, :2].tolist() == pytest.approx([here @ ridge, width], rel=1e-12)
