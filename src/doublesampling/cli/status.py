"""The output of ``experiment status`` and ``experiment simulate``: tables and small plots in the terminal."""

import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from doublesampling.cli.illustrate import bar, sparkline
from doublesampling.live import Experiment
from doublesampling.live.design import Design
from doublesampling.live.operating_characteristics import Characteristics, words_of_truth

_RECENT = 60


def status(exp: Experiment, context: Any) -> dict[str, Any]:
    """Return the summary, with the posterior of each arm where no context is needed or one is given."""
    content = exp.summary()
    if context is None and exp.design.belief.dimension is not None:
        return content
    frame = exp.posterior(context)
    for arm, row in zip(content["arms"], json.loads(frame.to_json(orient="records", double_precision=15)), strict=True):
        arm["posterior"] = {name: row[name] for name in ("mean", "sd", "low", "high", "probability_optimal")}
    return content


def show_status(console: Console, exp: Experiment, content: dict[str, Any]) -> None:
    """Print a headline, a row per arm, and the number of candidates of the last decisions."""
    console.print(f"{content['name']}: {content['status']}", style="bold", markup=False)
    console.print(
        f"{content['decisions']} decisions, {content['outcomes']} outcomes, {content['waiting']} waiting, "
        f"{content['imputed']} imputed, {content['amended']} amended, {content['withdrawn']} withdrawn, "
        f"{content['voided']} voided, {content['history']} imported",
        markup=False,
    )
    parts = [content[part] for part in ("belief", "policy", "allocation", "stopping") if content[part] is not None]
    console.print(f"{', '.join(parts)}, seed {content['seed']}", style="dim", markup=False)
    for look in exp.looks:
        console.print(look.reason, markup=False)
    console.print()
    console.print(_arms(content))
    last = exp.decisions(after=max(0, content["decisions"] - _RECENT))["candidates"].tolist()[-_RECENT:]
    if last:
        console.print()
        console.print(Text.assemble(("N  ", "dim"), (sparkline(last), "cyan"), f"  {last[-1]} at the last decision"))


def _arms(content: dict[str, Any]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("arm", "asked", "share", "told", "expected reward, 95 %", "P(best)"):
        table.add_column(name, justify="left" if name in ("arm", "share", "P(best)") else "right", no_wrap=True)
    for arm in content["arms"]:
        share = arm["decisions"] / max(content["decisions"], 1)
        law = arm.get("posterior")
        believed, best = "needs --context", ""
        if law is not None:
            believed = f"{law['mean']:.3f} ({law['low']:.3f} to {law['high']:.3f})"
            best = f"{bar(law['probability_optimal'], 10)} {law['probability_optimal']:5.1%}"
        cells = (
            arm["name"] + ("" if arm["active"] else " (dropped)"),
            str(arm["decisions"]),
            f"{bar(share, 8)} {share:4.0%}",
            str(arm["outcomes"]),
            believed,
            best,
        )
        table.add_row(*(Text(cell) for cell in cells))
    return table


def show_characteristics(console: Console, design: Design, found: Sequence[Characteristics]) -> None:
    """Print operating characteristics, a row per assumed truth."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    failing = found[0].failures is not None
    ends = [how for how in found[0].ends or {} if how == "maximum" or getattr(design.stopping, how, None) is not None]
    names = ["truth", "best wins %", *(f"{how} %" for how in ends), *(["size"] if ends else [])]
    equal = ["if equal"] if found[0].failures_of_equal_allocation is not None else []
    names += [*(["failures", *equal] if failing else ["regret"]), *(f"{arm} %" for arm in design.arms)]
    for name in names:
        table.add_column(name, justify="left" if name == "truth" else "right", no_wrap=True)
    for row in found:
        loss = row.failures if row.failures is not None else row.regret
        alike = "all equal" if len(set(row.truth)) == 1 else "–"
        cells = [words_of_truth(row.truth), alike if row.best_arm_wins is None else _shown(row.best_arm_wins, 100)]
        cells += [_shown(row.ends[how], 100) for how in ends] if row.ends is not None else []
        cells += [] if row.size is None else [_shown(row.size)]
        cells.append(_shown(loss))
        if row.failures_of_equal_allocation is not None:
            cells.append(f"{row.failures_of_equal_allocation:.1f}")
        table.add_row(*(Text(cell) for cell in [*cells, *(_shown(share, 100) for share in row.shares)]))
    console.print(table)
    parts = [part for part in (design.belief, design.policy, design.allocation, design.stopping) if part is not None]
    how_many = "at most" if ends else "of"
    console.print(
        f"{found[0].realizations} trials {how_many} {found[0].horizon} decisions each; "
        f"{', '.join(map(repr, parts))}. The winner is the arm that is selected at the end; then "
        f"{'how trials end, their size, ' if ends else ''}"
        f"{'failures' if failing else 'regret'}{', those of equal allocation' if equal else ''} and the share of each "
        "arm; "
        "± one standard error.",
        style="dim",
        markup=False,
    )


def _shown(value: tuple[float, float], times: float = 1.0) -> str:
    return f"{times * value[0]:.1f} ± {times * value[1]:.1f}"
