"""Long logs: what a page asks for reads few rows of them, and gives the same answers."""

import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.live import explain
from doublesampling.live.queries import decision_pages
from doublesampling.live.queries.allocation_counts import AllocationCounts
from doublesampling.live.queries.log import ExperimentLog


@pytest.fixture
def exp(storage):
    made = ds.Experiment.create("trial", arms=["a", "b"], seed=1, storage=storage)
    for _ in range(12):
        asked = made.ask_many(100)
        made.tell_many([(d.id, float(i % 3 == d.arm)) for i, d in enumerate(asked[:-1])])
    made.amend(asked[0].id, 1.0, reason="checked")
    made.ask()
    return made


def rows_read(exp, work):
    """How many rows of outcomes and decisions a call fetched."""
    read = []

    def count(result):
        read.append(result)
        return result

    with pytest.MonkeyPatch.context() as patch:
        plain = sa.engine.CursorResult.all
        patch.setattr(sa.engine.CursorResult, "all", lambda self: count(plain(self)))
        work()
    return sum(len(found) for found in read)


def test_an_explanation_starts_from_a_stored_fold_and_is_the_same(exp, monkeypatch):
    frame, used, older = exp.decisions(), [], ExperimentLog.checkpoint_before

    def watched(self, place):
        used.append(older(self, place))
        return used[-1]

    monkeypatch.setattr(ExperimentLog, "checkpoint_before", watched)
    for number in (0, 700, 1199, 1200):
        which = frame["id"].iloc[number]
        monkeypatch.setattr(explain, "LONG", 10**9)
        whole = exp.explain(which).to_dict()
        assert whole["verified"]
        monkeypatch.setattr(explain, "LONG", 0)
        assert exp.explain(which).to_dict() == whole
    assert any(fold is not None for fold in used)


def test_a_page_reads_a_page(exp):
    session = exp.session
    assert rows_read(exp, lambda: decision_pages.page(session, before=2**62, limit=20)) <= 25
    assert rows_read(exp, lambda: decision_pages.sample(session, 50)) <= 60


def test_pending_ones_are_found_a_stretch_at_a_time(exp, monkeypatch):
    monkeypatch.setattr(decision_pages, "WINDOW", 150)
    wanted = exp.pending()["number"].tolist()
    found: list[int] = []
    before: int | None = 2**62
    while before is not None:
        rows, before = decision_pages.page(exp.session, before=before, limit=3, waiting=True)
        found += [row["number"] for row in rows]
    assert sorted(found) == wanted
    found = []
    after: int | None = 0
    while after is not None:
        rows, after = decision_pages.page(exp.session, after=after, limit=3, waiting=True)
        found += [row["number"] for row in rows]
    assert found == wanted


def test_a_tally_in_bites_is_a_tally_at_once(exp, monkeypatch):
    monkeypatch.setattr("doublesampling.live.queries.allocation_counts._MARKS", 20)
    bites, once = AllocationCounts(exp.session), AllocationCounts(exp.session)
    once.advance(10**6)
    while not bites.complete:
        bites.advance(97)
    frame = exp.decisions()
    counts = frame.groupby("arm")["id"].count().tolist()
    for tally in (bites, once):
        assert tally.counts.tolist() == counts
        assert len(tally.marks) <= 40
        for mark in tally.history():
            upto = frame[frame["number"] <= mark["number"]]
            assert mark["counts"] == [int((upto["arm"] == arm).sum()) for arm in range(2)]
    assert bites.deviation(2) == [pytest.approx(row) for row in once.deviation(2)]


def test_played_far_from_the_propensities_is_noticed(exp):
    """A log whose arms do not follow its propensities: the distance shows it."""
    tally = AllocationCounts(exp.session)
    tally.advance(10**6)
    honest = [abs(row["deviations"] or 0.0) for row in tally.deviation(2)]
    assert max(honest) < 4
    tally.played = tally.played[::-1].copy()
    assert max(abs(row["deviations"] or 0.0) for row in tally.deviation(2)) > 4
