"""A cache of responses that take long: each is computed once per version of an experiment, and never outdated."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable

from doublesampling.service.response_cache import CachedResponse

_KEPT = 64  # responses in memory


class VersionCache:
    """Responses by experiment and question, with the version that they are for. Used from the event loop only."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[Hashable, tuple[str, asyncio.Future[CachedResponse]]] = OrderedDict()

    async def get(
        self, key: Hashable, version: str, compute: Callable[[], Awaitable[CachedResponse]]
    ) -> CachedResponse:
        """Return the response for a version: the cached one, one that is being computed, or a new one."""
        known, job = self._jobs.get(key, ("", None))
        if job is None or known != version:
            job = asyncio.ensure_future(compute())
            self._jobs[key] = (version, job)
            job.add_done_callback(lambda done: self._finish(key, done))
        self._jobs.move_to_end(key)
        while len(self._jobs) > _KEPT:
            self._jobs.popitem(last=False)
        return await asyncio.shield(job)  # a caller that gives up does not stop it

    def _finish(self, key: Hashable, done: "asyncio.Future[CachedResponse]") -> None:
        """Drop a computation that failed; the waiting callers raise its error."""
        failed = done.cancelled() or done.exception() is not None
        if failed and self._jobs.get(key, ("", None))[1] is done:
            del self._jobs[key]

    def clear(self) -> None:
        """Drop everything, because the store was restored."""
        self._jobs.clear()
