"""Routes of outcomes: tell one or several, amend, withdraw, and void a decision."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from doublesampling.live import records, telling
from doublesampling.service import blinding
from doublesampling.service import messages as m
from doublesampling.service.access import Amender, Caller, Teller, TheDesk
from doublesampling.service.desk import Desk

router = APIRouter(prefix="/v1/experiments/{name}", tags=["outcomes"])
Id = Annotated[str, Path(alias="id", max_length=100)]
OUTCOME = m.OutcomeView | m.Acknowledged
SAME: dict[int | str, dict[str, Any]] = {
    200: {"model": OUTCOME, "description": "an outcome was stored before; nothing was written"}
}


def json_answer(model: Any, repeated: bool) -> Response:
    """A model as JSON: 201, or 200 where nothing was written."""
    return Response(model.model_dump_json(), 200 if repeated else 201, media_type="application/json")


def note_contested(desk: Desk, caller: Caller, name: str, told: records.Outcome, sent: float) -> None:
    """Log a value that a blind caller sent and that differs from the stored one: the caller is not told so."""
    if caller.blind and told.repeated and told.reward != sent:
        desk.reads.note(caller.shown, "contested", name, f"decision {told.decision}: sent {sent:g}")


@router.put("/decisions/{id}/outcome", status_code=201, response_model=OUTCOME, responses=SAME)
async def tell(desk: TheDesk, caller: Teller, name: str, which: Id, body: m.Tell) -> Response:
    """Store the outcome of a decision.

    The same value again changes nothing and answers 200; another value is a conflict. A key without the scope read gets
    200 in both cases: it does not learn what is stored.
    """
    experiment = await desk.experiment(name)
    with blinding.within(experiment, caller):
        pending = desk.writer.tell(
            experiment, which, body.reward, imputed=body.imputed, reason=body.reason, actor=caller.actor,
            keep=caller.blind,
        )  # fmt: skip
        told = await asyncio.wrap_future(pending)
    desk.answers.wrote(name)
    note_contested(desk, caller, name, told, body.reward)
    return json_answer(blinding.outcome(told, caller), told.repeated)


@router.post(
    "/outcomes",
    status_code=201,
    response_model=m.Outcomes,
    responses={200: {"model": m.Outcomes, "description": "all were stored before; nothing was written"}},
)
async def tell_many(desk: TheDesk, caller: Teller, name: str, body: m.Batch) -> Response:
    """Store several outcomes: all of them, or none where one is refused."""
    experiment = await desk.experiment(name)
    book = experiment._book
    wanted = [
        telling.make_told(
            book, each.decision, each.reward, imputed=body.imputed, reason=None, actor=caller.actor, keep=caller.blind
        )
        for each in body.outcomes
    ]
    with blinding.within(experiment, caller):
        told = await desk.write(telling.tell, book, wanted)
    desk.answers.wrote(name)
    for each, sent in zip(told, body.outcomes, strict=True):
        note_contested(desk, caller, name, each, sent.reward)
    views = m.Outcomes.model_construct(outcomes=[blinding.outcome(each, caller) for each in told])
    return json_answer(views, all(each.repeated for each in told))


@router.post("/decisions/{id}/amendments", status_code=201, response_model=OUTCOME, responses=SAME)
async def amend(desk: TheDesk, caller: Amender, name: str, which: Id, body: m.Amend) -> Response:
    """Correct an outcome: the old one stays in the log, this one supersedes it."""
    experiment = await desk.experiment(name)
    with blinding.within(experiment, caller):
        told = await desk.write(lambda: experiment.amend(which, body.reward, reason=body.reason, actor=caller.actor))
    desk.answers.wrote(name)
    return json_answer(blinding.amended(told, caller), told.repeated and not caller.blind)


@router.post("/decisions/{id}/withdrawals", status_code=201, response_model=OUTCOME, responses=SAME)
async def withdraw(desk: TheDesk, caller: Amender, name: str, which: Id, body: m.Because) -> Response:
    """Withdraw an outcome that was told by mistake: the decision waits for its outcome again."""
    experiment = await desk.experiment(name)
    with blinding.within(experiment, caller):
        told = await desk.write(lambda: experiment.withdraw(which, reason=body.reason, actor=caller.actor))
    desk.answers.wrote(name)
    return json_answer(blinding.retracted(told, caller), told.repeated)


@router.post("/decisions/{id}/void", status_code=201, response_model=OUTCOME, responses=SAME)
async def void(desk: TheDesk, caller: Amender, name: str, which: Id, body: m.Because) -> Response:
    """Void a decision that was not carried out: it stays in the log and counts for nothing."""
    experiment = await desk.experiment(name)
    with blinding.within(experiment, caller):
        told = await desk.write(lambda: experiment.void(which, reason=body.reason, actor=caller.actor))
    desk.answers.wrote(name)
    return json_answer(blinding.retracted(told, caller), told.repeated)
