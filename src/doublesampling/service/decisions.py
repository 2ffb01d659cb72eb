"""Routes of decisions: ask, the log, and why an arm was chosen."""

import asyncio
import math
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Response

from doublesampling.live import records, watching
from doublesampling.live.experiment import Experiment
from doublesampling.live.memory import Known
from doublesampling.service import blinding
from doublesampling.service import messages as m
from doublesampling.service.access import Asker, Reader, TheDesk
from doublesampling.service.answers import Conditional, shared_answer
from doublesampling.service.outcomes import Id, json_answer

router = APIRouter(prefix="/v1/experiments/{name}", tags=["decisions"])
_SAME: dict[int | str, dict[str, Any]] = {
    200: {"model": m.Decision | m.Receipt, "description": "the decision that was made before; nothing was written"}
}


@router.post("/decisions", status_code=201, response_model=m.Decision | m.Receipt, responses=_SAME)
async def ask(
    desk: TheDesk,
    caller: Asker,
    name: str,
    body: m.Ask | None = None,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=500)] = None,
) -> Response:
    """Decide which arm a unit gets.

    The same Idempotency-Key, or a unit that is asked once, gets the decision that was made before.
    """
    experiment = await desk.experiment(name)
    wish = body or m.Ask()
    made = await asyncio.wrap_future(
        desk.writer.ask(experiment, wish.unit, wish.context, idempotency_key, caller.actor, caller.owner)
    )
    desk.answers.wrote(name)
    return json_answer(blinding.receipt(made, caller, experiment.design), made.repeated)


@router.post(
    "/decisions/batch",
    status_code=201,
    response_model=m.Decisions,
    responses={200: {"model": m.Decisions, "description": "all were made before; nothing was written"}},
)
async def ask_many(
    desk: TheDesk,
    caller: Asker,
    name: str,
    body: m.AskMany,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=500)] = None,
) -> Response:
    """Decide for several units from the same knowledge: all decisions are stored, or none."""
    experiment = await desk.experiment(name)
    made = await desk.write(
        lambda: experiment.ask_many(
            body.count, units=body.units, contexts=body.contexts, request_key=idempotency_key, actor=caller.actor,
            scope=caller.owner,
        )
    )  # fmt: skip
    desk.answers.wrote(name)
    views = m.Decisions.model_construct(decisions=[blinding.receipt(d, caller, experiment.design) for d in made])
    return json_answer(views, all(d.repeated for d in made))


@router.get("/decisions", response_model=m.Page, responses={304: {"description": "nothing has changed since"}})
async def list_decisions(
    desk: TheDesk,
    caller: Reader,
    asked: Conditional,
    name: str,
    after: Annotated[int, Query(ge=0, lt=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    before: Annotated[int | None, Query(ge=1, lt=2**62, description="downwards from here, newest first")] = None,
    status: Annotated[Literal["all", "waiting"], Query()] = "all",
) -> Response:
    """Read a page of the log, upwards from ``after``. Go on with ``following`` until it is null."""
    experiment = await desk.experiment(name)

    def compute(_: Known) -> m.Page:
        rows, following = watching.page(
            experiment._book, after=after, before=before, limit=limit, waiting=status == "waiting"
        )
        return m.Page(decisions=[m.Row(**row) for row in rows], following=following)

    question = ("log", after, before, limit, status)
    return await shared_answer(desk, caller, experiment, question, compute, asked)


@router.get("/decisions/{id}")
async def explain_decision(desk: TheDesk, caller: Reader, name: str, which: Id) -> m.Explained:
    """Explain a decision: what was known then, what was believed, what was drawn."""
    experiment = await desk.experiment(name)
    with blinding.within(experiment, caller):
        return await desk.long(caller.shown, _explain, experiment, which)


def _explain(experiment: Experiment, which: str) -> m.Explained:
    found = experiment.explain(which)
    finite: list[dict[str, Any]] = [
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in arm.items()} for arm in found.arms
    ]
    return m.Explained(
        decision=blinding.decision_view(found.decision, experiment.design),
        outcome=_latest(experiment, found.decision),
        arms=[m.ArmThen(**arm) for arm in finite],
        why=found.why,
        policy=found.policy,
        belief=found.belief,
        verified=found.verified,
        unknown_then=found.unknown_then,
    )


def _latest(experiment: Experiment, made: records.Receipt) -> m.OutcomeView | None:
    rows, _ = watching.page(experiment._book, after=made.number - 1, limit=1)
    row = rows[0]
    if row["status"] == "waiting":
        return None
    return m.OutcomeView(
        decision=row["id"], reward=row["reward"], kind=row["status"], imputed=row["imputed"], repeated=True,
        revision=row["revisions"], reason=row["reason"], told_at=row["told_at"], actor=row["told_by"],
    )  # fmt: skip
