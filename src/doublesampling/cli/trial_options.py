"""The options of ``doublesampling trial``."""

import argparse
from collections.abc import Callable
from typing import Any


def add_trial(commands: Any, run: Callable[[argparse.Namespace], int], help_format: Any) -> None:
    """Add ``trial simulate``, ``trial calibrate`` and ``trial exact``."""
    trial = commands.add_parser(
        "trial",
        help="error rates, power and size of a trial's design",
        description="Describe the design of a trial in a .toml or .json file: arms, belief, policy, allocation, "
        "stopping rule, horizon.",
    )
    below = trial.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, about: str) -> Any:
        made = below.add_parser(name, help=about, description=f"{about.capitalize()}.", formatter_class=help_format)
        made.set_defaults(run=run, trial_command=name)
        made.add_argument("design", metavar="DESIGN", help="a .toml or .json file")
        what = "null" if name == "calibrate" else "truth"
        made.add_argument(f"--{what}", dest="truth", action="append", required=True, nargs="+",
                          metavar="P", help="the expected outcome of each arm; repeat for more scenarios")  # fmt: skip
        if name != "exact":
            made.add_argument("--realizations", type=int, default=1000, metavar="R", help="simulated trials per truth")
            made.add_argument("--delay", type=int, metavar="D",
                              help="participants until an outcome is known (as in the design)")  # fmt: skip
            made.add_argument("--dropout", type=float, default=0.0, metavar="P", help="share of outcomes never known")
            made.add_argument("--trend", type=float, metavar="X",
                              help="how far expected outcomes move from the first to the last participant")  # fmt: skip
            made.add_argument("--seed", type=int, default=1, help="the same seed gives the same numbers")
        if name != "calibrate":
            made.add_argument("--plot", metavar="FILE", help="draw the table to a .png, .pdf or .svg file")
        made.add_argument("--out", metavar="FILE", help="write the dataset as NetCDF (.nc)" if name != "calibrate" else
                          "write the calibrated design to a .toml or .json file")  # fmt: skip
        made.add_argument("--force", action="store_true", help="overwrite files")
        return made

    command("simulate", "simulate the design, beside equal allocation")
    command("exact", "compute the design's error rates without chance, for two binary arms")
    made = command("calibrate", "find the threshold whose type I error is at most alpha at every null")
    made.add_argument("--alpha", type=float, default=0.05, help="the largest type I error")
    made.add_argument("--parameter", default="superiority", help="superiority, equivalence or futility")
    made.add_argument("--mirror", action="store_true", help="keep inferiority at 1 - superiority")
    made.add_argument("--tolerance", type=float, default=1e-4, help="how finely the threshold is sought")
    made.add_argument("--method", default="auto", help="exact, simulate, or auto: exact for two binary arms")
