"""Routes of experiments themselves: list, create, look, pause, resume."""

from typing import Any

from fastapi import APIRouter, Response

from doublesampling import beliefs, policies
from doublesampling.errors import DoubleSamplingError, NameTakenError, SettingError
from doublesampling.live import design, watching
from doublesampling.live.experiment import Experiment
from doublesampling.live.memory import Known
from doublesampling.service import blinding
from doublesampling.service import messages as m
from doublesampling.service.access import Admin, Anyone, Caller, TheDesk
from doublesampling.service.answers import Conditional, shared_answer
from doublesampling.service.cache import VERSION
from doublesampling.service.desk import Desk

router = APIRouter(prefix="/v1/experiments", tags=["experiments"])


@router.get("")
async def list_experiments(desk: TheDesk, caller: Anyone) -> m.Experiments:
    """List the experiments that this key opens."""
    return await desk.read(_listing, desk, caller)


def _listing(desk: Desk, caller: Caller) -> m.Experiments:
    names = [each["name"] for each in Experiment.list(desk.store)]
    return m.Experiments(
        experiments=[_listed(desk.open(name), caller) for name in names if caller.experiment in (None, name)]
    )


def _listed(experiment: Experiment, caller: Caller) -> m.Listed:
    book, known = experiment._book, experiment.known
    return m.Listed(
        name=book.name,
        arms=[arm.name for arm in blinding.arms(known, book.design, caller)],
        status="paused" if known.paused else "running",
        created_at=book.created_at,
        created_by=book.created_by,
        last_activity=None if caller.blind else watching.last_activity(book),
        results=None if caller.blind else _standing(experiment, known),
    )


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
                codes=body.codes,
                storage=desk.store,
                actor=caller.actor,
            )
        except NameTakenError as taken:
            if len(set(body.arms)) < len(body.arms):
                raise
            message = f"An experiment called {body.name!r} exists. Choose another name."
            raise NameTakenError(message) from taken
        return view(made, caller)

    return await desk.write(work)


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


def view(experiment: Experiment, caller: Caller, known: Known | None = None) -> m.ExperimentView:
    """An experiment in a few bounded reads."""
    book, known = experiment._book, known or experiment.known
    hidden = caller.blind and book.design.codes is not None
    return m.ExperimentView(
        name=book.name,
        status="paused" if known.paused else "running",
        arms=blinding.arms(known, book.design, caller),
        dimension=getattr(known.belief, "dimension", None),
        binary=is_binary(known.belief),
        units=book.design.units,
        belief=None if hidden else repr(book.design.belief),
        policy=None if hidden else repr(book.design.policy),
        created_at=book.created_at,
        created_by=book.created_by,
        results=None if caller.blind else _standing(experiment, known),
    )


def is_binary(belief: Any) -> bool:
    """Whether rewards are 0 or 1."""
    return isinstance(belief, beliefs.Logistic) or (isinstance(belief, beliefs.BetaBernoulli) and not belief.fractional)


def _standing(experiment: Experiment, known: Known) -> m.Standing:
    history = watching.history_count(experiment._book)
    outcomes = known.state.observations - history
    return m.Standing(
        decisions=known.decisions,
        outcomes=outcomes,
        waiting=max(known.decisions - outcomes, 0),
        history=history,
        version=known.version,
    )


@router.get("/{name}", response_model=m.ExperimentView, responses={304: {"description": "nothing has changed since"}})
async def show_experiment(desk: TheDesk, caller: Anyone, asked: Conditional, name: str) -> Response:
    """Read how an experiment stands. The ETag changes with the answer, so polling costs little.

    Keys without the scope read get no ETag, and null where results would be.
    """
    experiment = await desk.experiment(name)
    question = ("view", caller.blind)
    answer = await shared_answer(
        desk, caller, experiment, question, lambda known: view(experiment, caller, known), asked
    )
    if caller.blind:
        del answer.headers["ETag"], answer.headers[VERSION]
    return answer


@router.post("/{name}/pause")
async def pause_experiment(desk: TheDesk, caller: Admin, name: str, body: m.Reason | None = None) -> m.Changed:
    """Pause an experiment: no new decisions until it is resumed; outcomes may still be told."""
    experiment = await desk.experiment(name)
    reason = None if body is None else body.reason
    changed = await desk.write(lambda: experiment.pause(reason, actor=caller.actor))
    desk.answers.wrote(name)
    return m.Changed(changed=changed, status="paused")


@router.post("/{name}/resume")
async def resume_experiment(desk: TheDesk, caller: Admin, name: str, body: m.Reason | None = None) -> m.Changed:
    """Resume a paused experiment."""
    experiment = await desk.experiment(name)
    reason = None if body is None else body.reason
    changed = await desk.write(lambda: experiment.resume(reason, actor=caller.actor))
    desk.answers.wrote(name)
    return m.Changed(changed=changed, status="running")
