"""exp.analyse and exp.sequence: as from the export, after corrections, and from new outcomes only."""

import numpy as np
import pytest

import doublesampling as ds
from doublesampling.errors import ArmError, LogError, SettingError
from doublesampling.live.queries import outcome_scores
from tests.own_policies import Commit

ARMS = ["placebo", "10 mg", "20 mg"]
PAYS = [0.3, 0.5, 0.6]


def run(storage, decisions, **changes):
    """An experiment in which every tenth outcome is awaited."""
    settings = {
        "arms": ARMS,
        "policy": ds.EpsilonGreedy(epsilon=0.4),
        "seed": 7,
        "storage": storage,
        "units": "many",
    } | changes
    exp = ds.Experiment.create("trial", **settings)
    play(exp, decisions, 1)
    return exp


def play(exp, decisions, seed):
    rng = np.random.default_rng(seed)
    for _ in range(decisions // 10):
        made = exp.ask_many(10)
        exp.tell_many([(d.id, float(rng.random() < PAYS[d.arm])) for d in made[:9]])
    return made


def count_rows(monkeypatch):
    """How many rows of the log each read of a sequence takes, as a list that grows."""
    read: list[int] = []
    rows = outcome_scores.outcome_rows

    def counted(*args):
        found = rows(*args)
        read.append(len(found))
        return found

    monkeypatch.setattr("doublesampling.live.sequence_cache.outcome_rows", counted)
    return read


def test_an_experiment_is_analysed_as_its_export(storage, tmp_path):
    exp = run(storage, 150)
    found = exp.analyse(("20 mg", "placebo"))
    assert (found.rows, found.pending, found.contrast) == (135, 15, "20 mg - placebo")
    assert found.worst_case is not None
    assert ds.analyse(exp, (2, 0)) == ds.analyse(exp.decisions(), (2, 0)) == found
    for form in ("csv", "jsonl", "parquet"):
        path = exp.export(form, tmp_path / f"log.{form}")
        other = ds.analyse(path, (2, 0))
        assert other.estimate == pytest.approx(found.estimate)
        assert (other.low, other.high) == pytest.approx((found.low, found.high))
        assert other.pending == 15
        with pytest.raises(SettingError, match="context names columns of a table"):
            ds.analyse(path, (2, 0), context="age")
    with pytest.raises(SettingError, match="whose own contexts are used"):
        exp.analyse((2, 0), context=["age"])


def test_outcomes_enter_the_model_when_they_were_told(sqlite_url):
    """Ten decisions at a time know no outcome of each other."""
    from doublesampling.inference.reading import read_decisions

    log = read_decisions(run(sqlite_url, 40))
    told = ~np.isnan(log.rewards)
    np.testing.assert_array_equal(log.known[told], (np.arange(40)[told] // 10 + 1) * 10)
    assert (log.known[~told] == 40).all()


@pytest.mark.parametrize("method", ["asymptotic", "empirical-bernstein"])
def test_a_sequence_follows_the_outcomes(storage, method):
    exp = run(storage, 200)
    settings = {"method": method, "optimal_at": 300.0}
    first = exp.sequence(("20 mg", "placebo"), **settings)
    whole = ds.sequence(exp, (2, 0), **settings)
    np.testing.assert_allclose(first.low, whole.low)
    np.testing.assert_allclose(first.estimate, whole.estimate)
    play(exp, 50, 2)
    later = exp.sequence(("20 mg", "placebo"), **settings)
    np.testing.assert_allclose(later.high, ds.sequence(exp, (2, 0), **settings).high)
    np.testing.assert_array_equal(later.low[: first.low.size], first.low)
    assert (later.outcomes[-1], later.pending) == (225, 25)


def test_only_new_outcomes_are_read(storage, monkeypatch):
    exp = run(storage, 100)
    exp.sequence((2, 0))
    read = count_rows(monkeypatch)
    play(exp, 10, 3)
    assert exp.sequence((2, 0)).outcomes[-1] == 99
    assert read == [9]


def test_corrections_change_the_sequence(storage):
    exp = run(storage, 120)
    exp.sequence((2, 0))
    table = exp.decisions()
    told = table[table["status"] == "told"]["id"].tolist()
    exp.amend(told[0], 1.0 - float(table["reward"][0]), reason="adjudicated")
    exp.withdraw(told[1], reason="another patient's")
    exp.void(told[2], reason="never given")
    exp.void(table[table["status"] == "waiting"]["id"].iloc[0], reason="had no outcome")
    fresh = ds.Experiment.load("trial", storage=storage)
    one, other = exp.sequence((2, 0)), fresh.sequence((2, 0))
    np.testing.assert_array_equal(one.low, other.low)
    assert one.outcomes[-1] == 106
    play(exp, 10, 4)
    np.testing.assert_allclose(exp.sequence((2, 0)).low, fresh.sequence((2, 0)).low)


def test_arms_that_are_added_or_dropped(sqlite_url):
    exp = run(sqlite_url, 100)
    exp.sequence((2, 0))
    exp.add_arm("30 mg")
    exp.drop_arm("10 mg")
    rng = np.random.default_rng(5)
    for d in exp.ask_many(80):
        exp.tell(d.id, float(rng.random() < 0.5))
    assert exp.sequence(("30 mg", "placebo")).outcomes[-1] == 170
    found = exp.analyse(("30 mg", "20 mg"))
    assert (found.rows, found.unavailable) == (80, 90)


def test_without_outcomes_nothing_is_known(sqlite_url):
    exp = ds.Experiment.create("trial", arms=ARMS, policy=ds.ThompsonSampling(), storage=sqlite_url)
    assert exp.sequence((1, 0)).interval == (-np.inf, np.inf)
    assert str(exp.sequence((1, 0)).reason).startswith("Arm '10 mg' has 0 outcomes, fewer than 20")
    with pytest.raises(LogError, match="no rows"):
        exp.analyse((1, 0))
    for wrong in (("20 mg", "30 mg"), (0, 3), (1, 1)):
        with pytest.raises(ArmError):
            exp.sequence(wrong)


def test_a_policy_without_propensities_has_no_sequence(sqlite_url):
    exp = run(sqlite_url, 20, policy=Commit())
    with pytest.raises(LogError, match="propensit"):
        exp.sequence((1, 0))
    with pytest.raises(LogError, match="propensit"):
        exp.analyse((1, 0))


def test_decisions_after_a_large_batch_do_not_replace_it(sqlite_url):
    """Rows before the first known outcome get no weight only where enough rows follow them."""
    exp = ds.Experiment.create(
        "trial", arms=ARMS[:2], policy=ds.EpsilonGreedy(epsilon=0.5), storage=sqlite_url, seed=1, units="many"
    )
    exp.tell_many([(d.id, float(i % 3 == 0)) for i, d in enumerate(exp.ask_many(40))])
    batch = exp.analyse()
    for _ in range(3):
        made = exp.ask()
        found = exp.analyse()
        assert found.worst_case is not None
        assert np.isfinite(found.worst_case).all()
        exp.tell(made.id, 1.0)
        found = exp.analyse()
        assert found.effective_sample_size > 10
        assert abs(found.estimate - batch.estimate) < batch.standard_error
        assert 0.5 < found.standard_error / batch.standard_error < 1.5
