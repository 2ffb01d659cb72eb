"""Crowds, races and killed workers: what a store must stand. `make soak` uses large numbers, the tests small ones."""

import contextlib
import multiprocessing
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import psutil
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.errors import ConflictError, DoubleSamplingError, StorageError
from doublesampling.live.stores import open_store, schema

ARMS = ["a", "b", "c"]


def processes() -> Any:
    """Workers fork from a server that has imported and compiled everything."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.soak_preload"])
    return context


def create(url: str, name: str = "soak") -> ds.Experiment:
    return ds.Experiment.create(name, arms=ARMS, seed=5, storage=url)


def _ask_worker(url: str, name: str, answers: Any) -> None:
    try:
        answers.put(ds.Experiment.load(name, storage=url).ask().id)
    except DoubleSamplingError as problem:
        answers.put(repr(problem))


def ask_elsewhere(url: str, name: str) -> str:
    """Ask in another process; returns the decision's id, or the error."""
    context = processes()
    answers = context.Queue()
    process = context.Process(target=_ask_worker, args=(url, name, answers), daemon=True)
    process.start()
    found = answers.get(timeout=120)
    process.join()
    return str(found)


def paid(index: int) -> float:
    return float(random.Random(index).random() < 0.4)


def _crowd_worker(url: str, worker: int, rounds: int, start: Any, answers: Any) -> None:
    done, errors, slowest = [], [], 0.0
    try:
        exp = ds.Experiment.load("soak", storage=url)
        start.wait()
        for i in range(rounds):
            begun = time.perf_counter()
            d = exp.ask(unit=f"{worker}-{i}")
            exp.tell(d.id, paid(worker * rounds + i))
            slowest = max(slowest, time.perf_counter() - begun)
            done.append(d.id)
    except BaseException as problem:
        errors.append(repr(problem))
    answers.put((done, errors, slowest))


def crowd(url: str, workers: int, rounds: int) -> dict[str, Any]:
    """Many processes ask and tell at once."""
    exp, context = create(url), processes()
    start, answers = context.Barrier(workers), context.Queue()
    everyone = [
        context.Process(target=_crowd_worker, args=(url, w, rounds, start, answers), daemon=True)
        for w in range(workers)
    ]
    for process in everyone:
        process.start()
    begun = time.perf_counter()
    results = [answers.get(timeout=1200) for _ in everyone]
    seconds = time.perf_counter() - begun
    for process in everyone:
        process.join()
    told = [d for done, _, _ in results for d in done]
    begun = time.perf_counter()
    agrees = exp.replay().agrees
    return {
        "errors": [e for _, errors, _ in results for e in errors],
        "acknowledged": len(told),
        "different": len(set(told)),
        **counts(url),
        "replay": agrees,
        "replay_seconds": time.perf_counter() - begun,
        "seconds": seconds,
        "slowest": max(slowest for _, _, slowest in results),
        "observations": exp.state.belief_state.observations,
    }


def counts(url: str) -> dict[str, int]:
    """What the tables hold, counted in the database itself."""
    d, o = schema.decisions, schema.outcomes
    with open_store(url).reading() as connection:

        def one(query: Any) -> int:
            return int(connection.execute(query).scalar() or 0)

        return {
            "decisions": one(sa.select(sa.func.count()).select_from(d)),
            "outcomes": one(sa.select(sa.func.count()).select_from(o)),
            "told": one(sa.select(sa.func.count(o.c.decision.distinct()))),
        }


def _race_worker(url: str, ids: list[str], value: float, lines: Any, answers: Any) -> None:
    exp = ds.Experiment.load("soak", storage=url)
    found = []
    for decision in ids:
        lines.wait()
        try:
            found.append("told" if not exp.tell(decision, value).repeated else "repeated")
        except ConflictError:
            found.append("conflict")
        except BaseException as problem:
            found.append(repr(problem))
    answers.put((value, found))


def races(url: str, number: int) -> dict[str, Any]:
    """Two processes tell the same decision different things at the same moment."""
    exp, context = create(url), processes()
    ids = [d.id for d in exp.ask_many(number)]
    lines, answers = context.Barrier(2), context.Queue()
    both = [context.Process(target=_race_worker, args=(url, ids, v, lines, answers), daemon=True) for v in (0.0, 1.0)]
    for process in both:
        process.start()
    found = dict(answers.get(timeout=600) for _ in both)
    for process in both:
        process.join()
    stored = exp.decisions().set_index("id")["reward"]
    fair = 0
    for i, decision in enumerate(ids):
        winner = [value for value, results in found.items() if results[i] == "told"]
        fair += len(winner) == 1 and found[1.0 - winner[0]][i] == "conflict" and stored[decision] == winner[0]
    return {"races": number, "one_winner": fair, "first_won": found[0.0].count("told"), **counts(url)}


