"""Routes that change the arms of a running experiment, or import outcomes from before it."""

from collections.abc import Callable

from fastapi import APIRouter

from doublesampling.live import changes
from doublesampling.live.session import Session
from doublesampling.service import blinding
from doublesampling.service.access import Admin, Caller, State, change_request
from doublesampling.service.schemas.base import IdempotencyKey
from doublesampling.service.schemas.experiments import ArmsChange, DropArm, History, HistoryAdded, NewArm
from doublesampling.service.state import ServiceState

router = APIRouter(prefix="/v1/experiments/{name}", tags=["experiments"])


async def _change(state: ServiceState, caller: Caller, name: str, change: Callable[[Session], bool]) -> ArmsChange:
    """Change the arms, and return all arms after the change."""
    experiment = await state.experiment(name)
    changed = await state.write(change, experiment.session)
    state.responses.wrote(name)
    arms = await state.read(lambda: blinding.arms(experiment.state, experiment.design, caller))
    return ArmsChange(changed=changed, arms=arms)


@router.post("/arms", status_code=201)
async def add_arm(
    state: State, caller: Admin, name: str, body: NewArm, idempotency_key: IdempotencyKey = None
) -> ArmsChange:
    """Add an arm, which starts at the prior."""
    request = change_request(caller, idempotency_key)
    return await _change(state, caller, name, lambda session: changes.add_arm(session, body.name, body.reason, request))


@router.post("/arms/drop")
async def drop_arm(
    state: State, caller: Admin, name: str, body: DropArm, idempotency_key: IdempotencyKey = None
) -> ArmsChange:
    """Drop an arm: it gets no more decisions. Outcomes of its earlier decisions still count."""
    request = change_request(caller, idempotency_key)
    return await _change(state, caller, name, lambda session: changes.drop_arm(session, body.arm, body.reason, request))


@router.post("/history")
async def add_history(
    state: State,
    caller: Admin,
    name: str,
    body: History,
    idempotency_key: IdempotencyKey = None,
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
