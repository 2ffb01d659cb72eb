"""Beliefs: updates against the paper's formulas, marginals against SciPy, states to and from JSON."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from doublesampling.errors import StateError
from tests import oracle
from tests.chance import FALSE_ALARM, assert_law, assert_mean

RNG = np.random.default_rng


def history(belief, count, seed=0):
    """Arms, rewards and contexts that the belief can absorb."""
    rng = RNG(seed)
    arms = rng.integers(0, belief.arms, count)
    contexts = rng.uniform(0, 1, (count, belief.dimension)) if belief.dimension is not None else None
    if isinstance(belief, ds.BetaBernoulli | ds.Logistic):
        return arms, rng.integers(0, 2, count).astype(float), contexts
    if isinstance(belief, ds.GammaPoisson):
        return arms, rng.poisson(2.0, count).astype(float), None
    if isinstance(belief, ds.GammaExponential):
        return arms, rng.exponential(2.0, count), None
    if isinstance(belief, ds.DirichletCategorical):
        return arms, rng.choice(belief.values, count), None
    return arms, rng.normal(1.0, 2.0, count), contexts


BELIEFS = [
    ds.BetaBernoulli(arms=3),
    ds.BetaBernoulli(arms=2, alpha=(0.5, 30.0), beta=2.0),
    ds.BetaBernoulli(arms=2, fractional=True),
    ds.Gaussian(arms=2),
    ds.Gaussian(arms=3, mean=(0.0, 1.0, -1.0), variance=4.0, noise=0.5),
    ds.LinearGaussian(arms=2, dimension=2),
    ds.LinearGaussian(arms=4, dimension=5, mean=0.0, covariance=10.0, alpha=2.0, beta=3.0),
    ds.LinearGaussian(arms=2, dimension=2, covariance=[[2.0, 0.5], [0.5, 1.0]], noise=(0.2, 1.0)),
    ds.BetaBernoulli(arms=2, alpha=2.0, discount=0.9),
    ds.Gaussian(arms=2, discount=0.9),
    ds.LinearGaussian(arms=2, dimension=2, mean=0.5, covariance=[[2.0, 0.5], [0.5, 1.0]], discount=0.95),
    ds.GammaPoisson(arms=3),
    ds.GammaPoisson(arms=2, shape=(0.5, 3.0), rate=2.0, discount=0.9),
    ds.GammaExponential(arms=2),
    ds.GammaExponential(arms=2, shape=3.0, rate=(0.5, 4.0), discount=0.9),
    ds.DirichletCategorical(arms=2, values=(0.0, 1.0, 5.0)),
    ds.DirichletCategorical(arms=3, values=(-1.0, 2.0), concentration=(0.5, 2.0), discount=0.9),
    ds.Logistic(arms=2, dimension=2),
    ds.Logistic(arms=3, dimension=3, mean=0.5, covariance=4.0),
    ds.HybridLinearGaussian(arms=2, dimension=2),
    ds.HybridLinearGaussian(arms=3, dimension=3, shared=[1, 2], own=[0], noise=0.5),
]


@pytest.mark.parametrize("belief", BELIEFS, ids=repr)
class TestEveryBelief:
    """The contract: a new belief is done when this suite passes on it."""

    def test_batch_equals_sequential(self, belief):
        arms, rewards, contexts = history(belief, 300)
        state = belief.prior()
        for i, (arm, reward) in enumerate(zip(arms, rewards, strict=True)):
            state = belief.update(state, arm, reward, None if contexts is None else contexts[i])
        batch = belief.update_batch(belief.prior(), arms, rewards, contexts)
        assert np.array_equal(state.counts, batch.counts)
        for name in ("alpha", "beta", "mean", "covariance", "shape", "rate", "concentration"):
            if hasattr(state, name):
                np.testing.assert_allclose(getattr(batch, name), getattr(state, name), rtol=1e-10, atol=1e-10)

    def test_following_has_the_bits_of_repeated_updates(self, belief):
        arms, rewards, contexts = history(belief, 60)
        state = belief.prior()
        for i, (arm, reward) in enumerate(zip(arms, rewards, strict=True)):
            state = belief.update(state, arm, reward, None if contexts is None else contexts[i])
        assert belief.update_in_order(belief.prior(), arms, rewards, contexts).to_json() == state.to_json()

    def test_an_empty_batch_changes_nothing(self, belief):
        contexts = np.empty((0, belief.dimension)) if belief.dimension is not None else None
        state = belief.update_batch(belief.prior(), [], [], contexts)
        assert state.to_json() == belief.prior().to_json()

    def test_updates_leave_the_old_state_alone(self, belief):
        arms, rewards, contexts = history(belief, 5)
        state = belief.prior()
        before = state.to_json()
        belief.update(state, arms[0], rewards[0], None if contexts is None else contexts[0])
        belief.update_batch(state, arms, rewards, contexts)
        assert state.to_json() == before
        with pytest.raises(ValueError, match="read-only"):
            state.counts[0] = 7

    def test_json_is_exact(self, belief):
        state = belief.update_batch(belief.prior(), *history(belief, 50))
        again = belief.state_from_json(state.to_json())
        assert again == state
        assert hash(again) == hash(state)
        assert "NaN" not in state.to_json()
        assert json.loads(state.to_json())["counts"] == state.counts.tolist()

    def test_a_damaged_state_is_refused(self, belief):
        good = json.loads(belief.prior().to_json())
        part = list(good)[-1]
        nothing = np.full(np.shape(good[part]), math.nan).tolist()
        below = (np.full(np.shape(good[part]), -1e31)).tolist()
        for change in (
            {"state": "Other"}, {part: None}, {part: [1.0] * 7}, {part: below},
            {"counts": ["x"] * belief.arms}, {"more": 1}, {part: nothing},
        ):  # fmt: skip
            with pytest.raises(StateError):
                belief.state_from_json(json.dumps(good | change))
        for text in ("", "[]", "nonsense", b"\xff", "3"):
            with pytest.raises(StateError):
                belief.state_from_json(text)

    def test_a_state_of_another_belief_is_refused(self, belief):
        other = ds.BetaBernoulli(arms=belief.arms + 1)  # of another kind or another size
        with pytest.raises(StateError, match=r"another belief|Start from"):
            ds.decide(ds.DoubleSampling(), belief, other.prior(), seed=1)

    def test_marginals_are_consistent(self, belief):
        arms, rewards, contexts = history(belief, 40)
        laws = belief.marginals(
            belief.update_batch(belief.prior(), arms, rewards, contexts), None if contexts is None else contexts[0]
        )
        assert laws.mean.shape == laws.sd.shape == (belief.arms,)
        level = np.array([0.01, 0.4, 0.9])
        points = laws.quantile(level)
        assert points.shape == (3, belief.arms)
        for arm in range(belief.arms):
            np.testing.assert_allclose(laws.cdf(points[:, arm])[:, arm], level, rtol=1e-9)
            low, high = laws.quantile(1e-6)[arm], laws.quantile(1 - 1e-6)[arm]
            drawn = isinstance(belief, ds.DirichletCategorical)  # its density is smoothed from draws
            x = np.linspace(low, high, 501 if drawn else 20001)
            assert np.trapezoid(laws.pdf(x)[:, arm], x) == pytest.approx(1.0, abs=0.02 if drawn else 1e-4)

    def test_moments_are_those_of_the_draws(self, belief):
        arms, rewards, contexts = history(belief, 40)
        state = belief.update_batch(belief.prior(), arms, rewards, contexts)
        laws = belief.marginals(state, None if contexts is None else contexts[0])
        drawn = laws.draws(20_000, seed=9)
        for arm in range(belief.arms):
            assert_mean(drawn[:, arm], laws.mean[arm])
            if not isinstance(belief, ds.Gaussian | ds.LinearGaussian):  # a Student law's squares have no variance
                assert_mean((drawn[:, arm] - laws.mean[arm]) ** 2, laws.sd[arm] ** 2)

    def test_every_policy_decides(self, belief):
        arms, rewards, contexts = history(belief, 40)
        state = belief.update_batch(belief.prior(), arms, rewards, contexts)
        context = None if contexts is None else contexts[0]
        p = ds.probability_optimal(belief, state, context)
        drawn = belief.marginals(state, context).draws(20_000, seed=9)
        share = (drawn == drawn.max(axis=1, keepdims=True)).mean(axis=0)
        # mean values have no quadrature: their p is itself one of ten thousand draws
        draws = [1 / 20_000] + [1 / 10_000] * isinstance(belief, ds.DirichletCategorical)
        assert (np.abs(share - p) <= stats.norm.isf(FALSE_ALARM / 2) * np.sqrt(p * (1 - p) * sum(draws))).all()
        for policy in (ds.DoubleSampling(), ds.ThompsonSampling(), ds.BayesUCB(), ds.Greedy(), ds.TopTwo(),
                       ds.DoubleSampling(horizon=100), ds.InformationDirected(), ds.EpsilonGreedy(0.2)):  # fmt: skip
            decision = ds.decide(policy, belief, state, context, seed=3)
            assert decision.propensities.sum() == pytest.approx(1.0)
            assert decision.propensities[decision.arm] > 0.0
            assert decision == ds.decide(policy, belief, state, context, seed=3)

    def test_marginal_draws_follow_the_law(self, belief):
        arms, rewards, contexts = history(belief, 40)
        laws = belief.marginals(
            belief.update_batch(belief.prior(), arms, rewards, contexts), None if contexts is None else contexts[0]
        )
        drawn = laws.draws(5000, seed=3)
        assert drawn.shape == (5000, belief.arms)
        for arm in range(belief.arms):
            assert_law(drawn[:, arm], lambda x, arm=arm: laws.cdf(x)[:, arm])
        assert not np.array_equal(drawn, laws.draws(5000, seed=4))
        assert np.array_equal(drawn, laws.draws(5000, seed=3))


def test_beta_updates_count_successes_and_failures():
    belief = ds.BetaBernoulli(arms=2, alpha=2.0, beta=3.0)
    state = belief.update_batch(belief.prior(), [0, 0, 1, 0], [1, 0, 1, 1])
    assert state.alpha.tolist() == [4.0, 3.0]
    assert state.beta.tolist() == [4.0, 3.0]
    assert state.counts.tolist() == [3, 1]
    assert state.observations == 4


def test_fractional_rewards_count_as_shares():
    belief = ds.BetaBernoulli(arms=2, fractional=True)
    state = belief.update(belief.prior(), 0, 0.25)
    assert (state.alpha[0], state.beta[0]) == (1.25, 1.75)


def test_nig_batch_is_the_papers_formula():
    belief = ds.LinearGaussian(arms=2, dimension=3, mean=1.0, covariance=2.0, alpha=1.5, beta=0.5)
    arms, rewards, contexts = history(belief, 60)
    state = belief.update_batch(belief.prior(), arms, rewards, contexts)
    for arm in range(2):
        mine = arms == arm
        u, v, alpha, beta = oracle.nig_batch(np.ones(3), 2 * np.eye(3), 1.5, 0.5, contexts[mine], rewards[mine])
        np.testing.assert_allclose(state.mean[arm], u, rtol=1e-12)
        np.testing.assert_allclose(state.covariance[arm], v, rtol=1e-12)
        assert state.alpha[arm] == alpha
        assert state.beta[arm] == pytest.approx(beta, rel=1e-12)


def test_marginal_of_unknown_noise_is_student():
    belief = ds.LinearGaussian(arms=2, dimension=2)
    arms, rewards, contexts = history(belief, 20)
    state = belief.update_batch(belief.prior(), arms, rewards, contexts)
    x = np.array([0.3, -1.0])
    laws = belief.marginals(state, x)
    scale = np.sqrt(state.beta / state.alpha * np.einsum("i,aij,j->a", x, state.covariance, x))
    np.testing.assert_allclose(laws.pdf(0.7), stats.t(2 * state.alpha, state.mean @ x, scale).pdf(0.7), rtol=1e-12)


def test_marginal_of_known_noise_is_normal():
    belief = ds.LinearGaussian.as_published(arms=2, dimension=2, noise=0.3)
    x = np.array([0.3, -1.0])
    laws = belief.marginals(belief.prior(), x)
    np.testing.assert_allclose(laws.cdf(0.7), stats.norm(x.sum(), 0.3 * np.linalg.norm(x)).cdf([0.7, 0.7]), rtol=1e-12)


@pytest.mark.parametrize("spread", [1.0, 1e-4, 1e-8, 0.0], ids=["free", "close", "nearly collinear", "collinear"])
def test_a_million_updates_stay_positive_definite_and_right(spread):
    """The sequential form on 10^6 nearly collinear contexts, against the batch form of the same history."""
    size, count = 4, 1_000_000
    rng = RNG(5)
    contexts = rng.uniform(0.5, 1.0, (count, 1)) * np.ones(size) + spread * rng.normal(size=(count, size))
    rewards = contexts @ np.arange(size) + rng.normal(size=count)
    belief = ds.LinearGaussian(arms=2, dimension=size)
    prior = belief.prior()
    state = belief.update_in_order(prior, np.zeros(count), rewards, contexts)
    mean, alpha, beta = state.mean[0], state.alpha[0], state.beta[0]
    covariance = state.covariance[0]
    assert np.array_equal(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance).min() > 0.0
    batch = belief.update_batch(prior, np.zeros(count), rewards, contexts)
    values, vectors = np.linalg.eigh(batch.covariance[0])
    # in the coordinates where the posterior is the identity, so that its narrow directions count in full
    whitened = vectors.T @ covariance @ vectors / np.sqrt(np.outer(values, values))
    np.testing.assert_allclose(whitened, np.eye(size), atol=1e-6)
    np.testing.assert_allclose(vectors.T @ (mean - batch.mean[0]) / np.sqrt(values), 0.0, atol=1e-5)
    assert alpha == batch.alpha[0]
    assert beta == pytest.approx(batch.beta[0], rel=1e-9)


@pytest.mark.parametrize("covariance", [1.0, 1e6, 1e12, 1e20, 1e40])
def test_sequential_stays_right_under_diffuse_priors(covariance):
    rng = RNG(2)
    contexts, rewards = rng.normal(size=(50, 2)), rng.normal(size=50)
    belief = ds.LinearGaussian(arms=2, dimension=2, mean=1.0, covariance=covariance)
    state = belief.prior()
    for x, y in zip(contexts, rewards, strict=True):
        state = belief.update(state, 0, y, x)
    u, v, _, beta = oracle.nig_batch(np.ones(2), covariance * np.eye(2), 1.0, 1.0, contexts, rewards)
    np.testing.assert_allclose(state.mean[0], u, rtol=1e-10)
    np.testing.assert_allclose(state.covariance[0], v, rtol=1e-10)
    assert state.beta[0] == pytest.approx(beta, rel=1e-10)


def test_a_covariance_that_is_symmetric_but_for_rounding_is_accepted():
    rng = RNG(0)
    for _ in range(20):
        data = rng.normal(size=(300, 12))
        ds.LinearGaussian(arms=2, dimension=12, covariance=np.linalg.inv(data.T @ data))


def test_states_are_checked_by_value():
    belief = ds.Gaussian(arms=2)
    good = json.loads(belief.prior().to_json())
    for change in ({"alpha": [1e-3, 1.0]}, {"root": [[[1e300]], [[1.0]]]}, {"counts": [2**62, 1]}, {"counts": [1.9, 0]},
                   {"alpha": ["1", "2"]}, {"alpha": [True, True]}):  # fmt: skip
        with pytest.raises(StateError):
            belief.state_from_json(json.dumps(good | change))
    from doublesampling.beliefs import BetaState

    for alpha in (np.array([np.nan, 1.0]), np.array([-1.0, 1.0]), [1.0, 1.0]):
        with pytest.raises(StateError):
            BetaState(np.zeros(2, dtype=np.int64), alpha, np.ones(2))  # type: ignore[arg-type]


def test_deviation_of_a_student_law_is_infinite_up_to_two_degrees_of_freedom():
    assert np.isinf(ds.Gaussian(arms=2, alpha=0.3).marginals(ds.Gaussian(arms=2, alpha=0.3).prior()).sd).all()
    belief = ds.Gaussian(arms=2, mean=1.0, variance=1.0, alpha=3.0)
    np.testing.assert_allclose(belief.marginals(belief.prior()).sd, stats.t(6.0, 1.0, np.sqrt(1 / 3)).std())


def test_default_priors_expect_nothing_and_the_papers_is_at_hand():
    """Users get u_0 = 0 and V_0 = 10 I; the reproduction gets the paper's u_0 = 1, V_0 = I, alpha_0 = beta_0 = 1."""
    ours, paper = ds.LinearGaussian(arms=2, dimension=3), ds.LinearGaussian.as_published(arms=2, dimension=3)
    for belief, mean, variance in ((ours, 0.0, 10.0), (paper, 1.0, 1.0), (ds.Gaussian(arms=2), 0.0, 10.0)):
        prior = belief.prior()
        size = prior.mean.shape[1]
        np.testing.assert_array_equal(prior.mean, np.full((2, size), mean))
        np.testing.assert_allclose(prior.covariance, np.array([variance * np.eye(size)] * 2), rtol=1e-14)
        assert prior.alpha.tolist() == prior.beta.tolist() == [1.0, 1.0]
    assert ds.LinearGaussian.as_published(arms=2, dimension=3, noise=0.2).noise == 0.2
    for words in ("as_published", "mean=0", "mean=1", "intercept", "one-hot", "standard deviation 1"):
        assert words in str(ds.LinearGaussian.__doc__)


@pytest.mark.parametrize("covariance", [10.0, 0.3, [[2.0, 0.5], [0.5, 1.0]]], ids=repr)
def test_an_arm_that_saw_nothing_keeps_its_prior_to_the_bit(covariance):
    """However often it fades: else the time at which an arm is added would leave a trace."""
    belief = ds.LinearGaussian(arms=2, dimension=2, covariance=covariance, discount=0.9)
    state = belief.prior()
    for i in range(20):
        state = belief.update(state, 0, float(i), [1.0, 0.1 * i])
    for name in ("mean", "root", "alpha", "beta"):
        np.testing.assert_array_equal(getattr(state, name)[1], getattr(belief.prior(), name)[1])
