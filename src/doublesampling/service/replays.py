"""Replays that run in the background, one per experiment."""

import datetime
from concurrent.futures import Future
from dataclasses import dataclass

from doublesampling.live.experiment import Experiment
from doublesampling.live.replay import Replay
from doublesampling.live.state import ExperimentState
from doublesampling.service.problems import log
from doublesampling.service.schemas.results import ReplayView
from doublesampling.service.state import ServiceState


@dataclass
class ReplayJob:
    """A replay that is running or done."""

    version: str
    future: "Future[Replay] | None" = None
    finished_at: datetime.datetime | None = None

    @property
    def result(self) -> Replay | None:
        """The result, where the replay is done and did not fail."""
        done = self.future is not None and self.future.done() and not self.future.cancelled()
        if self.future is None or not done or self.future.exception() is not None:
            return None
        return self.future.result()


def start_replay(state: ServiceState, experiment: Experiment, version: str, caller: str) -> "Future[Replay]":
    """Return the future of a replay; one that is running, or that has replayed this version, is reused."""
    key = f"replay {experiment.name}"
    last: ReplayJob | None = state.jobs.get(key)
    current = last is not None and last.version == version and last.result is not None
    if last is not None and last.future is not None and (current or not last.future.done()):
        return last.future
    job = ReplayJob(version)

    def work() -> Replay:
        try:
            return experiment.replay()
        except Exception:
            log.exception("a replay failed")
            raise
        finally:
            job.finished_at = datetime.datetime.now(datetime.UTC)

    job.future = state.submit_long(caller, work)
    state.jobs[key] = job
    return job.future


def replay_view(state: ServiceState, experiment: Experiment, current: ExperimentState) -> ReplayView | None:
    """Return the status of the last replay, or None where there was none."""
    last: ReplayJob | None = state.jobs.get(f"replay {experiment.name}")
    if last is None:
        return None
    found = last.result
    over = last.future is not None and last.future.done()
    return ReplayView(
        status="done" if found is not None else "failed" if over else "running",
        agrees=None if found is None else found.agrees,
        decisions=None if found is None else found.decisions,
        different=None if found is None else found.different,
        differences=[] if found is None else list(found.differences),
        looks=None if found is None else found.looks,
        replayed_at=last.finished_at,
        current=last.version == current.version,
    )
