"""Routes that change the arms of a running experiment, or import outcomes from before it."""

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Header

from doublesampling.live.experiment import Experiment
from doublesampling.service import blinding
from doublesampling.service.access import Admin, Caller, State
from doublesampling.service.schemas.experiments import ArmsChange, DropArm, History, HistoryAdded, NewArm
from doublesampling.service.state import ServiceState

router = APIRouter(prefix="/v1/experiments/{name}", tags=["experiments"])


async def _change(state: ServiceState, caller: Caller, name: str, change: Callable[[Experiment], bool]) -> ArmsChange:
    """Change the arms, and return all arms after the change."""
    experiment = await state.experiment(name)
    changed = await state.write(change, experiment)
    state.responses.wrote(name)
    arms = await state.read(lambda: blinding.arms(experiment.state, experiment.design, caller))
    return ArmsChange(changed=changed, arms=arms)


@router.post("/arms", status_code=201)
async def add_arm(state: State, caller: Admin, name: str, body: NewArm) -> ArmsChange:
    """Add an arm, which starts at the prior."""
    return await _change(state, caller, name, lambda exp: exp.add_arm(body.name, body.reason, actor=caller.actor))


@router.post("/arms/drop")
async def drop_arm(state: State, caller: Admin, name: str, body: DropArm) -> ArmsChange:
    """Drop an arm: it gets no more decisions. Outcomes of its earlier decisions still count."""
    return await _change(state, caller, name, lambda exp: exp.drop_arm(body.arm, body.reason, actor=caller.actor))


@router.post("/history")
async def add_history(
    state: State,
    caller: Admin,
    name: str,
    body: History,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=500)] = None,
) -> HistoryAdded:
    """Import outcomes from before the experiment. The same Idempotency-Key imports them only once."""
    experiment = await state.experiment(name)
    added = await state.write(
        lambda: experiment.add_history(
            body.arms, body.rewards, body.contexts, request_key=idempotency_key, actor=caller.actor, scope=caller.owner
        )
    )
    state.responses.wrote(name)
    return HistoryAdded(added=added)
