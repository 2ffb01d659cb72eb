"""Confidence sequences: against loops of their formulas, one outcome at a time, and never missing too often."""

import math

import numpy as np
import pytest
from scipy import special, stats

import doublesampling as ds
from doublesampling.errors import ArmError, LogError, RewardError, SettingError
from doublesampling.inference.decision_log import DecisionLog
from doublesampling.inference.streaming import mixture_parameter
from tests import oracle_inference as oracle
from tests.chance import FALSE_ALARM
from tests.test_inference import frame, simulate


def log_of(rows, seed, least=0.1):
    rng = np.random.default_rng(seed)
    p = rng.uniform(least, 1.0 - least, rows)
    arms = (rng.random(rows) < p).astype(np.int64)
    rewards = (rng.random(rows) < 0.3 + 0.3 * arms).astype(float)
    return arms, rewards, np.column_stack([1.0 - p, p])


@pytest.mark.parametrize("method", ["asymptotic", "empirical-bernstein"])
@pytest.mark.parametrize("contrast", [(1, 0), 0])
def test_one_outcome_at_a_time_gives_the_intervals_of_the_whole_log(method, contrast):
    arms, rewards, shares = log_of(300, 1)
    rewards = 10.0 + 2.0 * rewards
    whole = ds.sequence(frame(arms, rewards, shares), contrast, method=method, bounds=(10, 12))
    one = ds.ConfidenceSequence(2, contrast, method=method, bounds=(10, 12))
    for i in range(300):
        one.update(arms[i], rewards[i], shares[i])
        assert one.interval == pytest.approx((whole.low[i], whole.high[i]), rel=1e-9)
        assert one.estimate == pytest.approx(whole.estimate[i], nan_ok=True)
    assert one.rows == whole.outcomes[-1] == 300
    assert one.reason is None
    assert math.isinf(whole.low[5]) == (method == "asymptotic")


def test_the_asymptotic_formula():
    arms, rewards, shares = log_of(200, 2)
    found = ds.sequence(frame(arms, rewards, shares), (1, 0), level=0.9, optimal_at=80)
    gamma = [a - b for a, b in zip(*(oracle.scores(arm, arms, rewards, shares) for arm in (1, 0)), strict=True)][1:]
    t, alpha = len(gamma), 0.1
    mean = sum(gamma) / t
    squares = sum((g - mean) ** 2 for g in gamma)
    spread = np.var(rewards)
    predicted = sum(
        (np.var(rewards[arms == a]) * (arms == a).sum() + spread) / (arms == a).sum() * (1 / shares[1:, a]).sum()
        for a in (0, 1)
    )
    squares = max(squares, predicted)
    rho2 = (-special.lambertw(-(alpha**2) / math.e, -1).real - 1.0) / 80
    inside = squares * rho2 + 1.0
    reach = math.sqrt(2 * inside * math.log(math.sqrt(inside) / alpha) / (t * t * rho2))
    assert found.interval == pytest.approx((mean - reach, mean + reach), rel=1e-9)


def test_the_mixture_parameter_minimises_the_width():
    def width(rho2):
        return math.sqrt(2 * (100 * rho2 + 1) * math.log(math.sqrt(100 * rho2 + 1) / 0.05) / (100**2 * rho2))

    best = mixture_parameter(0.05, 100)
    assert width(best) < min(width(0.8 * best), width(1.25 * best))


def test_the_empirical_bernstein_formula():
    arms, rewards, shares = log_of(150, 3)
    found = ds.sequence(frame(arms, rewards, shares), (1, 0), method="empirical-bernstein")
    ends = []
    for arm in (1, 0):
        weight = [1 / shares[t][arm] if arms[t] == arm else 0.0 for t in range(150)]
        low = oracle.bernstein([w * r for w, r in zip(weight, rewards, strict=True)], 0.05 / 4)
        high = 1 - oracle.bernstein([w * (1 - r) for w, r in zip(weight, rewards, strict=True)], 0.05 / 4)
        ends.append((max(low, 0.0), min(high, 1.0)))
    assert found.interval == pytest.approx((ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]), rel=1e-9)


def test_sequences_miss_at_any_time_at_most_as_often_as_they_say():
    """The short form of benchmarks/coverage.py: an adaptive log, looked at after every outcome."""
    arms, rewards, shares = simulate((0.5, 0.5), 200, 300, 0.05, 6)
    missed = {"asymptotic": 0, "empirical-bernstein": 0}
    for i in range(300):
        log = DecisionLog(("0", "1"), arms[i], rewards[i], shares[i], np.arange(1, 201))
        for method in missed:
            found = ds.sequence(log, (1, 0), method=method)
            missed[method] += bool(((found.low > 0.0) | (found.high < 0.0)).any())
    most = stats.binom.isf(FALSE_ALARM, 300, 0.05)
    assert max(missed.values()) <= most


