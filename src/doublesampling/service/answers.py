"""From a question to a shared answer: one computation per version of the experiment, in a thread, within the budget."""

import time
from collections.abc import Callable, Hashable

from fastapi import Response
from pydantic import BaseModel

from doublesampling.live.experiment import Experiment
from doublesampling.live.memory import Known
from doublesampling.service.access import Caller
from doublesampling.service.cache import Made, respond
from doublesampling.service.desk import Desk


async def shared_answer(
    desk: Desk,
    caller: Caller,
    experiment: Experiment,
    question: Hashable,
    compute: Callable[[Known], BaseModel],
    if_none_match: str | None,
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

    answer = await desk.answers.get(experiment.name, question, run)
    return respond(answer, if_none_match)
