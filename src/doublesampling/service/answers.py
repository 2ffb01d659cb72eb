"""From a question to a shared answer: one computation per version of the experiment, in a thread, within the budget."""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Header, Response
from pydantic import BaseModel

from doublesampling.live.experiment import Experiment
from doublesampling.live.memory import Known
from doublesampling.service.access import Caller
from doublesampling.service.cache import Made, respond
from doublesampling.service.desk import Desk


@dataclass(frozen=True)
class Conditions:
    """What a client says about an answer that it has already."""

    if_none_match: str | None
    fresh: bool
    """Whether it has just written, and wants to see that."""


async def _conditions(
    if_none_match: Annotated[str | None, Header(description="the ETag of the answer that the client has")] = None,
    cache_control: Annotated[
        str | None, Header(description="`no-cache` after a write: the answer is computed anew, where not too often")
    ] = None,
) -> Conditions:
    return Conditions(if_none_match, cache_control is not None and "no-cache" in cache_control)


Conditional = Annotated[Conditions, Depends(_conditions)]


async def shared_answer(
    desk: Desk,
    caller: Caller,
    experiment: Experiment,
    question: Hashable,
    compute: Callable[[Known], BaseModel],
    asked: "Conditional",
    *,
    always: bool = False,
    apart: bool = False,
) -> Response:
    """Answer from the cache, or compute; ``always`` where the answer changes without anything being written.

    An answer that may take long is computed ``apart``, so that the others need not wait for it.
    """

    def work(kept: str | None) -> Made:
        begun = time.thread_time()
        known = experiment.known
        version = known.version
        body = None if version == kept and not always else compute(known).model_dump_json().encode()
        return Made(version, body, time.thread_time() - begun)

    # what nobody has asked before and the budget does not allow waits with the long reads
    quick = desk.answers.affordable(experiment.name, question)

    async def run(kept: str | None) -> Made:
        if not quick:
            return await desk.long(caller.shown, work, kept)
        return await (desk.read if apart else desk.answer)(work, kept)

    answer = await desk.answers.get(experiment.name, question, run, fresh=asked.fresh)
    return respond(answer, asked.if_none_match)
