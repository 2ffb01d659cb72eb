"""How many candidates: false alarms against mpmath, N against the authors' arithmetic."""

import math

import numpy as np
import pytest

from doublesampling.errors import SettingError
from doublesampling.policies import DoubleSampling
from doublesampling.rules.choose import candidates as rules
from tests import oracle
from tests.compiled_rules import CallableRules

rules = CallableRules(rules)  # type: ignore[assignment]

KINDS = {"truncated-gaussian": rules.TRUNCATED_GAUSSIAN, "markov": rules.MARKOV, "chebyshev": rules.CHEBYSHEV}

ESTIMATES = [
    [0.5, 0.5],
    [0.4, 0.6],
    [0.001, 0.999],
    [1e-6, 1 - 1e-6],
    [1e-12, 1.0],  # rounds to 1, but the rest is not 0
    [1e-17, 1.0],
    [2e-23, 1.0, 1e-19],
    [0.2, 0.3, 0.5],
    [0.0, 0.3, 0.7],
    [0.0, 0.001, 0.999],
    [0.25, 0.25, 0.25, 0.25],
    [1e-3, 1e-9, 0.2, 0.798999999],
    [0.02] * 50,
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p", ESTIMATES, ids=str)
def test_log_false_alarm(kind, p):
    p = np.array(p)
    assert rules.log_false_alarm(KINDS[kind], p) == pytest.approx(float(oracle.log_false_alarm(kind, p)), rel=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_no_doubt_raises_no_alarm(kind):
    assert rules.log_false_alarm(KINDS[kind], np.array([0.0, 1.0, 0.0])) == -math.inf


def test_a_discarded_arm_contributes_zero_and_the_average_runs_on():
    two, three = np.array([0.3, 0.7]), np.array([0.3, 0.7, 0.0])
    kind = rules.TRUNCATED_GAUSSIAN
    assert rules.log_false_alarm(kind, three) == pytest.approx(rules.log_false_alarm(kind, two) - math.log(2))


@pytest.mark.parametrize(
    ("alarm", "count"), [(1.0, 1), (0.5, 1), (0.1, 1), (0.0999, 1), (0.01, 2), (1e-3, 3), (2e-7, 6)]
)
def test_number_of_candidates(alarm, count):
    assert rules.number_of_candidates(math.log(alarm), 1 / math.log(10), 1000) == count


def test_number_of_candidates_settings():
    log_alarm = math.log(1e-6)
    assert rules.number_of_candidates(log_alarm, 1.0, 1000) == 13
    assert rules.number_of_candidates(log_alarm, 2.5 / math.log(10), 1000) == 15
    assert rules.number_of_candidates(log_alarm, 1 / math.log(10), 4) == 4
    assert rules.number_of_candidates(-math.inf, 1 / math.log(10), 700) == 700


def test_published_count_is_that_of_the_authors_code():
    rng = np.random.default_rng(0)
    policy = DoubleSampling.as_published()
    seen = set()
    for _ in range(3000):
        arms = rng.integers(2, 5)
        p = rng.multinomial(1000, rng.dirichlet(np.full(arms, 0.3))) / 1000
        count = policy.number_of_candidates(p, None)
        assert count == oracle.published_candidates(p, 1000), p
        seen.add(count)
    assert {1, 2, 5, 1000} <= seen  # the cases that matter did occur


def test_published_rounding_jumps_to_the_cap_where_the_logarithm_does_not():
    p = np.array([0.004, 0.996])
    assert DoubleSampling.as_published().number_of_candidates(p, None) == 1000
    assert 16 < DoubleSampling().number_of_candidates(p, None) < 100


def test_candidates_grow_as_doubt_shrinks():
    counts = [
        DoubleSampling(samples=None).number_of_candidates(np.array([d, 1 - d]), None) for d in np.geomspace(0.5, 1e-9)
    ]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] == 1000


@pytest.mark.parametrize(
    ("time", "doubt", "count"), [(1, 0.5, 1), (1000, 0.1, 4), (1400, 1e-3, 1 + 13), (1499, 0.01, 18), (9999, 0.5, 12)]
)
def test_horizon_weighs_what_is_left(time, doubt, count):
    """N = 1 + floor(4 log10(300 / ((T - t) (1 - p*)))), at least 1; a horizon that has passed leaves one decision."""
    policy = DoubleSampling(horizon=1500, count="doubt")
    assert policy.number_of_candidates(np.array([doubt, 1 - doubt]), time) == count


@pytest.mark.parametrize("policy", [DoubleSampling(horizon=1500), DoubleSampling.anytime()], ids=repr)
def test_a_challenger_that_is_known_worse_is_worth_more_tries(policy):
    """Of two problems with the same doubt, the one with the lesser known challenger gets fewer candidates."""
    p = np.array([0.1, 0.9])
    counts = [policy.number_of_candidates(p, 700, np.array([known, 100.0])) for known in (5.0, 30.0, 100.0, 400.0)]
    assert counts == sorted(counts)
    assert counts[0] == 1
    assert counts[-1] > 50
    assert policy.number_of_candidates(p, 700, np.array([5.0, 20.0])) == policy.number_of_candidates(
        p, 700, np.array([50.0, 200.0])
    )


@pytest.mark.parametrize("count", ["challenger", "anytime"])
def test_counts_need_what_they_weigh(count):
    policy = DoubleSampling(count=count, horizon=100 if count == "challenger" else None)
    with pytest.raises(SettingError, match="precisions="):
        policy.number_of_candidates(np.array([0.5, 0.5]), 3)
    with pytest.raises(SettingError, match="2 positive numbers"):
        policy.number_of_candidates(np.array([0.5, 0.5]), 3, np.array([1.0, 0.0]))
    with pytest.raises(SettingError, match="time="):
        policy.number_of_candidates(np.array([0.5, 0.5]), None, np.array([1.0, 1.0]))


def test_a_count_that_does_not_fit_the_horizon_is_refused():
    for settings in ({"count": "challenger"}, {"count": "doubt"}, {"count": "anytime", "horizon": 9}):
        with pytest.raises(SettingError, match="horizon"):
            DoubleSampling(**settings)
    with pytest.raises(SettingError, match="count must be"):
        DoubleSampling(count="often")
