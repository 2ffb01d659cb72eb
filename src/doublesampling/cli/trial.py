"""``doublesampling trial``: the operating characteristics of a design, its calibration, and exact error rates."""

from typing import Any

from rich.console import Console

from doublesampling.cli.output import new_table, open_console
from doublesampling.cli.settings import read_truth
from doublesampling.cli.simulate import PICTURES, check_file, write_files
from doublesampling.trials import Trial
from doublesampling.trials.calibrate import calibrate
from doublesampling.trials.summary import text_of


def show(console: Console, data: Any) -> None:
    """Print one row per scenario and allocation."""
    header, *rows = text_of(data)
    words = ("scenario", "allocation", "truth")
    table = new_table(header, left=words)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def run(options: Any) -> int:
    """Read the design, compute, print, write."""
    trial = Trial.read(options.design)
    options.truth = [read_truth(",".join(words)) for words in options.truth]
    if options.trial_command == "calibrate":
        return _calibrate(trial, options)
    out = check_file("--out", options.out, (".nc",), options.force)
    plot = check_file("--plot", options.plot, PICTURES, options.force)
    console = open_console()
    if options.trial_command == "exact":
        data = trial.exact(options.truth)
        note = "Exact: no chance is involved."
    else:
        data = trial.simulate(
            options.truth, options.realizations, delay=options.delay, dropout=options.dropout, trend=options.trend,
            seed=options.seed,
        )  # fmt: skip
        note = f"± is one Monte Carlo standard error; {options.realizations} realizations, seed {options.seed}."
    write_files(console, data, out, data.ds.plot_characteristics, plot)
    show(console, data)
    console.print(note, style="dim")
    return 0


def _calibrate(trial: Trial, options: Any) -> int:
    out = check_file("--out", options.out, (".toml", ".json"), options.force)
    found = calibrate(
        trial, options.truth, options.alpha, options.parameter, mirror=options.mirror,
        realizations=options.realizations, tolerance=options.tolerance, seed=options.seed, delay=options.delay,
        dropout=options.dropout, trend=options.trend, method=options.method,
    )  # fmt: skip
    console = open_console()
    if out is not None:
        found.trial.write(out)
        console.print(f"The calibrated design is in {out}")
    console.print(str(found))
    show(console, found.characteristics)
    return 0
