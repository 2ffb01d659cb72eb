"""The command ``doublesampling``: parsing and errors. Each command's work loads only when it is called.

argparse, and not Click or Typer: ``--theta 0.4 0.7 0.8`` takes several values, which Click's options cannot, and
``--help`` answers in a twentieth of a second.
"""

import argparse
import sys
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from doublesampling import __version__
from doublesampling.errors import DoubleSamplingError


class _Help(argparse.ArgumentDefaultsHelpFormatter):
    """Defaults where there is one to tell."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        return action.help if action.default in (None, False, []) else super()._get_help_string(action)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\nTry '{self.prog} --help'.\n")


def _illustrate(options: argparse.Namespace) -> int:
    from doublesampling.cli.illustrate import illustrate

    return illustrate(options.theta, options.steps, options.seed, options.save, options.pace)


def _simulate(options: argparse.Namespace) -> int:
    from doublesampling.cli.simulate import run

    return run(options)


def _compare(options: argparse.Namespace) -> int:
    from doublesampling.cli.compare import run

    return run(options)


def _replay(options: argparse.Namespace) -> int:
    from doublesampling.cli.replay import run

    return run(options)


def _reproduce(options: argparse.Namespace) -> int:
    from doublesampling.cli.reproduce import run

    return run(options)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    main_parser = _Parser(prog="doublesampling", description="Bayesian bandits that decide by sampling twice.")
    main_parser.add_argument("--version", action="version", version=f"doublesampling {__version__}")
    commands = main_parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    command = commands.add_parser(
        "illustrate",
        help="watch double sampling learn a Bernoulli bandit, live in the terminal (the paper's figure 1)",
        description="Play a Bernoulli bandit and watch the probability of each arm being the best, and how many "
        "candidates that doubt asks for. Nothing is drawn live when the output is not a terminal.",
        formatter_class=_Help,
    )
    command.add_argument(
        "--theta", type=float, nargs="+", default=[0.4, 0.7, 0.8], metavar="P", help="success probability of each arm"
    )
    command.add_argument("--steps", type=int, default=500, metavar="T", help="how many times to play")
    command.add_argument("--seed", type=int, default=1, help="the same seed plays the same game")
    command.add_argument("--save", metavar="FILE", help="also draw both panels to a .png, .pdf or .svg file")
    command.add_argument("--pace", type=float, default=60.0, metavar="N", help="steps shown per second, 0 for no limit")
    command.set_defaults(run=_illustrate)
    _add_simulate(commands)
    _add_compare(commands)
    _add_replay(commands)
    _add_reproduce(commands)
    return main_parser


def _add_simulate(commands: Any) -> None:
    command = commands.add_parser(
        "simulate",
        help="play policies against bandits and compare their regret",
        description="Play policies against bandits over many realizations. The same seed gives the same numbers on any "
        "number of threads, workers and chunks.",
        formatter_class=_Help,
    )
    add = command.add_argument
    add("--bandit", action="append", required=True, metavar="B", default=argparse.SUPPRESS,
        help="bernoulli:0.4,0.8 or gaussian:0,1:0.5 or linear:0.4,0.4;0.8,0.8:0.2; repeat for a sweep")  # fmt: skip
    add("--policy", action="append", required=True, metavar="P", default=argparse.SUPPRESS,
        help="double-sampling, double-sampling-published, thompson, bayes-ucb, top-two, ucb1, kl-ucb, imed, lin-ucb, "
        "greedy, epsilon-greedy or oracle; repeat to compare")  # fmt: skip
    add("--horizon", type=int, default=1500, metavar="T", help="decisions in a realization")
    add("--realizations", type=int, default=1000, metavar="R", help="how many realizations")
    add("--seed", type=int, default=1, help="the same seed gives the same numbers")
    add("--device", default="auto", help="auto, cpu or cuda")
    add("--times", default="all", choices=("all", "log"), help="steps to record")
    add("--out", metavar="FILE.nc", help="write the dataset as NetCDF")
    add("--plot", metavar="FILE", help="draw the regret to a .png, .pdf or .svg file")
    add("--force", action="store_true", help="overwrite files")
    add("--store", metavar="FOLDER", help="keep finished pieces here, so that a killed run can go on")
    add("--dask", metavar="ADDRESS", help="play on a Dask cluster, such as tcp://scheduler:8786")
    command.set_defaults(run=_simulate)


def _add_compare(commands: Any) -> None:
    command = commands.add_parser(
        "compare",
        help="rank policies on a suite of problems",
        description="Play many policies on a suite of problems and print a leaderboard: regret, spread, how often a "
        "policy gets stuck on a wrong arm, and time per decision.",
        formatter_class=_Help,
    )
    add = command.add_argument
    add("--suite", default="bernoulli", metavar="S", help="bernoulli or linear")
    add("--horizon", type=int, default=1500, metavar="T", help="decisions in a realization")
    add("--realizations", type=int, default=500, metavar="R", help="realizations of each problem")
    add("--seed", type=int, default=1, help="the same seed gives the same numbers")
    add("--device", default="auto", help="auto, cpu or cuda")
    add("--out", metavar="FILE.nc", help="write the dataset as NetCDF")
    add("--plot", metavar="FILE", help="draw the leaderboard to a .png, .pdf or .svg file")
    add("--force", action="store_true", help="overwrite files")
    command.set_defaults(run=_compare)


def _add_replay(commands: Any) -> None:
    command = commands.add_parser(
        "replay",
        help="what policies would have earned on logged decisions",
        description="Evaluate policies on a CSV or Parquet log of decisions, or on a data set of scikit-learn turned "
        "into a bandit: unbiased rejection replay, inverse-propensity and doubly robust estimates.",
        formatter_class=_Help,
    )
    add = command.add_argument
    add("log", nargs="?", metavar="FILE", help="a .csv or .parquet file, one row per decision")
    add("--dataset", metavar="D", help="breast-cancer or digits, instead of a file")
    add("--arm", default="arm", metavar="COLUMN", help="the arm that was played")
    add("--reward", default="reward", metavar="COLUMN", help="what it paid")
    add("--propensity", metavar="COLUMN", help="the probability with which it was played")
    add("--context", nargs="+", default=[], metavar="COLUMN", help="what was known before")
    add("--policy", action="append", metavar="P", help="as in simulate; repeat to compare")
    add("--seed", type=int, default=1, help="the same seed gives the same numbers")
    command.set_defaults(run=_replay)


def _add_reproduce(commands: Any) -> None:
    command = commands.add_parser(
        "reproduce",
        help="the paper's six figures, and a report of what holds and what does not",
        description="Run the paper's evaluation, draw its figures and judge its claims. A run that was stopped goes on "
        "with --resume.",
        formatter_class=_Help,
    )
    add = command.add_argument
    add("--figure", type=int, nargs="+", action="extend", metavar="N", default=argparse.SUPPRESS,
        help="only these figures, 1 to 6 (default: all, and what lies beyond the paper)")  # fmt: skip
    add("--scale", choices=("quick", "standard", "paper"), default="standard",
        help="quick: about a minute; standard: about ten minutes on two cores; paper: 5000 realizations of everything, "
        "hours on two cores, minutes on a GPU")  # fmt: skip
    add("--realizations", type=int, metavar="R", help="instead of the scale's own numbers")
    add("--seed", type=int, default=1, help="the same seed gives the same numbers")
    add("--device", default="auto", help="auto, cpu or cuda")
    add("--dask", metavar="ADDRESS", help="play on a Dask cluster, such as tcp://scheduler:8786")
    add("--out", default="out/reproduce", metavar="DIR", help="the folder for datasets, figures and the report")
    add("--resume", action="store_true", help="go on with a run that was stopped")
    add("--force", action="store_true", help="begin anew in a folder that holds another run")
    command.set_defaults(run=_reproduce, figure=None)


def _tell(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """A warning as a person reads it, without the place in the code."""
    print(f"doublesampling: {message}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
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
    except BrokenPipeError:  # the reader went away, as `head` does
        sys.stderr.close()
        return 0
    return status


if __name__ == "__main__":
    sys.exit(main())
