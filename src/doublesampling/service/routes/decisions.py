"""Routes of decisions: request them, list them, and explain one."""

import asyncio
import math
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from doublesampling.live import records
from doublesampling.live.experiment import Experiment
from doublesampling.live.queries import decision_pages
from doublesampling.live.state import ExperimentState
from doublesampling.service import blinding
from doublesampling.service.access import Asker, Reader, State
from doublesampling.service.responses import UNCHANGED, Conditional, Question, cached_response, json_response
from doublesampling.service.schemas.base import IdempotencyKey
from doublesampling.service.schemas.decisions import (
    ArmAtDecision,
    Decision,
    DecisionBatch,
    DecisionBatchRequest,
    DecisionExplanation,
    DecisionPage,
    DecisionRequest,
    DecisionRow,
    Receipt,
)
from doublesampling.service.schemas.outcomes import OutcomeView
from doublesampling.service.telling import DecisionId

router = APIRouter(prefix="/v1/experiments/{name}", tags=["decisions"])
_DECIDED_BEFORE: dict[int | str, dict[str, Any]] = {
    200: {"model": Decision | Receipt, "description": "the decision was made before; nothing was written"}
}
_ALL_DECIDED_BEFORE: dict[int | str, dict[str, Any]] = {
    200: {"model": DecisionBatch, "description": "all decisions were made before; nothing was written"}
}


@router.post("/decisions", status_code=201, response_model=Decision | Receipt, responses=_DECIDED_BEFORE)
async def ask(
    state: State,
    caller: Asker,
    name: str,
    body: DecisionRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Decide which arm a unit gets.

    The same Idempotency-Key, or a unit that is decided once, gets the decision that was made before.
    """
    experiment = await state.experiment(name)
    wanted = body or DecisionRequest()
    with blinding.redact_errors(experiment, caller):
        made = await asyncio.wrap_future(
            state.writer.ask(experiment, wanted.unit, wanted.context, idempotency_key, caller.actor, caller.owner)
        )
    state.responses.wrote(name)
    return json_response(blinding.receipt(made, caller, experiment.design), made.repeated)


@router.post("/decisions/batch", status_code=201, response_model=DecisionBatch, responses=_ALL_DECIDED_BEFORE)
async def ask_many(
    state: State,
    caller: Asker,
    name: str,
    body: DecisionBatchRequest,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Decide for several units from the same state: all decisions are stored, or none."""
    experiment = await state.experiment(name)
    with blinding.redact_errors(experiment, caller):
        made = await state.write(
            lambda: experiment.ask_many(
                body.count, units=body.units, contexts=body.contexts, request_key=idempotency_key, actor=caller.actor,
                scope=caller.owner,
            )
        )  # fmt: skip
    state.responses.wrote(name)
    views = DecisionBatch.model_construct(decisions=[blinding.receipt(d, caller, experiment.design) for d in made])
    return json_response(views, all(d.repeated for d in made))


@router.get("/decisions", response_model=DecisionPage, responses=UNCHANGED)
async def list_decisions(
    state: State,
    caller: Reader,
    asked: Conditional,
    name: str,
    after: Annotated[int, Query(ge=0, lt=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    before: Annotated[int | None, Query(ge=1, lt=2**62, description="descending from here, newest first")] = None,
    status: Annotated[Literal["all", "waiting"], Query()] = "all",
) -> Response:
    """Read a page of decisions, ascending from ``after``. Pass ``following`` as ``after`` until it is null."""
    experiment = await state.experiment(name)

    def compute(_: ExperimentState) -> DecisionPage:
        rows, following = decision_pages.page(
            experiment.session, after=after, before=before, limit=limit, waiting=status == "waiting"
        )
        return DecisionPage(decisions=[DecisionRow(**row) for row in rows], following=following)

    question = Question(("log", after, before, limit, status))
    return await cached_response(state, caller, experiment, question, compute, asked)


@router.get("/decisions/{id}")
async def explain_decision(state: State, caller: Reader, name: str, which: DecisionId) -> DecisionExplanation:
    """Explain a decision: the outcomes it knew, the posterior, the candidates and the votes."""
    experiment = await state.experiment(name)
    with blinding.redact_errors(experiment, caller):
        return await state.long(caller.shown, _explain, experiment, which)


def _explain(experiment: Experiment, which: str) -> DecisionExplanation:
    found = experiment.explain(which)
    finite: list[dict[str, Any]] = [
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in arm.items()} for arm in found.arms
    ]
    return DecisionExplanation(
        decision=blinding.decision_view(found.decision, experiment.design),
        outcome=_latest_outcome(experiment, found.decision),
        arms=[ArmAtDecision(**arm) for arm in finite],
        why=found.why,
        policy=found.policy,
        allocation=found.allocation,
        belief=found.belief,
        verified=found.verified,
        unknown_then=found.unknown_then,
    )


def _latest_outcome(experiment: Experiment, made: records.Receipt) -> OutcomeView | None:
    rows, _ = decision_pages.page(experiment.session, after=made.number - 1, limit=1)
    row = rows[0]
    if row["status"] == "waiting":
        return None
    return OutcomeView(
        decision=row["id"], reward=row["reward"], kind=row["status"], imputed=row["imputed"], repeated=True,
        revision=row["revisions"], reason=row["reason"], told_at=row["told_at"], actor=row["told_by"],
    )  # fmt: skip
