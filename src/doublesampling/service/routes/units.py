"""Routes of units: decisions that wait for an outcome, one's own units, and outcomes by unit."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from doublesampling.live.queries import decision_pages
from doublesampling.live.state import ExperimentState
from doublesampling.service import blinding
from doublesampling.service.access import Asker, Reader, State, Teller
from doublesampling.service.responses import UNCHANGED, Conditional, Question, cached_response
from doublesampling.service.schemas.decisions import DecisionPage, DecisionRow, PendingUnitPage
from doublesampling.service.schemas.outcomes import NewUnitOutcome
from doublesampling.service.telling import OUTCOME, STORED_BEFORE, tell_one

router = APIRouter(prefix="/v1/experiments/{name}", tags=["units"])
After = Annotated[int, Query(ge=0, lt=2**62)]
Limit = Annotated[int, Query(ge=1, le=200)]
Search = Annotated[str | None, Query(max_length=500, description="a part of the unit's name")]


@router.get("/waiting", response_model=DecisionPage, responses=UNCHANGED)
async def list_waiting(
    state: State,
    caller: Reader,
    asked: Conditional,
    name: str,
    after: After = 0,
    limit: Limit = 50,
    search: Search = None,
) -> Response:
    """List decisions that wait for an outcome, oldest first. Pass ``following`` as ``after`` until it is null."""
    experiment = await state.experiment(name)
    session = experiment.session

    def compute(_: ExperimentState) -> DecisionPage:
        counts = state.counters.outcomes(session, 0)
        start = state.pending_start.begin(name, counts)
        rows, following = decision_pages.pending(session, after=max(after, start), limit=limit, search=search)
        if search is None and after <= start:
            state.pending_start.note(name, counts, rows, following)
        return DecisionPage(decisions=[DecisionRow(**row) for row in rows], following=following)

    question = Question(("waiting", after, limit, search), slow=True)
    return await cached_response(state, caller, experiment, question, compute, asked)


@router.get("/units")
async def list_own_units(
    state: State,
    caller: Asker,
    name: str,
    after: Annotated[str | None, Query(max_length=100, description="the cursor of the page before")] = None,
    limit: Limit = 50,
    search: Search = None,
) -> PendingUnitPage:
    """List the units that this key asked for and that wait for an outcome, oldest first."""
    experiment = await state.experiment(name)
    session = experiment.session
    begin = 0 if after is None else blinding.unseal(after, session.design.seed)
    owned = f"{name}\n{caller.owner}"  # the pending units of this key have a start of their own

    def work() -> PendingUnitPage:
        actors, counts = caller.actors or (session.actor,), state.counters.outcomes(session, 0)
        start = state.pending_start.begin(owned, counts)
        rows, following = decision_pages.pending(
            session, after=max(begin, start), limit=limit, search=search, actors=actors
        )
        if search is None and begin <= start:
            state.pending_start.note(owned, counts, rows, following)
        views = [blinding.pending_unit(row, caller, session.design) for row in rows]
        cursor = None if following is None else blinding.seal(following, session.design.seed)
        return PendingUnitPage(units=views, following=cursor)

    return await state.read(work)


@router.put("/units/outcome", status_code=201, response_model=OUTCOME, responses=STORED_BEFORE)
async def tell_by_unit(state: State, caller: Teller, name: str, body: NewUnitOutcome) -> Response:
    """Store the outcome of a unit, by its name, in an experiment that decides once per unit."""
    experiment = await state.experiment(name)
    with blinding.redact_errors(experiment, caller):
        which = await state.read(decision_pages.decision_of_unit, experiment.session, body.unit)
    return await tell_one(state, caller, experiment, which, body)
