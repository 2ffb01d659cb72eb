"""Candidates, their mode, and the exact propensity of every arm."""

import numpy as np
import pytest

from doublesampling.rules import entry_points
from doublesampling.rules.choose import mode as choosing
from doublesampling.rules.entry_points import mode_propensities
from tests import oracle
from tests.chance import assert_counts
from tests.compiled_rules import CallableRules

choosing = CallableRules(choosing)  # type: ignore[assignment]

U = np.uint64
TIES = {"random": False, "first": True}


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize(
    ("arms", "number"), [(2, 1), (2, 2), (2, 7), (2, 60), (3, 2), (3, 5), (3, 40), (4, 12), (5, 9), (6, 8), (9, 5)]
)
def test_propensities_against_enumeration(arms, number, ties):
    rng = np.random.default_rng(arms * 100 + number)
    for p in (np.full(arms, 1 / arms), rng.dirichlet(np.ones(arms)), rng.dirichlet(np.full(arms, 0.1))):
        ours = mode_propensities(number, p, TIES[ties])
        np.testing.assert_allclose(ours, oracle.mode_propensities(number, p, ties), atol=1e-9, rtol=0)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("arms", [2, 3, 7, 20])
@pytest.mark.parametrize("number", [3, 50, 1000])
def test_propensities_sum_to_one_and_follow_the_draws(arms, number, ties):
    rng = np.random.default_rng(arms + number)
    for concentration in (0.3, 3.0, 1000.0):
        p = rng.dirichlet(np.full(arms, concentration))
        ours = mode_propensities(number, p, TIES[ties])
        assert ours.sum() == pytest.approx(1.0, abs=1e-9)
        votes = rng.multinomial(number, p, 20_000)
        top = votes == votes.max(axis=1, keepdims=True)
        if ties == "random":
            arm = (top * rng.uniform(size=top.shape)).argmax(axis=1)
        else:
            arm = top.argmax(axis=1)
        assert_counts(np.bincount(arm, minlength=arms), np.clip(ours, 0, 1))


def test_arms_that_cannot_be_drawn_are_never_played():
    p = np.array([0.0, 0.3, 0.0, 0.7])
    ours = mode_propensities(11, p, False)
    assert (ours[[0, 2]] == 0).all()
    np.testing.assert_allclose(ours[[1, 3]], mode_propensities(11, np.array([0.3, 0.7]), False), atol=1e-15)
    assert mode_propensities(9, np.array([0.0, 1.0]), False).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("ties", TIES)
def test_votes_of_arms_that_cannot_win_are_counted(ties):
    p = np.array([0.5, 0.05, 0.45])
    assert not choosing.can_win(200, p[1], p[0], 3)
    ours = mode_propensities(200, p, TIES[ties])
    np.testing.assert_allclose(ours, oracle.mode_propensities(200, p, ties), atol=1e-12, rtol=0)
    assert ours[1] == 0.0


@pytest.mark.parametrize("number", [1, 2])
def test_one_or_two_candidates_with_fair_ties_are_thompson_sampling(number):
    p = np.array([0.1, 0.2, 0.7])
    np.testing.assert_allclose(mode_propensities(number, p, False), p, atol=1e-14)


def test_propensities_far_beyond_the_usual_number():
    p = np.array([0.331, 0.333, 0.336])
    np.testing.assert_allclose(mode_propensities(10_000, p, False).sum(), 1.0, atol=1e-9)
    votes = np.random.default_rng(0).multinomial(10_000, p, 50_000)
    assert_counts(np.bincount(votes.argmax(axis=1), minlength=3), mode_propensities(10_000, p, True))


@pytest.mark.parametrize("ties", TIES)
def test_the_arm_played_follows_its_propensity(ties):
    p = np.array([0.2, 0.35, 0.45])
    played = []
    for t in range(6000):
        arm, votes, propensities = entry_points.choose_candidate(p, 4, TIES[ties], np.array([3, 0, 0, t], dtype=U))
        assert votes.sum() == 4
        assert votes[arm] == votes.max()
        played.append(arm)
    assert_counts(np.bincount(played, minlength=3), propensities)


def test_ties_are_shared_fairly_or_go_to_the_first():
    values = np.array([1.0, 3.0, 3.0, 0.0, 3.0])
    fair = [choosing.mode(values, False, (U(1), U(0), U(0), U(t))) for t in range(3000)]
    assert_counts(np.bincount(fair, minlength=5), np.array([0, 1, 1, 0, 1]) / 3)
    assert {choosing.mode(values, True, (U(1), U(0), U(0), U(t))) for t in range(50)} == {1}


def test_exploration_follows_epsilon():
    arms = [choosing.explore(2, 4, 0.2, (U(1), U(0), U(0), U(t))) for t in range(5000)]
    assert_counts(np.bincount(arms, minlength=4), [0.05, 0.05, 0.85, 0.05])


@pytest.mark.parametrize("arms", [60, 95, 150])
def test_propensities_of_very_many_arms(arms):
    np.testing.assert_allclose(mode_propensities(972, np.full(arms, 1 / arms), True).sum(), 1.0, atol=1e-9)
    np.testing.assert_allclose(mode_propensities(972, np.full(arms, 1 / arms), False), 1 / arms, atol=1e-9)
