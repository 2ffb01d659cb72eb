"""Logs with a burn-in or permuted blocks: zeros that come from the design are analysed, others are refused."""

import math

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from benchmarks.coverage_blocks import Design, simulate_logs
from doublesampling.errors import PropensityError
from doublesampling.inference.blocks import block_shares
from doublesampling.inference.reading import read_decisions
from tests import oracle_inference as oracle
from tests.chance import FALSE_ALARM
from tests.test_inference import frame


def experiment(storage, decisions, **allocation):
    """An experiment of three arms; returns it and the propensities of every decision."""
    exp = ds.Experiment.create(
        "trial", arms=["a", "b", "c"], policy=ds.ThompsonSampling(), seed=3, storage=storage, units="many",
        allocation=ds.Allocation(**allocation),
    )  # fmt: skip
    rng, shares = np.random.default_rng(2), []
    for _ in range(decisions):
        made = exp.ask()
        shares.append(made.propensities)
        exp.tell(made.id, float(rng.random() < 0.4 + 0.1 * made.arm))
    return exp, np.array(shares)


def test_blocks_are_found_from_the_propensities(sqlite_url):
    """A burn-in of 4 per arm in blocks of 3, then blocks of 6 that begin at decisions 13, 19, 25, ..."""
    exp, shares = experiment(sqlite_url, 60, burn_in=4, block=6, floor=0.1)
    assert (shares == 0.0).any()
    rows = np.arange(60)
    first = np.where(rows < 12, rows // 3 * 3, rows // 6 * 6)
    log = read_decisions(exp)
    np.testing.assert_allclose(np.asarray(log.shares), shares[first])
    np.testing.assert_allclose(block_shares(log.arms, shares.round(6)), shares[first], atol=1e-6)


def test_a_voided_decision_keeps_its_slot(sqlite_url):
    exp, shares = experiment(sqlite_url, 36, block=6, floor=0.1)
    exp.void(exp.decisions()["id"][8], reason="never given")
    kept = np.delete(np.arange(36), 8)
    np.testing.assert_allclose(np.asarray(read_decisions(exp).shares), shares[kept // 6 * 6])
    found = exp.analyse(("c", "a"))
    assert (found.voided, found.rows, found.unavailable) == (1, 35, 0)
    assert found.used_up == (shares[kept][:, [0, 2]] == 0.0).any(axis=1).sum() > 0
    assert "permuted block were used up" in found.trust


def test_a_block_ends_with_its_last_slot():
    """A policy that commits after a fair first draw is no block: only its second row could belong to one."""
    arms = np.array([0, 1, 1, 1, 1])
    shares = np.array([[0.5, 0.5], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(block_shares(arms, shares), [[0.5, 0.5], [0.5, 0.5], *shares[2:]])
    drawn = np.array([[0.25, 0.75], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_array_equal(block_shares(arms, drawn), [*[[0.25, 0.75]] * 4, [0.0, 1.0]])


@pytest.mark.parametrize("weights", ["constant", "stick-breaking"])
def test_a_decision_has_no_weight_for_an_arm_that_could_not_be_drawn(weights):
    """Against loops of the formulas with h_t(a) = 0 where e_t(a) = 0."""
    logs = simulate_logs(Design(0.2, burn_in=6, block=4), (0.4, 0.6), 80, 1, 4)
    arms, rewards, shares = (part[0] for part in logs)
    found = ds.analyse(frame(arms, rewards, shares), (1, 0), weights=weights)
    gammas, hs = [], []
    for arm in (1, 0):
        safe = np.where(shares[:, [arm]] > 0.0, shares, 1.0)
        gammas.append(oracle.scores(arm, arms, rewards, safe))
        e = shares[:, arm].tolist()
        if weights == "constant":
            h = [math.sqrt(x) for x in e]
        else:
            left, h = 1.0, []
            for t, x in enumerate(e, start=1):
                lost = 0.3 / (0.3 + 80 * (t / 80) ** 0.7 - t)
                rate = min((1 - x) * lost + x / (81 - t), 1.0) if x > 0 else 0.0
                h.append(math.sqrt(left * rate * x))
                left *= 1 - rate
        hs.append([0.0, *h[1:]])
    value, error, _ = oracle.contrast(gammas, hs)
    assert found.estimate == pytest.approx(value, rel=1e-10)
    assert found.standard_error == pytest.approx(error, rel=1e-10)
    assert (found.rows, found.used_up) == (80, (shares == 0.0).any(axis=1).sum())


@pytest.mark.parametrize(
    "design", [Design(0.1, burn_in=15), Design(0.2, block=4)], ids=["burn-in", "blocks with adaptive shares"]
)
def test_intervals_cover_as_often_as_the_level_says(design):
    """The short form of benchmarks/coverage_blocks.py, two points of tolerance and chance."""
    logs, covered, missed = 500, 0, 0
    made = simulate_logs(design, (0.4, 0.6), 150, logs, 6)
    for arms, rewards, shares in zip(*made, strict=True):
        log = read_decisions({"arm": arms, "reward": rewards, "propensities": shares})
        found, band = ds.analyse(log, (1, 0)), ds.sequence(log, (1, 0))
        covered += found.low <= 0.2 <= found.high
        missed += bool(((band.low > 0.2) | (band.high < 0.2)).any())
    assert stats.binom.ppf(FALSE_ALARM, logs, 0.93) <= covered <= stats.binom.isf(FALSE_ALARM, logs, 0.97)
    assert missed <= stats.binom.isf(FALSE_ALARM, logs, 0.05)


def test_equal_blocks_are_not_adaptive():
    arms, rewards, shares = (part[0] for part in simulate_logs(Design(0.5, block=4), (0.4, 0.6), 60, 1, 7))
    log = frame(arms, rewards, shares)
    assert ds.analyse(log, (1, 0), "naive").trust.startswith("Valid")
    assert ds.analyse(log, (1, 0)).trust.startswith("Valid in large samples: the propensities were the same")


@pytest.mark.parametrize("policy", [ds.BayesUCB(), ds.ThompsonSampling()], ids=["an index", "an arm without a slot"])
def test_zeros_that_the_outcomes_chose_are_refused(sqlite_url, policy):
    """An index policy never draws; a block from shares without a floor may have no slot for an arm."""
    allocation = None if isinstance(policy, ds.BayesUCB) else ds.Allocation(block=4)
    exp = ds.Experiment.create("trial", arms=["a", "b"], policy=policy, seed=1, storage=sqlite_url, units="many",
                               allocation=allocation)  # fmt: skip
    rng = np.random.default_rng(1)
    for _ in range(60):
        made = exp.ask()
        exp.tell(made.id, float(rng.random() < (0.4, 0.6)[made.arm]))
    with pytest.raises(PropensityError):
        exp.analyse((1, 0))