def _busy_worker(url: str, worker: int, notes: str) -> None:
    """Ask and tell until killed; what was acknowledged is noted after the fact."""
    exp = ds.Experiment.load("soak", storage=url)
    file = os.open(f"{notes}/{worker}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    i = 0
    while True:
        _one_round(exp, worker, i, file)
        i += 1


def _one_round(exp: ds.Experiment, worker: int, i: int, file: int) -> None:
    """Ask and tell once; each acknowledgement is noted in a file."""
    d = exp.ask(request_key=f"{worker}-{i}")
    os.write(file, f"ask {d.id} -\n".encode())
    value = paid(worker * 100_000 + i)
    exp.tell(d.id, value)
    os.write(file, f"tell {d.id} {value}\n".encode())


def kills(url: str, number: int, folder: Path, crew: int = 8) -> dict[str, Any]:
    """Workers are killed in mid-flight; every acknowledged decision and outcome must be there afterwards."""
    exp, context, dice = create(url), processes(), random.Random(3)
    hired = 0

    def hire() -> Any:
        nonlocal hired
        process = context.Process(target=_busy_worker, args=(url, hired, str(folder)), daemon=True, name=str(hired))
        process.start()
        hired += 1
        return process

    everyone = [hire() for _ in range(crew)]
    killed = 0
    while killed < number:
        time.sleep(0.05 + dice.random() * 0.25)
        ready = [worker for worker in everyone if (folder / worker.name).exists()]  # those in mid-flight
        if not ready:
            continue
        victim = dice.choice(ready)
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        killed += 1
        everyone[everyone.index(victim)] = hire()
    for process in everyone:
        os.kill(process.pid, signal.SIGKILL)
        process.join()
    return _check_kills(url, exp, folder) | {"kills": killed}


def _check_kills(url: str, exp: ds.Experiment, folder: Path) -> dict[str, Any]:
    notes = [line.split() for file in folder.iterdir() for line in file.read_text().splitlines()]
    stored = exp.decisions().set_index("id")["reward"]
    asked = [d for what, d, _ in notes if what == "ask"]
    told = [(d, float(v)) for what, d, v in notes if what == "tell"]
    return {
        "asked": len(asked),
        "asked_lost": sum(d not in stored.index for d in asked),
        "told": len(told),
        "told_lost": sum(stored.get(d) != v for d, v in told),
        "twice": counts(url)["outcomes"] - counts(url)["told"],
        "integrity": integrity(url),
        "replay": exp.replay().agrees,
    }


def _patient_worker(url: str, worker: int, notes: str, stop: Any, strangers: Any) -> None:
    """Ask and tell until told to stop; what the store refuses is tried again under the same key."""
    file = os.open(f"{notes}/{worker}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    exp, i = ds.Experiment.load("soak", storage=url), 0
    while not stop.is_set():
        try:
            _one_round(exp, worker, i, file)
            i += 1
        except StorageError:  # a dead server is told in our own words
            time.sleep(0.05)
        except BaseException as problem:
            strangers.put(repr(problem))
            return


def server_kills(url: str, server: Any, number: int, folder: Path, crew: int = 4) -> dict[str, Any]:
    """The PostgreSQL server is killed with all its processes under load, and started again; clients simply go on."""
    exp, context, dice = create(url), processes(), random.Random(4)
    stop, strangers = context.Event(), context.Queue()
    everyone = [
        context.Process(target=_patient_worker, args=(url, w, str(folder), stop, strangers), daemon=True)
        for w in range(crew)
    ]
    for process in everyone:
        process.start()
    for _ in range(number):
        before = _noted(folder)
        while _noted(folder) < before + 20 * crew and any(process.is_alive() for process in everyone):
            time.sleep(0.02)  # well under way, also after the last restart
        time.sleep(dice.random() * 0.2)
        _kill_server(server)
        _start_server(server)
    stop.set()
    for process in everyone:
        process.join()
    found = _check_kills(url, exp, folder) | {"kills": number}
    return found | {"strangers": [] if strangers.empty() else [strangers.get()]}


def _noted(folder: Path) -> int:
    return sum(file.read_bytes().count(b"\n") for file in folder.iterdir())


def _start_server(server: Any) -> None:
    """Start it again; on a busy machine its recovery takes longer than the wheel is ready to wait."""
    until = time.monotonic() + 120
    while time.monotonic() < until:
        with contextlib.suppress(subprocess.TimeoutExpired, AssertionError):  # the second: it is still starting
            server.ensure_postgres_running()
            return
        time.sleep(1.0)
    raise RuntimeError("the server did not come back within two minutes")


def _kill_server(server: Any) -> None:
    """No process of the server gets to say goodbye."""
    head = psutil.Process(server.get_pid())
    family = [head, *head.children(recursive=True)]
    for process in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=30)


def integrity(url: str) -> str:
    """What the database says of itself."""
    with open_store(url).reading() as connection:
        if url.startswith("sqlite"):
            return str(connection.exec_driver_sql("PRAGMA integrity_check").scalar())
        found = []
        for by_table in ("on", "off"):  # tables and their indexes must count the same
            connection.exec_driver_sql(f"SET LOCAL enable_seqscan = {by_table}")
            for way in ("indexscan", "indexonlyscan", "bitmapscan"):
                connection.exec_driver_sql(f"SET LOCAL enable_{way} = {'off' if by_table == 'on' else 'on'}")
            query = "SELECT count(*) FROM {} WHERE experiment >= 0 AND xid >= 0"
            found.append(
                [connection.exec_driver_sql(query.format(t)).scalar() for t in ("ds_decisions", "ds_outcomes")]
            )
        return "ok" if found[0] == found[1] else f"tables {found[0]}, indexes {found[1]}"


def until_it_fails(exp: ds.Experiment, rounds: int) -> tuple[int, DoubleSamplingError | None]:
    """Ask and tell until the store refuses; returns how many outcomes were acknowledged, and the refusal."""
    done = 0
    for _ in range(rounds):
        try:
            d = exp.ask()
            exp.tell(d.id, 1.0)
        except DoubleSamplingError as problem:
            return done, problem
        done += 1
    return done, None
