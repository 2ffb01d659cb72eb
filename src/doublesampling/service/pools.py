"""Thread pools of the service: writes, short reads and long reads do not wait for each other.

Databases are used from threads only, never from the event loop. Keys and /healthz have threads of their own, as have
writes. Long reads (replays, exports, explanations, uncached responses) share two threads and a bounded queue.
"""

import asyncio
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from doublesampling.service.problems import RefusedError

T = TypeVar("T")
LONG_WAITING = 16
"""Long reads that may wait or run at once; one more is refused with 429."""
LONG_PER_CALLER = 6
"""The same for one key, so that one reader cannot use the whole queue."""
EXPORTS = 8
"""Exports that may run at once; one key may run half as many."""
_FULL = "Too many long reads (replays, exports, explanations) are waiting. Try again later."


class DaemonPool:
    """Daemon threads for work that only reads, so that a stopping server need not wait for it."""

    def __init__(self, threads: int, name: str) -> None:
        self._jobs: queue.SimpleQueue[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = queue.SimpleQueue()
        for i in range(threads):
            threading.Thread(target=self._run, name=f"{name}-{i}", daemon=True).start()

    def submit(self, work: Callable[..., T], *arguments: Any) -> "Future[T]":
        """Run this work after what was submitted before, and return its future."""
        job: Future[T] = Future()
        self._jobs.put((job, work, arguments))
        return job

    def _run(self) -> None:
        while True:
            job, work, arguments = self._jobs.get()
            if not job.set_running_or_notify_cancel():
                continue
            try:
                job.set_result(work(*arguments))
            except BaseException as problem:  # the waiting caller raises it
                job.set_exception(problem)


class Pools:
    """The threads of one process, by purpose."""

    def __init__(self) -> None:
        self._control = ThreadPoolExecutor(2, thread_name_prefix="doublesampling-control")
        self._opening = ThreadPoolExecutor(2, thread_name_prefix="doublesampling-open")
        self._writes = ThreadPoolExecutor(4, thread_name_prefix="doublesampling-write")
        self._reads = ThreadPoolExecutor(4, thread_name_prefix="doublesampling-read")
        self._answers = ThreadPoolExecutor(1, thread_name_prefix="doublesampling-answer")
        self._long = DaemonPool(2, "doublesampling-long")
        self.simulations = DaemonPool(1, "doublesampling-simulation")
        self._places = threading.Lock()
        self._waiting: Counter[str] = Counter()
        self._exports: Counter[str] = Counter()

    async def control(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that must never wait for others: keys and health."""
        return await asyncio.get_running_loop().run_in_executor(self._control, work, *arguments)

    async def opening(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run the opening of an experiment, whose log may be long."""
        return await asyncio.get_running_loop().run_in_executor(self._opening, work, *arguments)

    async def write(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that writes to the store."""
        return await asyncio.get_running_loop().run_in_executor(self._writes, work, *arguments)

    async def read(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that reads a bounded number of rows."""
        return await asyncio.get_running_loop().run_in_executor(self._reads, work, *arguments)

    async def answer(self, work: Callable[..., T], *arguments: Any) -> T:
        """Compute a cached response; one at a time, so that writers are delayed by one at most."""
        return await asyncio.get_running_loop().run_in_executor(self._answers, work, *arguments)

    async def long(self, caller: str, work: Callable[..., T], *arguments: Any) -> T:
        """Run work that may read a whole log; raise RefusedError where too many wait."""
        return await asyncio.wrap_future(self.submit_long(caller, work, *arguments))

    def submit_long(self, caller: str, work: Callable[..., T], *arguments: Any) -> "Future[T]":
        """Submit such work and return its future."""
        with self._places:
            if self._waiting.total() >= LONG_WAITING or self._waiting[caller] >= LONG_PER_CALLER:
                raise RefusedError("too-many", _FULL)
            self._waiting[caller] += 1

        def leave(_: "Future[T]") -> None:
            with self._places:
                self._waiting[caller] -= 1
                self._waiting += Counter()  # drops zero counts

        job = self._long.submit(work, *arguments)
        job.add_done_callback(leave)
        return job

    @contextmanager
    def exporting(self, caller: str) -> Iterator[None]:
        """Count an export for the duration of the block; raise RefusedError where too many are running."""
        if self._exports.total() >= EXPORTS or self._exports[caller] >= EXPORTS // 2:
            raise RefusedError("too-many", _FULL)
        self._exports[caller] += 1
        try:
            yield
        finally:
            self._exports[caller] -= 1

    async def next_page(self, work: Callable[..., T], *arguments: Any) -> T:
        """Compute the next page of an export that ``exporting`` counts."""
        return await asyncio.wrap_future(self._long.submit(work, *arguments))

    def close(self) -> None:
        """Accept no more work; running work is not interrupted."""
        for pool in (self._control, self._opening, self._writes, self._reads, self._answers):
            pool.shutdown(wait=False, cancel_futures=True)
