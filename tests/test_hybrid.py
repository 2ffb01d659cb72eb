"""The hybrid linear model: against batch ridge regression on the stacked design, SciPy's laws, and orthants."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from doublesampling.beliefs.joint import JointStudent, semidefinite_root
from doublesampling.errors import ContextError, SettingError
from tests.chance import assert_mean

RNG = np.random.default_rng
FEATURES = ds.Features(age=("standard", 60, 10), site=["a", "b", "c"])
BELIEFS = [
    ds.HybridLinearGaussian(arms=2, dimension=2),
    ds.HybridLinearGaussian(arms=3, dimension=3, shared=[1, 2], own=[0], shared_variance=4.0, own_variance=0.5),
    ds.HybridLinearGaussian(arms=3, dimension=2, attributes=[[0.0], [10.0], [20.0]], own=[0], noise=0.5),
    ds.HybridLinearGaussian(arms=4, dimension=2, attributes=np.eye(4)[:, :2], own=[], alpha=2.0, beta=3.0),
]


def stacked(belief: ds.HybridLinearGaussian, arm: int, x: np.ndarray) -> np.ndarray:
    """The row of the stacked design, written out entry by entry."""
    shared = range(belief.dimension) if belief.shared is None else belief.shared
    own = range(belief.dimension) if belief.own is None else belief.own
    times = [1.0, *(belief.attributes[arm] if belief.attributes is not None else ())]
    row = [factor * x[int(j)] for factor in times for j in shared]
    for other in range(belief.arms):
        row += [x[int(j)] if other == arm else 0.0 for j in own]
    return np.array(row)


def history(belief: ds.HybridLinearGaussian, count: int, seed: int = 0) -> tuple[Any, Any, Any]:
    rng = RNG(seed)
    return rng.integers(0, belief.arms, count), rng.normal(1.0, 2.0, count), rng.normal(size=(count, belief.dimension))


@pytest.mark.parametrize("belief", BELIEFS, ids=repr)
def test_the_posterior_is_ridge_regression_on_the_stacked_design(belief):
    arms, rewards, contexts = history(belief, 60)
    state = belief.update_batch(belief.prior(), arms, rewards, contexts)
    design = np.array([stacked(belief, a, x) for a, x in zip(arms, contexts, strict=True)])
    own = belief.arms * (belief.dimension if belief.own is None else len(belief.own))
    precision = np.diag(1.0 / np.repeat([belief.shared_variance, belief.own_variance], [belief.weights - own, own]))
    covariance = np.linalg.inv(precision + design.T @ design)
    mean = covariance @ design.T @ rewards
    np.testing.assert_allclose(state.mean, mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(state.covariance, covariance, rtol=1e-8, atol=1e-10)
    beta = belief.beta + 0.5 * (rewards @ rewards - mean @ (precision + design.T @ design) @ mean)
    np.testing.assert_allclose(state.beta, [beta], rtol=1e-9)
    np.testing.assert_allclose(state.alpha, [belief.alpha + 30.0])
    x = RNG(5).normal(size=belief.dimension)
    rows = np.array([stacked(belief, a, x) for a in range(belief.arms)])
    laws = belief.marginals(state, x)
    factor = beta / state.alpha[0] if belief.noise is None else belief.noise**2
    scale = np.sqrt(factor * np.diag(rows @ covariance @ rows.T))
    law = stats.norm(rows @ mean, scale) if belief.noise else stats.t(2 * state.alpha[0], rows @ mean, scale)
    np.testing.assert_allclose(laws.cdf(0.3), law.cdf(0.3), rtol=1e-8)
    np.testing.assert_allclose(laws.mean, rows @ mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(laws.sd, law.std(), rtol=1e-8)
    np.testing.assert_allclose(laws.quantile(0.9), law.ppf(0.9), rtol=1e-8)
    np.testing.assert_allclose(laws.root @ laws.root.T, factor * rows @ covariance @ rows.T, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("noise", [None, 0.7])
def test_two_arms_are_compared_exactly(noise):
    belief = ds.HybridLinearGaussian(arms=2, dimension=2, shared_variance=100.0, own_variance=1.0, noise=noise)
    arms, contexts = [0, 1] * 5, np.tile([1.0, 0.0], (10, 1))
    state = belief.update_batch(belief.prior(), arms, [1.2, 0.1] * 5, contexts)
    laws = belief.marginals(state, [1.0, 1.0])
    covariance = laws.root @ laws.root.T
    gap, deviation = laws.location[0] - laws.location[1], np.sqrt([1, -1] @ covariance @ [1, -1])
    wanted = (stats.norm if noise else stats.t(2 * state.alpha[0])).cdf(gap / deviation)
    np.testing.assert_allclose(laws.probability_optimal, [wanted, 1 - wanted], rtol=1e-9)
    assert 0.02 < wanted < 0.98
    draws = laws.draws(20_000, seed=3)
    assert_mean((draws[:, 0] > draws[:, 1]).astype(float), wanted)
    independent = ds.beliefs.Marginals(laws.marginals.law, laws.marginals.parameters).probability_optimal
    assert abs(independent[0] - wanted) > 0.1  # the arms depend on each other, and that matters


@pytest.mark.parametrize("noise", [None, 0.7])
def test_more_arms_are_compared_by_draws_as_orthants_are(noise):
    """P(arm is the best) is the probability of an orthant of the differences to the other arms (SciPy, Genz)."""
    belief = ds.HybridLinearGaussian(arms=3, dimension=3, own=[0, 1], noise=noise, many=40_000)
    state = belief.update_batch(belief.prior(), *history(belief, 8, seed=2))
    laws = belief.marginals(state, [1.0, 0.5, -1.0])
    covariance = laws.root @ laws.root.T
    for arm in range(3):
        others = [each for each in range(3) if each != arm]
        apart = np.array([np.eye(3)[other] - np.eye(3)[arm] for other in others])
        means, spread = apart @ laws.location, apart @ covariance @ apart.T
        wanted = (
            stats.multivariate_normal.cdf(np.zeros(2), means, spread)
            if noise
            else stats.multivariate_t.cdf(np.zeros(2), means, spread, df=laws.freedom, random_state=1)
        )
        draws = laws.draws(40_000)
        assert_mean((draws.argmax(axis=1) == arm).astype(float), wanted)
        assert laws.probability_optimal[arm] == pytest.approx(wanted, abs=0.015)
    assert belief.marginals(state, [1.0, 0.5, -1.0]).probability_optimal.tolist() == laws.probability_optimal.tolist()


def test_draws_have_the_joint_law():
    laws = JointStudent(1000, np.array([1.0, -2.0]), np.array([[2.0, 0.0, 1.0], [1.0, 0.5, 0.0]]), 7.0)
    draws = laws.draws(50_000, seed=4)
    covariance = laws.root @ laws.root.T * 7.0 / 5.0
    centred = draws - laws.location
    assert_mean(draws[:, 0], 1.0)
    assert_mean(draws[:, 1], -2.0)
    for i, j in ((0, 0), (0, 1), (1, 1)):
        assert_mean(centred[:, i] * centred[:, j], covariance[i, j])
    scaled = centred @ np.linalg.inv(np.linalg.cholesky(laws.root @ laws.root.T)).T
    radius = (scaled**2).sum(axis=1) / 2  # F(2, 7): one scale for both arms, not one each
    assert_mean((radius > stats.f(2, 7).ppf(0.9)).astype(float), 0.1)


def test_a_singular_matrix_has_a_root():
    root = RNG(0).normal(size=(4, 2))
    found = semidefinite_root(root @ root.T)
    np.testing.assert_allclose(found @ found.T, root @ root.T, atol=1e-12)
    np.testing.assert_array_equal(semidefinite_root(np.zeros((2, 2))), np.zeros((2, 2)))


def test_arms_that_cannot_differ_at_a_context_share_the_probability():
    belief = ds.HybridLinearGaussian(arms=2, dimension=3, shared=[1, 2], own=[0])
    state = belief.update_batch(belief.prior(), *history(belief, 20))
    assert belief.marginals(state, [0.0, 0.3, 0.7]).probability_optimal.tolist() == [0.5, 0.5]


def test_shared_weights_learn_from_all_arms():
    belief = ds.HybridLinearGaussian(arms=3, dimension=2, shared=[1], own=[0], noise=0.1)
    state = belief.update_batch(belief.prior(), [0] * 50, np.full(50, 2.0), np.tile([0.0, 1.0], (50, 1)))
    assert belief.marginals(state, [0.0, 1.0]).mean == pytest.approx([2.0] * 3, abs=0.01)


def test_columns_are_named_with_features():
    by_name = ds.HybridLinearGaussian(arms=2, features=FEATURES, shared=["age", "site"], own=["intercept", "site=b"])
    by_place = ds.HybridLinearGaussian(arms=2, dimension=5, shared=[1, 2, 3, 4], own=[0, 3])
    assert by_name.weights == by_place.weights == 8
    record = {"age": 75, "site": "b"}
    state = by_name.update(by_name.prior(), 1, 2.0, record)
    assert state == by_place.update(by_place.prior(), 1, 2.0, FEATURES.vector(record))
    decided = ds.decide(ds.DoubleSampling(), by_name, state, record, seed=1)
    assert decided.propensities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"own": [3]}, "An entry of own must be"),
        ({"own": [0, 0]}, "different entries"),
        ({"own": 0}, "must list entries"),
        ({"own": "0"}, "must list entries"),
        ({"own": ["age"]}, "Names need features"),
        ({"own": []}, "no arm could be better"),
        ({"attributes": [1.0, 2.0]}, "attributes must be"),
        ({"attributes": [[1.0]]}, "attributes must be"),
        ({"own_variance": 0.0}, "own_variance must be"),
        ({"noise": -1.0}, "noise must be"),
        ({"many": 10}, "many must be"),
        ({"dimension": 1500}, "weights are too many"),
        ({"dimension": None}, "needs dimension"),
        ({"dimension": None, "features": FEATURES, "own": ["sex"]}, "The columns are intercept, age"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused(settings, told):
    with pytest.raises(SettingError, match=told):
        ds.HybridLinearGaussian(**({"arms": 2, "dimension": 3} | settings))


def test_it_is_simulated_in_python():
    bandit = ds.LinearGaussianBandit(weights=[[0.0, 1.0], [1.0, 1.0]], noise=0.5)
    belief = ds.HybridLinearGaussian(arms=2, dimension=2, shared=[1], own=[0])
    found = ds.simulate(
        bandit, [ds.DoubleSampling(samples=100), ds.LinUCB()], belief=belief, horizon=40, realizations=4, seed=1
    )
    assert found.optimal_arm_rate.isel(bandit=0, time=slice(20, None)).mean() > 0.6
    with pytest.raises(SettingError, match="contexts of that length"):
        ds.simulate(ds.BernoulliBandit([0.1, 0.2]), ds.Greedy(), belief=belief, horizon=3, realizations=1, seed=1)
    with pytest.raises(ContextError, match="context must hold 2 numbers"):
        belief.marginals(belief.prior(), [1.0])


def test_the_dashboard_compares_dependent_arms_exactly():
    from doublesampling.service.routes.overview import differences

    belief = ds.HybridLinearGaussian(arms=2, dimension=2, noise=0.7)
    state = belief.update_batch(belief.prior(), *history(belief, 12))
    laws = belief.marginals(state, [0.4, -1.0])
    found = differences(laws, [(1, 0)])[1]
    assert found is not None
    low, high = laws.difference(1, 0).quantile([0.025, 0.975])[:, 0]
    assert (found.low, found.high) == pytest.approx((low, high))
    assert found.probability_better == pytest.approx(laws.probability_optimal[1])
