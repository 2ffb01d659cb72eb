"""Routes of outcomes: tell one or several, and amend."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from doublesampling.live import telling
from doublesampling.service import blinding
from doublesampling.service import messages as m
from doublesampling.service.access import Amender, Teller, TheDesk

router = APIRouter(prefix="/v1/experiments/{name}", tags=["outcomes"])
Id = Annotated[str, Path(alias="id", max_length=100)]
_OUTCOME = m.OutcomeView | m.Acknowledged
_SAME: dict[int | str, dict[str, Any]] = {
    200: {"model": _OUTCOME, "description": "an outcome was stored before; nothing was written"}
}


def json_answer(model: Any, repeated: bool) -> Response:
    """A model as JSON: 201, or 200 where nothing was written."""
    return Response(model.model_dump_json(), 200 if repeated else 201, media_type="application/json")


@router.put("/decisions/{id}/outcome", status_code=201, response_model=_OUTCOME, responses=_SAME)
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
    views = m.Outcomes.model_construct(outcomes=[blinding.outcome(each, caller) for each in told])
    return json_answer(views, all(each.repeated for each in told))


@router.post("/decisions/{id}/amendments", status_code=201, response_model=_OUTCOME, responses=_SAME)
async def amend(desk: TheDesk, caller: Amender, name: str, which: Id, body: m.Amend) -> Response:
    """Correct an outcome: the old one stays in the log, this one supersedes it."""
    experiment = await desk.experiment(name)
    with blinding.within(experiment, caller):
        told = await desk.write(lambda: experiment.amend(which, body.reward, reason=body.reason, actor=caller.actor))
    desk.answers.wrote(name)
    return json_answer(blinding.amended(told, caller), told.repeated and not caller.blind)
