"""``doublesampling report``: write what happened in an experiment, and what it says, as a document."""

from typing import Any

from doublesampling.cli.settings import read_truth
from doublesampling.live.experiment import Experiment
from doublesampling.live.exporting import file_name
from doublesampling.reports import report


def load(options: Any) -> Experiment:
    """Return the experiment; STORE is a SQLite file or the URL of a store."""
    store = options.store if "://" in options.store else f"sqlite:///{options.store}"
    return Experiment.load(options.name, storage=store, allow_import=options.allow_import)


def run(options: Any) -> int:
    """Write the report and print where it is."""
    exp = load(options)
    made = report(
        exp, level=options.level, reference=options.reference or 0, realizations=options.realizations,
        truths=[read_truth(text) for text in options.truth] or None,
    )  # fmt: skip
    path = made.save(options.out or file_name(f"{exp.name}-report", ".html"), force=options.force)
    print(f"{made.title}: {path}")
    return 0
