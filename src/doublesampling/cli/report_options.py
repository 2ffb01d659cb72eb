"""The options of ``doublesampling protocol``, ``report`` and ``qualify``, without heavy imports."""

import argparse
from collections.abc import Callable
from typing import Any

Load = Callable[[str], Callable[[argparse.Namespace], int]]


def add_reports(commands: Any, load: Load, help_format: Any) -> None:
    """Add the commands that write documents."""

    def command(name: str, about: str, description: str) -> Callable[..., Any]:
        made = commands.add_parser(name, help=about, description=description, formatter_class=help_format)
        made.set_defaults(run=load(name))
        add: Callable[..., Any] = made.add_argument
        return add

    add = command(
        "protocol", "write the design of an experiment as a document, before it starts",
        "Write the design, its rules, simulated scenarios, seed and versions as one HTML file, or as Markdown.",
    )  # fmt: skip
    _add_experiment(add)
    add("--truth", action="append", default=[], metavar="P,P,...",
        help="a scenario to simulate: the expected reward of each arm; repeat for several")  # fmt: skip
    add("--realizations", type=int, default=1000, metavar="R", help="realizations of each scenario")
    add("--seed", type=int, default=1, help="the same seed gives the same numbers")
    add = command(
        "report", "write what happened in an experiment, and what it says",
        "Write flow, events, allocation, estimates by every method, exact test, confidence sequences, sensitivity, "
        "operating characteristics and replay as one HTML file, or as Markdown.",
    )  # fmt: skip
    _add_experiment(add)
    add("--level", type=float, default=0.95, metavar="L", help="confidence level of the intervals")
    add("--reference", metavar="ARM", help="the arm that others are compared with (default: the first)")
    add("--truth", action="append", default=[], metavar="P,P,...",
        help="a scenario for the operating characteristics (default: the posterior means, equal arms)")  # fmt: skip
    add("--realizations", type=int, default=500, metavar="R", help="realizations of each simulated scenario")
    add = command(
        "qualify", "check this installation against stored and published numbers",
        "Recompute published and stored numbers on this machine, print pass or fail for each, and write a report. The "
        "exit status is 1 where any fails.",
    )  # fmt: skip
    add("--out", metavar="FILE", help="also write the report to a .html or .md file")
    add("--force", action="store_true", help="overwrite the file")


def _add_experiment(add: Callable[..., Any]) -> None:
    add("store", metavar="STORE", help="a SQLite file such as trial.db, or postgresql://user@host/database")
    add("name", metavar="NAME", help="the experiment")
    add("--out", metavar="FILE", help="a .html or .md file (default: named after the experiment)")
    add("--force", action="store_true", help="overwrite the file")
    add("--allow-import", action="append", metavar="MODULE",
        help="a module from which the experiment's own belief or policy may be imported")  # fmt: skip
