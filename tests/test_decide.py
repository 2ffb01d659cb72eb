"""Decisions: policies on beliefs and on draws, their laws, propensities and addresses."""

import subprocess
import sys

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.errors import DrawsError, SettingError
from tests.chance import assert_counts

BELIEF = ds.BetaBernoulli(arms=3)
STATE = BELIEF.update_batch(BELIEF.prior(), [0] * 5 + [1] * 6 + [2] * 9, [0, 0, 1, 0, 1] + [1, 0] * 3 + [1, 1, 0] * 3)
POLICIES = [
    ds.DoubleSampling(),
    ds.DoubleSampling(samples=None),
    ds.DoubleSampling(samples=7, ties="first"),
    ds.DoubleSampling(false_alarm="markov", log_base=2.718281828459045),
    ds.DoubleSampling(false_alarm="chebyshev", scale=3.0),
    ds.DoubleSampling(horizon=100),
    ds.DoubleSampling.as_published(),
    ds.ThompsonSampling(),
    ds.BayesUCB(),
    ds.BayesUCB(samples=50),
    ds.Greedy(),
    ds.EpsilonGreedy(0.3),
    ds.TopTwo(),
    ds.TopTwo(0.9),
]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
class TestEveryPolicy:
    """The contract: a new policy is done when this suite passes on it."""

    def test_a_decision_is_whole(self, policy):
        decision = ds.decide(policy, BELIEF, STATE, seed=1)
        assert 0 <= decision.arm < 3
        assert decision.probability_optimal.sum() == pytest.approx(1.0)
        p = decision.probability_optimal
        np.testing.assert_allclose(decision.probability_optimal_sd, np.sqrt(p * (1 - p)))
        assert decision.votes.sum() == decision.candidates >= 1
        assert decision.votes[decision.arm] == decision.votes.max()
        assert decision.address == (1, 0, 0, 21)
        if not np.isnan(decision.propensities).all():
            assert decision.propensities.sum() == pytest.approx(1.0)
            assert decision.propensities[decision.arm] > 0.0
        with pytest.raises(ValueError, match="read-only"):
            decision.propensities[0] = 1.0
        assert f"play arm {decision.arm}" in str(decision)

    def test_the_same_seed_and_state_decide_the_same(self, policy):
        first, again = (ds.decide(policy, BELIEF, STATE, seed=8) for _ in range(2))
        assert first == again
        assert hash(first) == hash(again)
        assert first != ds.decide(policy, BELIEF, STATE, seed=9)

    def test_settings_are_frozen_and_shown(self, policy):
        assert eval(repr(policy), vars(ds)) == policy
        with pytest.raises(AttributeError):
            policy.ties = "first"

    def test_draws_decide_too(self, policy):
        draws = BELIEF.marginals(STATE).draws(400, seed=2)
        decision = ds.decide_from_draws(policy, draws, seed=1, time=21)
        share = np.bincount(draws.argmax(axis=1), minlength=3) / 400
        np.testing.assert_allclose(decision.probability_optimal, share, atol=1e-12)

    def test_arms_follow_the_propensities_given_the_estimate(self, policy):
        """Over many seeds with the estimate held fixed (draws), the arm played follows the logged propensity."""
        draws = np.array([[0.1, 0.2, 0.15]] * 3 + [[0.3, 0.2, 0.25]] * 3 + [[0.2, 0.3, 0.4]] * 4)
        decisions = [ds.decide_from_draws(policy, draws, seed=seed, time=30) for seed in range(3000)]
        if isinstance(policy, ds.BayesUCB) and policy.samples is not None:
            assert len({d.arm for d in decisions}) == 1
            return
        assert_counts(np.bincount([d.arm for d in decisions], minlength=3), decisions[0].propensities)


