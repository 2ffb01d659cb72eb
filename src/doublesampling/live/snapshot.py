"""Which transactions a decision could see, written as PostgreSQL writes it: xmin:xmax:running."""

from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Snapshot:
    """Every transaction below xmin was over; from xmax on none had begun; between, those in ``running`` were open."""

    xmin: int
    xmax: int
    running: frozenset[int] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what ``str`` wrote, or what ``pg_current_snapshot()`` answered.

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
        """Whether what that transaction wrote was visible."""
        return xid < self.xmin or (xid < self.xmax and xid not in self.running)

    def shifted(self, by: int) -> "Snapshot":
        """The same snapshot where transactions are counted from elsewhere."""
        if by == 0:
            return self
        return Snapshot(self.xmin + by, self.xmax + by, frozenset(x + by for x in self.running))
