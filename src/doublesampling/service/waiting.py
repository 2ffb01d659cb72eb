"""Where the decisions that wait for their outcome begin, so that a search in a long log need not start at its head."""

import datetime
from collections.abc import Sequence
from typing import Any

from doublesampling.live.outcome_counts import Counts

SETTLED = datetime.timedelta(seconds=60)
"""Decisions younger than this may have elder ones that are committed a moment later."""


class WaitingFrom:
    """Per experiment, or key in it, a number up to which no decision waits. A withdrawal makes one wait again."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, int]] = {}
        """The number, and how many withdrawals there were when it was found."""

    def begin(self, name: str, counts: Counts | None) -> int:
        """Return the number behind which a search may begin."""
        number, withdrawals = self.found.get(name, (0, 0))
        return number if counts is not None and counts.withdrawals == withdrawals else 0

    def note(self, name: str, counts: Counts | None, rows: Sequence[dict[str, Any]], following: int | None) -> None:
        """Remember how far a search has come."""
        if counts is None:
            return
        if not rows:
            self.found[name] = (following or 0, counts.withdrawals)
        elif rows[0]["asked_at"] < datetime.datetime.now(datetime.UTC) - SETTLED:
            self.found[name] = (rows[0]["number"] - 1, counts.withdrawals)
