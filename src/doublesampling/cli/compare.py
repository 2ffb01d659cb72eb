"""``doublesampling compare``: a leaderboard of policies on a suite of problems."""

import math
import warnings
from typing import Any

from doublesampling import checks
from doublesampling.cli.output import new_table, open_console
from doublesampling.cli.simulate import PICTURES, check_file, write_files
from doublesampling.comparison import SUITES, draw_leaderboard, leaderboard, play
from doublesampling.errors import LongRunWarning


def run(options: Any) -> int:
    """Play, rank, print, draw."""
    out = check_file("--out", options.out, (".nc",), options.force)
    plot = check_file("--plot", options.plot, PICTURES, options.force)
    checks.one_of("suite", options.suite, tuple(SUITES))
    checks.integer("--horizon", options.horizon, least=2, most=10**9)
    suite = SUITES[options.suite]
    realizations = suite.realizations if options.realizations is None else options.realizations
    checks.integer("--realizations", realizations, least=2, most=10**9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LongRunWarning)  # here the rules are compared, so that one sees it
        data = play(
            suite, horizon=options.horizon, realizations=realizations, seed=options.seed, device=options.device,
            progress=True,
        )  # fmt: skip
    rows = leaderboard(suite, data)
    console = open_console()
    # before anything else is printed: who reads the table may close the pipe
    write_files(console, data, out, lambda: draw_leaderboard(rows, suite.measure), plot)
    columns = ("policy", "relative regret", "spread", "wrong at the end", "stuck", "µs per decision")
    table = new_table(columns, left=("policy",))
    for row in rows:
        cells = (
            f"{row.regret:.2f} ± {row.error:.2f}",
            f"{row.spread:.2f}",
            f"{row.wrong:.2%}",
            "–" if math.isnan(row.stuck) else f"{row.stuck:.2%}",
            f"{row.microseconds:.3f}",
        )
        table.add_row(row.policy, *cells)
    console.print(table)
    console.print(
        f"{len(suite.bandits)} problems, T = {options.horizon}, {realizations} realizations. Regret is "
        f"relative to {suite.measure}; spread is its deviation between realizations. Wrong at the end: the share of "
        "realizations that play a wrong arm, over the last tenth. Stuck: realizations that stayed on one for at least "
        "half of it.",
        style="dim",
    )
    return 0
