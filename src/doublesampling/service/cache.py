"""Answers that are computed once per version of an experiment and shared by everybody who asks.

However many dashboards are open, an answer is computed by one thread at a time, and again only when something was
written. All computing together may take a small share of the process's time (``Budget``); beyond it, dashboards get an
answer that is some seconds old rather than holding up writers.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any

from fastapi import Response

_KEPT = 256  # answers in memory
_BYTES = 16 << 20  # and their size in all
_FIRST = 0.1  # seconds that a first answer is charged at most: it may have loaded libraries and compiled
VERSION = "Doublesampling-Version"
"""The header that says from which version of the experiment an answer was computed."""
_OLDEST = 60.0  # seconds; an older answer is computed again whatever it costs


class Budget:
    """Seconds of computing that may be spent: a share of the time that passes, saved up to a limit.

    Debts have a limit too, so that one costly answer does not hold up the next ones for minutes.
    """

    def __init__(self, share: float = 0.03, most: float = 0.3, debt: float = 0.3) -> None:
        self._share, self._most, self._debt = share, most, debt
        self._left, self._at = most, time.monotonic()

    @property
    def left(self) -> float:
        """What may be spent now; negative after something costly."""
        now = time.monotonic()
        self._left, self._at = min(self._left + self._share * (now - self._at), self._most), now
        return self._left

    def spend(self, seconds: float) -> None:
        """Note what an answer has cost."""
        self._left = max(self.left - seconds, -self._debt)


@dataclass(frozen=True)
class Made:
    """What a computation returns: the version of what it read, and the answer as JSON, None where it is as before."""

    version: str
    body: bytes | None
    seconds: float


@dataclass
class _Answer:
    version: str
    body: bytes
    tag: str
    made_at: float


Compute = Callable[[str | None], Awaitable[Made]]
"""From the version of the answer that is kept, or None, to a new one."""


class AnswerCache:
    """Answers by what was asked. Used from the event loop only."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self.forced = Budget(share=1.0, most=12.0)  # answers, not seconds: one per second, a dozen at once
        self.computed, self._size = 0, 0
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._under_way: dict[Hashable, asyncio.Future[_Answer]] = {}
        self._written: dict[str, float] = {}
        self._looked: dict[Hashable, float] = {}

    def wrote(self, experiment: str) -> None:
        """Note that this process has written: its answers need not wait until they are looked at again."""
        self._written[experiment] = time.monotonic()

    def affordable(self, experiment: str, question: Hashable) -> bool:
        """Whether an answer may be computed without exceeding the budget."""
        return (experiment, question) in self._answers or self.budget.left > 0.0

    async def get(
        self, experiment: str, question: Hashable, compute: Compute, *, pause: float = 1.0, fresh: bool = False
    ) -> _Answer:
        """An answer: the one that is kept where it is fresh, or too dear to compute again; otherwise a new one.

        ``pause`` is the least time in seconds between two looks at the store for this question. Who has just written
        may ask for a ``fresh`` answer, which some times a second is computed whatever is left of the budget.
        """
        place = (experiment, question)
        kept = self._answers.get(place)
        forced = kept is not None and fresh and self._force()
        if kept is not None and not forced and not self._is_due(experiment, place, kept, pause):
            self._answers.move_to_end(place)
            return kept
        running = self._under_way.get(place)
        if running is not None and forced:  # it has begun before the write
            await asyncio.wait([running])
            running, kept = self._under_way.get(place), self._answers.get(place)
        if running is None:
            running = asyncio.ensure_future(self._renew(place, kept, compute))
            self._under_way[place] = running
            running.add_done_callback(lambda done: self._finish(place, done))
        return await asyncio.shield(running)

    def _force(self) -> bool:
        """Take one of the answers that may be computed without regard to the budget."""
        if self.forced.left < 1.0:
            return False
        self.forced.spend(1.0)
        return True

    def _is_due(self, experiment: str, place: Hashable, kept: _Answer, pause: float) -> bool:
        now, looked = time.monotonic(), self._looked.get(place, 0.0)
        if now - kept.made_at > _OLDEST and now - looked > pause:
            return True
        if self.budget.left <= 0.0:
            return False
        return now - looked > pause or self._written.get(experiment, 0.0) > looked

    async def _renew(self, place: Hashable, kept: _Answer | None, compute: Compute) -> _Answer:
        self._looked[place] = time.monotonic()
        made = await compute(None if kept is None else kept.version)
        self.budget.spend(made.seconds if kept is not None else min(made.seconds, _FIRST))
        now = time.monotonic()
        if made.body is None:
            assert kept is not None
            kept.made_at = now
            return kept
        self.computed += 1
        tag = f'"{hashlib.sha256(made.body).hexdigest()[:24]}"'
        answer = _Answer(made.version, made.body, tag, now)
        kept = self._answers.pop(place, None)
        self._answers[place] = answer
        self._size += len(answer.body) - (0 if kept is None else len(kept.body))
        while len(self._answers) > 1 and (len(self._answers) > _KEPT or self._size > _BYTES):
            gone, old = self._answers.popitem(last=False)
            self._looked.pop(gone, None)
            self._size -= len(old.body)
        return answer

    def _finish(self, place: Hashable, done: "asyncio.Future[_Answer]") -> None:
        self._under_way.pop(place, None)
        if not done.cancelled():
            done.exception()  # whoever waits for it hears of it
        if place not in self._answers:
            self._looked.pop(place, None)

    def clear(self) -> None:
        """Forget everything: the store is another one now."""
        self._answers.clear()
        self._looked.clear()
        self._size = 0


def respond(answer: _Answer, if_none_match: str | None) -> Response:
    """An answer over HTTP, or 304 where the client has it already."""
    headers = {"ETag": answer.tag, VERSION: answer.version}
    if if_none_match is not None and answer.tag in (part.strip() for part in if_none_match.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(answer.body, media_type="application/json", headers=headers)


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the seconds of this thread's processor time that it took."""
    begun = time.thread_time()
    return work(), time.thread_time() - begun
