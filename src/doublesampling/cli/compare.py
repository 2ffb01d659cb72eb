"""``doublesampling compare``: a leaderboard of policies on a suite of problems."""

import math
import warnings
from typing import Any

from doublesampling import checks
from doublesampling.cli.output import new_table, open_console
from doublesampling.cli.simulate import PICTURES, check_file, write_files
from doublesampling.comparison import SUITES, draw_leaderboard, leaderboard, play
from doublesampling.errors import LongRunWarning
from doublesampling.exact.layers import check_horizon

_BOUND = (
    "The problems stand for two Bernoulli arms with uniform priors: no policy earns more on their average than the "
    "Bayes-optimal one."
)
_NO_BOUND = (
    "How far each policy is above the Bayes optimum is known for two Bernoulli arms averaged over their priors, not "
    "on given problems: see --suite uniform, or exact_regret and bayes_optimal."
)


def run(options: Any) -> int:
    """Play, rank, print, draw."""
    out = check_file("--out", options.out, (".nc",), options.force)
    plot = check_file("--plot", options.plot, PICTURES, options.force)
    checks.one_of("suite", options.suite, tuple(SUITES))
    suite = SUITES[options.suite]
    horizon = suite.horizon if options.horizon is None else options.horizon
    checks.integer("--horizon", horizon, least=2, most=10**9)
    if suite.averaged:
        check_horizon(horizon)
    realizations = suite.realizations if options.realizations is None else options.realizations
    checks.integer("--realizations", realizations, least=2, most=10**9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LongRunWarning)  # here the rules are compared, so that one sees it
        data = play(
            suite, horizon=horizon, realizations=realizations, seed=options.seed, device=options.device,
            progress=True,
        )  # fmt: skip
    rows = leaderboard(suite, data)
    console = open_console()
    # before anything else is printed: who reads the table may close the pipe
    write_files(console, data, out, lambda: draw_leaderboard(rows, suite.measure), plot)
    measured = "above the Bayes optimum" if suite.averaged else "relative regret"
    columns = ("policy", measured, "spread", "wrong at the end", "stuck", "µs per decision")
    table = new_table(columns, left=("policy",))
    for row in rows:
        cells = (
            f"{row.regret - 1:+.1%} ± {row.error:.1%}" if suite.averaged else f"{row.regret:.2f} ± {row.error:.2f}",
            f"{row.spread:.2f}",
            f"{row.wrong:.2%}",
            "–" if math.isnan(row.stuck) else f"{row.stuck:.2%}",
            f"{row.microseconds:.3f}",
        )
        table.add_row(row.policy, *cells)
    console.print(table)
    console.print(
        f"{len(suite.bandits)} problems, T = {horizon}, {realizations} realizations. Regret is "
        f"relative to {suite.measure}; spread is its deviation between realizations. Wrong at the end: the share of "
        "realizations that play a wrong arm, over the last tenth. Stuck: realizations that stayed on one for at least "
        f"half of it. {_BOUND if suite.averaged else _NO_BOUND}",
        style="dim",
    )
    return 0
