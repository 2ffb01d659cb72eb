"""How a notebook shows the design of a trial: its arms, its rules, and its looks with their thresholds."""

from typing import Any

import numpy as np

from doublesampling import html
from doublesampling.stopping import THRESHOLDS, Stopping

_MOST_LOOKS = 12


class TrialView:
    """Shows a trial as tables where it is the last value of a cell."""

    def _repr_html_(self: Any) -> str:
        control = self.control
        names = [f"{name} (control)" if arm == control else name for arm, name in enumerate(self.arms)]
        parts = [
            ("arms", ", ".join(names)),
            ("participants at most", self.horizon),
            ("outcomes are known", "at once" if not self.delay else f"late: {self.delay!r}"),
            ("belief", repr(self.belief)),
            ("policy", repr(self.policy)),
            ("allocation", "as the policy decides" if self.allocation is None else repr(self.allocation)),
        ]
        shown = html.table(parts, ["part", "setting"], caption="Trial")
        if self.stopping is None:
            return html.block(shown, html.line("No looks: it ends with the last participant."))
        return html.block(shown, _looks(self.stopping, self.horizon), *map(html.line, _notes(self.stopping)))


def _looks(stopping: Stopping, horizon: int) -> str:
    """Return one row per look: after how many outcomes, and the thresholds then."""
    times, rule = stopping.schedule(horizon), stopping.rule(horizon)
    used = [name for name in THRESHOLDS if getattr(stopping, name) is not None]
    rows = [(str(i + 1), time, *(float(getattr(rule, name)[i]) for name in used)) for i, time in enumerate(times)]
    shown, same = rows, all(np.ptp(getattr(rule, name)) == 0.0 for name in used)
    if len(rows) > _MOST_LOOKS and same:
        shown = [rows[0], rows[1], ("…", *("" for _ in rows[0][1:])), rows[-1]]
    return html.table(shown, ["look", "outcomes", *used], caption=f"{len(rows)} looks")


def _notes(stopping: Stopping) -> list[str]:
    """Return in words what the thresholds mean."""
    against = "P(better than the control)" if stopping.control is not None else "P(best)"
    said = []
    if stopping.inferiority is not None:
        said.append(f"An arm is dropped where {against} is below inferiority.")
    if stopping.superiority is not None:
        then = "becomes the control" if stopping.promote else "ends the trial"
        said.append(f"An arm {then} where {against} is above superiority.")
    if stopping.equivalence is not None:
        said.append(
            f"It ends where P(all remaining arms lie within {stopping.equivalence_margin:g}) is above equivalence."
        )
    if stopping.futility is not None:
        said.append(f"It ends where P(no arm beats the control by {stopping.futility_margin:g}) is above futility.")
    if stopping.minimum:
        said.append(f"Looks wait until every remaining arm has {stopping.minimum} outcomes.")
    if not stopping.enforce:
        said.append("Looks of a live experiment only advise.")
    return said
