"""Routes that change a running experiment: add and drop arms, add outcomes from before it."""

from typing import Annotated

from fastapi import APIRouter, Header

from doublesampling.live.experiment import Experiment
from doublesampling.service import blinding, messages
from doublesampling.service import trail as m
from doublesampling.service.access import Admin, Caller, TheDesk

router = APIRouter(prefix="/v1/experiments/{name}", tags=["experiments"])


def _arms(experiment: Experiment, caller: Caller) -> list[messages.Arm]:
    return blinding.arms(experiment.known, experiment.design, caller)


@router.post("/arms", status_code=201)
async def add_arm(desk: TheDesk, caller: Admin, name: str, body: m.NewArm) -> m.ArmsChanged:
    """Add an arm, which starts at the prior."""
    experiment = await desk.experiment(name)
    changed = await desk.write(lambda: experiment.add_arm(body.name, body.reason, actor=caller.actor))
    desk.answers.wrote(name)
    return m.ArmsChanged(changed=changed, arms=await desk.read(_arms, experiment, caller))


@router.post("/arms/drop")
async def drop_arm(desk: TheDesk, caller: Admin, name: str, body: m.DropArm) -> m.ArmsChanged:
    """Drop an arm: no more decisions for it; outcomes of earlier ones still count."""
    experiment = await desk.experiment(name)
    changed = await desk.write(lambda: experiment.drop_arm(body.arm, body.reason, actor=caller.actor))
    desk.answers.wrote(name)
    return m.ArmsChanged(changed=changed, arms=await desk.read(_arms, experiment, caller))


@router.post("/history")
async def add_history(
    desk: TheDesk,
    caller: Admin,
    name: str,
    body: m.History,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=500)] = None,
) -> m.HistoryAdded:
    """Add outcomes from before the experiment. With an Idempotency-Key they are added only once."""
    experiment = await desk.experiment(name)
    added = await desk.write(
        lambda: experiment.add_history(
            body.arms, body.rewards, body.contexts, request_key=idempotency_key, actor=caller.actor, scope=caller.owner
        )
    )
    desk.answers.wrote(name)
    return m.HistoryAdded(added=added)
