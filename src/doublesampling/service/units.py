"""Routes of units: one's own open units, decisions that wait for their outcome, and telling by unit."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from doublesampling.live import watching
from doublesampling.live.memory import Known
from doublesampling.service import blinding
from doublesampling.service import messages as m
from doublesampling.service.access import Asker, Reader, Teller, TheDesk
from doublesampling.service.answers import Conditional, shared_answer
from doublesampling.service.outcomes import OUTCOME, SAME, json_answer, note_contested

router = APIRouter(prefix="/v1/experiments/{name}", tags=["units"])
After = Annotated[int, Query(ge=0, lt=2**62)]
Limit = Annotated[int, Query(ge=1, le=200)]
Search = Annotated[str | None, Query(max_length=500, description="a part of the unit's name")]


@router.get("/waiting", response_model=m.Page, responses={304: {"description": "nothing has changed since"}})
async def list_waiting(
    desk: TheDesk,
    caller: Reader,
    asked: Conditional,
    name: str,
    after: After = 0,
    limit: Limit = 50,
    search: Search = None,
) -> Response:
    """List decisions that wait for their outcome, the oldest first. Go on with ``following`` until it is null."""
    experiment = await desk.experiment(name)
    book = experiment._book

    def compute(_: Known) -> m.Page:
        counts = desk.counts(book, 0)
        known = desk.waiting.begin(name, counts)
        rows, following = watching.waiting(book, after=max(after, known), limit=limit, search=search)
        if search is None and after <= known:
            desk.waiting.note(name, counts, rows, following)
        return m.Page(decisions=[m.Row(**row) for row in rows], following=following)

    question = ("waiting", after, limit, search)
    return await shared_answer(desk, caller, experiment, question, compute, asked, apart=True)


@router.get("/units")
async def list_own_units(
    desk: TheDesk,
    caller: Asker,
    name: str,
    after: Annotated[str | None, Query(max_length=100, description="the cursor to go on from")] = None,
    limit: Limit = 50,
    search: Search = None,
) -> m.OwnUnits:
    """List the units that this key has asked for and whose outcome is not known yet, the oldest first."""
    experiment = await desk.experiment(name)
    book = experiment._book
    begin = 0 if after is None else blinding.unseal(after, book.design.seed)
    owned = f"{name}\n{caller.owner}"  # where this key's own waiting units begin

    def work() -> m.OwnUnits:
        actors, counts = caller.actors or (book.actor,), desk.counts(book, 0)
        known = desk.waiting.begin(owned, counts)
        rows, following = watching.waiting(book, after=max(begin, known), limit=limit, search=search, actors=actors)
        if search is None and begin <= known:
            desk.waiting.note(owned, counts, rows, following)
        views = [blinding.own_unit(row, caller, book.design) for row in rows]
        cursor = None if following is None else blinding.seal(following, book.design.seed)
        return m.OwnUnits(units=views, following=cursor)

    return await desk.read(work)


@router.put("/units/outcome", status_code=201, response_model=OUTCOME, responses=SAME)
async def tell_by_unit(desk: TheDesk, caller: Teller, name: str, body: m.TellUnit) -> Response:
    """Store the outcome of a unit that is asked once, by its name."""
    experiment = await desk.experiment(name)
    with blinding.within(experiment, caller):
        which: Any = await desk.read(watching.decision_of_unit, experiment._book, body.unit)
        pending = desk.writer.tell(
            experiment, which, body.reward, imputed=body.imputed, reason=body.reason, actor=caller.actor,
            keep=caller.blind,
        )  # fmt: skip
        told = await asyncio.wrap_future(pending)
    desk.answers.wrote(name)
    note_contested(desk, caller, name, told, body.reward)
    return json_answer(blinding.outcome(told, caller), told.repeated)
