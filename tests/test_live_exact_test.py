"""exp.exact_test: as the exact test of the same design and counts, as Fisher's, and refused where it is not exact."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import doublesampling as ds
from doublesampling.errors import LogError, SettingError
from tests.own_policies import Commit

ARMS = ["placebo", "20 mg"]
PAYS = [0.3, 0.7]
THOMPSON = ds.ThompsonSampling()


def create(storage, **changes):
    given = {"arms": ARMS, "policy": THOMPSON, "seed": 7, "units": "many", "storage": storage} | changes
    return ds.Experiment.create("trial", **given)


def play(exp, decisions, seed=1, at_once=1):
    """Play until the stopping rule ends the experiment; return successes and failures of both arms."""
    rng, counts = np.random.default_rng(seed), np.zeros((2, 2), dtype=int)
    for _ in range(decisions // at_once):
        if exp.state.stopped:
            break
        for made in exp.ask_many(at_once):
            won = rng.random() < PAYS[made.arm]
            exp.tell(made.id, float(won))
            counts[int(not won), made.arm] += 1
    return counts.tolist()


def test_the_p_value_is_that_of_the_trial(storage):
    trial = ds.Trial(arms=ARMS, policy=THOMPSON, allocation=ds.Allocation(floor=0.1, burn_in=3), horizon=30)
    exp = create(storage, arms=None, policy=None, design=trial)
    counts = play(exp, 30)
    for settings in ({}, {"alternative": "greater"}, {"statistic": "difference"}, {"statistic": "probability"}):
        found = exp.exact_test(**settings)
        assert found == trial.exact_test(*counts, **settings)
        assert found.assumes == "Nothing beside the design."
    assert 0.0 < exp.exact_test(alternative="greater").p_value < 0.5


def test_with_equal_groups_it_is_fishers(sqlite_url):
    exp = create(sqlite_url, allocation=ds.Allocation(burn_in=12))
    (s1, s2), (f1, f2) = play(exp, 24)
    found = exp.exact_test()
    assert found.p_value == pytest.approx(stats.fisher_exact([[s2, f2], [s1, f1]]).pvalue, rel=1e-9)
    assert "fixed without looking" in found.assumes


RULE = ds.Stopping(looks=10, superiority=[0.95, 0.9, 0.85], inferiority=0.02)


@pytest.mark.parametrize("planned", [True, False], ids=["from a trial", "without a last participant"])
def test_an_experiment_that_a_look_stopped(sqlite_url, planned):
    """Only trials that stop at the same look, and not before, are compared."""
    trial = ds.Trial(arms=ARMS, policy=THOMPSON, stopping=RULE, horizon=30)
    given = {"arms": None, "policy": None, "design": trial} if planned else {"stopping": RULE}
    exp = create(sqlite_url, **given)
    counts = play(exp, 30, seed=3)
    assert exp.state.stopped
    assert sum(map(sum, counts)) == 20, "the example stops at its second look"
    assert exp.exact_test() == trial.exact_test(*counts)
    blind = replace(trial, stopping=None).exact_test(*counts)
    assert exp.exact_test().p_value != pytest.approx(blind.p_value, rel=1e-6)


def test_a_trial_that_runs_is_not_tested(sqlite_url):
    trial = ds.Trial(arms=ARMS, policy=THOMPSON, stopping=RULE, horizon=30)
    exp = create(sqlite_url, arms=None, policy=None, design=trial)
    with pytest.raises(LogError, match="No outcome is known"):
        exp.exact_test()
    play(exp, 5)
    with pytest.raises(LogError, match="5 of at most 30 outcomes"):
        exp.exact_test()


def test_looks_that_only_advise_do_not_end_it(sqlite_url):
    exp = create(sqlite_url, stopping=ds.Stopping(looks=5, superiority=0.6, enforce=False))
    counts = play(exp, 20)
    found = exp.exact_test()
    assert found == ds.Trial(arms=ARMS, policy=THOMPSON, horizon=20).exact_test(*counts)
    assert "advice" in found.assumes


@pytest.mark.parametrize("how", ["together", "late", "amended", "voided"])
def test_decisions_that_did_not_know_all_outcomes(sqlite_url, how):
    exp = create(sqlite_url)
    counts = np.array(play(exp, 20, at_once=2 if how == "together" else 1))
    if how == "late":
        first, second = exp.ask(), exp.ask()
        exp.tell(second.id, 1.0)
        exp.tell(first.id, 0.0)
        counts[0, second.arm] += 1
        counts[1, first.arm] += 1
    row = exp.decisions().iloc[4]
    was = int(row["reward"] == 0.0)
    if how == "amended":
        exp.amend(row["id"], float(was), reason="adjudicated")
        counts[was, row["arm"]] -= 1
        counts[1 - was, row["arm"]] += 1
    if how == "voided":
        exp.void(row["id"], reason="never given")
        counts[was, row["arm"]] -= 1
    with pytest.raises(LogError, match="late='ignore'"):
        exp.exact_test()
    found = exp.exact_test(late="ignore")
    assert found == ds.Trial(arms=ARMS, policy=THOMPSON, horizon=int(counts.sum())).exact_test(*counts.tolist())
    assert found.assumes.startswith("Not exact")


def test_a_last_decision_that_waits_is_left_out(sqlite_url):
    exp = create(sqlite_url)
    play(exp, 10)
    before = exp.exact_test()
    exp.ask()
    assert exp.exact_test() == before
    assert "1 decisions wait" in exp.exact_test().assumes


def test_what_has_no_exact_test_is_refused(tmp_path):
    def made(name, **changes):
        exp = create(f"sqlite:///{tmp_path / name}.db", **changes)
        for _ in range(4):
            exp.tell(exp.ask(context=[1.0] if "belief" in changes and changes["belief"].dimension else None).id, 1.0)
        return exp

    added, history = made("added"), made("history")
    added.add_arm("40 mg")
    added.drop_arm("placebo")
    history.add_history(["placebo"], [1.0])
    refused = [
        (made("three", arms=["a", "b", "c"]), "two arms with rewards of 0 and 1"),
        (made("gaussian", belief=ds.Gaussian(arms=2)), "two arms with rewards of 0 and 1"),
        (made("context", belief=ds.LinearGaussian(arms=2, dimension=1)), "without contexts"),
        (made("samples", policy=ds.DoubleSampling()), "samples=None"),
        (made("own", policy=Commit()), "policies of this package"),
        (made("blocks", allocation=ds.Allocation(block=4)), "permuted blocks"),
        (made("forgets", belief=ds.BetaBernoulli(arms=2, discount=0.9)), "do not forget"),
        (added, "'40 mg' was added"),
        (history, "imported"),
    ]
    for exp, words in refused:
        with pytest.raises(SettingError, match=words):
            exp.exact_test()
    fractional = create(f"sqlite:///{tmp_path}/half.db", belief=ds.BetaBernoulli(arms=2, fractional=True))
    fractional.tell(fractional.ask().id, 0.5)
    with pytest.raises(LogError, match=r"one is 0\.5"):
        fractional.exact_test()
    for wrong in ({"late": "never"}, {"alternative": "more"}, {"statistic": "t"}):
        with pytest.raises(SettingError):
            history.exact_test(**wrong)
