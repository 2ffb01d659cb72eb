"""The first pending decision of an experiment, so that a search in a long log need not start at its beginning."""

import datetime
from collections.abc import Sequence
from typing import Any

from doublesampling.live.queries.outcome_counts import Counts

SETTLED = datetime.timedelta(seconds=60)
"""A decision with a smaller number may still be committed after decisions younger than this."""


class PendingStart:
    """A number per experiment, or per key in it, up to which no decision is pending. A withdrawal invalidates it."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[int, int]] = {}
        """The number, and the count of withdrawals when it was found."""

    def begin(self, name: str, counts: Counts | None) -> int:
        """Return the number after which a search may start."""
        number, withdrawals = self.found.get(name, (0, 0))
        return number if counts is not None and counts.withdrawals == withdrawals else 0

    def note(self, name: str, counts: Counts | None, rows: Sequence[dict[str, Any]], following: int | None) -> None:
        """Note the result of a search that started at the beginning."""
        if counts is None:
            return
        if not rows:
            self.found[name] = (following or 0, counts.withdrawals)
        elif rows[0]["asked_at"] < datetime.datetime.now(datetime.UTC) - SETTLED:
            self.found[name] = (rows[0]["number"] - 1, counts.withdrawals)
