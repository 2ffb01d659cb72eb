"""Files removed, replaced and restored under load, and group commits of many keys. `make soak` uses large numbers."""

import math
import os
import shutil
import sqlite3
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import doublesampling as ds
from doublesampling.errors import DoubleSamplingError, NotFoundError, StorageError, StorageReplacedError
from doublesampling.live.group_commit import Writer
from doublesampling.live.stores import open_store, urls
from doublesampling.live.stores.backup import backup
from doublesampling.live.stores.restore import restore
from doublesampling.live.verify import verify
from tests import soak

Note = tuple[str, str, float]
"""What was acknowledged, for which decision, and when the call began."""


def _timed_worker(url: str, worker: int, notes: str, stop: Any, strangers: Any) -> None:
    """Ask and tell until told to stop; every acknowledgement is noted with the moment at which its call began."""
    file = os.open(f"{notes}/{worker}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    exp, i = ds.Experiment.load("soak", storage=url), 0
    while not stop.is_set():
        i += 1
        try:
            begun = time.monotonic()
            d = exp.ask(unit=f"{worker}-{i}")
            os.write(file, f"ask {d.id} {begun}\n".encode())
            begun = time.monotonic()
            exp.tell(d.id, soak.paid(i))
            os.write(file, f"tell {d.id} {begun}\n".encode())
        except StorageReplacedError:
            os.write(file, f"refused - {time.monotonic()}\n".encode())
            time.sleep(0.01)
        except (StorageError, NotFoundError):  # busy with a restore, or a decision that the restored copy never had
            time.sleep(0.01)
        except BaseException as problem:
            strangers.put(repr(problem))
            return


class Crew:
    """Processes that ask and tell until they are stopped."""

    def __init__(self, url: str, size: int, notes: Path) -> None:
        context = soak.processes()
        self.notes, self._stop, self._strangers = notes, context.Event(), context.Queue()
        self._everyone = [
            context.Process(target=_timed_worker, args=(url, w, str(notes), self._stop, self._strangers), daemon=True)
            for w in range(size)
        ]
        for process in self._everyone:
            process.start()

    def noted(self) -> list[Note]:
        """Everything that was acknowledged so far."""
        lines = [line.split() for file in self.notes.iterdir() for line in file.read_text().splitlines()]
        return [(what, decision, float(begun)) for what, decision, begun in lines]

    def wait_for(self, what: str, more: int) -> None:
        """Go on when so many more have been noted."""
        before, until = self._count(what), time.monotonic() + 120
        while self._count(what) < before + more and any(p.is_alive() for p in self._everyone):
            if time.monotonic() > until:
                raise RuntimeError(f"nothing was {what} within two minutes")
            time.sleep(0.02)

    def _count(self, what: str) -> int:
        return Counter(note[0] for note in self.noted())[what]

    def stop(self) -> list[str]:
        """Let everybody finish; returns errors that nobody should see."""
        self._stop.set()
        for process in self._everyone:
            process.join()
        found = []
        while not self._strangers.empty():
            found.append(self._strangers.get())
        return found


def file_gone(folder: Path, how: str, crew: int = 4, rounds: int = 20) -> dict[str, Any]:
    """A SQLite file is removed, or replaced by a backup, under load: from then on nothing may be acknowledged."""
    path = folder / f"{how}-{time.time_ns()}.db"
    url, notes = f"sqlite:///{path}", folder / f"notes-{time.time_ns()}"
    notes.mkdir()
    soak.create(url)
    open_store(url).close()
    workers = Crew(url, crew, notes)
    workers.wait_for("tell", rounds)
    copy = path.with_name(f"{path.name}.copy")
    backup(open_store(url), copy)
    open_store(url).close()
    workers.wait_for("tell", rounds)
    inside = _count_decisions(copy)
    if how == "removed":
        for side in ("", "-wal", "-shm"):
            path.with_name(path.name + side).unlink(missing_ok=True)
    else:
        copy.replace(path)
    gone = time.monotonic()
    workers.wait_for("refused", 5 * crew)
    strangers = workers.stop()
    urls._stores.pop(url, None)
    noted = workers.noted()
    split = 0
    if how == "replaced":  # what stands there now is the copy and nothing else; its neighbours are another file's
        for side in ("-wal", "-shm"):
            path.with_name(path.name + side).unlink(missing_ok=True)
        split = _count_decisions(path) - inside
    return {
        "acknowledged before": sum(what != "refused" and begun < gone for what, _, begun in noted),
        "acknowledged into nothing": sum(what != "refused" and begun > gone for what, _, begun in noted),
        "refused": sum(what == "refused" for what, _, _ in noted),
        "written to the other file": split,
        "made anew": int(how == "removed" and path.exists()),
        "strangers": strangers,
    }


def _count_decisions(path: Path) -> int:
    connection = sqlite3.connect(path)
    found = int(connection.execute("SELECT count(*) FROM ds_decisions").fetchone()[0])
    connection.close()
    return found


def restored(url: str, folder: Path, times: int, crew: int = 4, rounds: int = 20) -> dict[str, Any]:
    """A backup is restored under load, again and again: what is acknowledged afterwards is there, and replays."""
    exp, notes = soak.create(url), folder / f"notes-{time.time_ns()}"
    notes.mkdir()
    workers = Crew(url, crew, notes)
    rolled_back, back = 0, 0.0
    for turn in range(times):
        workers.wait_for("tell", rounds)
        copy = folder / f"{time.time_ns()}.backup"
        saved = backup(open_store(url), copy).decisions
        workers.wait_for("tell", rounds)
        rolled_back += soak.counts(url)["decisions"] - saved
        restore(open_store(url), copy, force=True, keep=turn == 0)
        back = time.monotonic()
    workers.wait_for("tell", 2 * rounds)
    strangers = workers.stop()
    stored = exp.decisions().set_index("id")["reward"]
    since = [(what, decision) for what, decision, begun in workers.noted() if begun > back]
    checked = verify(open_store(url))
    shutil.rmtree(notes)
    return {
        "restores": times,
        "decisions rolled back": rolled_back,
        "acknowledged after the last": len(since),
        "acknowledged into nothing": sum(
            decision not in stored.index or (what == "tell" and math.isnan(stored[decision]))
            for what, decision in since
        ),
        "stored": len(stored),
        "replay": exp.replay().agrees,
        "verified": checked.ok,
        "problems": checked.problems,
        "strangers": strangers,
    }


def group_commit(url: str, clients: int, seconds: float, turns: int = 4) -> dict[str, Any]:
    """Pairs of ask and tell per second of many clients with one key, and of as many with a key each, turn by turn."""
    exp, writer = soak.create(url), Writer()
    found: dict[str, list[float]] = {"one key": [], "a key each": []}
    try:
        _pairs(exp, writer, clients, seconds / 4, lambda i: "key 0")
        for turn in range(2 * turns):
            name = ("one key", "a key each")[(turn + turn // 2) % 2]  # first one, then the other begins
            mine = (lambda i: "key 0") if name == "one key" else (lambda i: f"key {i}")
            found[name].append(_pairs(exp, writer, clients, seconds, mine) / seconds)
    finally:
        writer.close()
    one, many = (sorted(found[name])[turns // 2] for name in ("one key", "a key each"))
    return {"clients": clients, "one key": one, "a key each": many, "ratio": many / one, "replay": exp.replay().agrees}


def _pairs(exp: ds.Experiment, writer: Writer, clients: int, seconds: float, actor: Any) -> int:
    until, done, failed = time.monotonic() + seconds, [0] * clients, list[BaseException]()

    def work(i: int) -> None:
        try:
            while time.monotonic() < until:
                key = f"{time.time_ns()}"
                d = writer.ask(exp, None, None, key, actor(i), actor(i)).result()
                writer.tell(exp, d.id, float(done[i] % 2), actor=actor(i)).result()
                done[i] += 1
        except DoubleSamplingError as problem:
            failed.append(problem)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sum(done)
