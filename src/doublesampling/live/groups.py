"""Group commit: asks and tells of many callers are written together, so that one flush to the disk serves them all.

A caller is answered only after the transaction that holds its rows has been committed. Asks of one group are decided
from the same knowledge, as ``ask_many`` does; where one of a group is refused, the others are done one by one.
"""

import queue
import threading
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from doublesampling.errors import DoubleSamplingError, StorageBusyError, StorageError
from doublesampling.live import asking, telling
from doublesampling.live.design import check_text
from doublesampling.live.experiment import Experiment
from doublesampling.live.records import Outcome, Receipt

_MOST = 256  # jobs in one group: an ask behind it waits some tenths of a second at most
_WAITING = 10_000  # jobs in the queue; beyond, callers are sent away rather than kept for ever


@dataclass(frozen=True)
class _Job:
    """One wish, and whom to answer. Jobs with the same ``kind`` can be done in one call of ``work``."""

    kind: Hashable
    work: Callable[[Sequence[Any]], Sequence[Any]]
    item: Any
    answer: "Future[Any]"


class Writer:
    """A thread that does what has gathered while it was busy, in as few transactions as possible."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[_Job | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="doublesampling-writer", daemon=True)
        self._thread.start()
        self.groups, self.jobs = 0, 0
        """How many groups were written, of how many jobs."""

    def ask(
        self, experiment: Experiment, unit: str | None, context: Any, request_key: str | None, actor: str | None
    ) -> "Future[Receipt]":
        """Which arm? See ``Experiment.ask``."""
        book = experiment._book
        request = asking.make_request(unit, context, request_key)
        return self._put(("ask", book.id, actor), lambda items: asking.ask(book, items, actor), request)

    def tell(
        self,
        experiment: Experiment,
        decision: str,
        reward: float,
        *,
        imputed: bool = False,
        reason: str | None = None,
        actor: str | None = None,
        keep: bool = False,
    ) -> "Future[Outcome]":
        """What came of a decision. See ``Experiment.tell``; for ``keep``, ``telling.tell``."""
        book = experiment._book
        pair = telling._check_id(decision), book.design.belief.check_reward(reward)
        why = None if reason is None else check_text("reason", reason)
        return self._put(
            ("tell", book.id, actor, imputed, why, keep),
            lambda items: telling.tell(book, items, imputed, why, actor, keep),
            pair,
        )

    def close(self) -> None:
        """Do what is waiting, then stop."""
        self._jobs.put(None)
        self._thread.join(timeout=30)

    def _put(self, kind: Hashable, work: Callable[[Sequence[Any]], Sequence[Any]], item: Any) -> "Future[Any]":
        job = _Job(kind, work, item, Future())
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise StorageBusyError(f"{_WAITING} requests are waiting to be written. Try again in a while.") from None
        return job.answer

    def _run(self) -> None:
        going = True
        while going:
            gathered = [self._jobs.get()]
            while len(gathered) < _MOST and not self._jobs.empty():
                gathered.append(self._jobs.get_nowait())  # nobody else takes from this queue
            going = None not in gathered
            jobs = [job for job in gathered if job is not None and job.answer.set_running_or_notify_cancel()]
            kinds: dict[Hashable, list[_Job]] = {}
            for job in jobs:
                kinds.setdefault(job.kind, []).append(job)
            for kind in sorted(kinds, key=lambda k: k[0] == "ask"):  # type: ignore[index]
                _do(kinds[kind])  # tells first: the asks beside them know more
            self.groups, self.jobs = self.groups + 1, self.jobs + len(jobs)


def _do(jobs: list[_Job]) -> None:
    """One transaction for all; where one of them is refused, one for each, and only that one fails."""
    try:
        answers = jobs[0].work([job.item for job in jobs])
    except Exception as problem:
        alone = len(jobs) == 1 or isinstance(problem, StorageError) or not isinstance(problem, DoubleSamplingError)
        for job in jobs:
            if alone:
                job.answer.set_exception(problem)
            else:
                _do([job])
        return
    for job, answer in zip(jobs, answers, strict=True):
        job.answer.set_result(answer)
