"""Store one outcome on behalf of a caller, who may be blind to results."""

import asyncio
from typing import Annotated, Any

from fastapi import Path, Response

from doublesampling.live import records
from doublesampling.live.experiment import Experiment
from doublesampling.service import blinding
from doublesampling.service.access import Caller
from doublesampling.service.responses import json_response
from doublesampling.service.schemas.outcomes import Acknowledgement, NewOutcome, OutcomeView
from doublesampling.service.state import ServiceState

DecisionId = Annotated[str, Path(alias="id", max_length=100)]
OUTCOME = OutcomeView | Acknowledgement
STORED_BEFORE: dict[int | str, dict[str, Any]] = {
    200: {"model": OUTCOME, "description": "an outcome was stored before; nothing was written"}
}


def log_contested(state: ServiceState, caller: Caller, name: str, told: records.Outcome, sent: float) -> None:
    """Log a value that a blind caller sent and that differs from the stored one; the caller does not learn of it."""
    if caller.blind and told.repeated and told.reward != sent:
        state.access_log.note(caller.shown, "contested", name, f"decision {told.decision}: sent {sent:g}")


async def tell_one(
    state: ServiceState, caller: Caller, experiment: Experiment, decision: str, body: NewOutcome
) -> Response:
    """Store an outcome with the next group commit, and return what the caller may see of it."""
    with blinding.redact_errors(experiment, caller):
        pending = state.writer.tell(
            experiment,
            decision,
            body.reward,
            imputed=body.imputed,
            reason=body.reason,
            actor=caller.actor,
            keep=caller.blind,
        )
        told = await asyncio.wrap_future(pending)
    state.responses.wrote(experiment.name)
    log_contested(state, caller, experiment.name, told, body.reward)
    return json_response(blinding.outcome(told, caller), told.repeated)
