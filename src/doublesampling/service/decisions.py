"""Routes of decisions and outcomes: ask, tell, amend, and the log. Writers get their receipt and nothing else."""

import asyncio
import datetime
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Path, Query, Response

from doublesampling.errors import ConflictError
from doublesampling.live import records, watching
from doublesampling.live.experiment import Experiment
from doublesampling.service import messages as m
from doublesampling.service.access import Caller, Reader, TheDesk, Writer

router = APIRouter(prefix="/v1/experiments/{name}", tags=["decisions"])
Id = Annotated[str, Path(alias="id", max_length=100)]
_SAME = {200: {"description": "the same as before; nothing was written"}}


@contextmanager
def _blindfold(caller: Caller, what: str) -> Iterator[None]:
    """A conflict names the stored outcome, which is a result: a blind writer learns only that there is one."""
    try:
        yield
    except ConflictError:
        if not caller.blind:
            raise
        raise ConflictError(
            f"{what} already has another outcome; nothing was stored. If that one was wrong, send an amendment."
        ) from None


def _receipt(made: records.Receipt, caller: Caller) -> m.Receipt:
    """A receipt with as much as the caller may see."""
    if caller.blind:
        return m.Receipt(**{name: getattr(made, name) for name in m.Receipt.model_fields})
    return decision_view(made)


def decision_view(made: records.Receipt) -> m.Decision:
    """A decision with everything."""
    plain = made.to_dict()
    return m.Decision(**{name: plain[name] for name in m.Decision.model_fields})


def _json(model: Any, repeated: bool) -> Response:
    return Response(model.model_dump_json(), 200 if repeated else 201, media_type="application/json")


@router.post(
    "/decisions",
    status_code=201,
    response_model=m.Decision | m.Receipt,
    responses={200: {"model": m.Decision | m.Receipt, **_SAME[200]}},
)
async def ask(
    desk: TheDesk,
    caller: Writer,
    name: str,
    body: m.Ask | None = None,
    idempotency_key: Annotated[str | None, Header(min_length=1, max_length=500)] = None,
) -> Response:
    """Which arm next? The same Idempotency-Key, or a unit that is asked once, gets the same decision again."""
    experiment = await desk.experiment(name)
    wish = body or m.Ask()
    made = await asyncio.wrap_future(
        desk.writer.ask(experiment, wish.unit, wish.context, idempotency_key, caller.actor)
    )
    return _json(_receipt(made, caller), made.repeated)


@router.get("/decisions")
async def list_decisions(
    desk: TheDesk,
    caller: Reader,
    name: str,
    after: Annotated[int, Query(ge=0, lt=2**62)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
    before: Annotated[int | None, Query(ge=1, lt=2**62, description="downwards from here, newest first")] = None,
    status: Annotated[Literal["all", "waiting"], Query()] = "all",
) -> m.Page:
    """A page of the log, upwards from ``after``. Go on with ``following`` until it is null."""
    experiment = await desk.experiment(name)

    def work() -> m.Page:
        rows, following = watching.page(
            experiment._book, after=after, before=before, limit=limit, waiting=status == "waiting"
        )
        return m.Page(decisions=[m.Row(**row) for row in rows], following=following)

    return await desk.run(work)


@router.get("/decisions/{id}")
async def explain_decision(desk: TheDesk, caller: Reader, name: str, which: Id) -> m.Explained:
    """Why this arm: what was known, what was believed, what was drawn."""
    experiment = await desk.experiment(name)
    return await desk.run(_explain, experiment, which)


def _explain(experiment: Experiment, which: str) -> m.Explained:
    found = experiment.explain(which)
    finite: list[dict[str, Any]] = [
        {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in arm.items()} for arm in found.arms
    ]
    return m.Explained(
        decision=decision_view(found.decision),
        outcome=_latest(experiment, found.decision),
        arms=[m.ArmThen(**arm) for arm in finite],
        why=found.why,
        policy=found.policy,
        belief=found.belief,
        verified=found.verified,
        unknown_then=found.unknown_then,
    )


def _latest(experiment: Experiment, made: records.Receipt) -> m.OutcomeView | None:
    rows, _ = watching.page(experiment._book, after=made.number - 1, limit=1)
    row = rows[0]
    if row["status"] == "waiting":
        return None
    return m.OutcomeView(
        decision=row["id"], reward=row["reward"], kind=row["status"], imputed=row["imputed"], repeated=True,
        revision=row["revisions"], reason=row["reason"], told_at=row["told_at"], actor=row["told_by"],
    )  # fmt: skip


@router.put(
    "/decisions/{id}/outcome",
    status_code=201,
    response_model=m.OutcomeView,
    responses={200: {"model": m.OutcomeView, **_SAME[200]}},
)
async def tell(desk: TheDesk, caller: Writer, name: str, which: Id, body: m.Tell) -> Response:
    """What came of a decision. The same again changes nothing, another value is a conflict."""
    experiment = await desk.experiment(name)
    pending = desk.writer.tell(
        experiment, which, body.reward, imputed=body.imputed, reason=body.reason, actor=caller.actor
    )
    with _blindfold(caller, f"Decision {which!r}"):
        told = await asyncio.wrap_future(pending)
    return _json(_outcome(told, caller, body.reward), told.repeated)


def _outcome(told: records.Outcome, caller: Caller, sent: float) -> m.OutcomeView:
    """What is stored; a blind writer who repeats a tell hears only that, not what became of it since."""
    seen = dict(told.__dict__)
    if caller.blind and told.repeated:
        now = datetime.datetime.now(datetime.UTC)
        hidden = {"kind": "told", "imputed": False, "revision": 1, "reason": None, "told_at": now}
        seen |= hidden | {"reward": sent, "actor": caller.actor or "you"}
    return m.OutcomeView.model_construct(**seen)


@router.post(
    "/outcomes",
    status_code=201,
    response_model=m.Outcomes,
    responses={200: {"model": m.Outcomes, **_SAME[200]}},
)
async def tell_many(desk: TheDesk, caller: Writer, name: str, body: m.Batch) -> Response:
    """Several outcomes: all are stored, or none."""
    experiment = await desk.experiment(name)
    pairs = [(each.decision, each.reward) for each in body.outcomes]
    with _blindfold(caller, "A decision of this batch"):
        told = await desk.run(lambda: experiment.tell_many(pairs, imputed=body.imputed, actor=caller.actor))
    views = m.Outcomes.model_construct(
        outcomes=[_outcome(each, caller, sent) for each, (_, sent) in zip(told, pairs, strict=True)]
    )
    return _json(views, all(each.repeated for each in told))


@router.post(
    "/decisions/{id}/amendments",
    status_code=201,
    response_model=m.OutcomeView,
    responses={200: {"model": m.OutcomeView, **_SAME[200]}},
)
async def amend(desk: TheDesk, caller: Writer, name: str, which: Id, body: m.Amend) -> Response:
    """Correct an outcome: the old one stays in the log, this one supersedes it."""
    experiment = await desk.experiment(name)
    told = await desk.run(lambda: experiment.amend(which, body.reward, reason=body.reason, actor=caller.actor))
    return _json(_outcome(told, caller, body.reward), told.repeated)
