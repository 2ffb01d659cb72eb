"""Routes of experiments: list, create, read, pause and resume."""

from typing import Any

from fastapi import APIRouter, Response

from doublesampling import beliefs, policies
from doublesampling.allocation import Allocation
from doublesampling.errors import DoubleSamplingError, NameTakenError, SettingError
from doublesampling.live import changes, design
from doublesampling.live.experiment import Experiment
from doublesampling.service.access import Admin, Anyone, Caller, State, change_request
from doublesampling.service.response_cache import VERSION
from doublesampling.service.responses import UNCHANGED, Conditional, Question, cached_response
from doublesampling.service.schemas.base import IdempotencyKey, OptionalReason
from doublesampling.service.schemas.experiments import (
    ComponentSpec,
    ExperimentList,
    ExperimentView,
    NewExperiment,
    StatusChange,
)
from doublesampling.service.state import ServiceState
from doublesampling.service.views import experiment_summary, experiment_view
from doublesampling.stopping import Stopping
from doublesampling.trials.trial import Trial

router = APIRouter(prefix="/v1/experiments", tags=["experiments"])


@router.get("")
async def list_experiments(state: State, caller: Anyone) -> ExperimentList:
    """List the experiments that this key may use."""
    return await state.read(_list, state, caller)


def _list(state: ServiceState, caller: Caller) -> ExperimentList:
    names = [each["name"] for each in Experiment.list(state.store)]
    allowed = [name for name in names if caller.experiment in (None, name)]
    return ExperimentList(experiments=[experiment_summary(state.open(name), caller) for name in allowed])


@router.post("", status_code=201)
async def create_experiment(state: State, caller: Admin, body: NewExperiment) -> ExperimentView:
    """Create an experiment. Belief and policy are given by the names of their Python classes."""
    if caller.experiment is not None:
        raise caller.wrong_experiment_error
    if "/" in body.name or body.name in (".", ".."):
        raise SettingError(f"name must not contain a slash, got {body.name[:50]!r}: it becomes part of a URL.")
    return await state.write(_create, state, caller, body)


def _create(state: ServiceState, caller: Caller, body: NewExperiment) -> ExperimentView:
    if body.arms is None and (body.design is None or body.belief is not None):
        raise SettingError("An experiment needs arms, at least two names; or a design alone, which holds all parts.")
    try:
        made = Experiment.create(
            body.name,
            arms=body.arms,
            belief=_build("belief", body.belief, beliefs, arms=len(body.arms or ())),
            policy=_build("policy", body.policy, policies),
            seed=body.seed,
            units=body.units,
            codes=body.codes,
            allocation=None if body.allocation is None else Allocation(**body.allocation.model_dump()),
            stopping=None if body.stopping is None else Stopping(**body.stopping.model_dump()),
            participants=body.participants,
            design=None if body.design is None else _trial(body.design),
            storage=state.store,
            actor=caller.actor,
        )
    except NameTakenError as taken:
        if body.arms is not None and len(set(body.arms)) < len(body.arms):
            raise
        message = f"An experiment called {body.name!r} exists. Choose another name."
        raise NameTakenError(message) from taken
    return experiment_view(made, caller)


def _trial(content: dict[str, Any]) -> Trial:
    """Return a trial from its description."""
    try:
        return Trial.from_dict(content)
    except DoubleSamplingError:
        raise
    except (TypeError, ValueError, OverflowError) as problem:
        said = str(problem).partition(".__init__() ")[2] or "a setting has the wrong type"
        raise SettingError(f"design: {said[:200]}. Write it as Trial.to_dict does.") from None


def _build(what: str, spec: ComponentSpec | None, module: Any, **given: Any) -> Any:
    """Return a belief or policy from its name and settings; None for the default."""
    if spec is None:
        return None
    names = design.kinds(module)
    if spec.kind not in names:
        raise SettingError(f"{what} {spec.kind!r} does not exist. There are {', '.join(names)}.")
    try:
        return design.build({"class": spec.kind, "settings": {**spec.settings, **given}}, module)
    except DoubleSamplingError:
        raise
    except (TypeError, ValueError, OverflowError) as problem:
        said = str(problem).partition(".__init__() ")[2] or "a setting has the wrong type"
        raise SettingError(f"{what} {spec.kind}: {said[:200]}. Use the settings of the Python class.") from None


@router.get("/{name}", response_model=ExperimentView, responses=UNCHANGED)
async def show_experiment(state: State, caller: Anyone, asked: Conditional, name: str) -> Response:
    """Read the status of an experiment. The ETag changes with the response, so polling is cheap.

    Keys without the scope ``read`` get no ETag, and null instead of results.
    """
    experiment = await state.experiment(name)
    response = await cached_response(
        state,
        caller,
        experiment,
        Question(("view", caller.blind)),
        lambda current: experiment_view(experiment, caller, current),
        asked,
    )
    if caller.blind:
        del response.headers["ETag"], response.headers[VERSION]
    return response


@router.post("/{name}/pause")
async def pause_experiment(
    state: State, caller: Admin, name: str, body: OptionalReason | None = None, idempotency_key: IdempotencyKey = None
) -> StatusChange:
    """Pause an experiment: no new decisions until it is resumed. Outcomes can still be told."""
    experiment = await state.experiment(name)
    request = change_request(caller, idempotency_key)
    changed = await state.write(changes.pause, experiment.session, _reason(body), request)
    state.responses.wrote(name)
    return StatusChange(changed=changed, status=await state.read(lambda: experiment.state.status))


@router.post("/{name}/resume")
async def resume_experiment(
    state: State, caller: Admin, name: str, body: OptionalReason | None = None, idempotency_key: IdempotencyKey = None
) -> StatusChange:
    """Resume a paused experiment."""
    experiment = await state.experiment(name)
    request = change_request(caller, idempotency_key)
    changed = await state.write(changes.resume, experiment.session, _reason(body), request)
    state.responses.wrote(name)
    return StatusChange(changed=changed, status=await state.read(lambda: experiment.state.status))


def _reason(body: OptionalReason | None) -> str | None:
    return None if body is None else body.reason
