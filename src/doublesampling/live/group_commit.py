"""Group commit: asks and tells of many callers share a transaction, so that one flush to the disk serves them all.

A caller is answered only after the transaction with its rows has been committed. A group contains all waiting callers
of an experiment; each row carries its own actor and scope. Asks of one group are decided from the same state, as with
``ask_many``. A refused request leaves the others unaffected.
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
from doublesampling.live.requests import make_request

_MOST = 256  # jobs in one group: an ask that follows it waits some tenths of a second at most
_WAITING = 10_000  # jobs in the queue; more are refused rather than kept waiting


@dataclass(frozen=True)
class _Job:
    """One request and the future of its answer. Jobs of the same ``kind`` can share one call of ``work``."""

    kind: Hashable
    work: Callable[[Sequence[Any]], Sequence[Any]]
    item: Any
    answer: "Future[Any]"


class Writer:
    """A writer thread that commits all waiting jobs in as few transactions as possible."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[_Job | None] = queue.Queue(_WAITING)
        self._thread = threading.Thread(target=self._run, name="doublesampling-writer", daemon=True)
        self._thread.start()
        self.groups, self.jobs = 0, 0
        """How many groups were written, of how many jobs."""

    def ask(
        self,
        experiment: Experiment,
        unit: str | None,
        context: Any,
        request_key: str | None,
        actor: str | None,
        scope: str | None = None,
    ) -> "Future[Receipt]":
        """Ask for a decision; see ``Experiment.ask``."""
        session = experiment.session
        who = None if actor is None else check_text("actor", actor)
        request = make_request(unit, context, request_key, scope=scope, actor=who)
        return self._put(("ask", session.id), lambda items: asking.ask_each(session, items), request)

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
        """Tell the outcome of a decision; see ``Experiment.tell``."""
        session = experiment.session
        who = None if actor is None else check_text("actor", actor)
        told = telling.make_outcome(session, decision, reward, imputed=imputed, reason=reason, actor=who, keep=keep)
        return self._put(("tell", session.id), lambda items: telling.tell_each(session, items), told)

    def close(self) -> None:
        """Write the waiting jobs, then stop."""
        self._jobs.put(None)
        self._thread.join(timeout=30)

    def _put(self, kind: Hashable, work: Callable[[Sequence[Any]], Sequence[Any]], item: Any) -> "Future[Any]":
        job = _Job(kind, work, item, Future())
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            raise StorageBusyError(f"{_WAITING} requests are waiting to be written. Try again later.") from None
        return job.answer

    def _run(self) -> None:
        going = True
        while going:
            gathered = [self._jobs.get()]
            while len(gathered) < _MOST and not self._jobs.empty():
                gathered.append(self._jobs.get_nowait())  # this thread is the only consumer
            going = None not in gathered
            jobs = [job for job in gathered if job is not None and job.answer.set_running_or_notify_cancel()]
            kinds: dict[Hashable, list[_Job]] = {}
            for job in jobs:
                kinds.setdefault(job.kind, []).append(job)
            for kind in sorted(kinds, key=lambda k: k[0] == "ask"):  # type: ignore[index]
                _do(kinds[kind])  # tells first, so that the asks of the group know them
            self.groups, self.jobs = self.groups + 1, self.jobs + len(jobs)


def _do(jobs: list[_Job]) -> None:
    """Run the jobs in one transaction and answer each; where the store fails, all of them fail."""
    try:
        answers = jobs[0].work([job.item for job in jobs])
    except Exception as problem:
        alone = len(jobs) == 1 or isinstance(problem, StorageError)
        for job in jobs:
            if alone:
                job.answer.set_exception(problem)
            else:  # an unexpected error: run each job alone, so that only its cause fails
                _do([job])
        return
    for job, answer in zip(jobs, answers, strict=True):
        if isinstance(answer, DoubleSamplingError):
            job.answer.set_exception(answer)
        else:
            job.answer.set_result(answer)
