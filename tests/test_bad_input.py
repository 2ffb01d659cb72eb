"""Bad input: an error of our own family that says what to do, and a state that is untouched."""

import contextlib
import math
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import doublesampling as ds
from doublesampling.errors import ArmError, ContextError, DoubleSamplingError, DrawsError, RewardError, SettingError

BERNOULLI = ds.BetaBernoulli(arms=2)
CATEGORIES = ds.DirichletCategorical(arms=2, values=[0, 1])
LINEAR = ds.LinearGaussian(arms=2, dimension=2)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: ds.BetaBernoulli(arms=0), SettingError, "arms must be a whole number of at least 2, got 0. A bandit"),
        (lambda: ds.BetaBernoulli(arms=1), SettingError, "at least 2, got 1"),
        (lambda: ds.BetaBernoulli(arms=2.5), SettingError, "whole number"),
        (lambda: ds.BetaBernoulli(arms=True), SettingError, "whole number"),
        (lambda: ds.BetaBernoulli(), SettingError, r"needs arms. Write BetaBernoulli\(arms=...\)"),
        (lambda: ds.BetaBernoulli(2), SettingError, "takes its settings by name, got 2"),
        (lambda: ds.BetaBernoulli(arms=2, alhpa=1.0), SettingError, "no setting 'alhpa'. Did you mean 'alpha'?"),
        (lambda: ds.BetaBernoulli(arms=2, alpha=-1.0), SettingError, "alpha must be a number from 1e-06"),
        (lambda: ds.BetaBernoulli(arms=2, beta=math.nan), SettingError, "beta must be a number"),
        (lambda: ds.BetaBernoulli(arms=2, beta=(1.0, 0.0)), SettingError, r"beta\[1\] must be"),
        (lambda: ds.BetaBernoulli(arms=2, beta=(1.0, 1.0, 1.0)), SettingError, r"one per arm \(2\)"),
        (lambda: ds.BetaBernoulli(arms=2, fractional="yes"), SettingError, "True or False"),
        (lambda: ds.LinearGaussian(arms=2, dimension=0), SettingError, "dimension must be"),
        (lambda: ds.LinearGaussian(arms=2, dimension=2, alpha=-1), SettingError, "alpha must be"),
        (lambda: ds.LinearGaussian(arms=2, dimension=2, noise=0.0), SettingError, "noise must be"),
        (lambda: ds.LinearGaussian(arms=2, dimension=2, mean=[1.0, 2.0, 3.0]), SettingError, "mean must have shape"),
        (lambda: ds.LinearGaussian(arms=2, dimension=2, covariance=-1.0), SettingError, "positive definite"),
        (
            lambda: ds.LinearGaussian(arms=2, dimension=2, covariance=[[1.0, 2.0], [2.0, 1.0]]),
            SettingError,
            "positive definite",
        ),
        (lambda: ds.LinearGaussian(arms=2, dimension=2, covariance=[[1, 0.5], [0, 1]]), SettingError, "symmetric"),
        (lambda: ds.Gaussian(arms=2, variance=0.0), SettingError, "variance must be"),
        (lambda: ds.DoubleSampling(samples=0), SettingError, "samples must be .* got 0. The paper uses 1000"),
        (lambda: ds.DoubleSampling(max_candidates=0), SettingError, "max_candidates must be .* 1 is Thompson"),
        (lambda: ds.DoubleSampling(ties="rnadom"), SettingError, "Did you mean 'random'?"),
        (lambda: ds.DoubleSampling(false_alarm="gauss"), SettingError, "one of 'truncated-gaussian', 'markov'"),
        (lambda: ds.DoubleSampling(false_alarm="markov", arithmetic="double"), SettingError, "truncated Gaussian only"),
        (lambda: ds.DoubleSampling(horizon=10, scale=2.0), SettingError, "With a horizon"),
        (lambda: ds.DoubleSampling(horizon=10).number_of_candidates(np.array([0.5, 0.5]), None), SettingError, "time="),
        (lambda: ds.DoubleSampling.as_published(tise="random"), SettingError, "Did you mean 'ties'"),
        (lambda: ds.DoubleSampling(max_candidates=10**6), SettingError, "to 10,000"),
        (lambda: ds.BayesUCB(samples=10**12), SettingError, "to 1,000,000"),
        (lambda: ds.EpsilonGreedy(0.1, epsilon=0.2), SettingError, "epsilon twice"),
        (lambda: ds.BetaBernoulli(arms=10**30), SettingError, "to 10,000"),
        (lambda: ds.BetaBernoulli(arms=2, alpha=[[1], [1, 2]]), SettingError, "regular array"),
        (lambda: ds.LinearGaussian(arms=2, dimension=10**6), SettingError, "to 10,000"),
        (lambda: ds.LinearGaussian(arms=2, dimension=1, covariance=1e300), SettingError, "within 1e50"),
        (lambda: BERNOULLI.marginals(BERNOULLI.prior()).draws(10**12), SettingError, "samples must be"),
        (
            lambda: ds.simulate(
                ds.BernoulliBandit([0.4, 0.8]), ds.ThompsonSampling(), horizon=10, realizations=10**12, seed=1
            ),
            SettingError,
            "would keep about 8,0.. GB",
        ),
        (
            lambda: ds.decide(ds.DoubleSampling(samples=10**9), CATEGORIES, CATEGORIES.prior(), seed=1),
            SettingError,
            "samples must be .* to 50,000,000.* kept in memory",
        ),
        (lambda: ds.BernoulliBandit([0.1, 0.2]).reward(0, seed=1, time=1, realization=-1), SettingError, "realization"),
        (lambda: ds.GaussianBandit([0.1]), SettingError, "two arms at least"),
        (lambda: ds.GaussianBandit([0.1, 0.2], noise=-1.0), SettingError, "noise must be"),
        (lambda: ds.LinearGaussianBandit(weights=[0.1, 0.2]), SettingError, r"\(arm, dimension\)"),
        (lambda: ds.LinearGaussianBandit(weights=np.eye(2), context="unifrom"), SettingError, "Did you mean 'uniform'"),
        (lambda: ds.LinearGaussianBandit(weights=np.eye(2), context=[1.0]), SettingError, "have shape"),
        (lambda: ds.decide_from_draws(ds.Greedy(), [[1e308, 1.7e308]] * 20), DrawsError, "within 1e100"),
        (lambda: ds.DoubleSampling(horizon=0), SettingError, "horizon must be"),
        (lambda: ds.DoubleSampling(log_base=1.0), SettingError, "log_base must be"),
        (lambda: ds.DoubleSampling(scale=0.0), SettingError, "scale must be"),
        (lambda: ds.BayesUCB(samples=-5), SettingError, "samples must be"),
        (lambda: ds.EpsilonGreedy(1.5), SettingError, "epsilon must be a number from 0 to 1, got 1.5"),
        (lambda: ds.EpsilonGreedy(0.1, 0.2), SettingError, "by name"),
        (lambda: ds.BernoulliBandit([0.5]), SettingError, "two arms at least"),
        (lambda: ds.BernoulliBandit([0.5, 1.5]), SettingError, r"probabilities\[1\] must be"),
        (lambda: BERNOULLI.update(BERNOULLI.prior(), 2, 1), ArmError, "0 to 1, got 2. Arms are counted from 0"),
        (lambda: BERNOULLI.update(BERNOULLI.prior(), -1, 1), ArmError, "got -1"),
        (lambda: BERNOULLI.update(BERNOULLI.prior(), 0, 2), RewardError, "0 or 1, got 2. For other rewards"),
        (lambda: BERNOULLI.update(BERNOULLI.prior(), 0, 0.5), RewardError, "set fractional=True"),
        (lambda: BERNOULLI.update(BERNOULLI.prior(), 0, math.nan), RewardError, "got nan"),
        (lambda: BERNOULLI.update(BERNOULLI.prior(), 0, None), RewardError, "got None"),
        (lambda: BERNOULLI.update(BERNOULLI.prior(), 0, 1, [0.3]), ContextError, "no context"),
        (lambda: BERNOULLI.update_batch(BERNOULLI.prior(), [0, 5], [1, 1]), ArmError, r"arms\[1\]"),
        (lambda: BERNOULLI.update_batch(BERNOULLI.prior(), [0, 1], [1, 3]), RewardError, "At index 1: reward must"),
        (lambda: BERNOULLI.update_batch(BERNOULLI.prior(), [0, 1], [1]), RewardError, "as many as arms"),
        (lambda: LINEAR.update(LINEAR.prior(), 0, math.inf, [1, 2]), RewardError, "finite"),
        (lambda: LINEAR.update(LINEAR.prior(), 0, 1e80, [1, 2]), RewardError, "larger unit"),
        (lambda: LINEAR.update(LINEAR.prior(), 0, 1.0), ContextError, "2 numbers is needed"),
        (lambda: LINEAR.update(LINEAR.prior(), 0, 1.0, [1.0]), ContextError, "2 numbers, got shape"),
        (lambda: LINEAR.update(LINEAR.prior(), 0, 1.0, [1.0, math.nan]), ContextError, "nan at index 1"),
        (lambda: LINEAR.update_batch(LINEAR.prior(), [0], [1.0], [[1.0]]), ContextError, r"\(1, 2\)"),
        (lambda: ds.decide(ds.DoubleSampling, BERNOULLI, BERNOULLI.prior()), SettingError, r"Write DoubleSampling\(\)"),
        (lambda: ds.decide("thompson", BERNOULLI, BERNOULLI.prior()), SettingError, "policy must be one such as"),
        (lambda: ds.decide(ds.Greedy(), ds.BetaBernoulli, None), SettingError, "belief must be one such as"),
        (lambda: ds.decide(ds.Greedy(), BERNOULLI, BERNOULLI.prior(), seed=-1), SettingError, "seed must be"),
        (lambda: ds.decide(ds.Greedy(), BERNOULLI, BERNOULLI.prior(), time=0), SettingError, "counted from 1"),
        (lambda: BERNOULLI.marginals(BERNOULLI.prior()).quantile(1.5), SettingError, "level must be from 0 to 1"),
    ],
)  # fmt: skip
def test_what_was_wanted_what_came_what_to_do(make, error, message):
    with pytest.raises(error) as caught:
        make()
    assert re.search(message, str(caught.value)), caught.value
    assert isinstance(caught.value, DoubleSamplingError)


anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=5),
    st.complex_numbers(), st.lists(st.one_of(st.floats(), st.none(), st.text(max_size=2)), max_size=4),
    st.lists(st.lists(st.floats(), max_size=3), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.sampled_from([
        np.nan, np.inf, -np.inf, 1e308, 5e-324, 10**400, object(), np.array(1.0), np.array([[1, 2]]), np.bool_(True),
        np.float32(0.5), np.int8(1), np.datetime64("2020-01-01"), np.array(["a"]), np.array([None, 1.0]), 0, 1, 2, 0.5,
    ]),
)  # fmt: skip
CLASSES = ["DoubleSampling", "BayesUCB", "Greedy", "EpsilonGreedy", "BetaBernoulli", "LinearGaussian", "Gaussian"]
SETTINGS = [
    "samples", "max_candidates", "ties", "false_alarm", "horizon", "log_base", "scale", "arithmetic", "epsilon",
    "arms", "dimension", "alpha", "beta", "mean", "covariance", "variance", "noise", "fractional",
]  # fmt: skip
relaxed = settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@relaxed
@given(anything, anything, anything)
def test_updates_refuse_or_succeed_and_never_touch_the_state(arm, reward, context):
    for belief in (BERNOULLI, LINEAR, ds.Gaussian(arms=2), ds.BetaBernoulli(arms=2, fractional=True)):
        state = belief.prior()
        before = state.to_json()
        for call in (belief.update, belief.update_batch):
            with contextlib.suppress(DoubleSamplingError):
                after = call(state, arm, reward, context)
                assert after.observations >= 0
                assert np.isfinite(after.alpha).all()
        assert state.to_json() == before


