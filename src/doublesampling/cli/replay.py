"""``doublesampling replay``: what policies would have earned on logged decisions."""

from typing import Any

from rich.console import Console
from rich.table import Table

from doublesampling.cli.simulate import parse_policy
from doublesampling.errors import SettingError
from doublesampling.replay import Worth, classification_log, evaluate, read_log

_USUAL = ("double-sampling", "thompson", "bayes-ucb", "greedy")


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
    console = Console(highlight=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("policy", "replay", "rows", "ips", "dr"):
        table.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for name, policy in policies.items():
        found = evaluate(policy, log, seed=options.seed)
        table.add_row(name, _shown(found.replay), str(found.replay.rows), _shown(found.ips), _shown(found.dr))
    console.print(table)
    belief = type(log.belief()).__name__
    console.print(
        f"Mean reward per decision with its 95 % interval; the log's own mean is {log.rewards.mean():.4g} over "
        f"{log.arms.size} rows of {len(log.names)} arms. Belief: {belief}. Replay counts the rows where a policy "
        "agrees with the log and learns from these; ips (inverse propensity) and dr (doubly robust) weigh every row.",
        style="dim",
    )
    if options.dataset is None and options.propensity is None:
        console.print("No --propensity: every arm is taken to have been played with the same probability.", style="dim")
    return 0


def _shown(worth: Worth) -> str:
    return f"{worth.mean:.3f} ± {worth.high - worth.mean:.3f}" if worth.rows > 1 else "too few rows"
