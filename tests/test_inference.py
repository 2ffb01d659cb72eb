"""ds.analyse against loops of its formulas, the authors' own code, the truth, and logs that it must refuse."""

import dataclasses
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import doublesampling as ds
from doublesampling.beliefs.states import BetaState
from doublesampling.errors import ArmError, LogError, PropensityError, SettingError
from doublesampling.inference.decision_log import DecisionLog
from tests import oracle_inference as oracle
from tests.chance import FALSE_ALARM

ROWS = 60


def small_log():
    """A log of whole-number formulas: the same on every machine."""
    t = np.arange(ROWS)
    raw = np.column_stack([t % 5 + 1, t % 3 + 1, np.full(ROWS, 2)]).astype(float)
    shares = raw / raw.sum(axis=1, keepdims=True)
    return (t * t + t // 7) % 3, (t * 37 % 100) / 100, shares


def frame(arms, rewards, shares, **more):
    columns = {f"propensity_{a}": shares[:, a] for a in range(shares.shape[1])}
    return pd.DataFrame({"arm": arms, "reward": rewards, **columns, **more})


AUTHORS = {  # estimate and standard error of arm 2, of arm 2 - arm 0, by the code of Hadad et al. on small_log()
    ("aw-aipw", "constant"): (0.443906857043, 0.0761394681104, -0.0757883765672, 0.102913086405),
    ("aw-aipw", "stick-breaking"): (0.430875690616, 0.0838333285726, -0.0445167925699, 0.105277577336),
    ("aipw", "constant"): (0.454107827923, 0.0804721064785, -0.0917310563705, 0.114344466542),
    ("ips", "constant"): (0.613916666667, 0.140667954756, 0.0380361111111, 0.229080272169),
}


@pytest.mark.parametrize("case", AUTHORS)
def test_the_authors_code_gives_the_same_numbers(case):
    """Run once with the code of gsbDBI/adaptive-confidence-intervals, which is on no package index."""
    method, weights = case
    log = frame(*small_log())
    arm = ds.analyse(log, 2, method, weights=weights, initial=0.0)
    both = ds.analyse(log, (2, 0), method, weights=weights, initial=0.0)
    found = (arm.estimate, arm.standard_error, both.estimate, both.standard_error)
    assert found == pytest.approx(AUTHORS[case], rel=1e-10)


@pytest.mark.parametrize("weights", ["constant", "stick-breaking"])
@pytest.mark.parametrize("late", [False, True])
def test_loops_over_the_formulas_give_the_same_numbers(weights, late):
    arms, rewards, shares = small_log()
    known = np.minimum(np.arange(1, ROWS + 1) + (np.arange(ROWS) * 5 % 11 if late else 0), ROWS)
    found = ds.analyse(frame(arms, rewards, shares, known=known), (2, 0), weights=weights, level=0.9)
    first = int(known.min())
    gammas, hs = [], []
    for arm in (2, 0):
        gammas.append(oracle.scores(arm, arms, rewards, shares, known))
        e = shares[:, arm].tolist()
        h = [math.sqrt(x) for x in e] if weights == "constant" else oracle.stick_breaking(e, 0.7)
        hs.append([0.0] * first + h[first:])
    value, error, variances = oracle.contrast(gammas, hs)
    sizes = [oracle.effective(arm, arms, shares, h) for arm, h in zip((2, 0), hs, strict=True)]
    reach, freedom = oracle.reach(error, variances, sizes, 0.9)
    assert found.estimate == pytest.approx(value, rel=1e-10)
    assert found.standard_error == pytest.approx(error, rel=1e-10)
    assert (found.low, found.high) == pytest.approx((value - reach, value + reach), rel=1e-9)
    assert found.p_value == pytest.approx(2 * stats.t.sf(abs(value) / error, freedom), rel=1e-9)
    assert found.effective_sample_size == pytest.approx(min(sizes), rel=1e-10)


def test_the_naive_method_is_a_welch_test():
    arms, rewards, shares = small_log()
    found = ds.analyse(frame(arms, rewards, shares), (2, 1), "naive")
    welch = stats.ttest_ind(rewards[arms == 2], rewards[arms == 1], equal_var=False)
    assert found.p_value == pytest.approx(welch.pvalue, rel=1e-9)
    assert (found.low, found.high) == pytest.approx(tuple(welch.confidence_interval(0.95)), rel=1e-9)
    assert "Not valid" in found.trust


def test_regressions_on_the_past_equal_solved_ones():
    """m̂ of each row, by solving the ridge regression anew."""
    from doublesampling.inference import scores

    arms, rewards, shares = small_log()
    t = np.arange(ROWS)
    contexts = np.column_stack([np.sin(t), t % 4])
    known = t + 1 + t % 3
    log = DecisionLog(("0", "1", "2"), arms, rewards, shares, np.minimum(known, ROWS), contexts)
    found = scores.regressions(log, (1,), None)[:, 0]
    centre = rewards[known == known.min()].mean()
    for row in range(ROWS):
        past = (known <= row) & (arms == 1)
        x = np.column_stack([np.ones(past.sum()), contexts[past]])
        solved = np.linalg.solve(x.T @ x + np.eye(3), x.T @ (rewards[past] - centre))
        expected = centre + np.array([1.0, *contexts[row]]) @ solved if row >= known.min() else 0.0
        assert found[row] == pytest.approx(expected, abs=1e-10)


def test_a_regression_makes_the_interval_narrower():
    rng = np.random.default_rng(5)
    x, arms = rng.normal(size=600), rng.integers(0, 2, 600)
    rewards = 2.0 * x + 0.5 * arms + 0.3 * rng.normal(size=600)
    log = frame(arms, rewards, np.full((600, 2), 0.5), x=x)
    plain, adjusted = ds.analyse(log), ds.analyse(log, context="x")
    assert adjusted.standard_error < 0.3 * plain.standard_error
    assert adjusted.low < 0.5 < adjusted.high


def simulate(theta, rows, logs, floor, seed):
    """Thompson sampling with a floor, all logs at once: arms, rewards (log, row), shares (log, row, arm)."""
    rng, count, truth = np.random.default_rng(seed), len(theta), np.array(theta)
    belief, each = ds.BetaBernoulli(arms=count), np.arange(logs)
    alpha, beta = np.ones((2, logs, count))
    arms, rewards = np.empty((logs, rows), dtype=np.int64), np.empty((logs, rows))
    shares = np.empty((logs, rows, count))
    for t in range(rows):
        state = BetaState(counts=(alpha + beta - 2).astype(np.int64), alpha=alpha.copy(), beta=beta.copy())
        p = ds.decide_many(ds.ThompsonSampling(), belief, state, seed=seed, times=np.full(logs, t + 1)).propensities
        shares[:, t] = floor + (1.0 - count * floor) * p
        arms[:, t] = (rng.random(logs)[:, None] > shares[:, t].cumsum(axis=1)[:, :-1]).sum(axis=1)
        rewards[:, t] = rng.random(logs) < truth[arms[:, t]]
        alpha[each, arms[:, t]] += rewards[:, t]
        beta[each, arms[:, t]] += 1.0 - rewards[:, t]
    return arms, rewards, shares


def test_adaptive_logs_are_covered_as_often_as_the_level_says():
    """The short form of benchmarks/coverage.py: 600 logs, two points of tolerance and chance."""
    theta, logs = (0.4, 0.6), 600
    arms, rewards, shares = simulate(theta, 150, logs, 0.1, 3)
    covered = {"aw-aipw": 0, "naive": 0}
    for i in range(logs):
        log = DecisionLog(("0", "1"), arms[i], rewards[i], shares[i], np.arange(1, 151))
        for method in covered:
            found = ds.analyse(log, (1, 0), method)
            covered[method] += found.low <= 0.2 <= found.high
    lowest = stats.binom.ppf(FALSE_ALARM, logs, 0.93)
    assert lowest <= covered["aw-aipw"] <= stats.binom.isf(FALSE_ALARM, logs, 0.97)


def test_estimates_are_unbiased_where_plain_means_are_not():
    arms, rewards, shares = simulate((0.5, 0.5), 100, 800, 0.02, 4)
    found: dict[str, list[float]] = {"aipw": [], "naive": []}
    for i in range(800):
        log = DecisionLog(("0", "1"), arms[i], rewards[i], shares[i], np.arange(1, 101))
        for method, values in found.items():
            if min((arms[i] == 0).sum(), (arms[i] == 1).sum()) >= 5:
                values.append(ds.analyse(log, 0, method).estimate - 0.5)
    limit = stats.norm.isf(FALSE_ALARM)
    bias = {m: np.mean(v) / (np.std(v) / math.sqrt(len(v))) for m, v in found.items()}
    assert abs(bias["aipw"]) < limit
    assert bias["naive"] < -limit


class TestWhatMayBeGiven:
    def test_a_mapping_a_file_and_names(self, tmp_path):
        arms, rewards, shares = small_log()
        log = frame(arms, rewards, shares)
        expected = ds.analyse(log, (2, 0))
        log.to_csv(tmp_path / "log.csv", index=False)
        assert ds.analyse(tmp_path / "log.csv", (2, 0)) == expected
        assert ds.analyse({"arm": arms, "reward": rewards, "propensities": shares}, (2, 0)) == expected
        names = np.array(["placebo", "10 mg", "20 mg"])
        named = log.assign(arm=names[arms]).rename(
            columns={f"propensity_{i}": f"propensity_{names[i]}" for i in (0, 1, 2)}
        )
        found = ds.analyse(named, ("20 mg", "placebo"))
        assert (found.estimate, found.contrast) == (expected.estimate, "20 mg - placebo")

    def test_the_result_is_frozen_and_says_what_it_is(self):
        found = ds.analyse(frame(*small_log()), (2, 0))
        with pytest.raises(dataclasses.FrozenInstanceError):
            found.low = 0.0  # type: ignore[misc]
        assert found.rows == ROWS
        assert sum(found.outcomes) == np.isin(small_log()[0], (0, 2)).sum()
        assert "aw-aipw" in str(found)
        assert "Valid in large samples for adaptive data" in found.trust

    @pytest.mark.parametrize(
        ("change", "error", "words"),
        [
            (lambda log: log.drop(columns="reward"), LogError, "no column 'reward'"),
            (lambda log: log.T, LogError, r"no column 'arm'\. It has 0, 1, .*, 11, \.\.\.\. It looks transposed"),
            (lambda log: log.drop(columns=["propensity_1", "propensity_2"]), LogError, "propensity of every arm"),
            (lambda log: log.drop(columns="propensity_1"), LogError, "without gaps"),
            (lambda log: log.assign(propensity_1=0.9), LogError, "sum to 1"),
            (lambda log: log.assign(propensity_1=-0.2), LogError, "between 0 and 1"),
            (lambda log: log.assign(propensity_1=np.nan), LogError, "missing"),
            (lambda log: log.assign(arm=7), LogError, "is not an arm"),
            (lambda log: log.assign(arm="x"), LogError, "no column propensity_x"),
            (lambda log: log.assign(reward="good"), LogError, "not a finite number"),
            (lambda log: log.assign(reward=np.inf), LogError, "not a finite number"),
            (lambda log: log.assign(reward=np.nan), LogError, "no outcome"),
            (lambda log: log.iloc[:0], LogError, "no rows"),
            (lambda log: log.assign(known=0), LogError, "later"),
            (lambda log: 17, SettingError, "A log is"),
            (lambda log: log.iloc[:8], PropensityError, "fewer than 5"),
        ],
    )
    def test_wrong_logs_are_refused(self, change, error, words):
        with pytest.raises(error, match=words):
            ds.analyse(change(frame(*small_log())), (2, 0))

    def test_a_transposed_table_is_recognised(self):
        arms, rewards, shares = small_log()
        with pytest.raises(LogError, match="transposed"):
            ds.analyse({"arm": arms, "reward": rewards, "propensities": shares.T})

    @pytest.mark.parametrize(
        ("settings", "error"),
        [
            ({"contrast": (0, 0)}, ArmError), ({"contrast": (0, 1, 2)}, ArmError), ({"contrast": 3}, ArmError),
            ({"contrast": "x"}, ArmError), ({"method": "t-test"}, SettingError), ({"level": 1.0}, SettingError),
            ({"weights": "equal"}, SettingError), ({"bounds": (1, 0)}, SettingError),
            ({"bounds": (0.5, 1)}, SettingError), ({"decay": 1.0}, SettingError), ({"context": ["x"]}, LogError),
        ],
    )  # fmt: skip
    def test_wrong_settings_are_refused(self, settings, error):
        with pytest.raises(error):
            ds.analyse(frame(*small_log()), **settings)


class TestVanishingPropensities:
    def test_they_are_refused_with_a_floor_that_would_do(self):
        rows = 500
        p = np.maximum(0.5 * 0.97 ** np.arange(rows), 1e-5)
        arms = (np.arange(rows) < 40).astype(int) * (np.arange(rows) % 2)
        log = frame(arms, np.arange(rows) % 2, np.column_stack([1.0 - p, p]))
        for method in ("aw-aipw", "aipw", "ips"):
            with pytest.raises(PropensityError, match=r"floor of 0\.02 .*500 decisions"):
                ds.analyse(log, (1, 0), method)
        assert "Not valid" in ds.analyse(log, (1, 0), "naive").trust

    def test_small_propensities_make_the_result_approximate(self):
        arms, rewards, shares = small_log()
        shares = shares.copy()
        shares[arms == 1] = [0.02, 0.6, 0.38]
        assert "Approximate" in ds.analyse(frame(arms, rewards, shares), (1, 0)).trust

    def test_zeros_off_and_on_are_refused(self):
        arms, rewards, shares = small_log()
        shares = shares.copy()
        for row in np.flatnonzero(arms == 1)[3:6]:
            shares[row] = [0.0, 1.0, 0.0]
        log = frame(arms, rewards, shares)
        with pytest.raises(PropensityError, match="off and on"):
            ds.analyse(log, (1, 0))
        means = [rewards[arms == arm].mean() for arm in (1, 0)]
        assert ds.analyse(log, (1, 0), "naive").estimate == pytest.approx(means[0] - means[1])

    def test_rows_after_an_arm_was_dropped_are_left_out(self):
        arms, rewards, shares = small_log()
        shares, arms = shares.copy(), arms.copy()
        shares[40:, 2] = 0.0
        shares[40:] /= shares[40:].sum(axis=1, keepdims=True)
        arms[40:] = arms[40:] % 2
        found = ds.analyse(frame(arms, rewards, shares), (2, 0))
        before = ds.analyse(frame(arms[:40], rewards[:40], shares[:40]), (2, 0))
        assert found.estimate == pytest.approx(before.estimate)
        assert (found.unavailable, found.rows) == (20, 40)
        assert "dropped" in found.trust

    def test_an_arm_whose_propensity_vanishes_to_zero_was_not_dropped(self):
        rows = 400
        p = np.where(np.arange(rows) < 60, 0.5, np.where(np.arange(rows) < 90, 0.012, 0.0))
        arms = np.where(np.arange(rows) < 60, np.arange(rows) % 2, 0)
        log = frame(arms, np.arange(rows) % 3 == 0, np.column_stack([1.0 - p, p]))
        with pytest.raises(PropensityError, match="floor"):
            ds.analyse(log, (1, 0))


def test_unknown_outcomes_are_counted_and_bounded():
    arms, rewards, shares = small_log()
    gaps = np.where(np.arange(ROWS) % 10 == 3, np.nan, rewards)
    found = ds.analyse(frame(arms, gaps, shares), (2, 0))
    assert (found.missing, found.pending, found.rows) == (6, 0, 54)
    ends = []
    for value_2, value_0, end in ((0.0, 1.0, "low"), (1.0, 0.0, "high")):
        filled = np.where(np.isnan(gaps), np.where(arms == 2, value_2, np.where(arms == 0, value_0, 0.0)), gaps)
        known = np.where(np.isnan(gaps), ROWS, np.arange(1, ROWS + 1))
        ends.append(getattr(ds.analyse(frame(arms, filled, shares, known=known), (2, 0)), end))
    assert found.worst_case is not None
    assert found.worst_case == pytest.approx(tuple(ends))
    assert found.worst_case[0] < found.low < found.high < found.worst_case[1]
    assert "6 missing" in found.trust
    unbounded = ds.analyse(frame(arms, 3.0 * gaps, shares), (2, 0))
    assert unbounded.worst_case is None
    assert "bounds=" in unbounded.trust
    assert ds.analyse(frame(arms, 3.0 * gaps, shares), (2, 0), bounds=(0, 3)).worst_case is not None


def test_shifted_rewards_shift_the_estimate_and_nothing_else():
    """A scale of its own, such as blood pressure, adds no noise: rows before the first outcome are left out."""
    arms, rewards, shares = small_log()
    one, other = (ds.analyse(frame(arms, rewards + shift, shares), 2) for shift in (0.0, 120.0))
    assert other.estimate - one.estimate == pytest.approx(120.0)
    assert other.standard_error == pytest.approx(one.standard_error)


def test_the_code_of_the_page_runs(capsys):
    page = (Path(__file__).parent.parent / "docs" / "how-to" / "inference.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(block, {})
    printed = capsys.readouterr().out
    assert "aw-aipw, 1000 decisions" in printed
    assert "valid however often one looks" in printed
