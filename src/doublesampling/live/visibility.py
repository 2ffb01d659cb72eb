"""Visibility of transactions: which rows a decision could see, in PostgreSQL's notation xmin:xmax:running."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Snapshot:
    """A snapshot: transactions below xmin had ended, none from xmax on had begun, those in ``running`` were open."""

    xmin: int
    xmax: int
    running: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the snapshot that ``str`` or ``pg_current_snapshot()`` wrote.

        >>> Snapshot.parse("10:14:10,12").sees(11)
        True
        >>> Snapshot.parse("10:14:10,12").sees(12)
        False
        """
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(int(x) for x in running.split(",") if x))

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, sorted(self.running)))}"

    def sees(self, xid: int) -> bool:
        """Return whether rows of that transaction are visible."""
        return xid < self.xmin or (xid < self.xmax and xid not in self.running)

    def shifted(self, by: int) -> "Snapshot":
        """Return the same snapshot with ``by`` added to every transaction number."""
        if by == 0:
            return self
        return Snapshot(self.xmin + by, self.xmax + by, frozenset(x + by for x in self.running))
