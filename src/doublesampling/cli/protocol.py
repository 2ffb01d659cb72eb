"""``doublesampling protocol``: write the design of an experiment as a document, before it starts."""

from typing import Any

from doublesampling.cli.report import load
from doublesampling.cli.settings import read_truth
from doublesampling.live.exporting import file_name
from doublesampling.reports import protocol


def run(options: Any) -> int:
    """Write the protocol and print where it is."""
    exp = load(options)
    made = protocol(
        exp, [read_truth(text) for text in options.truth], realizations=options.realizations, seed=options.seed
    )
    path = made.save(options.out or file_name(f"{exp.name}-protocol", ".html"), force=options.force)
    print(f"{made.title}: {path}")
    return 0