@relaxed
@given(st.sampled_from(CLASSES), st.sampled_from(SETTINGS), anything)
def test_settings_refuse_or_decide(name, setting, value):
    """A setting that is accepted must be able to decide."""
    sizes = {"BetaBernoulli": {"arms": 2}, "LinearGaussian": {"arms": 2, "dimension": 2}, "Gaussian": {"arms": 2}}
    if setting in ("arms", "dimension") and isinstance(value, (int, np.integer)) and value > 30:
        return  # a very large bandit is allowed, and slow
    with contextlib.suppress(DoubleSamplingError):
        made = getattr(ds, name)(**(sizes.get(name, {}) | {setting: value}))
        policy, belief = (ds.DoubleSampling(), made) if name in sizes else (made, BERNOULLI)
        context = np.ones(belief.dimension) if name == "LinearGaussian" else None
        decision = ds.decide(policy, belief, belief.prior(), context, seed=1)
        assert decision.probability_optimal.sum() == pytest.approx(1.0)


@relaxed
@given(anything, anything, anything, anything)
def test_decisions_refuse_or_decide(state, context, seed, time):
    with contextlib.suppress(DoubleSamplingError):
        ds.decide(ds.DoubleSampling(), BERNOULLI, state, context, seed=seed, time=time)
    with contextlib.suppress(DoubleSamplingError):
        ds.decide(ds.BayesUCB(), LINEAR, LINEAR.prior(), context, seed=seed, time=time)
    with contextlib.suppress(DoubleSamplingError):
        ds.decide_from_draws(ds.DoubleSampling(), state, seed=seed, time=time)
    with contextlib.suppress(DoubleSamplingError):
        ds.probability_optimal(LINEAR, LINEAR.prior(), context)


reasonable = st.floats(-1e50, 1e50, allow_nan=False)


@relaxed
@given(st.lists(st.tuples(st.integers(0, 1), reasonable, reasonable, reasonable), max_size=8), reasonable, reasonable)
def test_any_history_of_finite_numbers_gives_a_decision(history, x0, x1):
    """Rewards and contexts of any size that is let in: probabilities stay probabilities."""
    state = LINEAR.prior()
    for arm, reward, *context in history:
        state = LINEAR.update(state, arm, reward, context)
    p = ds.probability_optimal(LINEAR, state, [x0, x1])
    assert p.sum() == pytest.approx(1.0)
    assert (p >= 0).all()
    for policy in (ds.DoubleSampling(), ds.BayesUCB(), ds.DoubleSampling(samples=None)):
        assert ds.decide(policy, LINEAR, state, [x0, x1]).arm in (0, 1)


@relaxed
@given(st.lists(st.tuples(st.floats(1e-6, 1e12), st.floats(1e-6, 1e12)), min_size=2, max_size=6))
def test_any_beta_arms_give_probabilities(arms):
    alpha, beta = zip(*arms, strict=True)
    belief = ds.BetaBernoulli(arms=len(arms), alpha=alpha, beta=beta)
    p = ds.probability_optimal(belief, belief.prior())
    assert p.sum() == pytest.approx(1.0)
    assert (p >= 0).all()