def test_late_outcomes_count_when_they_are_known():
    arms, rewards, shares = log_of(120, 4)
    known = np.arange(1, 121) + (np.arange(120) % 7)
    found = ds.sequence(frame(arms, rewards, shares, known=known), (1, 0))
    order = np.argsort(np.minimum(known, 120), kind="stable")
    same = ds.sequence(frame(arms[order], rewards[order], shares[order]), (1, 0))
    np.testing.assert_allclose(found.low, same.low)


def test_an_arm_that_is_not_available_changes_nothing():
    arms, rewards, shares = log_of(200, 5)
    one = ds.ConfidenceSequence(3, (1, 0), method="empirical-bernstein")
    two = ds.ConfidenceSequence(3, (1, 0), method="empirical-bernstein")
    for i in range(200):
        for each in (one, two):
            each.update(arms[i], rewards[i], [*shares[i], 0.0])
        two.update(2, 1.0, [0.0, 0.0, 1.0])
    assert one.interval == two.interval


def test_vanishing_propensities_have_no_asymptotic_interval():
    one = ds.ConfidenceSequence(2, (1, 0))
    for i in range(100):
        one.update(i % 2, float(i % 3 == 0), [0.5, 0.5])
    assert one.reason is None
    one.update(0, 1.0, [1.0 - 1e-4, 1e-4])
    assert one.interval == (-math.inf, math.inf)
    assert "floor" in str(one.reason)


def test_rare_outcomes_are_waited_for():
    one = ds.ConfidenceSequence(2, (1, 0))
    for i in range(400):
        one.update(i % 2, float(i in (10, 21)), [0.5, 0.5])
    assert "above its mean" in str(one.reason)


def test_an_interval_that_is_withheld_says_why():
    arms, rewards, shares = log_of(200, 8)
    cases = [
        (arms[:30], rewards[:30], shares[:30], "outcomes, fewer than 20"),
        (arms, np.zeros(200), shares, "outcomes above its mean"),
        (arms, np.ones(200), shares, "outcomes above its mean"),
        (arms, rewards, np.where(np.arange(200)[:, None] == 150, np.eye(2)[arms] * 0.998 + 0.001, shares), "floor"),
    ]
    for a, r, p, words in cases:
        found, one = ds.sequence(frame(a, r, p), (1, 0)), ds.ConfidenceSequence(2, (1, 0))
        for row in range(a.size):
            one.update(a[row], r[row], p[row])
        assert found.interval == one.interval == (-math.inf, math.inf)
        assert words in str(found.reason)
        assert found.reason == one.reason
        assert "no interval" in str(found)
        assert str(found.reason) in str(found)
    assert ds.sequence(frame(arms, rewards, shares), (1, 0)).reason is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((0, 1.0, [0.5, 0.4]), SettingError), ((0, 1.0, [1.0]), SettingError), ((2, 1.0, [0.5, 0.5]), ArmError),
        ((0, math.nan, [0.5, 0.5]), RewardError), ((0, 1.5, [0.5, 0.5]), RewardError),
        ((0, 1.0, [0.0, 1.0]), SettingError), ((0, 1.0, [1.5, -0.5]), SettingError),
    ],
)  # fmt: skip
def test_wrong_outcomes_are_refused_and_change_nothing(arguments, error):
    one = ds.ConfidenceSequence(2, method="empirical-bernstein")
    one.update(1, 1.0, [0.5, 0.5])
    before = one.interval
    with pytest.raises(error):
        one.update(*arguments)
    assert (one.interval, one.rows) == (before, 1)


def test_wrong_settings_are_refused():
    for settings in ({"contrast": (1, 1)}, {"contrast": (0, 5)}, {"method": "wald"}, {"level": 2}, {"bounds": (1, 0)}):
        with pytest.raises((SettingError, ArmError)):
            ds.ConfidenceSequence(2, **settings)
    arms, rewards, shares = log_of(50, 6)
    with pytest.raises(SettingError, match="bounds"):
        ds.sequence(frame(arms, 3 * rewards, shares), method="empirical-bernstein")
    with pytest.raises(LogError, match="propensity"):
        ds.sequence(frame(arms, rewards, shares).drop(columns="propensity_0"))
