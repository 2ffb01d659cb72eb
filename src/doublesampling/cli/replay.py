"""``doublesampling replay``: what policies would have earned on logged decisions."""

import math
from typing import Any

from doublesampling.cli.output import new_table, open_console
from doublesampling.cli.simulate import parse_policy
from doublesampling.errors import SettingError
from doublesampling.logs import Log, classification_log, read_log
from doublesampling.off_policy import Evaluation, Worth, evaluate
from doublesampling.progress import Progress

_USUAL = ("double-sampling", "thompson", "bayes-ucb", "greedy")
_LEFT = ("policy",)


def run(options: Any) -> int:
    """Read, evaluate, print."""
    if (options.log is None) == (options.dataset is None):
        raise SettingError("Name a log file, or a data set with --dataset; one of the two.")
    policies = {name: parse_policy(name) for name in options.policy or _USUAL}
    if options.dataset is not None:
        log = classification_log(options.dataset, seed=options.seed)
    else:
        log = read_log(
            options.log, arm=options.arm, reward=options.reward, propensity=options.propensity, context=options.context
        )
    progress = Progress(True, "replaying")
    with progress.over(2 * log.arms.size * len(policies), 0, "rows"):
        found = {
            name: evaluate(policy, log, seed=options.seed, progress=progress.advance)
            for name, policy in policies.items()
        }
    _show(log, found)
    if options.dataset is None and options.propensity is None and not log.adaptive:
        open_console().print(
            "No --propensity: every arm is taken to have been played with the same probability.", style="dim"
        )
    return 0


def _show(log: Log, found: dict[str, Evaluation]) -> None:
    console = open_console()
    table = new_table(("policy", "replay", "rows", "ips", "dr", "effective rows"), left=_LEFT)
    for name, each in found.items():
        cells = _shown(each.replay), str(each.replay.rows), _shown(each.ips), _shown(each.dr)
        table.add_row(name, *cells, f"{each.ips.effective:.0f}")
    console.print(table)
    belief = type(log.belief()).__name__
    left_out = f" {log.skipped} decisions without a known outcome were left out." if log.skipped else ""
    console.print(
        f"Mean reward per decision with its 95 % interval; the log's own mean is {log.rewards.mean():.4g} over "
        f"{log.arms.size} rows of {len(log.names)} arms.{left_out} Belief: {belief}. Replay counts the rows where a "
        "policy agrees with the log and learns from these; ips (inverse propensity) and dr (doubly robust) weigh every "
        "row, as informative as so many effective rows of equal weight.",
        style="dim",
    )
    said: dict[str, list[str]] = {}
    for name, each in found.items():
        for warning in each.warnings:
            said.setdefault(warning, []).append(name)
    for warning, names in said.items():
        whose = "" if len(names) == len(found) else f" ({', '.join(names)})"
        console.print(f"Warning{whose}: {warning}", style="yellow")


def _shown(worth: Worth) -> str:
    if math.isnan(worth.mean):
        return "no rows"
    return f"{worth.mean:.3f}" if math.isnan(worth.low) else f"{worth.mean:.3f} ± {worth.high - worth.mean:.3f}"
