"""The store itself: nothing can be changed, what was seen is recorded exactly, versions are kept."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.errors import NameTakenError, NotFoundError, NotOursError, StorageError, TooNewError, TooOldError
from doublesampling.live.stores import open_store, schema, upgrade
from doublesampling.live.visibility import Snapshot
from tests.migrations import RepeatedMigrations
from tests.test_live_experiment import create


def full(storage):
    exp = create(storage)
    d = exp.ask(unit="u")
    exp.tell(d.id, 1.0)
    exp.pause()
    with exp.session.store.writing() as connection:
        connection.execute(
            sa.text("INSERT INTO ds_eras (\"offset\", actor, at, version) VALUES (0, 'x', '2026-01-01', 'x')")
        )
        connection.execute(
            sa.text("INSERT INTO ds_keys (key, kind, actor, at, version) VALUES ('k', 'made', 'x', '2026-01-01', 'x')")
        )
        connection.execute(
            sa.text("INSERT INTO ds_reads (action, count, until, actor, at, version) "
                    "VALUES ('export', 1, '2026-01-01', 'x', '2026-01-01', 'x')")
        )  # fmt: skip
    return exp


CHANGES = [
    "UPDATE ds_experiments SET name = 'other'",
    "DELETE FROM ds_experiments",
    "UPDATE ds_decisions SET arm = 0",
    "DELETE FROM ds_decisions",
    "UPDATE ds_outcomes SET reward = 0",
    "DELETE FROM ds_outcomes WHERE reward = 1",
    "UPDATE ds_events SET kind = 'resume'",
    "DELETE FROM ds_events",
    "DELETE FROM ds_eras",
    "UPDATE ds_keys SET role = 'admin'",
    "DELETE FROM ds_keys WHERE kind = 'made'",
    "UPDATE ds_reads SET actor = 'nobody'",
    "DELETE FROM ds_reads",
]


@pytest.mark.parametrize("statement", CHANGES)
def test_nothing_can_be_updated_or_deleted(storage, statement):
    exp = full(storage)
    before = exp.decisions().to_csv()
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), exp.session.store.engine.begin() as connection:
        connection.execute(sa.text(statement))
    assert exp.decisions().to_csv() == before
    assert exp.summary()["status"] == "paused"


@pytest.mark.parametrize("table", schema.APPEND_ONLY)
def test_nothing_can_be_replaced_or_truncated(storage, table):
    exp = full(storage)
    statement = f"TRUNCATE {table}" if "postgres" in storage else f"REPLACE INTO {table} SELECT * FROM {table}"
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), exp.session.store.engine.begin() as connection:
        connection.execute(sa.text(statement))


def test_replacing_by_a_second_key_is_refused_too(sqlite_url):
    """REPLACE on (decision, revision) would delete the old row without asking the trigger of DELETE."""
    exp = full(sqlite_url)
    columns = [c.name for c in schema.outcomes.c if c.name not in ("seq", "reward")]
    statement = (
        f"REPLACE INTO ds_outcomes (reward, {', '.join(columns)}) SELECT 0, {', '.join(columns)} FROM ds_outcomes"
    )
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), exp.session.store.engine.begin() as connection:
        connection.execute(sa.text(statement))


def test_a_forged_log_is_found_out(storage):
    exp = full(storage)
    exp.resume()
    exp.ask()
    assert exp.replay().agrees
    with exp.session.store.engine.begin() as connection:
        if "postgres" in storage:
            connection.execute(sa.text("ALTER TABLE ds_outcomes DISABLE TRIGGER USER"))
        else:
            connection.execute(sa.text("DROP TRIGGER ds_outcomes_no_update"))
        connection.execute(sa.text("UPDATE ds_outcomes SET reward = 0"))
    found = exp.replay()
    assert not found.agrees
    assert found.different == 1
    assert "digest" in found.differences[0]


def test_commits_out_of_order_are_recorded_as_they_were_seen(postgres_url):
    """A slow writer has an early number and commits late: decisions in between must not know of it, then or later."""
    exp = create(postgres_url)
    slow, quick, third = exp.ask_many(3)
    store = exp.session.store
    with store.engine.connect() as connection:
        transaction = connection.begin()
        xid = store.draw_xid(connection, exp.session.id)
        row = {"experiment": exp.session.id, "decision": slow.id, "revision": 1, "kind": "told", "imputed": False,
               "arm": slow.arm, "reward": 1.0, "place": xid, "xid": xid, "actor": "x", "at": slow.asked_at,
               "version": "x"}  # fmt: skip
        connection.execute(sa.insert(schema.outcomes).values(row))
        exp.tell(quick.id, 0.0)  # later number, earlier commit
        between = exp.ask()
        assert between.observations == 1
        seen = Snapshot.parse(between.snapshot)
        assert seen.xmin <= xid
        assert not seen.sees(xid)
        exp.amend(quick.id, 1.0, reason="while the other is still open")
        exp.ask()
        transaction.commit()
    after = exp.ask()
    assert after.observations == 2
    exp.tell(third.id, 1.0)
    fresh = ds.Experiment.load("trial", storage=postgres_url)
    assert fresh.state.digest == exp.state.digest
    assert fresh.explain(between.id).verified
    assert sum(arm["observations"] for arm in fresh.explain(between.id).arms) == 1
    assert fresh.replay().agrees


def test_what_is_recorded_is_what_was_read(storage, monkeypatch):
    """An outcome that is committed between two reads of one ask is in both of them, or in neither."""
    from doublesampling.live.queries.log import ExperimentLog

    exp = create(storage)
    d = exp.ask()
    other = ds.Experiment.load("trial", storage=storage)
    read = ExperimentLog.rows
    told: list[int] = []

    def rows(self, since):
        if not told and "postgres" in storage:  # SQLite lets nobody write in the meantime
            told.append(1)
            other.tell(d.id, 1.0)
        return read(self, since)

    monkeypatch.setattr(ExperimentLog, "rows", rows)
    between = exp.ask()
    assert between.observations == 0
    monkeypatch.undo()
    assert exp.ask().observations == len(told)
    assert exp.replay().agrees


def test_many_create_at_once_in_a_new_store(storage):
    import threading

    start, made, taken = threading.Barrier(8), [], []

    def work(i: int) -> None:
        start.wait()
        try:
            made.append(create(storage, name=f"trial {i % 7}").name)
        except NameTakenError:
            taken.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(made) == [f"trial {i}" for i in range(7)]
    assert len(taken) == 1


def test_no_row_is_locked_by_ask_and_tell(postgres_url):
    """Another transaction holds every row locked; asking and telling go on."""
    exp = create(postgres_url)
    d = exp.ask()
    with exp.session.store.engine.connect() as connection, connection.begin():
        for table in schema.APPEND_ONLY:
            connection.execute(sa.text(f"SELECT * FROM {table} FOR UPDATE"))
        exp.tell(d.id, 1.0)
        exp.ask()
    assert exp.state.decisions == 2


def test_the_schema_is_what_the_migrations_make(storage):
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    create(storage)
    with open_store(storage).reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": schema.VERSION_TABLE})
        assert compare_metadata(context, schema.metadata) == []


def _set_version(storage, version):
    with open_store(storage).engine.begin() as connection:
        connection.execute(sa.text(f"UPDATE {schema.VERSION_TABLE} SET version_num = '{version}'"))


def test_a_store_from_the_future_is_refused(storage):
    create(storage)
    _set_version(storage, "0099")
    for touch in (lambda: ds.Experiment.load("trial", storage=storage), lambda: create(storage, name="next"),
                  lambda: upgrade.upgrade(open_store(storage))):  # fmt: skip
        with pytest.raises(TooNewError, match="pip install --upgrade") as caught:
            touch()
        assert caught.value.code == "schema-too-new"


def test_an_old_store_asks_for_the_upgrade(storage):
    create(storage)
    _set_version(storage, "0000")
    with pytest.raises(TooOldError, match="doublesampling db upgrade"):
        ds.Experiment.load("trial", storage=storage)


def test_upgrade_is_idempotent(storage):
    assert upgrade.upgrade(open_store(storage)) == (0, schema.HEAD)
    assert upgrade.upgrade(open_store(storage)) == (schema.HEAD, schema.HEAD)
    create(storage)


def test_a_dump_restored_on_a_younger_server_goes_on(postgres_url):
    """Its transaction numbers begin again from below: a new era shifts them above all that is stored."""
    exp = create(postgres_url)
    d, late = exp.ask_many(2)
    exp.tell(d.id, 1.0)
    with exp.session.store.engine.begin() as connection:  # as if written by a server that was far ahead
        for table in ("ds_decisions", "ds_outcomes"):
            connection.execute(sa.text(f"ALTER TABLE {table} DISABLE TRIGGER USER"))
            connection.execute(sa.text(f"UPDATE {table} SET xid = xid + 1000000"))
        connection.execute(sa.text("UPDATE ds_outcomes SET place = xid"))
    with pytest.raises(TooOldError, match="db upgrade"):
        ds.Experiment.load("trial", storage=postgres_url)
    upgrade.upgrade(open_store(postgres_url))
    exp = ds.Experiment.load("trial", storage=postgres_url)
    assert exp.ask().observations == 1
    exp.tell(late.id, 0.0)
    assert exp.ask().observations == 2
    assert exp.replay().agrees


def test_a_database_of_something_else_is_not_touched(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()
    for touch in (ds.Experiment.load, create_at):
        with pytest.raises(NotOursError, match="Name another database") as caught:
            touch("trial", storage=f"sqlite:///{path}")
        assert caught.value.code == "not-ours"
    (tmp_path / "text.db").write_text("this is not a database, whatever its name says, and it is long enough")
    with pytest.raises(NotOursError, match="not a SQLite database"):
        create_at("trial", storage=f"sqlite:///{tmp_path / 'text.db'}")


def create_at(name, storage):
    return create(storage, name=name)


def test_other_tables_beside_ours_in_postgresql_are_left_alone(postgres_url):
    with open_store(postgres_url).engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE customers (name TEXT)"))
    create(postgres_url).ask()


def test_paths_that_do_not_exist(tmp_path):
    with pytest.raises(StorageError, match=r"does not exist. Make it"):
        create(f"sqlite:///{tmp_path / 'no' / 'trial.db'}")
    with pytest.raises(NotFoundError, match=r"create an experiment there"):
        ds.Experiment.load("trial", storage=f"sqlite:///{tmp_path / 'trial.db'}")
    assert not (tmp_path / "trial.db").exists()
    with pytest.raises(StorageError, match="is a folder"):
        create(f"sqlite:///{tmp_path}")
    for wrong in ("sqlite://", "sqlite:///:memory:"):
        with pytest.raises(StorageError, match="outlive"):
            create(wrong)
    for wrong in ("trial.db", "mysql://host/db", "", "sqlite:/x"):
        with pytest.raises(StorageError, match=r"Write sqlite:///trial.db"):
            ds.Experiment.load("t", storage=wrong)


def test_sqlite_is_set_to_lose_nothing(sqlite_url):
    exp = create(sqlite_url)
    with exp.session.store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2  # FULL


def test_a_forked_child_has_connections_of_its_own(storage):
    import os

    exp = create(storage)
    exp.ask()
    child = os.fork()
    if child == 0:
        try:
            exp.tell(exp.ask().id, 1.0)
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    exp.tell(exp.ask().id, 1.0)
    assert exp.state.decisions == 3
    assert exp.replay().agrees


def test_the_environment_names_the_store(sqlite_url, monkeypatch):
    monkeypatch.setenv("DOUBLESAMPLING_STORAGE", sqlite_url)
    ds.Experiment.create("trial", arms=["a", "b"])
    assert [e["name"] for e in ds.Experiment.list()] == ["trial"]


def test_repeated_migrations_give_the_same_tables_and_another_identity(tmp_path):
    """The stores of the tests are made so (tests/migrations.py); the first one here by Alembic."""
    repeated = RepeatedMigrations(lambda connection, _="head": upgrade.migrate(connection, f"{schema.HEAD:04d}"))
    tables, identities = [], []
    for name in ("first", "second"):
        engine = sa.create_engine(f"sqlite:///{tmp_path / name}")
        with engine.begin() as connection:
            repeated.migrate(connection)
            query = "SELECT type, name, sql FROM sqlite_master ORDER BY type, name"
            tables.append(connection.exec_driver_sql(query).all())
            identities.append(connection.exec_driver_sql("SELECT identity, incarnation FROM ds_store").one())
        engine.dispose()
    assert len(tables[0]) > 30
    assert tables[0] == tables[1]
    assert len({each for row in identities for each in row}) == 4


def test_a_relative_url_names_a_file_of_the_folder_it_was_opened_in(tmp_path, monkeypatch):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "first")
    first = ds.Experiment.create("t", arms=["x", "y"], storage="sqlite:///trial.db")
    monkeypatch.chdir(tmp_path / "second")
    second = ds.Experiment.create("t", arms=["x", "y"], storage="sqlite:///trial.db")
    with ThreadPoolExecutor(4) as pool:  # connections that were opened after the change, too
        for asked in [pool.submit(first.ask) for _ in range(8)]:
            asked.result()
    assert len(first.decisions()) == 8
    assert len(second.decisions()) == 0
    assert (tmp_path / "second" / "trial.db").exists()
