"""Confidence sequences from a stored summary: after a restart, corrections, restores, and without scanning the log."""

import json

import numpy as np
import pytest
import sqlalchemy as sa

import doublesampling as ds
from benchmarks.sequences import long_experiment
from doublesampling.live import sequence_cache
from doublesampling.live.stores import open_store, schema
from doublesampling.live.stores.backup import backup
from doublesampling.live.stores.restore import restore
from tests.test_live_analysis import count_rows, play, run


@pytest.fixture(autouse=True)
def often(monkeypatch):
    """Store a summary after every 30 outcomes."""
    monkeypatch.setattr(sequence_cache, "EVERY", 30)


def reopened(exp):
    """The same experiment as another process opens it."""
    return ds.Experiment.load("trial", storage=exp.session.store)


def same(one, other):
    for name in ("outcomes", "estimate", "low", "high"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def summaries(exp):
    with exp.session.store.reading() as connection:
        return connection.execute(sa.select(schema.sequences)).all()


def forget(exp):
    with exp.session.store.writing() as connection:
        connection.execute(sa.delete(schema.sequences))


@pytest.mark.parametrize("method", ["asymptotic", "empirical-bernstein"])
def test_another_process_continues_from_the_summary(storage, method, monkeypatch):
    exp = run(storage, 120)
    exp.sequence((2, 0), method=method)
    assert [row.settings for row in summaries(exp)] == [json.dumps([[2, 0], 0.95, method, 500.0, [0.0, 1.0]])]
    play(exp, 20, 2)
    read = count_rows(monkeypatch)
    found = reopened(exp).sequence((2, 0), method=method)
    assert read == [18]
    forget(exp)
    same(found, reopened(exp).sequence((2, 0), method=method))
    assert read == [18, 126]


def test_every_contrast_and_setting_has_a_summary_of_its_own(sqlite_url, monkeypatch):
    monkeypatch.setattr(sequence_cache, "MOST", 3)
    exp = run(sqlite_url, 50)
    asked = [((2, 0), 0.95), ((1, 0), 0.95), ((2, 0), 0.9), (2, 0.95)]
    first = [exp.sequence(contrast, level) for contrast, level in asked]
    assert len(summaries(exp)) == 3
    for (contrast, level), found in zip(asked, first, strict=True):
        same(reopened(exp).sequence(contrast, level), found)


@pytest.mark.parametrize("stored", [True, False], ids=["outcomes in the summary", "outcomes after it"])
def test_corrections(storage, monkeypatch, stored):
    exp = run(storage, 100)
    exp.sequence((2, 0))
    new = play(exp, 10, 2)
    told = exp.decisions()["id"].tolist()[:3] if stored else [made.id for made in new[:3]]
    value = float(exp.decisions().set_index("id")["reward"][told[0]])
    exp.amend(told[0], 1.0 - value, reason="adjudicated")
    exp.withdraw(told[1], reason="another patient's")
    exp.void(told[2], reason="never given")
    read = count_rows(monkeypatch)
    found = reopened(exp).sequence((2, 0))
    assert found.outcomes[-1] == 97
    assert len(read) == (2 if stored else 1), "the log is read again only where added outcomes changed"
    assert stored or read == [12]
    same(found, exp.sequence((2, 0)))
    forget(exp)
    same(found, reopened(exp).sequence((2, 0)))
    read.clear()
    same(found, reopened(exp).sequence((2, 0)))
    assert read == [0], "the new summary holds the corrections"


def test_arms_that_are_added_later(sqlite_url, monkeypatch):
    exp = run(sqlite_url, 100)
    exp.sequence((2, 0))
    exp.add_arm("30 mg")
    rng = np.random.default_rng(5)
    exp.tell_many([(d.id, float(rng.random() < 0.5)) for d in exp.ask_many(20)])
    read = count_rows(monkeypatch)
    found = [exp.sequence((2, 0)), reopened(exp).sequence((2, 0))]
    assert read == [20, 20]
    forget(exp)
    for each in found:
        same(each, reopened(exp).sequence((2, 0)))


def test_a_summary_that_cannot_be_read_is_computed_again(sqlite_url):
    exp = run(sqlite_url, 100)
    found = exp.sequence((2, 0))
    for broken in ("{}", "no JSON", '{"sums": {"arms": 9}}'):
        with exp.session.store.writing() as connection:
            connection.execute(sa.update(schema.sequences).values(summary=broken))
        same(reopened(exp).sequence((2, 0)), found)


def test_a_restored_store_has_its_own_summary(storage, tmp_path):
    exp = run(storage, 100)
    before = exp.sequence((2, 0))
    backup(open_store(storage), tmp_path / "copy.db")
    play(exp, 100, 3)
    assert exp.sequence((2, 0)).outcomes[-1] == 180
    restore(open_store(storage), tmp_path / "copy.db", force=True)
    same(exp.sequence((2, 0)), before)
    same(reopened(exp).sequence((2, 0)), before)
    play(exp, 20, 4)
    assert exp.sequence((2, 0)).outcomes[-1] == 108


def test_a_summary_of_lost_data_is_not_written_into_a_restored_store(sqlite_url, tmp_path, monkeypatch):
    exp = run(sqlite_url, 50)
    backup(open_store(sqlite_url), tmp_path / "copy.db")
    exp.sequence((2, 0))
    cache = next(iter(exp._followed.values()))
    restore(open_store(sqlite_url), tmp_path / "copy.db", force=True)
    cache._unsaved = 10**6
    cache._save()
    assert summaries(exp) == []


@pytest.mark.parametrize("outcomes", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_the_band_of_a_long_experiment_does_not_scan_the_log(sqlite_url, monkeypatch, outcomes):
    """After a restart, with the usual number of outcomes between two summaries."""
    monkeypatch.setattr(sequence_cache, "EVERY", 1000)
    exp = long_experiment(sqlite_url, outcomes)
    whole = exp.sequence((1, 0))
    assert (whole.outcomes[-1], len(whole.low) <= 1025) == (outcomes, True)
    for _ in range(5):
        made = exp.ask()
        exp.tell(made.id, 1.0)
    other, read = reopened(exp), count_rows(monkeypatch)
    found = other.sequence((1, 0))
    assert (found.outcomes[-1], read) == (outcomes + 5, [5])
    same(exp.sequence((1, 0)), found)