def test_another_process_decides_the_same():
    code = (
        "import doublesampling as ds; b = ds.BetaBernoulli(arms=3);"
        f"s = b.state_from_json({STATE.to_json()!r}); d = ds.decide(ds.DoubleSampling(), b, s, seed=2**64 - 1);"
        "print(d.arm, d.candidates, d.propensities.tolist())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    decision = ds.decide(ds.DoubleSampling(), BELIEF, STATE, seed=2**64 - 1)
    assert out.strip() == f"{decision.arm} {decision.candidates} {decision.propensities.tolist()}"


def test_thompson_sampling_falls_out_at_one_candidate():
    """With N capped at 1 and exact probabilities, double sampling is Thompson sampling: decision by decision."""
    one = ds.DoubleSampling(samples=None, max_candidates=1)
    for seed in range(200):
        ours, theirs = (ds.decide(policy, BELIEF, STATE, seed=seed) for policy in (one, ds.ThompsonSampling()))
        assert ours.arm == theirs.arm
        assert np.array_equal(ours.propensities, theirs.propensities)


def test_one_candidate_has_the_law_of_the_best_of_one_posterior_draw():
    """Thompson sampling as it is usually written, against double sampling with one candidate and M samples."""
    one = ds.DoubleSampling(samples=100, max_candidates=1)
    arms = [ds.decide(one, BELIEF, STATE, seed=seed).arm for seed in range(5000)]
    laws = BELIEF.marginals(STATE)
    textbook = [int(laws.draws(1, seed=seed)[0].argmax()) for seed in range(5000)]
    p = ds.probability_optimal(BELIEF, STATE)
    assert_counts(np.bincount(arms, minlength=3), p)
    assert_counts(np.bincount(textbook, minlength=3), p)


def test_bayes_ucb_plays_the_highest_quantile():
    laws = BELIEF.marginals(STATE)
    for time in (2, 21, 10**6):
        assert ds.decide(ds.BayesUCB(), BELIEF, STATE, time=time).arm == laws.quantile(1 - 1 / time).argmax()


def test_bayes_ucb_at_the_first_step_knows_no_difference():
    arms = [ds.decide(ds.BayesUCB(), BELIEF, BELIEF.prior(), seed=seed).arm for seed in range(2000)]
    assert_counts(np.bincount(arms, minlength=3), np.full(3, 1 / 3))
    first = ds.BayesUCB(ties="first")
    assert {ds.decide(first, BELIEF, BELIEF.prior(), seed=seed).arm for seed in range(20)} == {0}


def test_sampled_quantiles_approach_the_exact_one():
    belief = ds.BetaBernoulli(arms=2)
    state = belief.update_batch(belief.prior(), [0] * 30 + [1] * 10, [1] * 15 + [0] * 15 + [1] * 5 + [0] * 5)
    exact = ds.decide(ds.BayesUCB(), belief, state).arm
    assert exact == 1  # the same mean, but less sure
    assert {ds.decide(ds.BayesUCB(samples=20_000), belief, state, seed=s).arm for s in range(20)} == {1}


def test_greedy_plays_the_highest_posterior_mean():
    assert ds.decide(ds.Greedy(), BELIEF, STATE).arm == (STATE.alpha / (STATE.alpha + STATE.beta)).argmax()


def test_contexts_reach_the_decision():
    belief = ds.LinearGaussian(arms=2, dimension=2, mean=0.0)
    rng = np.random.default_rng(0)
    x, arms = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    rewards = np.where(arms == 0, x[:, 0], x[:, 1]) + 0.1 * rng.normal(size=200)
    state = belief.update_batch(belief.prior(), arms, rewards, x)
    assert ds.decide(ds.DoubleSampling(), belief, state, [1.0, -1.0]).arm == 0
    assert ds.decide(ds.DoubleSampling(), belief, state, context=[-1.0, 1.0]).arm == 1
    p = ds.probability_optimal(belief, state, context=[0.5, 0.5])
    assert p.sum() == pytest.approx(1.0)


def test_a_sure_belief_is_exploited_and_an_unsure_one_is_not():
    belief = ds.BetaBernoulli(arms=2)
    sure = belief.update_batch(belief.prior(), [0] * 50 + [1] * 50, [0] * 40 + [1] * 10 + [1] * 40 + [0] * 10)
    unsure = belief.prior()
    assert ds.decide(ds.DoubleSampling(), belief, sure).candidates > 10
    assert ds.decide(ds.DoubleSampling(), belief, unsure).candidates == 1


def test_time_separates_decisions_from_one_state():
    arms = {ds.decide(ds.ThompsonSampling(), BELIEF, STATE, seed=1, time=t).arm for t in range(1, 60)}
    assert arms == {0, 1, 2}


def test_equal_draws_share_a_sample():
    decision = ds.decide_from_draws(ds.ThompsonSampling(), [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    assert decision.probability_optimal.tolist() == [0.25, 0.5, 0.25]


def test_draws_without_a_time_bring_their_own_luck():
    rng = np.random.default_rng(0)
    tables = [np.where(rng.random((50, 1)) < 0.7, [[1.0, 0.0]], [[0.0, 1.0]]) for _ in range(800)]
    decisions = [ds.decide_from_draws(ds.ThompsonSampling(), draws, seed=1) for draws in tables]
    assert_counts(np.bincount([d.arm for d in decisions], minlength=2), [0.7, 0.3])
    assert decisions[3] == ds.decide_from_draws(ds.ThompsonSampling(), tables[3], seed=1)


def test_sampled_quantiles_of_given_draws_have_known_propensities():
    assert ds.decide_from_draws(ds.BayesUCB(samples=9), [[0.1, 0.2]], time=5).propensities.tolist() == [0.0, 1.0]


def test_oracle_decides_only_in_simulations():
    with pytest.raises(SettingError, match="only simulate knows"):
        ds.decide(ds.Oracle(), BELIEF, STATE)


@pytest.mark.parametrize("policy", [ds.BayesUCB(), ds.DoubleSampling(horizon=10)], ids=repr)
def test_draws_without_a_time_are_refused_where_the_policy_needs_it(policy):
    with pytest.raises(SettingError, match="Pass time="):
        ds.decide_from_draws(policy, [[0.1, 0.2]])


@pytest.mark.parametrize(
    "draws", [[], [0.1, 0.2], [[0.1], [0.2]], [[[1.0]]], [[0.1, float("nan")]], [["a", "b"]], None]
)
def test_draws_that_are_none_are_refused(draws):
    with pytest.raises(DrawsError):
        ds.decide_from_draws(ds.DoubleSampling(), draws)


def test_nan_in_draws_is_named_with_its_place():
    draws = np.ones((5, 3))
    draws[4, 1] = np.nan
    with pytest.raises(DrawsError, match=r"nan at index \(4, 1\)"):
        ds.decide_from_draws(ds.DoubleSampling(), draws)
