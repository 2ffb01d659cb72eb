"""Read long tables page by page, so that a broken connection costs one page only."""

from typing import Any

from doublesampling import checks
from doublesampling.client.calls import AUDIT_PAGE, Call, audit_page, decision_page

DECISIONS = 10_000
"""Decisions per request."""


class DecisionPages:
    """The pages of a table of decisions."""

    def __init__(self, name: str, after: int, limit: int | None, waiting: bool) -> None:
        self._name, self._waiting = name, waiting
        self._after = checks.integer("after", after, least=0, most=2**62 - 1)
        self._left = None if limit is None else checks.integer("limit", limit, least=0)
        self._size, self._ended = 0, False
        self.rows: list[dict[str, Any]] = []

    def following(self) -> Call[list[dict[str, Any]]] | None:
        """Return the request for the next page; None at the end."""
        if self._ended or self._left == 0:
            return None
        self._size = DECISIONS if self._left is None else min(DECISIONS, self._left)
        return decision_page(self._name, self._after, self._size, self._waiting)

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Add the rows of a page."""
        self.rows += rows
        self._left = None if self._left is None else self._left - len(rows)
        self._ended = len(rows) < self._size
        self._after = rows[-1]["number"] if rows else self._after


class AuditPages:
    """The pages of an audit trail."""

    def __init__(self, name: str, after: str | None, limit: int | None) -> None:
        self._name, self._after = name, after
        self._left = None if limit is None else checks.integer("limit", limit, least=1, most=1_000_000)
        self._ended = False
        self.rows: list[dict[str, Any]] = []

    def following(self) -> Call[tuple[list[dict[str, Any]], str | None]] | None:
        """Return the request for the next page; None at the end."""
        if self._ended or self._left == 0:
            return None
        return audit_page(self._name, self._after, AUDIT_PAGE if self._left is None else min(AUDIT_PAGE, self._left))

    def add(self, rows: list[dict[str, Any]], following: str | None) -> None:
        """Add the entries of a page, and the cursor of the next one."""
        self.rows += rows
        self._left = None if self._left is None else self._left - len(rows)
        self._after, self._ended = following, following is None
