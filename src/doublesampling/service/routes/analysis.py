"""Routes of analyses, which read the whole log: estimates and the exact test. They need the scope ``read``."""

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from doublesampling.errors import SettingError
from doublesampling.service.access import Reader, State
from doublesampling.service.responses import UNCHANGED, Conditional, long_response
from doublesampling.service.schemas.analysis import AnalysisQuery, AnalysisView, ExactTestQuery, ExactTestView
from doublesampling.service.views import finite

router = APIRouter(prefix="/v1/experiments/{name}", tags=["results"])


@router.get("/analysis", response_model=AnalysisView, responses=UNCHANGED)
async def analysis(
    state: State, caller: Reader, asked: Conditional, name: str, wanted: Annotated[AnalysisQuery, Query()]
) -> Response:
    """Estimate the mean of an arm, or the difference of two, from outcomes that the policy chose.

    As ``Experiment.analyse`` in Python. ``reference`` equal to ``arm`` gives the mean of the arm. It is refused with
    the code ``propensity`` where propensities are too small for any estimate.
    """
    experiment = await state.experiment(name)
    contrast = (wanted.arm,) if wanted.reference == wanted.arm else (wanted.arm, wanted.reference)
    settings = wanted.model_dump(include={"method", "level", "weights", "null", "decay", "initial"})
    bounds = _bounds(wanted)

    def compute() -> AnalysisView:
        return AnalysisView(**_plain(asdict(experiment.analyse(contrast, bounds=bounds, **settings))))

    return await long_response(state, caller, experiment, ("analysis", wanted.model_dump_json()), compute, asked)


def _bounds(wanted: AnalysisQuery) -> tuple[float, float] | None:
    if wanted.least is None and wanted.largest is None:
        return None
    if wanted.least is None or wanted.largest is None:
        raise SettingError("Bounds are the least and the largest reward: give both least and largest, or neither.")
    return wanted.least, wanted.largest


@router.get("/exact-test", response_model=ExactTestView, responses=UNCHANGED, name="exact_test")
async def exact_test(
    state: State, caller: Reader, asked: Conditional, name: str, wanted: Annotated[ExactTestQuery, Query()]
) -> Response:
    """Test exactly that two binary arms are equal, given how the experiment's own design allocates.

    As ``Experiment.exact_test`` in Python. It is refused with the code ``log`` where a decision did not know the
    outcomes of all before it, and with ``setting`` for designs that it does not describe.
    """
    experiment = await state.experiment(name)

    def compute() -> ExactTestView:
        return ExactTestView(**_plain(asdict(experiment.exact_test(**wanted.model_dump()))))

    return await long_response(state, caller, experiment, ("exact test", wanted.model_dump_json()), compute, asked)


def _plain(value: Any) -> Any:
    """Replace numbers that JSON does not have by None."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return finite(value) if isinstance(value, float) else value
