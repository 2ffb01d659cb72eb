"""The options of ``doublesampling experiment`` and ``doublesampling db``, without heavy imports."""

import argparse
from collections.abc import Callable
from typing import Any

from doublesampling.cli import allocation

STORAGE = (
    "sqlite:///trial.db or postgresql://user@host/database (default: $DOUBLESAMPLING_STORAGE, or doublesampling.db)"
)


def add_experiment(commands: Any, run: Callable[[argparse.Namespace], int], help_format: Any) -> None:
    """Add the command ``experiment`` and its subcommands."""
    experiment = commands.add_parser(
        "experiment",
        help="run a live experiment: ask for decisions, tell outcomes",
        description="Run a live experiment: ask for decisions and tell their outcomes. Both are kept in a database.",
        formatter_class=help_format,
    )
    below = experiment.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, about: str, *, named: bool = True, writes: bool = False) -> Callable[..., Any]:
        made = below.add_parser(
            name, help=about, description=about[0].upper() + about[1:] + ".", formatter_class=help_format
        )
        made.set_defaults(run=run, what=name)
        if named:
            made.add_argument("name", metavar="NAME", help="the experiment")
        made.add_argument("--storage", metavar="URL", help=STORAGE)
        made.add_argument("--json", action="store_true", help="print JSON")
        if named and name != "create":
            made.add_argument(
                "--allow-import", action="append", metavar="MODULE",
                help="a module from which the experiment's own belief or policy may be imported; repeat for several "
                "(default: $DOUBLESAMPLING_ALLOW_IMPORT)",
            )  # fmt: skip
        if writes:
            made.add_argument("--actor", metavar="WHO", help="the actor that is stored with it (default: user@host)")
        add: Callable[..., Any] = made.add_argument
        return add

    _add_writing(command)
    _add_reading(command)


def _add_writing(command: Callable[..., Callable[..., Any]]) -> None:
    add = command("create", "create an experiment", writes=True)
    add("--arms", nargs="+", metavar="ARM", help="names of the arms")
    add("--design", metavar="FILE", help="a trial's design, .toml or .json, in place of arms and all that follows them")
    add("--belief", default="BetaBernoulli", metavar="B", help="such as Gaussian:mean=0,noise=0.5")
    add("--features", metavar="FILE.json", help="features of the belief, as ds.Features(...).to_json() writes them")
    add("--policy", default="DoubleSampling", metavar="P", help="such as DoubleSampling:horizon=400, or thompson")
    add("--seed", type=int, help="seed of the random numbers (default: random, and stored)")
    add("--units", default="once", choices=("once", "many"), help="whether a unit asked again gets the same decision")
    allocation.add_options(add)
    add = command("ask", "decide which arm the next unit gets", writes=True)
    add("--unit", metavar="U", help="the unit that the decision is for")
    add("--context", nargs="+", metavar="X", help="the context of the unit: numbers, or fields such as age=61 site=a")
    add("--key", metavar="K", help="a request key: the same key gets the same decision")
    add("--count", type=int, metavar="N", help="make N decisions at once")
    add = command("tell", "store the outcome of a decision", writes=True)
    add("decision", metavar="ID", help="the id that ask printed")
    add("reward", type=float, metavar="REWARD")
    add("--imputed", action="store_true", help="an imputed outcome, which the real one supersedes")
    add("--reason", metavar="WHY")
    add = command("amend", "correct an outcome; the old one stays in the log", writes=True)
    add("decision", metavar="ID")
    add("reward", type=float, metavar="REWARD")
    add("--reason", required=True, metavar="WHY", default=argparse.SUPPRESS)
    for name, about in (
        ("withdraw", "withdraw an outcome told by mistake; the decision waits for an outcome again"),
        ("void", "mark a decision as not carried out; it does not count"),
    ):
        add = command(name, about, writes=True)
        add("decision", metavar="ID")
        add("--reason", required=True, metavar="WHY", default=argparse.SUPPRESS)
    add = command("history", "import outcomes from before the experiment", writes=True)
    add("file", metavar="FILE.csv", help="with the columns arm, reward, and those of the context")
    add("--context", nargs="+", metavar="COLUMN", help="columns of the context, in order (default: all the others)")
    add("--key", metavar="K", help="a request key: imported once (default: derived from the file's content)")
    for name, about in (("pause", "pause an experiment: no new decisions"), ("resume", "resume a paused experiment")):
        command(name, about, writes=True)("--reason", metavar="WHY")
    for name, about in (
        ("drop-arm", "stop decisions for an arm"),
        ("add-arm", "add an arm, which starts at the prior"),
    ):
        add = command(name, about, writes=True)
        add("arm", metavar="ARM")
        add("--reason", metavar="WHY")


