"""The command ``doublesampling``: parsing and errors. Each command's work loads only when it is called.

argparse, and not Click or Typer: ``--theta 0.4 0.7 0.8`` takes several values, which Click's options cannot, and
``--help`` answers in a twentieth of a second.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn, cast

from doublesampling import __version__
from doublesampling.cli.experiment_options import add_db, add_experiment
from doublesampling.cli.report_options import add_reports
from doublesampling.cli.service_options import add_key, add_serve
from doublesampling.cli.trial_options import add_trial
from doublesampling.errors import DoubleSamplingError


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Shows the default of an option where there is one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, False, []) else super()._get_help_string(action)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")


def _load(module: str) -> Callable[[argparse.Namespace], int]:
    """Return the function of a command, whose module is imported when it is called."""

    def run(options: argparse.Namespace) -> int:
        status: int = import_module(f"doublesampling.cli.{module}").run(options)
        return status

    return run


def _add_command(commands: Any, name: str, *, about: str, description: str) -> Callable[..., Any]:
    """Add a command that runs the module of its name; return the function that adds options to it."""
    command = commands.add_parser(name, help=about, description=description, formatter_class=_Help)
    command.set_defaults(run=_load(name))
    return cast(Callable[..., Any], command.add_argument)


def _add_run(add: Callable[..., Any], device: bool = True, dask: bool = False) -> None:
    """Add the options that all simulating commands share."""
    add("--seed", type=int, default=1, help="the same seed gives the same numbers")
    if device:
        add("--device", default="auto", help="auto, cpu or cuda")
    if dask:
        add("--dask", metavar="ADDRESS", help="play on a Dask cluster, such as tcp://scheduler:8786")


def _add_files(add: Callable[..., Any], drawn: str) -> None:
    """Add the options of every command that writes a dataset and a figure."""
    add("--out", metavar="FILE.nc", help="write the dataset as NetCDF")
    add("--plot", metavar="FILE", help=f"draw the {drawn} to a .png, .pdf or .svg file")
    add("--force", action="store_true", help="overwrite files")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    main_parser = _Parser(prog="doublesampling", description="Bayesian bandits that decide by sampling twice.")
    main_parser.add_argument("--version", action="version", version=f"doublesampling {__version__}")
    commands = main_parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    _add_illustrate(commands)
    _add_simulate(commands)
    _add_compare(commands)
    _add_replay(commands)
    _add_warm(commands)
    _add_reproduce(commands)
    add_trial(commands, _load("trial"), _Help)
    add_experiment(commands, _load("experiment"), _Help)
    add_db(commands, _load("db"), _Help)
    add_reports(commands, _load, _Help)
    add_serve(commands, _load("serve"), _Help)
    add_key(commands, _load("key"), _Help)
    return main_parser


def _add_illustrate(commands: Any) -> None:
    add = _add_command(
        commands,
        "illustrate",
        about="watch double sampling learn a Bernoulli bandit, live in the terminal (the paper's figure 1)",
        description="Play a Bernoulli bandit and watch the probability of each arm being the best, and how many "
        "candidates that doubt asks for. Nothing is drawn live when the output is not a terminal.",
    )
    add("--theta", type=float, nargs="+", default=[0.4, 0.7, 0.8], metavar="P", help="success probability of each arm")
    add("--steps", type=int, default=500, metavar="T", help="how many times to play")
    add("--seed", type=int, default=1, help="the same seed plays the same game")
    add("--save", metavar="FILE", help="also draw both panels to a .png, .pdf or .svg file")
    add("--pace", type=float, default=60.0, metavar="N", help="steps shown per second, 0 for no limit")


def _add_simulate(commands: Any) -> None:
    add = _add_command(
        commands,
        "simulate",
        about="play policies against bandits and compare their regret",
        description="Play policies against bandits over many realizations. The same seed gives the same numbers on any "
        "number of threads, workers and chunks.",
    )
    add("--bandit", action="append", required=True, metavar="B", default=argparse.SUPPRESS,
        help="bernoulli:0.4,0.8 or gaussian:0,1:0.5 or linear:0.4,0.4;0.8,0.8:0.2 or logistic:1,0;0,1 or poisson:1,2 "
        "or exponential:1,2; repeat for a sweep")  # fmt: skip
    add("--policy", action="append", required=True, metavar="P", default=argparse.SUPPRESS,
        help="double-sampling, double-sampling-published, thompson, bayes-ucb, top-two, ucb1, kl-ucb, imed, "
        "information-directed, lin-ucb, greedy, epsilon-greedy or oracle; settings follow a colon, as in "
        "double-sampling:horizon=1500,ties=\"first\"; repeat to compare")  # fmt: skip
    add("--horizon", type=int, default=1500, metavar="T", help="decisions in a realization")
    add("--realizations", type=int, default=1000, metavar="R", help="how many realizations")
    add("--times", default="all", choices=("all", "log"), help="steps to record")
    add("--store", metavar="FOLDER", help="store finished chunks here, so that an interrupted run can be resumed")
    _add_run(add, dask=True)
    _add_files(add, "regret")


def _add_compare(commands: Any) -> None:
    add = _add_command(
        commands,
        "compare",
        about="rank policies on a suite of problems",
        description="Play many policies on a suite of problems and print a leaderboard: regret, spread, how often a "
        "policy is on a wrong arm at the end, and time per decision.",
    )
    add("--suite", default="bernoulli", metavar="S",
        help="bernoulli, uniform (measured by the Bayes optimum), gaussian, linear, logistic, poisson, exponential, "
        "categorical or changing")  # fmt: skip
    add("--horizon", type=int, metavar="T", help="decisions in a realization (1500; 200 for uniform)")
    add("--realizations", type=int, metavar="R", help="realizations of each problem (a quick number for each suite)")
    _add_run(add)
    _add_files(add, "leaderboard")


def _add_warm(commands: Any) -> None:
    add = _add_command(
        commands,
        "warm",
        about="compile everything ahead",
        description="Compile the code of every policy, belief and bandit for this machine and keep it on disk, so that "
        "nobody waits for it later: for container images, servers and classrooms. NUMBA_CACHE_DIR says where.",
    )
    add("--what", default="all", help="all, decide, simulate or trial")
    add("--processes", type=int, metavar="N", help="processes that compile (one for each core)")


def _add_replay(commands: Any) -> None:
    add = _add_command(
        commands,
        "replay",
        about="what policies would have earned on logged decisions",
        description="Evaluate policies on a CSV or Parquet log of decisions, or on a data set of scikit-learn turned "
        "into a bandit: unbiased rejection replay, inverse-propensity and doubly robust estimates.",
    )
    add("log", nargs="?", metavar="FILE", help="a .csv, .parquet or .jsonl file, one row per decision; an "
        "export of a live experiment is read as it is")  # fmt: skip
    add("--dataset", metavar="D", help="breast-cancer or digits, instead of a file")
    add("--arm", default="arm", metavar="COLUMN", help="the arm that was played")
    add("--reward", default="reward", metavar="COLUMN", help="what it paid")
    add("--propensity", metavar="COLUMN", help="the probability with which it was played")
    add(
        "--context",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="what was known before: numbers, or lists of numbers as JSON",
    )
    add("--policy", action="append", metavar="P", help="as in simulate; repeat to compare")
    _add_run(add, device=False)


def _add_reproduce(commands: Any) -> None:
    add = _add_command(
        commands,
        "reproduce",
        about="the paper's six figures, and a report of what holds and what does not",
        description="Run the paper's evaluation, draw its figures and judge its claims. An interrupted run continues "
        "with --resume.",
    )
    add("--figure", type=int, nargs="+", action="extend", metavar="N",
        help="only these figures, 1 to 6 (default: all, and what lies beyond the paper)")  # fmt: skip
    add("--scale", choices=("quick", "standard", "paper"), default="standard",
        help="quick: about a minute; standard: about ten minutes on two cores; paper: 5000 realizations of everything, "
        "hours on two cores, minutes on a GPU")  # fmt: skip
    add("--realizations", type=int, metavar="R", help="instead of the scale's own numbers")
    _add_run(add, dask=True)
    add("--out", default="out/reproduce", metavar="DIR", help="the folder for datasets, figures and the report")
    add("--resume", action="store_true", help="continue an interrupted run")
    add("--force", action="store_true", help="start again in a folder that holds another run")


def _tell(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """Print a warning without its place in the code."""
    print(f"doublesampling: {message}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    options = parser().parse_args(arguments)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _tell
            status: int = options.run(options)
    except DoubleSamplingError as problem:
        print(f"doublesampling: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("doublesampling: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of the pipe ended, as `head` does
        sys.stderr.close()
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main())
