"""Off-policy intervals of adaptive logs: adaptively weighted for policies that never change, or none, and why."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from benchmarks.coverage_fixed import covers
from doublesampling.inference.fixed_targets import adaptive_mean, is_fixed
from doublesampling.logs import Log, read_log
from doublesampling.off_policy import evaluate
from tests import oracle_inference as oracle
from tests.chance import FALSE_ALARM
from tests.test_inference import ROWS, frame, simulate, small_log
from tests.test_off_policy import Always


def test_for_one_arm_it_is_the_estimate_of_analyse():
    """analyse agrees with the code of Hadad et al.; the weights of a single arm are its constant-allocation weights."""
    arms, rewards, shares = small_log()
    scores = np.array(oracle.scores(2, arms, rewards, shares, initial=0.0))
    expected = ds.analyse(frame(arms, rewards, shares), 2, initial=0.0)
    found = adaptive_mean(scores, np.array([0.0, 0.0, 1.0]), arms, shares, 0.95)
    assert found.mean == pytest.approx(expected.estimate, rel=1e-10)
    assert found.effective == pytest.approx(expected.effective_sample_size, rel=1e-10)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_weights_of_a_mixture():
    """Against loops: every row adds the variance that the propensities predict."""
    arms, rewards, shares = small_log()
    target = np.array([0.2, 0.5, 0.3])
    gammas = [oracle.scores(arm, arms, rewards, shares) for arm in range(3)]
    scores = [sum(target[a] * gammas[a][t] for a in range(3)) for t in range(ROWS)]
    h = [1.0 / math.sqrt(sum(target[a] ** 2 / shares[t][a] for a in range(3))) for t in range(ROWS)]
    value, terms = oracle.weighted(scores, h)
    found = adaptive_mean(np.array(scores), target, arms, shares, 0.9)
    fewest = min(oracle.effective(arm, arms, shares, h) for arm in range(3))
    assert found.mean == pytest.approx(value, rel=1e-10)
    error = math.sqrt(math.fsum(term**2 for term in terms))
    assert found.high - value == pytest.approx(stats.t.ppf(0.95, fewest - 1) * error, rel=1e-8)


def test_uniform_play_is_covered_as_often_as_the_level_says():
    """Thompson sampling with a floor logged it; two points of tolerance and chance."""
    logs = 600
    arms, rewards, shares = simulate((0.3, 0.6), 150, logs, 0.05, 8)
    covered = sum(covers(*log, np.array([0.5, 0.5]), 0.45, 0.95) for log in zip(arms, rewards, shares, strict=True))
    assert stats.binom.ppf(FALSE_ALARM, logs, 0.93) <= covered <= stats.binom.isf(FALSE_ALARM, logs, 0.97)


def log_of(floor, rows=150, seed=9, **changes):
    arms, rewards, shares = (part[0] for part in simulate((0.3, 0.4, 0.8), rows, 1, floor, seed))
    parts = {"names": ("a", "b", "c"), "arms": arms, "rewards": rewards, "shares": shares}
    parts["propensities"] = shares[np.arange(rows), arms]
    return Log(**(parts | changes))


def test_a_log_with_a_floor_has_an_interval_for_a_fixed_arm():
    log = log_of(0.15)
    found = evaluate(Always(2), log)
    assert found.dr.low < 0.8 < found.dr.high
    assert found.ips.low < found.dr.mean < found.ips.high
    assert any("adaptively weighted" in words for words in found.warnings)
    assert log.shares is not None
    assert found.dr.effective == pytest.approx(ds.analyse(
        {"arm": log.arms, "reward": log.rewards, "propensities": log.shares}, 2, initial=0.0
    ).effective_sample_size)  # fmt: skip


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (log_of(0.0, rows=200), "floor of 0.05"),
        (log_of(0.15, shares=None), "those of all arms"),
        (log_of(0.15, contexts=np.ones((150, 1))), "contexts"),
    ],
    ids=["vanishing", "played arm only", "contexts"],
)
def test_where_no_interval_is_valid_there_is_none(log, words):
    found = evaluate(Always(1), log)
    for worth in (found.ips, found.dr):
        assert math.isnan(worth.low)
        assert math.isfinite(worth.mean)
    assert any("no interval" in said and words in said for said in found.warnings)


def test_a_policy_that_learns_has_no_interval_where_one_outcome_could_decide():
    found = evaluate(ds.ThompsonSampling(), greedy_log())
    assert math.isnan(found.dr.low)
    assert any("could have counted as" in words for words in found.warnings)
    kept = evaluate(ds.ThompsonSampling(), log_of(0.15))
    assert kept.dr.low < kept.dr.mean < kept.dr.high


def greedy_log():
    """A log that all but stops exploring for three early decisions."""
    log = log_of(0.15)
    assert log.shares is not None
    shares = log.shares.copy()
    rows = np.flatnonzero(log.arms == 2)[:3]
    shares[rows] = [0.001, 0.001, 0.998]
    return log_of(0.15, shares=shares, propensities=shares[np.arange(150), log.arms])


def test_an_export_knows_all_propensities(sqlite_url, tmp_path):
    exp = ds.Experiment.create("trial", arms=["a", "b", "c"], policy=ds.ThompsonSampling(), seed=3, storage=sqlite_url,
                               units="many", allocation=ds.Allocation(floor=0.1))  # fmt: skip
    for i in range(40):
        made = exp.ask()
        if i % 10:
            exp.tell(made.id, float(i % 2))
    table = exp.decisions()
    exp.export("csv", tmp_path / "log.csv")
    log = read_log(tmp_path / "log.csv")
    kept = table[table["reward"].notna()]
    assert log.shares is not None
    np.testing.assert_allclose(log.shares, np.array([json.loads(text) for text in kept["propensities"]]))
    np.testing.assert_allclose(log.shares[np.arange(36), log.arms], log.propensities)
    assert (log.skipped, is_fixed(log.shares)) == (4, False)
    two = Log(("a", "b"), np.array([0, 1]), np.array([0.0, 1.0]), np.array([0.3, 0.6]))
    np.testing.assert_allclose(np.asarray(two.all_propensities), [[0.3, 0.7], [0.4, 0.6]])
