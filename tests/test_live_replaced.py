"""A SQLite file that is removed or replaced under a running process: nothing is acknowledged into nothing."""

import os
import shutil
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

import doublesampling as ds
from doublesampling.errors import StorageError, StorageReadOnlyError, StorageReplacedError
from doublesampling.live.stores import open_store
from tests.test_live_experiment import create


def copy_of(path: Path, name: str) -> Path:
    """A backup as SQLite makes it."""
    target = path.with_name(name)
    with sqlite3.connect(path) as source, sqlite3.connect(target) as made:
        source.backup(made)
    source.close()
    made.close()
    return target


def stored(path: Path) -> int:
    with sqlite3.connect(path) as connection:
        found = int(connection.execute("SELECT count(*) FROM ds_decisions").fetchone()[0])
    connection.close()
    return found


def remove(path: Path) -> None:
    for side in ("", "-wal", "-shm"):
        path.with_name(path.name + side).unlink(missing_ok=True)


def touches(exp, decision):
    return (exp.ask, lambda: exp.tell(decision, 1.0), exp.pause, lambda: exp.state, exp.decisions,
            lambda: exp.void(decision, reason="r"), exp.session.store.check_writable, exp.replay)  # fmt: skip


def refused(exp, decision, what):
    for touch in touches(exp, decision):
        with pytest.raises(StorageReplacedError, match=what) as caught:
            touch()
        assert caught.value.code == "storage-replaced"
        assert "start this process again" in str(caught.value)


def test_a_removed_file_takes_no_more_writes(sqlite_url, tmp_path):
    exp = create(sqlite_url)
    d = exp.ask()
    remove(tmp_path / "trial.db")
    refused(exp, d.id, "was removed")
    assert not (tmp_path / "trial.db").exists()  # nor is it made anew, by old connections or by new ones
    exp.session.store.engine.pool.dispose()
    refused(exp, d.id, "was removed")
    assert not (tmp_path / "trial.db").exists()


def test_a_replaced_file_takes_no_more_writes(sqlite_url, tmp_path):
    exp = create(sqlite_url)
    d = exp.ask()
    backup = copy_of(tmp_path / "trial.db", "backup.db")
    exp.ask()
    backup.replace(tmp_path / "trial.db")
    refused(exp, d.id, "was replaced")
    found: list[str] = []

    def work() -> None:  # a thread gets a connection of its own, which must not open the other file
        try:
            exp.ask()
        except StorageReplacedError as problem:
            found.append(problem.code)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["storage-replaced"] * 6
    remove(tmp_path / "trial.db-wal")


@pytest.mark.parametrize("side", ["-wal", "-shm"])
def test_a_removed_side_file_counts_as_well(sqlite_url, tmp_path, side):
    """What is committed stands in the -wal file first: without its name, nobody else would ever find it."""
    exp = create(sqlite_url)
    d = exp.ask()
    (tmp_path / f"trial.db{side}").unlink()
    refused(exp, d.id, f"trial.db{side}' was removed")


def test_a_file_that_vanishes_before_the_commit_is_noticed(sqlite_url, tmp_path):
    exp = create(sqlite_url)
    d = exp.ask()
    store = exp.session.store
    saved = tmp_path / "elsewhere.db"

    def work(connection):
        (tmp_path / "trial.db").rename(saved)

    with pytest.raises(StorageReplacedError):
        store.run_transaction(work)
    saved.rename(tmp_path / "trial.db")  # the very same file is back: it is what was open all the time
    assert exp.tell(d.id, 1.0).reward == 1.0
    assert exp.replay().agrees
    exp.session.store.close()
    assert stored(tmp_path / "trial.db") == 1


def test_a_process_that_loads_again_gets_the_new_file(sqlite_url, tmp_path):
    exp = create(sqlite_url)
    exp.tell(exp.ask().id, 1.0)
    backup = copy_of(tmp_path / "trial.db", "backup.db")
    exp.tell(exp.ask().id, 1.0)
    remove(tmp_path / "trial.db")
    backup.replace(tmp_path / "trial.db")
    again = ds.Experiment.load("trial", storage=sqlite_url)
    assert again.state.belief_state.observations == 1
    again.tell(again.ask().id, 0.0)
    assert again.replay().agrees
    with pytest.raises(StorageReplacedError):  # who still holds the old one goes on being refused
        exp.ask()