def _add_reading(command: Callable[..., Callable[..., Any]]) -> None:
    command("list", "list the experiments of a store", named=False)
    add = command("status", "show the status of an experiment, with small plots")
    add("--context", nargs="+", metavar="X", help="show the posterior at this context: numbers, or field=value")
    command("pending", "list the decisions that wait for an outcome")
    command("explain", "explain why a decision chose its arm")("decision", metavar="ID")
    add = command("export", "write the decisions to a file")
    add("--format", choices=("parquet", "csv", "jsonl"), help="the kind of file (default: as --out ends, or csv)")
    add("--out", metavar="FILE", help="the file (default: named after the experiment)")
    add("--force", action="store_true", help="overwrite it")
    add("--audit", action="store_true", help="write the audit trail to a second file")
    add = command("audit", "show the audit trail: every stored row with actor, time and reason")
    add("--after", metavar="CURSOR", help="start after this entry")
    add("--limit", type=int, metavar="N", help="at most N entries")
    add("--out", metavar="FILE", help="write it to a file instead")
    add("--format", choices=("parquet", "csv", "jsonl"), help="the kind of file (default: as --out ends, or csv)")
    add("--force", action="store_true", help="overwrite it")
    command("replay", "recompute every decision from the log")
    add = command("simulate", "simulate the stored design on assumed expected rewards: its operating characteristics")
    add("--truth", action="append", required=True, metavar="T", default=argparse.SUPPRESS,
        help="expected reward of each arm, such as 0.3,0.5,0.6 (with contexts: weights, such as 0.1,0.2;0.4,0); "
        "repeat for several")  # fmt: skip
    add("--horizon", type=int, metavar="N", help="decisions in the trial (default: the policy's horizon, or 500)")
    add("--realizations", type=int, default=1000, metavar="R", help="how many trials to simulate")
    add(
        "--noise",
        type=float,
        default=1.0,
        help="standard deviation of a Gaussian reward where the design does not set it",
    )
    add("--delay", type=int, default=0, metavar="D", help="further decisions until an outcome is known")
    add("--dropout", type=float, default=0.0, metavar="P", help="share of the outcomes that are never known")
    add("--trend", type=float, default=0.0, metavar="X",
        help="how far all expected rewards move from the first to the last decision")  # fmt: skip
    add("--seed", type=int, default=1, help="the same seed gives the same numbers")


def add_db(commands: Any, run: Callable[[argparse.Namespace], int], help_format: Any) -> None:
    """Add the command ``db`` and its subcommands."""
    db = commands.add_parser("db", help="upgrade, back up, restore or verify a store", formatter_class=help_format)
    below = db.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, about: str) -> Callable[..., Any]:
        made = below.add_parser(
            name, help=about, description=about[0].upper() + about[1:] + ".", formatter_class=help_format
        )
        made.set_defaults(run=run, what=name)
        made.add_argument("--storage", metavar="URL", help=STORAGE)
        made.add_argument("--json", action="store_true", help="print JSON")
        add: Callable[..., Any] = made.add_argument
        return add

    command("upgrade", "create the tables, or upgrade them")
    add = command("backup", "back up a store to one file, while it is in use")
    add("file", metavar="FILE", help="the backup: a SQLite file, whichever database the store is in")
    add("--force", action="store_true", help="overwrite it")
    add = command("restore", "replace the contents of a store by a backup; running servers continue with it")
    add("file", metavar="FILE", help="a backup, of either database")
    add("--force", action="store_true", help="replace a store that holds experiments; it is backed up first")
    add("--discard", action="store_true", help="do not back up what is replaced")
    command("verify", "check the database, replay every experiment, recompute every checkpoint")
