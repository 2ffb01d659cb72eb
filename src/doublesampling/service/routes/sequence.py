"""The route of confidence sequences: intervals that may be looked at after every outcome. Needs the scope ``read``."""

import math
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from doublesampling.errors import LogError
from doublesampling.live.experiment import Experiment
from doublesampling.live.state import ExperimentState
from doublesampling.service.access import Reader, State
from doublesampling.service.responses import UNCHANGED, Conditional, Question, cached_response
from doublesampling.service.schemas.results import SequencePoint, SequenceView
from doublesampling.service.views import finite

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])


@router.get("/sequence", response_model=SequenceView, responses=UNCHANGED)
async def sequence(
    state: State,
    caller: Reader,
    asked: Conditional,
    name: str,
    arm: Annotated[int, Query(ge=0, le=10_000, description="index of the arm")] = 1,
    reference: Annotated[int | None, Query(ge=0, le=10_000, description="the arm that is subtracted")] = 0,
    level: Annotated[float, Query(ge=0.5, le=0.9999, description="confidence of all intervals together")] = 0.95,
    method: Annotated[Literal["asymptotic", "empirical-bernstein"], Query()] = "asymptotic",
    points: Annotated[int, Query(ge=2, le=1025, description="at most; 1025 returns all that are kept")] = 300,
) -> Response:
    """Read a confidence sequence of the difference of two arms: all its intervals hold together with this confidence.

    ``reference`` equal to ``arm`` gives the mean of the arm.
    """
    experiment = await state.experiment(name)
    contrast = (arm,) if reference in (None, arm) else (arm, int(reference or 0))
    question = Question(("sequence", contrast, level, method, points), slow=True)

    def compute(current: ExperimentState) -> SequenceView:
        return _view(experiment, current, contrast, level, method, points)

    return await cached_response(state, caller, experiment, question, compute, asked)


def _view(
    experiment: Experiment, current: ExperimentState, contrast: tuple[int, ...], level: float, method: str, points: int
) -> SequenceView:
    shown: dict[str, Any] = {"version": current.version, "contrast": list(contrast), "level": level, "method": method}
    try:
        found = experiment.sequence(contrast, level, method=method)
    except LogError as problem:  # a policy that does not log propensities has no sequence
        return SequenceView(**shown, title=None, pending=0, reason=str(problem), refused=problem.code, points=[])
    step = max(1, math.ceil(found.outcomes.size / points))
    kept = range(found.outcomes.size)[::-1][::step][::-1]  # the latest is always included
    return SequenceView(
        **shown,
        title=found.contrast,
        pending=found.pending,
        reason=found.reason,
        refused=None,
        points=[
            SequencePoint(
                outcomes=int(found.outcomes[i]),
                estimate=finite(found.estimate[i]),
                low=finite(found.low[i]),
                high=finite(found.high[i]),
            )
            for i in kept
            if found.outcomes[i] > 0
        ],
    )
