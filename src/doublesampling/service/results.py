"""Routes of results: posterior, series, health, replay. For readers and admins only."""

import asyncio
import datetime
import math
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response

from doublesampling.live import watching
from doublesampling.live.experiment import Experiment
from doublesampling.live.memory import Known
from doublesampling.live.reading import posterior as table
from doublesampling.live.replay import Replay
from doublesampling.service import findings as m
from doublesampling.service.access import Caller, Reader, TheDesk
from doublesampling.service.answers import Conditional, shared_answer
from doublesampling.service.desk import Desk
from doublesampling.service.overview import choose_context, finite, parse_context
from doublesampling.service.problems import log

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])
_UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "nothing has changed since"}}
_WAIT = 8.0  # seconds in which a replay may answer at once


@router.get("/posterior", response_model=m.Posterior, responses=_UNCHANGED)
async def posterior(
    desk: TheDesk,
    caller: Reader,
    asked: Conditional,
    name: str,
    context: Annotated[str | None, Query(max_length=10_000, description="numbers, separated by commas")] = None,
    density: Annotated[int, Query(ge=0, le=400, description="points of each density; 0 for none")] = 0,
) -> Response:
    """Read the posterior of each arm: mean, interval, probability of being the best, next allocation, density."""
    experiment = await desk.experiment(name)
    at = parse_context(context)
    question = ("posterior", context, density)
    return await shared_answer(
        desk, caller, experiment, question, lambda known: _posterior(experiment, known, at, density), asked
    )


def _posterior(experiment: Experiment, known: Known, asked: list[float] | None, density: int) -> m.Posterior:
    book = experiment._book
    context, _ = choose_context(book, known, asked)
    rows = table(known, context)
    shares, candidates = watching.next_allocation(book, known, context)
    laws = known.belief.marginals(known.state, context)
    lines = _densities(laws, density) if density else [None] * len(known.arms)
    arms = [
        m.Believed(
            arm=i,
            name=arm,
            active=i in known.active,
            observations=int(rows["observations"].iloc[i]),
            posterior_mean=finite(rows["mean"].iloc[i]),
            sd=finite(rows["sd"].iloc[i]),
            low=finite(rows["low"].iloc[i]),
            high=finite(rows["high"].iloc[i]),
            probability_optimal=float(rows["probability_optimal"].iloc[i]),
            next_allocation=shares[i],
            density=lines[i],
        )
        for i, arm in enumerate(known.arms)
    ]
    return m.Posterior(version=known.version, context=context, candidates=candidates, arms=arms)


def _densities(laws: Any, points: int) -> list[m.Density | None]:
    """The density of each arm between its far quantiles."""
    lines: list[m.Density | None] = []
    for arm, (low, high) in enumerate(laws.quantile([0.0005, 0.9995]).T):
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            lines.append(None)
            continue
        x = np.linspace(low, high, points)
        y = np.nan_to_num(laws.only([arm]).pdf(x)[:, 0], posinf=0.0)
        lines.append(m.Density(x=x.tolist(), y=y.tolist()))
    return lines


@router.get("/series", response_model=m.Series, responses=_UNCHANGED)
async def series(
    desk: TheDesk,
    caller: Reader,
    asked: Conditional,
    name: str,
    points: Annotated[int, Query(ge=2, le=2000)] = 500,
) -> Response:
    """Read the past: probability of being the best, N and allocation over time, reduced on the server."""
    experiment = await desk.experiment(name)

    def compute(known: Known) -> m.Series:
        book = experiment._book
        tally = desk.tally(book)
        marks = tally.allocation()
        step = max(1, math.ceil(len(marks) / points))
        kept = marks[::-1][::step][::-1]  # the latest is always among them
        counts = desk.counts(book, len(known.arms))
        happened = watching.happenings(book, () if counts is None else counts.changes)
        return m.Series(
            arms=list(known.arms),
            points=[m.Point(**each) for each in watching.sample(book, points)],
            allocation=[m.Mark(**each) for each in kept],
            happenings=[m.Happening(**each) for each in happened],
            complete=tally.complete and counts is not None,
        )

    return await shared_answer(desk, caller, experiment, ("series", points), compute, asked)


@router.get("/health", response_model=m.Health, responses=_UNCHANGED)
async def health(desk: TheDesk, caller: Reader, asked: Conditional, name: str) -> Response:
    """Check the log: delays of outcomes, played arms against logged propensities, and the last replay."""
    experiment = await desk.experiment(name)

    def compute(known: Known) -> m.Health:
        book = experiment._book
        tally = desk.tally(book)
        compared = tally.deviation(len(known.arms))
        return m.Health(
            delays=m.Delays(**watching.delays(book, datetime.datetime.now(datetime.UTC))),
            propensities=[m.Played(name=arm, **each) for arm, each in zip(known.arms, compared, strict=True)],
            judged=tally.judged,
            complete=tally.complete,
            replay=_replayed(desk, experiment, known),
        )

    return await shared_answer(desk, caller, experiment, "health", compute, asked, always=True)


@dataclass
class _Replaying:
    """A replay under way, or done."""

    version: str
    job: "Future[Replay] | None" = None
    at: datetime.datetime | None = None

    @property
    def found(self) -> Replay | None:
        """What it found, where it is done and did not fail."""
        if self.job is None or not self.job.done() or self.job.cancelled() or self.job.exception() is not None:
            return None
        return self.job.result()


@router.get("/replay", responses={202: {"model": m.ReplayView, "description": "still under way; ask again"}})
async def replay(desk: TheDesk, caller: Reader, name: str, response: Response) -> m.ReplayView:
    """Recompute every decision from the log. A long log takes longer than a request may: then ask again."""
    experiment = await desk.experiment(name)
    version = await desk.read(lambda: experiment.known.version)
    running = _start_replay(desk, experiment, version, caller)
    assert running.job is not None
    waiting = asyncio.wrap_future(running.job)
    waiting.add_done_callback(lambda job: job.cancelled() or job.exception())  # a failure is said in the view
    done, _ = await asyncio.wait([waiting], timeout=_WAIT)  # parks no thread
    if not done:
        response.status_code = 202
    desk.answers.wrote(experiment.name)
    found = await desk.read(lambda: _replayed(desk, experiment, experiment.known))
    assert found is not None
    return found


def _start_replay(desk: Desk, experiment: Experiment, version: str, caller: Caller) -> _Replaying:
    """A replay of the log as it is now; one that is under way, or has seen just this log, is used again."""
    place = f"replay {experiment.name}"
    last: _Replaying | None = desk.jobs.get(place)
    done = last is not None and last.job is not None and last.job.done()
    if last is not None and (not done or (last.version == version and last.found is not None)):
        return last
    fresh = _Replaying(version)

    def work() -> Replay:
        try:
            return experiment.replay()
        except Exception:
            log.exception("a replay failed")
            raise
        finally:
            fresh.at = datetime.datetime.now(datetime.UTC)

    fresh.job = desk.submit_long(caller.shown, work)
    desk.jobs[place] = fresh
    return fresh


def _replayed(desk: Desk, experiment: Experiment, known: Known) -> m.ReplayView | None:
    last: _Replaying | None = desk.jobs.get(f"replay {experiment.name}")
    if last is None:
        return None
    found = last.found
    over = last.job is not None and last.job.done()
    return m.ReplayView(
        status="done" if found is not None else "failed" if over else "running",
        agrees=None if found is None else found.agrees,
        decisions=None if found is None else found.decisions,
        different=None if found is None else found.different,
        differences=[] if found is None else list(found.differences),
        replayed_at=last.at,
        current=last.version == known.version,
    )
