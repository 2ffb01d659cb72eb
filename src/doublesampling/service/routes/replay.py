"""Route of the replay: recompute every decision of an experiment from its log."""

import asyncio

from fastapi import APIRouter, Response

from doublesampling.service.access import Reader, State
from doublesampling.service.replays import replay_view, start_replay
from doublesampling.service.schemas.results import ReplayView

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])
_WAIT = 8.0  # seconds that a request waits for a replay


@router.get("/replay", responses={202: {"model": ReplayView, "description": "still running; request it again"}})
async def replay(state: State, caller: Reader, name: str, response: Response) -> ReplayView:
    """Recompute every decision from the log. A long log takes longer than one request: then request it again."""
    experiment = await state.experiment(name)
    version = await state.read(lambda: experiment.state.version)
    running = asyncio.wrap_future(start_replay(state, experiment, version, caller.shown))
    running.add_done_callback(lambda job: job.cancelled() or job.exception())  # the view reports a failure
    done, _ = await asyncio.wait([running], timeout=_WAIT)  # occupies no thread
    if not done:
        response.status_code = 202
    state.responses.wrote(experiment.name)
    found = await state.read(lambda: replay_view(state, experiment, experiment.state))
    assert found is not None
    return found
