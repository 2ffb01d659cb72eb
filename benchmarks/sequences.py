"""Measure confidence sequences of a long live experiment: the first read, one after a restart, and one more outcome.

``python -m benchmarks.sequences``, about a minute; processor time of this process, on SQLite.
"""

import argparse
import datetime
import os
import platform
import secrets
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import sqlalchemy as sa

import doublesampling as ds
from doublesampling.live.stores import close_stores, schema

_PLAYED = 30
_AGAIN = 200


def long_experiment(storage: str, outcomes: int) -> Any:
    """Return an experiment with so many outcomes, each told in a transaction of its own; most are copies."""
    exp = ds.Experiment.create(
        "trial", arms=["a", "b"], policy=ds.ThompsonSampling(), seed=1, storage=storage, units="many",
        allocation=ds.Allocation(floor=0.1),
    )  # fmt: skip
    rng = np.random.default_rng(1)
    for _ in range(_PLAYED):
        tell(exp, float(rng.random() < 0.5))
    _lengthen(exp, outcomes)
    return exp


def tell(exp: Any, reward: float) -> None:
    """Ask for a decision and tell its outcome."""
    exp.tell(exp.ask().id, reward)


def _lengthen(exp: Any, outcomes: int) -> None:
    store = exp.session.store
    with store.writing() as connection:
        decided = connection.execute(sa.select(schema.decisions).order_by(schema.decisions.c.number)).mappings().all()
        told = {row["decision"]: row for row in connection.execute(sa.select(schema.outcomes)).mappings()}
        first, rows, results = store.draw_xid(connection, exp.session.id), [], []
        for i in range(outcomes - len(told)):
            old, xid = decided[i % len(decided)], first + 2 * i
            new = {"id": secrets.token_hex(10), "number": len(decided) + i + 1, "xid": xid}
            rows.append({**old, **new})
            kept = {name: value for name, value in told[old["id"]].items() if name != "seq"}
            results.append(kept | {"decision": new["id"], "xid": xid + 1, "place": xid + 1})
        connection.execute(sa.insert(schema.decisions), rows)
        connection.execute(sa.insert(schema.outcomes), results)


def processor_time(work: Callable[[], Any]) -> float:
    """Return the milliseconds of processor time that a call takes."""
    begun = time.process_time()
    work()
    return 1000.0 * (time.process_time() - begun)


def add_outcomes(count: int) -> None:
    """Add outcomes to a sequence in memory."""
    sums = ds.ConfidenceSequence(2)
    for i in range(count):
        sums.update(i % 2, 1.0, [0.5, 0.5])


def measure(storage: str, outcomes: int) -> str:
    """Return a row of the table."""
    exp = long_experiment(storage, outcomes)
    whole = processor_time(lambda: exp.sequence((1, 0)))
    tell(exp, 1.0)
    other = ds.Experiment.load("trial", storage=storage)
    restarted, more = processor_time(lambda: other.sequence((1, 0))), []
    for i in range(_AGAIN):
        tell(other, float(i % 2))
        more.append(processor_time(lambda: other.sequence((1, 0))))
    update = processor_time(lambda: add_outcomes(10_000)) / 1e4
    return f"| {outcomes} | {whole:.0f} | {restarted:.1f} | {np.median(more):.2f} | {update:.4f} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--outcomes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    options = parser.parse_args()
    print(f"{datetime.date.today():%Y-%m-%d}, {platform.machine()}, {os.cpu_count()} cores; milliseconds\n")
    print("| outcomes | first read, whole log | after a restart | one more outcome | ConfidenceSequence.update |")
    print("|---:|---:|---:|---:|---:|")
    for outcomes in options.outcomes:
        with tempfile.TemporaryDirectory() as folder:
            print(measure(f"sqlite:///{folder}/long.db", outcomes), flush=True)
            close_stores()


if __name__ == "__main__":
    main()
