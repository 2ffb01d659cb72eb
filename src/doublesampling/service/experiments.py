"""Routes of experiments themselves: list, create, look, pause, resume."""

from typing import Any

from fastapi import APIRouter, Header, Response

from doublesampling import beliefs, policies
from doublesampling.errors import DoubleSamplingError, NameTakenError, SettingError
from doublesampling.live import design, watching
from doublesampling.live.experiment import Experiment
from doublesampling.live.memory import Known
from doublesampling.service import messages as m
from doublesampling.service.access import Admin, Anyone, Caller, TheDesk

router = APIRouter(prefix="/v1/experiments", tags=["experiments"])


@router.get("")
async def list_experiments(desk: TheDesk, caller: Anyone) -> m.Experiments:
    """The experiments that this key opens."""
    found = await desk.run(Experiment.list, desk.store)
    return m.Experiments(experiments=[m.Listed(**each) for each in found if caller.experiment in (None, each["name"])])


@router.post("", status_code=201)
async def create_experiment(desk: TheDesk, caller: Admin, body: m.NewExperiment) -> m.ExperimentView:
    """Make an experiment. Belief and policy go by the names of the Python classes."""
    if caller.experiment is not None:
        raise caller.stays_at_home
    if "/" in body.name or body.name in (".", ".."):
        raise SettingError(f"name must do without a slash, got {body.name[:50]!r}: it becomes part of an address.")

    def work() -> m.ExperimentView:
        try:
            made = Experiment.create(
                body.name,
                arms=body.arms,
                belief=_build("belief", body.belief, beliefs, arms=len(body.arms)),
                policy=_build("policy", body.policy, policies),
                seed=body.seed,
                units=body.units,
                storage=desk.store,
                actor=caller.actor,
            )
        except NameTakenError as taken:
            if len(set(body.arms)) < len(body.arms):
                raise
            message = f"An experiment called {body.name!r} exists. Choose another name."
            raise NameTakenError(message) from taken
        return view(made, caller)

    return await desk.run(work)


def _build(what: str, thing: m.Thing | None, room: Any, **given: Any) -> Any:
    """A belief or policy from its name and settings; None leaves the default."""
    if thing is None:
        return None
    known = design.kinds(room)
    if thing.kind not in known:
        raise SettingError(f"{what} {thing.kind!r} is not known. There are {', '.join(known)}.")
    try:
        return design.build({"class": thing.kind, "settings": {**thing.settings, **given}}, room)
    except DoubleSamplingError:
        raise
    except (TypeError, ValueError, OverflowError) as problem:
        said = str(problem).partition(".__init__() ")[2] or "a setting has the wrong type"
        raise SettingError(f"{what} {thing.kind}: {said[:200]}. Use the settings of the Python class.") from None


def view(experiment: Experiment, caller: Caller) -> m.ExperimentView:
    """An experiment in a few bounded reads."""
    book, known = experiment._book, experiment.known
    arms = [m.Arm(arm=i, name=name, active=i in known.active) for i, name in enumerate(known.arms)]
    return m.ExperimentView(
        name=book.name,
        status="paused" if known.paused else "running",
        arms=arms,
        dimension=getattr(known.belief, "dimension", None),
        binary=isinstance(known.belief, beliefs.BetaBernoulli) and not known.belief.fractional,
        units=book.design.units,
        belief=repr(book.design.belief),
        policy=repr(book.design.policy),
        created_at=book.created_at,
        created_by=book.created_by,
        results=None if caller.blind else _standing(experiment, known),
    )


def _standing(experiment: Experiment, known: Known) -> m.Standing:
    history = watching.history_count(experiment._book)
    outcomes = known.state.observations - history
    return m.Standing(
        decisions=known.decisions,
        outcomes=outcomes,
        waiting=max(known.decisions - outcomes, 0),
        history=history,
        version=str(known.snapshot),
    )


@router.get("/{name}", response_model=m.ExperimentView, responses={304: {"description": "nothing has changed since"}})
async def show_experiment(
    desk: TheDesk, caller: Anyone, name: str, response: Response, if_none_match: str | None = Header(None)
) -> Any:
    """How an experiment stands. The ETag changes whenever anything was written, so polling costs little."""
    experiment = await desk.experiment(name)
    found = await desk.run(view, experiment, caller)
    if found.results is not None:
        tag = f'"{found.results.version}"'
        if if_none_match == tag:
            return Response(status_code=304, headers={"ETag": tag})
        response.headers["ETag"] = tag
    return found


@router.post("/{name}/pause")
async def pause_experiment(desk: TheDesk, caller: Admin, name: str, body: m.Reason | None = None) -> m.Changed:
    """No new decisions until it is resumed; outcomes may still be told."""
    experiment = await desk.experiment(name)
    reason = None if body is None else body.reason
    changed = await desk.run(lambda: experiment.pause(reason, actor=caller.actor))
    return m.Changed(changed=changed, status="paused")


@router.post("/{name}/resume")
async def resume_experiment(desk: TheDesk, caller: Admin, name: str, body: m.Reason | None = None) -> m.Changed:
    """Decisions again."""
    experiment = await desk.experiment(name)
    reason = None if body is None else body.reason
    changed = await desk.run(lambda: experiment.resume(reason, actor=caller.actor))
    return m.Changed(changed=changed, status="running")
