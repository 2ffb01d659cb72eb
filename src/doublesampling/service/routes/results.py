"""Routes of results: posterior, series and health. They need the scope ``read``."""

import datetime
import math
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Query, Response

from doublesampling.live.experiment import Experiment
from doublesampling.live.queries import activity, decision_pages
from doublesampling.live.state import ExperimentState
from doublesampling.live.summary import summary as summarize
from doublesampling.service.access import Reader, State
from doublesampling.service.replays import replay_view
from doublesampling.service.responses import UNCHANGED, Conditional, Question, cached_response
from doublesampling.service.schemas.experiments import Summary
from doublesampling.service.schemas.results import (
    AllocationPoint,
    ArmDensity,
    Delays,
    Density,
    Health,
    Posterior,
    PropensityCheck,
    Series,
    SeriesPoint,
    TimelineEvent,
)
from doublesampling.service.views import CONTEXT, Context, arm_posteriors, choose_context, parse_context

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])


@router.get("/summary", response_model=Summary, responses=UNCHANGED)
async def summary(state: State, caller: Reader, asked: Conditional, name: str) -> Response:
    """Read design, status and counts, as ``Experiment.summary`` in Python returns them. It counts the whole log."""
    experiment = await state.experiment(name)
    return await cached_response(
        state,
        caller,
        experiment,
        Question("summary", slow=True),
        lambda _: Summary(**summarize(experiment.session)),
        asked,
    )


@router.get("/posterior", response_model=Posterior, responses=UNCHANGED)
async def posterior(
    state: State,
    caller: Reader,
    asked: Conditional,
    name: str,
    context: Annotated[str | None, Query(max_length=10_000, description=CONTEXT)] = None,
    density: Annotated[int, Query(ge=0, le=400, description="points of each density; 0 for none")] = 0,
) -> Response:
    """Read the posterior of each arm: mean, interval, probability of being the best, next allocation, density."""
    experiment = await state.experiment(name)
    at = parse_context(context)
    question = Question(("posterior", context, density))
    return await cached_response(
        state, caller, experiment, question, lambda current: _posterior(experiment, current, at, density), asked
    )


def _posterior(experiment: Experiment, current: ExperimentState, asked: Context | None, density: int) -> Posterior:
    context, _ = choose_context(experiment.session, current, asked)
    arms, candidates = arm_posteriors(experiment.session, current, context)
    laws = current.belief.marginals(current.belief_state, experiment.design.check_context(context))
    lines = _densities(laws, density) if density else [None] * len(current.arms)
    return Posterior(
        version=current.version,
        context=context,
        candidates=candidates,
        arms=[ArmDensity(density=line, **arm) for arm, line in zip(arms, lines, strict=True)],
    )


def _densities(laws: Any, points: int) -> list[Density | None]:
    """Return the density of each arm between its 0.05 % and 99.95 % quantiles; None where it is unbounded."""
    lines: list[Density | None] = []
    for arm, (low, high) in enumerate(laws.quantile([0.0005, 0.9995]).T):
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            lines.append(None)
            continue
        x = np.linspace(low, high, points)
        y = np.nan_to_num(laws.only([arm]).pdf(x)[:, 0], posinf=0.0)
        lines.append(Density(x=x.tolist(), y=y.tolist()))
    return lines


@router.get("/series", response_model=Series, responses=UNCHANGED)
async def series(
    state: State,
    caller: Reader,
    asked: Conditional,
    name: str,
    points: Annotated[int, Query(ge=2, le=2000)] = 500,
) -> Response:
    """Read probability of being the best, number of candidates and allocation over time, downsampled."""
    experiment = await state.experiment(name)

    def compute(current: ExperimentState) -> Series:
        session = experiment.session
        allocation = state.counters.allocation(session)
        marks = allocation.history()
        step = max(1, math.ceil(len(marks) / points))
        kept = marks[::-1][::step][::-1]  # the latest is always included
        counts = state.counters.outcomes(session, len(current.arms))
        events = activity.timeline(session, () if counts is None else counts.corrections)
        return Series(
            arms=list(current.arms),
            points=[SeriesPoint(**each) for each in decision_pages.sample(session, points)],
            allocation=[AllocationPoint(**each) for each in kept],
            happenings=[TimelineEvent(**each) for each in events],
            complete=allocation.complete and counts is not None,
        )

    return await cached_response(state, caller, experiment, Question(("series", points)), compute, asked)


@router.get("/health", response_model=Health, responses=UNCHANGED)
async def health(state: State, caller: Reader, asked: Conditional, name: str) -> Response:
    """Check the log: delays of outcomes, choices compared with logged propensities, and the last replay."""
    experiment = await state.experiment(name)

    def compute(current: ExperimentState) -> Health:
        allocation = state.counters.allocation(experiment.session)
        compared = allocation.deviation(len(current.arms))
        return Health(
            delays=Delays(**activity.delays(experiment.session, datetime.datetime.now(datetime.UTC))),
            propensities=[PropensityCheck(name=arm, **each) for arm, each in zip(current.arms, compared, strict=True)],
            judged=allocation.judged,
            complete=allocation.complete,
            replay=replay_view(state, experiment, current),
        )

    question = Question("health", volatile=True)
    return await cached_response(state, caller, experiment, question, compute, asked)
