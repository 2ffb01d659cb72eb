"""The looks of an experiment, as they were stored."""

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import sqlalchemy as sa

from doublesampling.live.experiment_ref import ExperimentRef
from doublesampling.live.stores.schema import events


@dataclass(frozen=True)
class LookRecord:
    """A look that was made, with its numbers. Arms are given by name."""

    look: int
    """Its number, counted from 1."""
    planned: int
    """The number of known outcomes at which it was due."""
    outcomes: int
    """How many were known when it was made: more where several were told at once."""
    outcome: str
    """"continue", "superiority", "equivalence" or "futility". It is never empty: ask ``stops``, not ``if outcome``."""
    reason: str
    """What it found, in one sentence."""
    dropped: tuple[str, ...]
    """Arms that it found inferior."""
    remaining: tuple[str, ...]
    """Arms that it left."""
    selected: str | None
    """The superior arm; the control after futility; None while the experiment continues."""
    control: str | None
    """The control from then on."""
    promoted: bool
    """Whether the control is an arm that took the place of the first one."""
    enforced: bool
    """Whether arms were dropped and the experiment was stopped; False where the look only advised."""
    thresholds: Mapping[str, float]
    probability_best: Mapping[str, float]
    """P(best) among the arms that were in when the look began."""
    probability_best_remaining: Mapping[str, float]
    """P(best) among the arms that remained."""
    probability_better: Mapping[str, float]
    """P(better than the control)."""
    probability_equivalence: float | None
    probability_futility: float | None
    at: datetime.datetime
    shares: Mapping[str, float] | None = None
    """The share of every arm until the next look, where shares are renewed at looks; empty after the last one."""

    @property
    def stops(self) -> bool:
        """Whether it found that the experiment should end; where ``enforced`` is True, it has ended."""
        return self.outcome != "continue"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**self.__dict__, "at": self.at.isoformat()}


def read_looks(ref: ExperimentRef) -> list[LookRecord]:
    """Return the looks of an experiment, in order."""
    query = sa.select(events).where(events.c.experiment == ref.id, events.c.kind == "look")
    names = [part.name for part in fields(LookRecord)]
    found = []
    with ref.store.reading() as connection:
        for row in connection.execute(query.order_by(events.c.revision)):
            content = json.loads(row.content) | {"at": row.at}
            content |= {name: tuple(content[name]) for name in ("dropped", "remaining")}
            found.append(LookRecord(**{name: content[name] for name in names if name in content}))
    return found