def test_a_symbolic_link_may_not_be_turned(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    link = tmp_path / "now"
    link.symlink_to(tmp_path / "a")
    exp = create(f"sqlite:///{link / 'trial.db'}")
    create(f"sqlite:///{tmp_path / 'b' / 'trial.db'}")
    link.unlink()
    link.symlink_to(tmp_path / "b")
    with pytest.raises(StorageReplacedError, match="was replaced"):
        exp.ask()


def test_the_check_writes_where_nothing_was_written_lately(storage, monkeypatch):
    exp = create(storage)
    store = exp.session.store
    writes: list[object] = []
    writing = type(store).writing

    def counted(self):
        writes.append(self)
        return writing(self)

    monkeypatch.setattr(type(store), "writing", counted)
    store.check_writable()  # just after create: looks, and does not write
    assert len(writes) == 0
    store._written_at = -1e9
    store.check_writable()
    assert len(writes) == 1
    store.check_writable()
    assert len(writes) == 1
    assert len(store.identity()) == 36


def test_the_check_says_what_a_writer_would_meet(sqlite_url, tmp_path):
    create(sqlite_url)
    url = f"sqlite:///file:{tmp_path / 'trial.db'}?mode=ro&uri=true"
    with pytest.raises(StorageReadOnlyError):
        open_store(url).check_writable()
    assert open_store(url).read_only
    store = open_store(sqlite_url)
    with store.engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE ds_health")
    store._written_at = -1e9
    with pytest.raises(StorageError, match="no longer holds the tables"):
        store.check_writable()


def test_the_check_on_a_server_that_may_only_be_read(postgres_url):
    exp = create(postgres_url)
    store = exp.session.store
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        name = connection.exec_driver_sql("SELECT current_database()").scalar()
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    store.close()
    store._written_at = -1e9
    with pytest.raises(StorageReadOnlyError):
        store.check_writable()


def modes(folder):
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def test_the_files_are_their_owners_alone(tmp_path):
    old = os.umask(0)
    try:
        exp = create(f"sqlite:///{tmp_path / 'trial.db'}")
        exp.tell(exp.ask().id, 1.0)
        names = {f"trial.db{side}" for side in ("", "-wal", "-shm", "-queue", "-turn")}
        assert modes(tmp_path) == dict.fromkeys(names, 0o600)
    finally:
        os.umask(old)


def test_a_database_that_is_shared_on_purpose_stays_shared(tmp_path):
    exp = create(f"sqlite:///{tmp_path / 'trial.db'}")
    exp.session.store.close()
    for side in ("-queue", "-turn"):
        (tmp_path / f"trial.db{side}").unlink()
    (tmp_path / "trial.db").chmod(0o660)
    exp.ask()
    assert set(modes(tmp_path).values()) == {0o660}


def archive(url: str, folder: Path) -> Path:
    """A store with some decisions, closed, and copied to a folder of its own."""
    exp = create(url)
    for i in range(5):
        exp.tell(exp.ask(unit=f"p{i}").id, i % 2)
    exp.session.store.close()
    folder.mkdir()
    shutil.copy(exp.session.store.path, folder / "trial.db")
    return folder / "trial.db"


_READ = """
import os, sys
import doublesampling as ds
from doublesampling.errors import StorageReadOnlyError

def read(url, out):
    assert [e["name"] for e in ds.Experiment.list(url)] == ["trial"]
    exp = ds.Experiment.load("trial", storage=url)
    assert len(exp.decisions()) == 5 and len(exp.audit()) == 11
    assert exp.explain(exp.decisions()["id"][3]).verified
    assert exp.replay().agrees
    assert exp.summary()["outcomes"] == 5
    exp.posterior()
    exp.export("csv", out, force=True)
    return exp

original, path, out = sys.argv[1:4]
read(original, out)  # whatever is imported or compiled: the other user may not look into this installation
os.unlink(out)
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)  # modes do not bind root
exp = read(f"sqlite:///{path}", out)
for write in (exp.ask, exp.pause, lambda: exp.void(exp.decisions()["id"][0], reason="x")):
    try:
        write()
    except StorageReadOnlyError as problem:
        assert "is read-only" in str(problem)
    else:
        raise SystemExit("was written")
print(sorted(os.listdir(os.path.dirname(path))))
"""


def test_a_read_only_archive_can_be_read_by_anybody(sqlite_url, tmp_path):
    """As it is kept: the file is read-only, nor may anything be made beside it. Run by a user who is not root."""
    import subprocess
    import sys
    import tempfile

    with tempfile.TemporaryDirectory() as outside:  # not pytest's own, into which others may not look
        top = Path(outside)
        top.chmod(0o755)
        path = archive(sqlite_url, top / "archive")
        path.chmod(0o444)
        path.parent.chmod(0o555)
        (top / "out").mkdir()
        (top / "out").chmod(0o777)
        code = [sys.executable, "-c", _READ, sqlite_url, str(path), str(top / "out" / "t.csv")]
        found = subprocess.run(code, capture_output=True, text=True)
        path.parent.chmod(0o755)
        assert found.returncode == 0, found.stderr
        assert found.stdout.strip() == "['trial.db']"
        assert len((top / "out" / "t.csv").read_text().splitlines()) == 6


def test_what_another_user_meets_with_an_archive(sqlite_url, tmp_path, monkeypatch):
    """The same without another user: access as it would be answered to one."""
    path = archive(sqlite_url, tmp_path / "archive")
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda p, how: access(p, how) and not (how == os.W_OK and str(p).startswith(str(path.parent)))
    )
    url = f"sqlite:///{path}"
    store = open_store(url)
    assert store.read_only
    exp = ds.Experiment.load("trial", storage=url)
    assert exp.replay().agrees
    with pytest.raises(StorageReadOnlyError, match="is read-only"):
        exp.ask()
    assert [file.name for file in path.parent.iterdir() if "-queue" not in file.name and "-turn" not in file.name] == [
        "trial.db"
    ]


def test_an_old_archive_says_that_it_is_old(sqlite_url, tmp_path, monkeypatch):
    from doublesampling.errors import TooOldError
    from tests.test_live_scope import old_store

    old_store(sqlite_url).close()
    path = tmp_path / "trial.db"
    access = os.access
    monkeypatch.setattr(os, "access", lambda p, how: access(p, how) and how != os.W_OK)
    with pytest.raises(TooOldError, match=r"schema 2.*Copy it to a writable folder.*on the copy"):
        ds.Experiment.load("old", storage=f"sqlite:///{path}")
