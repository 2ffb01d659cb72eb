"""A cache of responses that are computed once per version of an experiment and shared by all callers.

However many dashboards are open, a response is computed by one thread at a time, and again only after a write. All
computation together may use a small share of the process's time (``Budget``); beyond it, dashboards get a response
that is some seconds old, so that writers are not delayed.
"""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Self

from fastapi import Response

_KEPT = 256  # responses in memory
_BYTES = 16 << 20  # their total size
_FIRST = 0.1  # seconds that a first response is charged at most: it may have loaded libraries and compiled
VERSION = "Doublesampling-Version"
"""The header with the version of the experiment from which a response was computed."""
_OLDEST = 60.0  # seconds; an older response is computed again regardless of the budget


class Budget:
    """A budget of computing seconds: a share of the elapsed time, saved up to a limit.

    Its debt is limited too, so that one expensive response does not delay the next ones for minutes.
    """

    def __init__(self, share: float = 0.03, most: float = 0.3, debt: float = 0.3) -> None:
        self._share, self._most, self._debt = share, most, debt
        self._left, self._at = most, time.monotonic()

    @property
    def left(self) -> float:
        """The seconds that may be spent now; negative after an expensive response."""
        now = time.monotonic()
        self._left, self._at = min(self._left + self._share * (now - self._at), self._most), now
        return self._left

    def spend(self, seconds: float) -> None:
        """Subtract the cost of a response."""
        self._left = max(self.left - seconds, -self._debt)


@dataclass(frozen=True)
class Computed:
    """The result of a computation: the version that it read, and the JSON body, None where the cached one is valid."""

    version: str
    body: bytes | None
    seconds: float


@dataclass
class CachedResponse:
    """A response in the cache."""

    version: str
    body: bytes
    tag: str
    made_at: float

    @classmethod
    def of(cls, version: str, body: bytes) -> Self:
        """Return a response that was just computed."""
        return cls(version, body, f'"{hashlib.sha256(body).hexdigest()[:24]}"', time.monotonic())


Compute = Callable[[str | None], Awaitable[Computed]]
"""Compute a response, given the version of the cached one, or None."""


class ResponseCache:
    """Responses by experiment and question. Used from the event loop only."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = Budget() if budget is None else budget
        self.forced = Budget(share=0.1, most=2.0)  # for callers who have just written
        self.computed, self._size = 0, 0
        self._responses: OrderedDict[Hashable, CachedResponse] = OrderedDict()
        self._under_way: dict[Hashable, asyncio.Future[CachedResponse]] = {}
        self._written: dict[str, float] = {}
        self._looked: dict[Hashable, float] = {}

    def wrote(self, experiment: str) -> None:
        """Note that this process has written to an experiment, so that its responses are computed again at once."""
        self._written[experiment] = time.monotonic()

    def affordable(self, experiment: str, question: Hashable) -> bool:
        """Return whether a response is cached, or may be computed without exceeding the budget."""
        return (experiment, question) in self._responses or self.budget.left > 0.0

    async def get(
        self, experiment: str, question: Hashable, compute: Compute, *, pause: float = 1.0, fresh: bool = False
    ) -> CachedResponse:
        """Return the cached response where it is fresh or the budget is spent; otherwise a new one.

        ``pause`` is the minimum time in seconds between two checks of the store for this question. A caller who has
        just written may ask for a ``fresh`` response, which has a larger budget of its own.
        """
        key = (experiment, question)
        kept = self._responses.get(key)
        forced = kept is not None and fresh and self.forced.left > 0.0
        if kept is not None and not forced and not self._is_due(experiment, key, kept, pause):
            self._responses.move_to_end(key)
            return kept
        running = self._under_way.get(key)
        if running is not None and forced:  # it started before the write
            await asyncio.wait([running])
            running, kept = self._under_way.get(key), self._responses.get(key)
        if running is None:
            budget = self.forced if forced else self.budget
            running = asyncio.ensure_future(self._renew(key, kept, compute, budget))
            self._under_way[key] = running
            running.add_done_callback(lambda done: self._finish(key, done))
        return await asyncio.shield(running)

    def _is_due(self, experiment: str, key: Hashable, kept: CachedResponse, pause: float) -> bool:
        now, looked = time.monotonic(), self._looked.get(key, 0.0)
        if now - kept.made_at > _OLDEST and now - looked > pause:
            return True
        if self.budget.left <= 0.0:
            return False
        return now - looked > pause or self._written.get(experiment, 0.0) > looked

    async def _renew(
        self, key: Hashable, kept: CachedResponse | None, compute: Compute, budget: Budget
    ) -> CachedResponse:
        self._looked[key] = time.monotonic()
        made = await compute(None if kept is None else kept.version)
        budget.spend(made.seconds if kept is not None else min(made.seconds, _FIRST))
        if made.body is None:
            assert kept is not None
            kept.made_at = time.monotonic()
            return kept
        self.computed += 1
        response = CachedResponse.of(made.version, made.body)
        kept = self._responses.pop(key, None)
        self._responses[key] = response
        self._size += len(response.body) - (0 if kept is None else len(kept.body))
        while len(self._responses) > 1 and (len(self._responses) > _KEPT or self._size > _BYTES):
            gone, old = self._responses.popitem(last=False)
            self._looked.pop(gone, None)
            self._size -= len(old.body)
        return response

    def _finish(self, key: Hashable, done: "asyncio.Future[CachedResponse]") -> None:
        self._under_way.pop(key, None)
        if not done.cancelled():
            done.exception()  # retrieve it, so that asyncio does not warn; the waiting callers raise it
        if key not in self._responses:
            self._looked.pop(key, None)

    def clear(self) -> None:
        """Drop everything, because the store was restored."""
        self._responses.clear()
        self._looked.clear()
        self._size = 0


def to_response(cached: CachedResponse, if_none_match: str | None) -> Response:
    """Return the HTTP response, or 304 where the client has it already."""
    headers = {"ETag": cached.tag, VERSION: cached.version}
    if if_none_match is not None and cached.tag in (part.strip() for part in if_none_match.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(cached.body, media_type="application/json", headers=headers)
