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
    ds.UCB1(),
    ds.KLUCB(),
    ds.IMED(ties="first"),
    ds.InformationDirected(),
    ds.InformationDirected(samples=100),
    ds.EpsilonThompson(0.4),
    ds.InformationRelaxation(horizon=50),
    ds.FiniteHorizonGittins(horizon=50),
    ds.FiniteHorizonGittins(horizon=50, epsilon=0.2),
]
COUNTS_WINS = (ds.UCB1, ds.KLUCB, ds.IMED, ds.FiniteHorizonGittins, ds.InformationRelaxation)


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
        if isinstance(policy, COUNTS_WINS):
            with pytest.raises(SettingError, match="counts wins and losses, which posterior draws do not show"):
                ds.decide_from_draws(policy, draws, seed=1, time=21)
            return
        decision = ds.decide_from_draws(policy, draws, seed=1, time=21)
        share = np.bincount(draws.argmax(axis=1), minlength=3) / 400
        np.testing.assert_allclose(decision.probability_optimal, share, atol=1e-12)

    def test_arms_follow_the_propensities_given_the_estimate(self, policy):
        """Over many seeds with the estimate held fixed (draws), the arm played follows the logged propensity."""
        draws = np.array([[0.1, 0.2, 0.15]] * 6 + [[0.3, 0.2, 0.25]] * 6 + [[0.2, 0.3, 0.4]] * 8)
        if isinstance(policy, COUNTS_WINS):  # the second and the third arm tie
            tied = BELIEF.update_batch(BELIEF.prior(), [0, 0, 1, 1, 2, 2], [0, 0, 1, 0, 1, 0])
            decisions = [ds.decide(policy, BELIEF, tied, seed=seed) for seed in range(3000)]
        else:
            decisions = [ds.decide_from_draws(policy, draws, seed=seed, time=30) for seed in range(3000)]
        if isinstance(policy, ds.BayesUCB) and policy.samples is not None:
            assert len({d.arm for d in decisions}) == 1
            return
        if isinstance(policy, ds.InformationRelaxation):  # known for two arms only
            assert np.isnan(decisions[0].propensities).all()
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
    decision = ds.decide_from_draws(ds.ThompsonSampling(), [[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]] * 10)
    assert decision.probability_optimal.tolist() == [0.25, 0.5, 0.25]


def test_draws_without_a_time_bring_their_own_luck():
    rng = np.random.default_rng(0)
    tables = [np.where(rng.random((50, 1)) < 0.7, [[1.0, 0.0]], [[0.0, 1.0]]) for _ in range(800)]
    decisions = [ds.decide_from_draws(ds.ThompsonSampling(), draws, seed=1) for draws in tables]
    assert_counts(np.bincount([d.arm for d in decisions], minlength=2), [0.7, 0.3])
    assert decisions[3] == ds.decide_from_draws(ds.ThompsonSampling(), tables[3], seed=1)


def test_sampled_quantiles_of_given_draws_have_known_propensities():
    assert ds.decide_from_draws(ds.BayesUCB(samples=9), [[0.1, 0.2]] * 20, time=5).propensities.tolist() == [0.0, 1.0]


def test_oracle_decides_only_in_simulations():
    with pytest.raises(SettingError, match="only simulate knows"):
        ds.decide(ds.Oracle(), BELIEF, STATE)


@pytest.mark.parametrize("policy", [ds.BayesUCB(), ds.DoubleSampling(horizon=10)], ids=repr)
def test_draws_without_a_time_are_refused_where_the_policy_needs_it(policy):
    with pytest.raises(SettingError, match="Pass time="):
        ds.decide_from_draws(policy, [[0.1, 0.2]] * 20)


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


ROWS = np.random.default_rng(1).normal([0.0, 3.0, 1.0], 1.0, size=(4000, 3))


def test_transposed_draws_are_refused():
    """Four thousand arms of three samples each would play arm 1267."""
    with pytest.raises(DrawsError, match=r"3 samples of 4000 arms.*pass draws\.T"):
        ds.decide_from_draws(ds.DoubleSampling(), ROWS.T, seed=1)
    with pytest.raises(DrawsError, match="at least 20 samples, got 19"):
        ds.decide_from_draws(ds.DoubleSampling(), ROWS[:19], seed=1)
    assert ds.decide_from_draws(ds.DoubleSampling(), ROWS[:20], seed=1).arm == 1


