"""Simulations whose outcomes are late or lost, or whose shares have limits."""

from typing import Any

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.errors import SettingError
from tests.chance import assert_counts, assert_mean

COUNTS = ds.PoissonBandit([1.0, 2.0])


def play(bandit, policy, **options):
    return ds.simulate(bandit, policy, horizon=50, realizations=24, seed=3, device="cpu", **options)


def test_a_delay_of_nothing_changes_nothing():
    """A law whose only delay is 0 goes the other way through the code, to the same numbers."""
    once, late = play(COUNTS, ds.DoubleSampling()), play(COUNTS, ds.DoubleSampling(), delay=[1.0])
    np.testing.assert_array_equal(once.final_regret, late.final_regret)
    assert late.attrs["delay"] == "[1.0]"
    assert "delay" not in once.attrs


def test_a_delayed_decision_knows_what_was_known():
    """The decisions of ds.decide from a state that lacks the last outcomes."""
    belief, policy, delay = ds.GammaPoisson(arms=2), ds.DoubleSampling(), 7
    found = play(COUNTS, policy, delay=delay, keep=("trajectories",))
    arms = found.trajectory_arm.values[0, 0, 0].astype(int)
    paid = found.trajectory_reward.values[0, 0, 0]
    for t in range(50):
        known = max(t - delay, 0)
        state = belief.update_batch(belief.prior(), arms[:known], paid[:known])
        assert ds.decide(policy, belief, state, seed=3, time=t + 1).arm == arms[t]


def test_outcomes_that_are_never_known_teach_nothing():
    lost, never = play(COUNTS, ds.DoubleSampling(), dropout=1.0), play(COUNTS, ds.DoubleSampling(), delay=50)
    np.testing.assert_array_equal(lost.final_regret, never.final_regret)
    assert_mean(lost.final_regret.values.ravel(), 25.0)
    some = play(COUNTS, ds.DoubleSampling(), dropout=0.5, delay={"law": "geometric", "mean": 3})
    assert float(some.final_regret.mean()) < float(lost.final_regret.mean())


def test_shares_keep_their_limits():
    bandit, policy = ds.BernoulliBandit([0.1, 0.5, 0.9]), ds.ThompsonSampling()
    keep = ("trajectories",)
    equal = play(bandit, policy, allocation=ds.Allocation(floor=1 / 3), keep=keep).trajectory_arm.values
    assert_counts(np.bincount(equal.astype(int).ravel()), [1 / 3] * 3)
    fixed = play(bandit, policy, allocation=ds.Allocation(fixed={0: 0.5}), keep=keep).trajectory_arm.values.ravel()
    assert_counts([np.sum(fixed == 0), np.sum(fixed != 0)], [0.5, 0.5])
    begun = play(bandit, policy, allocation=ds.Allocation(burn_in=4), keep=keep).trajectory_arm.values[0, 0, :, :12]
    for start in range(0, 12, 3):  # permuted blocks of one per arm
        np.testing.assert_array_equal(np.sort(begun[:, start : start + 3], axis=1), [[0, 1, 2]] * 24)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bandit", "policy"),
    [
        (ds.BernoulliBandit([0.4, 0.5]), ds.BayesUCB()),
        (ds.GaussianBandit([0.0, 0.5]), ds.DoubleSampling()),
        (ds.LinearGaussianBandit(weights=[[0.4, 0.4], [0.8, 0.8]]), ds.ThompsonSampling()),
        (ds.LogisticBandit(weights=[[1.0, 0.0], [0.0, 1.0]]), ds.TopTwo()),
        (ds.CategoricalBandit([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], values=[0, 1, 2]), ds.DoubleSampling()),
        (ds.ChangingBernoulliBandit([[0.2, 0.8], [0.8, 0.2]], every=20), ds.EpsilonGreedy()),
    ],
    ids=lambda part: type(part).__name__,
)
def test_every_family_with_a_delay_of_nothing(bandit, policy):
    np.testing.assert_array_equal(play(bandit, policy).final_regret, play(bandit, policy, delay=[1.0]).final_regret)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        ds.ThompsonSampling(),
        ds.DoubleSampling(),
        ds.TopTwo(),
        ds.EpsilonGreedy(0.2),
        ds.InformationDirected(),
        ds.UCB1(),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_an_allocation_without_limits_plays_as_the_policy_does(policy):
    bandit = ds.BernoulliBandit([0.3, 0.5, 0.6])
    given: dict[str, Any] = {"horizon": 40, "realizations": 3000, "device": "cpu"}
    free = ds.simulate(bandit, policy, seed=1, **given).final_regret.values.ravel()
    shared = ds.simulate(bandit, policy, seed=2, allocation=ds.Allocation(), **given).final_regret.values.ravel()
    assert_mean(free - shared, 0.0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"delay": -1}, "delay must be"),
        ({"dropout": 2.0}, "dropout must be"),
        ({"allocation": 0.1}, "allocation must be one such as"),
        ({"allocation": ds.Allocation(update="look")}, "Use ds.Trial"),
        ({"allocation": ds.Allocation(minimum=0.6)}, "add up to"),
    ],
)
def test_wrong_options_are_refused(options, said):
    with pytest.raises(SettingError, match=said):
        play(COUNTS, ds.DoubleSampling(), **options)


def test_what_cannot_be_late_is_refused():
    with pytest.raises(SettingError, match="samples=None"):
        play(COUNTS, ds.BayesUCB(samples=10), allocation=ds.Allocation(floor=0.1))

    class Own:
        def choose(self, evidence):
            return 0

    with pytest.raises(SettingError, match="of this package"):
        play(COUNTS, Own(), delay=3)
