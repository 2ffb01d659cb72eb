"""The short form of `make soak`: crowds, races, kills, on both stores."""

import threading

import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.errors import StorageFullError, StorageReadOnlyError
from doublesampling.live.stores import open_store
from tests import soak, soak_replaced


def test_a_crowd_loses_nothing_and_counts_nothing_twice(storage):
    found = soak.crowd(storage, workers=6, rounds=8)
    assert found["errors"] == []
    assert found["acknowledged"] == found["different"] == found["decisions"] == 48
    assert found["outcomes"] == found["told"] == found["observations"] == 48
    assert found["replay"]


def test_of_two_different_tells_one_wins_and_the_other_is_told_so(storage):
    found = soak.races(storage, 25)
    assert found["one_winner"] == found["outcomes"] == 25


def test_what_was_acknowledged_survives_kill_9(storage, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    found = soak.kills(storage, 6, folder, crew=3)
    assert found["told"] > 0
    assert (found["asked_lost"], found["told_lost"], found["twice"]) == (0, 0, 0)
    assert found["integrity"] == "ok"
    assert found["replay"]


def test_what_was_acknowledged_survives_the_death_of_the_server(postgres, postgres_url, tmp_path):
    """PostgreSQL is killed under load; clients hear of it in our words, try again, and go on."""
    folder = tmp_path / "notes"
    folder.mkdir()
    found = soak.server_kills(postgres_url, postgres, 2, folder, crew=2)
    assert found["strangers"] == []
    assert found["told"] > 40
    assert (found["asked_lost"], found["told_lost"], found["twice"]) == (0, 0, 0)
    assert found["integrity"] == "ok"
    assert found["replay"]


def test_racers_with_one_key_get_one_decision(storage):
    exp = soak.create(storage)
    start, found = threading.Barrier(8), []

    def race(i: int) -> None:
        mine = ds.Experiment.load("soak", storage=storage)
        start.wait()
        found.append((mine.ask(request_key="visit").id, mine.ask(unit="patient").id))

    threads = [threading.Thread(target=race, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert exp.state.decisions == 2


def test_one_object_serves_many_threads(storage):
    exp = soak.create(storage)

    def work() -> None:
        for _ in range(10):
            exp.tell(exp.ask().id, 1.0)
            exp.posterior()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exp.state.belief_state.observations == 60
    assert exp.replay().agrees


def test_without_the_queue_writers_still_wait(sqlite_url, monkeypatch):
    """As on Windows, which has no flock: immediate transactions wait for each other, deferred ones would fail."""
    from contextlib import nullcontext

    from doublesampling.live.stores.queue import Queue

    monkeypatch.setattr(Queue, "turn", lambda self: nullcontext())
    exp, problems = soak.create(sqlite_url), []

    def work() -> None:
        try:
            for _ in range(12):
                exp.tell(exp.ask().id, 1.0)
        except ds.DoubleSamplingError as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert exp.state.belief_state.observations == 72


def _limit_pages(url: str, spare: int) -> None:
    """No more room than a few pages: SQLite then answers as it does on a full disk."""
    store = open_store(url)
    with store.reading() as connection:
        pages = int(connection.exec_driver_sql("PRAGMA page_count").scalar() or 0)
    store.close()

    def limit(connection, _):
        connection.execute(f"PRAGMA max_page_count={pages + spare}")

    sa.event.listen(store.engine, "connect", limit)


def test_a_full_disk_is_said_and_leaves_nothing_half_written(sqlite_url):
    exp = soak.create(sqlite_url)
    _limit_pages(sqlite_url, 12)
    done, problem = soak.until_it_fails(exp, 5000)
    assert isinstance(problem, StorageFullError)
    assert problem.code == "storage-full"
    assert "Free some space" in str(problem)
    open_store(sqlite_url).close()
    found = soak.counts(sqlite_url)
    assert found["outcomes"] == found["told"] == done > 0
    assert found["decisions"] in (done, done + 1)
    assert soak.integrity(sqlite_url) == "ok"
    again = ds.Experiment.load("soak", storage=sqlite_url)
    assert again.replay().agrees


def test_a_read_only_file_is_said_and_can_still_be_read(sqlite_url, tmp_path):
    exp = soak.create(sqlite_url)
    d = exp.ask()
    exp.tell(d.id, 1.0)
    # the file modes do not bind root: SQLite itself is told that the file is read-only
    url = f"sqlite:///file:{tmp_path / 'trial.db'}?mode=ro&uri=true"
    reader = ds.Experiment.load("soak", storage=url)
    assert reader.state.belief_state.observations == 1
    assert reader.replay().agrees
    for write in (reader.ask, reader.pause):
        with pytest.raises(StorageReadOnlyError, match="Give this user write access"):
            write()
    open_store(url).close()
    assert soak.counts(sqlite_url) == {"decisions": 1, "outcomes": 1, "told": 1}


def test_a_read_only_server_is_said(postgres_url):
    exp = soak.create(postgres_url)
    d = exp.ask()
    store = open_store(postgres_url)
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = connection.exec_driver_sql("SELECT current_database()").scalar()
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store.close()
    for write in (exp.ask, lambda: exp.tell(d.id, 1.0), exp.pause):
        with pytest.raises(StorageReadOnlyError, match="Grant write access"):
            write()
    assert exp.state.decisions == 1
    assert soak.counts(postgres_url) == {"decisions": 1, "outcomes": 0, "told": 0}


def test_a_server_that_is_gone_is_said():
    from doublesampling.errors import StorageError

    with pytest.raises(StorageError, match="Is the server running"):
        ds.Experiment.load("soak", storage="postgresql://nobody@127.0.0.1:9/none")


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_nothing_is_acknowledged_into_a_file_that_is_gone(tmp_path, how):
    found = soak_replaced.file_gone(tmp_path, how, crew=2, rounds=8)
    assert found["strangers"] == []
    assert found["acknowledged before"] >= 16
    assert found["acknowledged into nothing"] == found["written to the other file"] == found["made anew"] == 0
    assert found["refused"] >= 10


def test_a_restore_under_load_loses_nothing_that_comes_after_it(storage, tmp_path):
    found = soak_replaced.restored(storage, tmp_path, times=2, crew=2, rounds=8)
    assert found["strangers"] == []
    assert found["decisions rolled back"] > 0
    assert found["acknowledged after the last"] >= 16
    assert found["acknowledged into nothing"] == 0
    assert found["replay"]
    assert found["verified"], found["problems"]