def test_draws_in_every_layout_decide_the_same():
    """Chains, and xarray objects with named dimensions in any order, as ArviZ keeps them."""
    import xarray as xr

    expected = ds.decide_from_draws(ds.DoubleSampling(), ROWS, seed=1, time=4)
    chains = ROWS.reshape(4, 1000, 3)
    named = xr.DataArray(chains, dims=("chain", "draw", "treatment"))
    posterior = xr.Dataset({"mean": named})

    class InferenceData:
        """What ArviZ hands out."""

    inference = InferenceData()
    inference.posterior = posterior  # type: ignore[attr-defined]
    layouts = [
        chains,
        named,
        named.transpose("treatment", "draw", "chain").transpose("chain", "treatment", "draw"),
        named.stack(sample=("chain", "draw")),
        xr.DataArray(ROWS.T, dims=("arm", "sample")),
        posterior,
        inference,
    ]
    for draws in layouts:
        assert ds.decide_from_draws(ds.DoubleSampling(), draws, seed=1, time=4) == expected


def test_named_draws_that_cannot_be_told_apart_are_refused():
    import xarray as xr

    for draws, words in (
        (xr.DataArray(np.ones((30, 2, 2)), dims=("draw", "arm", "site")), "one for the arms, got draw, arm, site"),
        (xr.DataArray(np.ones((30, 2)), dims=("x", "y")), "got x, y"),
        (xr.Dataset({"a": ("draw", np.ones(30)), "b": ("draw", np.ones(30))}), "2 variables: 'a', 'b'"),
    ):
        with pytest.raises(DrawsError, match=words):
            ds.decide_from_draws(ds.DoubleSampling(), draws)


def test_without_a_seed_every_call_has_its_own_luck():
    """A newcomer's loop explores; the seed that was drawn is recorded and gives the same decision again."""
    belief = ds.BetaBernoulli(arms=4)
    made = [ds.decide(ds.ThompsonSampling(), belief, belief.prior()) for _ in range(1000)]
    assert len({decision.address.seed for decision in made}) == 1000
    assert_counts(np.bincount([decision.arm for decision in made], minlength=4), [0.25] * 4)
    again = ds.decide(ds.ThompsonSampling(), belief, belief.prior(), seed=made[7].address.seed)
    assert again == made[7]
    drawn = ds.decide_from_draws(ds.DoubleSampling(), ROWS)
    assert drawn == ds.decide_from_draws(ds.DoubleSampling(), ROWS, seed=drawn.address.seed)
    assert drawn.address.seed != ds.decide_from_draws(ds.DoubleSampling(), ROWS).address.seed


class Own:
    """A policy that answers whatever it was given."""

    def __init__(self, answer):
        self.answer = answer

    def choose(self, evidence):
        return self.answer


RIGHT = ([0.2, 0.3, 0.5], 1, [0, 0, 1], [0.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (3, "The arm that Own.choose returns must be a whole number from 0 to 2, got 3"),
        (-1, "got -1"),
        (None, "got None. Return the arm to play"),
        ("first", "got 'first'"),
        ([1], "must return probabilities as 3 numbers, got shape"),
        (1.0, "got 1.0"),
        ((1, 2), "must return an arm, a probability per arm, or a Choice of arm, probability_optimal"),
        ((5, *RIGHT), "got 5"),
        ((0, [0.5, 0.5], *RIGHT[1:]), "probability_optimal as 3 numbers, got shape \\(2,\\)"),
        ((0, None, *RIGHT[1:]), "probability_optimal as"),
        ((0, "abc", *RIGHT[1:]), "probability_optimal as 3 numbers, got 'abc'"),
        ((0, RIGHT[0], 0, *RIGHT[2:]), "candidates of Own.choose must be"),
        ((0, *RIGHT[:3], [0.1, 0.1, 0.1]), "add up to 1, got sum 0.3"),
        ((0, *RIGHT[:3], [-0.5, 0.5, 1.0]), "0 or more"),
    ],
)
def test_the_answer_of_an_own_policy_is_checked(answer, words):
    with pytest.raises(SettingError, match=words):
        ds.decide(Own(answer), BELIEF, STATE, seed=1)


def test_an_own_policy_may_answer_an_arm_or_everything():
    decision = ds.decide(Own(np.int64(2)), BELIEF, STATE, seed=1)
    assert decision.arm == 2
    assert decision.votes.tolist() == [0, 0, 1]
    assert np.isnan(decision.propensities).all(), "not known"
    whole = ds.decide(Own((2, *RIGHT)), BELIEF, STATE, seed=1)
    assert whole.propensities.tolist() == [0.0, 0.0, 1.0]
    assert whole.probability_optimal.tolist() == [0.2, 0.3, 0.5]
