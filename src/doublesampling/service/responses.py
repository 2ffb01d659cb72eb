"""JSON responses, and responses that are computed once per version of an experiment and shared by all callers."""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Header, Response
from pydantic import BaseModel

from doublesampling.live.experiment import Experiment
from doublesampling.live.state import ExperimentState
from doublesampling.service.access import Caller
from doublesampling.service.response_cache import CachedResponse, Computed, to_response
from doublesampling.service.state import ServiceState

UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "nothing has changed since"}}


def json_response(model: BaseModel, repeated: bool) -> Response:
    """Return a model as JSON with status 201, or 200 where nothing was written."""
    return Response(model.model_dump_json(), 200 if repeated else 201, media_type="application/json")


@dataclass(frozen=True)
class Conditions:
    """What a client says about the response that it already has."""

    if_none_match: str | None
    fresh: bool
    """Whether it has just written something and wants to see it."""


async def _conditions(
    if_none_match: Annotated[str | None, Header(description="the ETag of the response that the client has")] = None,
    cache_control: Annotated[
        str | None,
        Header(description="`no-cache` after a write: recompute the response, unless such requests take too much time"),
    ] = None,
) -> Conditions:
    return Conditions(if_none_match, cache_control is not None and "no-cache" in cache_control)


Conditional = Annotated[Conditions, Depends(_conditions)]


@dataclass(frozen=True)
class Question:
    """What a cached response answers, for the cache key and the choice of threads."""

    key: Hashable
    volatile: bool = False
    """Whether the response changes although nothing is written."""
    slow: bool = False
    """Whether it may take long, so that it must not delay the other responses."""


async def cached_response(
    state: ServiceState,
    caller: Caller,
    experiment: Experiment,
    question: Question,
    compute: Callable[[ExperimentState], BaseModel],
    conditions: Conditions,
) -> Response:
    """Return the cached response, or compute it in a thread and share it with everybody who asks."""

    def work(cached: str | None) -> Computed:
        begun = time.thread_time()
        current = experiment.state
        version = current.version
        body = None if version == cached and not question.volatile else compute(current).model_dump_json().encode()
        return Computed(version, body, time.thread_time() - begun)

    # a response that is not cached and exceeds the budget runs with the long reads
    affordable = state.responses.affordable(experiment.name, question.key)

    async def run(cached: str | None) -> Computed:
        if not affordable:
            return await state.long(caller.shown, work, cached)
        return await (state.read if question.slow else state.answer)(work, cached)

    response = await state.responses.get(experiment.name, question.key, run, fresh=conditions.fresh)
    return to_response(response, conditions.if_none_match)


async def long_response(
    state: ServiceState,
    caller: Caller,
    experiment: Experiment,
    key: Hashable,
    compute: Callable[[], BaseModel],
    conditions: Conditions,
) -> Response:
    """Return a response that reads a whole log, as JSON: see ``long_content``."""
    content = await long_content(state, caller, experiment, key, lambda: compute().model_dump_json())
    return to_response(content, conditions.if_none_match)


async def long_content(
    state: ServiceState, caller: Caller, experiment: Experiment, key: Hashable, compute: Callable[[], str]
) -> CachedResponse:
    """Return content that reads a whole log; it is computed with the long reads, once per version.

    It is always that of the current version. A caller who gives up leaves the computation running, and the next
    attempt waits for the same one.
    """
    version = await state.read(lambda: experiment.state.version)

    async def run() -> CachedResponse:
        return CachedResponse.of(version, (await state.long(caller.shown, compute)).encode())

    return await state.long_responses.get((experiment.name, key), version, run)
