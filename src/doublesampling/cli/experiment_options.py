"""The words of ``doublesampling experiment`` and ``doublesampling db``. Nothing heavy: ``--help`` stays quick."""

import argparse
from collections.abc import Callable
from typing import Any

STORAGE = (
    "sqlite:///trial.db or postgresql://user@host/database (default: $DOUBLESAMPLING_STORAGE, or doublesampling.db)"
)


def add_experiment(commands: Any, run: Callable[[argparse.Namespace], int], help_format: Any) -> None:
    """The command and the commands under it."""
    experiment = commands.add_parser(
        "experiment",
        help="run a live experiment: ask which arm, tell what came of it",
        description="Run a live experiment on a store that loses nothing and counts nothing twice.",
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
        made.add_argument("--json", action="store_true", help="print JSON, for machines")
        if writes:
            made.add_argument("--actor", metavar="WHO", help="who is written beside it (default: user@host)")
        add: Callable[..., Any] = made.add_argument
        return add

    _add_writing(command)
    _add_reading(command)


def _add_writing(command: Callable[..., Callable[..., Any]]) -> None:
    add = command("create", "make an experiment", writes=True)
    add("--arms", nargs="+", required=True, metavar="ARM", default=argparse.SUPPRESS, help="names of the arms")
    add("--belief", default="BetaBernoulli", metavar="B", help="such as Gaussian:mean=0,noise=0.5")
    add("--policy", default="DoubleSampling", metavar="P", help="such as DoubleSampling:horizon=400, or thompson")
    add("--seed", type=int, help="where the random numbers begin (default: drawn, and stored)")
    add("--units", default="once", choices=("once", "many"), help="whether a unit asked again gets the same decision")
    add = command("ask", "which arm for the next unit?", writes=True)
    add("--unit", metavar="U", help="whom it is for")
    add("--context", type=float, nargs="+", metavar="X", help="what is known of the unit")
    add("--key", metavar="K", help="a request key: the same key gets the same decision")
    add("--count", type=int, metavar="N", help="several decisions at once")
    add = command("tell", "what came of a decision", writes=True)
    add("decision", metavar="ID", help="the id that ask printed")
    add("reward", type=float, metavar="REWARD")
    add("--imputed", action="store_true", help="a stand-in, which the real outcome will supersede")
    add("--reason", metavar="WHY")
    add = command("amend", "correct an outcome; the old one stays in the log", writes=True)
    add("decision", metavar="ID")
    add("reward", type=float, metavar="REWARD")
    add("--reason", required=True, metavar="WHY", default=argparse.SUPPRESS)
    for name, about in (
        ("withdraw", "take back an outcome told by mistake; the decision waits again"),
        ("void", "mark a decision as not carried out; it counts for nothing"),
    ):
        add = command(name, about, writes=True)
        add("decision", metavar="ID")
        add("--reason", required=True, metavar="WHY", default=argparse.SUPPRESS)
    add = command("history", "add outcomes from before the experiment", writes=True)
    add("file", metavar="FILE.csv", help="with the columns arm, reward, and those of the context")
    add("--context", nargs="+", metavar="COLUMN", help="columns of the context, in order (default: all the others)")
    add("--key", metavar="K", help="a request key: added once (default: made of the file's content)")
    for name, about in (("pause", "no new decisions"), ("resume", "decisions again")):
        command(name, about, writes=True)("--reason", metavar="WHY")
    for name, about in (("drop-arm", "no more decisions for an arm"), ("add-arm", "a new arm, from the prior")):
        add = command(name, about, writes=True)
        add("arm", metavar="ARM")
        add("--reason", metavar="WHY")


def _add_reading(command: Callable[..., Callable[..., Any]]) -> None:
    command("list", "the experiments of a store", named=False)
    add = command("status", "how an experiment stands, with small plots")
    add("--context", type=float, nargs="+", metavar="X", help="show the posterior at this context")
    command("pending", "decisions that wait for their outcome")
    command("explain", "why a decision fell as it did")("decision", metavar="ID")
    add = command("export", "write the decisions to a file")
    add("--format", choices=("parquet", "csv", "jsonl"), help="the kind of file (default: as --out ends, or csv)")
    add("--out", metavar="FILE", help="the file (default: named after the experiment)")
    add("--force", action="store_true", help="overwrite it")
    add("--audit", action="store_true", help="write the audit trail to a second file beside it")
    add = command("audit", "everything that was stored: who, when, what, why")
    add("--after", metavar="CURSOR", help="go on behind this entry")
    add("--limit", type=int, metavar="N", help="at most so many entries")
    add("--out", metavar="FILE", help="write it to a file instead")
    add("--format", choices=("parquet", "csv", "jsonl"), help="the kind of file (default: as --out ends, or csv)")
    add("--force", action="store_true", help="overwrite it")
    command("replay", "recompute every decision from the log")
    add = command("simulate", "run the stored design forward on supposed truths, as a trial protocol must show")
    add("--truth", action="append", required=True, metavar="T", default=argparse.SUPPRESS,
        help="expected reward of each arm, such as 0.3,0.5,0.6; repeat for several")  # fmt: skip
    add("--horizon", type=int, metavar="N", help="decisions in the trial (default: the policy's horizon, or 500)")
    add("--realizations", type=int, default=1000, metavar="R", help="how many trials to play")
    add("--noise", type=float, default=1.0, help="deviation of a Gaussian reward where the design does not know it")
    add("--seed", type=int, default=1, help="the same seed gives the same numbers")


def add_db(commands: Any, run: Callable[[argparse.Namespace], int], help_format: Any) -> None:
    """The command that looks after the store itself."""
    db = commands.add_parser("db", help="look after a store of experiments", formatter_class=help_format)
    below = db.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, about: str) -> Callable[..., Any]:
        made = below.add_parser(
            name, help=about, description=about[0].upper() + about[1:] + ".", formatter_class=help_format
        )
        made.set_defaults(run=run, what=name)
        made.add_argument("--storage", metavar="URL", help=STORAGE)
        made.add_argument("--json", action="store_true", help="print JSON, for machines")
        add: Callable[..., Any] = made.add_argument
        return add

    command("upgrade", "make the tables, or bring them up to date")
    add = command("backup", "write everything to one file, while the store is in use")
    add("file", metavar="FILE", help="the backup: a SQLite file, whichever database the store is in")
    add("--force", action="store_true", help="overwrite it")
    add = command("restore", "put a backup in the place of what the store holds; running servers notice it")
    add("file", metavar="FILE", help="a backup, of either database")
    add("--force", action="store_true", help="replace a store that holds experiments; it is backed up first")
    add("--discard", action="store_true", help="do not back up what is replaced")
    command("verify", "check the database, replay every experiment, recompute every checkpoint")
