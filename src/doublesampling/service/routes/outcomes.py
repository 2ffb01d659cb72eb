"""Routes of outcomes: tell one or several, amend, withdraw, and void a decision."""

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Response

from doublesampling.live import records, telling
from doublesampling.live.experiment import Experiment
from doublesampling.service import blinding
from doublesampling.service.access import Amender, Caller, State, Teller
from doublesampling.service.responses import json_response
from doublesampling.service.schemas.base import RequiredReason
from doublesampling.service.schemas.outcomes import Amendment, NewOutcome, OutcomeBatch, OutcomeList
from doublesampling.service.state import ServiceState
from doublesampling.service.telling import OUTCOME, STORED_BEFORE, DecisionId, log_contested, tell_one

router = APIRouter(prefix="/v1/experiments/{name}", tags=["outcomes"])
_ALL_STORED_BEFORE: dict[int | str, dict[str, Any]] = {
    200: {"model": OutcomeList, "description": "all outcomes were stored before; nothing was written"}
}


@router.put("/decisions/{id}/outcome", status_code=201, response_model=OUTCOME, responses=STORED_BEFORE)
async def tell(state: State, caller: Teller, name: str, which: DecisionId, body: NewOutcome) -> Response:
    """Store the outcome of a decision.

    The same value again changes nothing and returns 200; another value is a conflict. A key without the scope
    ``read`` gets 200 in both cases, so that it does not learn what is stored.
    """
    return await tell_one(state, caller, await state.experiment(name), which, body)


@router.post("/outcomes", status_code=201, response_model=OutcomeList, responses=_ALL_STORED_BEFORE)
async def tell_many(state: State, caller: Teller, name: str, body: OutcomeBatch) -> Response:
    """Store several outcomes: all of them, or none where one is refused."""
    experiment = await state.experiment(name)
    session = experiment.session
    wanted = [
        telling.make_outcome(
            session, each.decision, each.reward, imputed=body.imputed, reason=None, actor=caller.actor,
            keep=caller.blind,
        )
        for each in body.outcomes
    ]  # fmt: skip
    with blinding.redact_errors(experiment, caller):
        told = await state.write(telling.tell, session, wanted)
    state.responses.wrote(name)
    for each, sent in zip(told, body.outcomes, strict=True):
        log_contested(state, caller, name, each, sent.reward)
    views = OutcomeList.model_construct(outcomes=[blinding.outcome(each, caller) for each in told])
    return json_response(views, all(each.repeated for each in told))


async def _revise(
    state: ServiceState, caller: Caller, name: str, revise: Callable[[Experiment], records.Outcome]
) -> records.Outcome:
    """Write a revision of an outcome, without revealing other experiments in an error."""
    experiment = await state.experiment(name)
    with blinding.redact_errors(experiment, caller):
        told = await state.write(revise, experiment)
    state.responses.wrote(name)
    return told


@router.post("/decisions/{id}/amendments", status_code=201, response_model=OUTCOME, responses=STORED_BEFORE)
async def amend(state: State, caller: Amender, name: str, which: DecisionId, body: Amendment) -> Response:
    """Correct an outcome: the old one stays in the log, and this one supersedes it."""
    told = await _revise(
        state, caller, name, lambda exp: exp.amend(which, body.reward, reason=body.reason, actor=caller.actor)
    )
    return json_response(blinding.amended(told, caller), told.repeated and not caller.blind)


@router.post("/decisions/{id}/withdrawals", status_code=201, response_model=OUTCOME, responses=STORED_BEFORE)
async def withdraw(state: State, caller: Amender, name: str, which: DecisionId, body: RequiredReason) -> Response:
    """Withdraw an outcome that was told by mistake: the decision waits for an outcome again."""
    told = await _revise(state, caller, name, lambda exp: exp.withdraw(which, reason=body.reason, actor=caller.actor))
    return json_response(blinding.retracted(told, caller), told.repeated)


@router.post("/decisions/{id}/void", status_code=201, response_model=OUTCOME, responses=STORED_BEFORE)
async def void(state: State, caller: Amender, name: str, which: DecisionId, body: RequiredReason) -> Response:
    """Void a decision that was not carried out: it stays in the log and does not count."""
    told = await _revise(state, caller, name, lambda exp: exp.void(which, reason=body.reason, actor=caller.actor))
    return json_response(blinding.retracted(told, caller), told.repeated)
