"""``doublesampling illustrate``: one bandit, live in the terminal."""

import math
import time
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from doublesampling import checks
from doublesampling.bandits import BernoulliBandit
from doublesampling.errors import OutputError, SettingError
from doublesampling.paper.illustration import Step, collect, walk
from doublesampling.policies import DoubleSampling

_COLOURS = ("blue", "red", "green", "magenta", "yellow", "cyan")
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
_BAR = 32
_SPARK = 50
_SUFFIXES = (".png", ".pdf", ".svg")


def bar(share: float, width: int = _BAR) -> str:
    """A share of 1 as a bar of block characters, to an eighth of a character."""
    eighths = round(share * width * 8)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(width)


def sparkline(values: list[int]) -> str:
    """The last values as small columns, on a logarithmic scale: one candidate is the floor, a thousand the top."""
    return "".join(_HEIGHTS[min(round(math.log10(max(v, 1)) / 3 * 7), 7)] for v in values[-_SPARK:])


def frame(bandit: BernoulliBandit, steps: list[Step], total: int) -> Group:
    """What the terminal shows after some steps."""
    now = steps[-1].decision
    played = steps[-1].played
    table = Table(box=None, pad_edge=False, show_header=True, header_style="dim")
    for name in ("arm", "θ", "probability of being the best, p̂", "", "played"):
        table.add_column(name, justify="right" if name in ("θ", "", "played") else "left", no_wrap=True)
    for arm in range(bandit.arms):
        colour = _COLOURS[arm % len(_COLOURS)]
        mark = "▶" if arm == now.arm else " "
        p = float(now.probability_optimal[arm])
        cells = (f"{mark} {arm}", f"{bandit.probabilities[arm]:g}", bar(p), f"{p:.1%}", str(played[arm]))
        table.add_row(*(Text(cell, style=colour if i in (0, 2) else "") for i, cell in enumerate(cells)))
    line = sparkline([step.decision.candidates for step in steps[-_SPARK:]])
    mood = "exploring" if now.candidates <= 1 else "leaning" if now.candidates <= 3 else "exploiting"
    return Group(
        Text(f"double sampling, step {len(steps)} of {total}", style="bold"),
        Text(),
        table,
        Text(),
        Text.assemble(
            ("N  ", "dim"), (line, "cyan"), f"  {now.candidates} candidate{'s' * (now.candidates > 1)}: {mood}"
        ),
    )


def _check_save(save: str | None) -> Path | None:
    """Refuse a file that cannot be drawn before anything is played."""
    if save is None:
        return None
    path = Path(save)
    if path.suffix.lower() not in _SUFFIXES:
        raise OutputError(f"--save draws {', '.join(_SUFFIXES)} files, got {save!r}. Name it {path.stem}.png.")
    if path.is_dir() or not path.parent.is_dir():
        raise OutputError(
            f"--save cannot write {save!r}: the folder {str(path.parent)!r} does not exist or is not one."
        )
    return path


def run(options: Any) -> int:
    """Play as the command line says."""
    return illustrate(options.theta, options.steps, options.seed, options.save, options.pace)


def illustrate(theta: list[float], steps: int, seed: int, save: str | None, pace: float) -> int:
    """Play, show, and draw if asked."""
    bandit, path = BernoulliBandit(theta), _check_save(save)
    checks.integer("--steps", steps, least=1, most=1_000_000)
    if not pace >= 0.0:
        raise SettingError(f"--pace must be 0 or more steps per second, got {pace:g}.")
    console = Console(highlight=False)
    taken: list[Step] = []
    game = walk(bandit, DoubleSampling(), steps=steps, seed=checks.seed(seed))
    if console.is_terminal:
        with console.status("Compiling for this machine, only the first time..."):
            taken.append(next(game))
        with Live(frame(bandit, taken, steps), console=console, refresh_per_second=20) as live:
            for step in game:
                taken.append(step)
                live.update(frame(bandit, taken, steps))
                time.sleep(1.0 / pace if pace > 0.0 else 0.0)
    else:
        taken.extend(game)
        console.print(frame(bandit, taken, steps))
    if path is not None:
        _save(bandit, taken, path)
        console.print(f"\nBoth panels of figure 1 are in {path}")
    return 0


def _save(bandit: BernoulliBandit, taken: list[Step], path: Path) -> None:
    from doublesampling.paper.figures import draw_illustration  # matplotlib: only for those who ask

    try:
        draw_illustration(collect(bandit, taken)).savefig(path, dpi=150)
    except OSError as problem:
        raise OutputError(f"--save cannot write {str(path)!r}: {problem.strerror or problem}.") from None
