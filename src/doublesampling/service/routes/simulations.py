"""Routes of simulations: an experiment's design under assumed expected rewards, simulated in the background."""

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Path

from doublesampling.errors import DoubleSamplingError, NotFoundError
from doublesampling.live.design import Design
from doublesampling.service.access import Reader, State
from doublesampling.service.problems import RefusedError, log
from doublesampling.service.schemas.simulations import (
    Estimate,
    OperatingCharacteristics,
    Simulation,
    SimulationRequest,
)
from doublesampling.service.state import ServiceState

router = APIRouter(prefix="/v1/experiments/{name}/what-if", tags=["simulations"])
SimulationId = Annotated[str, Path(alias="id", max_length=100)]
_CHUNKS = 20  # progress steps of a simulation
_KEPT = 200  # simulations that a process keeps
_WAITING = 5
_STEPS = 50_000_000  # decisions in one simulation
_OWN_STEPS = 500_000  # the same for policies of one's own, which are played in Python


@dataclass
class _Job:
    """One simulation."""

    id: str
    experiment: str
    request: SimulationRequest
    status: str = "waiting"
    done: int = 0
    parts: list[Any] = field(default_factory=list)
    detail: str | None = None


@router.post("", status_code=202)
async def start_simulation(state: State, caller: Reader, name: str, body: SimulationRequest) -> Simulation:
    """Start a simulation. Read its progress and result by its id."""
    experiment = await state.experiment(name)
    design = await state.read(lambda: experiment.current_design)
    design.check_truth(body.truth)
    most = _OWN_STEPS if design.has_own_classes else _STEPS
    if body.realizations * (body.horizon or design.usual_horizon) > most:
        raise RefusedError("setting", f"realizations x horizon may be {most} at most. Use fewer realizations.")
    jobs = [job for job in state.jobs.values() if isinstance(job, _Job)]
    if sum(job.status in ("waiting", "running") for job in jobs) >= _WAITING:
        raise RefusedError("too-many", f"{_WAITING} simulations are waiting already. Try again later.")
    if len(jobs) >= _KEPT:
        del state.jobs[next(job.id for job in jobs if job.status not in ("waiting", "running"))]
    job = _Job(secrets.token_hex(8), name, body)
    state.jobs[job.id] = job
    state.simulations.submit(_simulate, job, design)
    return _view(job)


@router.get("/{id}")
async def show_simulation(state: State, caller: Reader, name: str, which: SimulationId) -> Simulation:
    """Read the progress of a simulation and its result so far."""
    return _view(_find(state, name, which))


@router.delete("/{id}")
async def stop_simulation(state: State, caller: Reader, name: str, which: SimulationId) -> Simulation:
    """Stop a simulation; its result so far is kept."""
    job = _find(state, name, which)
    if job.status in ("waiting", "running"):
        job.status = "stopped"
    return _view(job)


def _find(state: ServiceState, name: str, which: str) -> _Job:
    job = state.jobs.get(which)
    if not isinstance(job, _Job) or job.experiment != name:
        raise NotFoundError("No simulation has this id. A simulation is lost when the server restarts: start it again.")
    return job


def _simulate(job: _Job, design: Design) -> None:
    """Simulate in chunks, so that there is a result to show on the way."""
    from doublesampling.live.operating_characteristics import characteristics

    wanted, size = job.request, max(math.ceil(job.request.realizations / _CHUNKS), 2)
    if job.status == "stopped":
        return
    job.status = "running"
    try:
        for start in range(0, wanted.realizations, size):
            if job.status == "stopped":
                return
            count = max(min(size, wanted.realizations - start), 2)
            found = characteristics(
                design, wanted.truth, horizon=wanted.horizon, realizations=count, noise=wanted.noise,
                seed=wanted.seed * 2**31 + start,
            )  # fmt: skip
            job.parts.append(found)
            job.done += count
        job.status = "done"
    except DoubleSamplingError as problem:
        job.status, job.detail = "failed", str(problem)
    except Exception:
        log.exception("a simulation failed")
        job.status, job.detail = "failed", "The simulation failed; see the server's log."


def _view(job: _Job) -> Simulation:
    parts = list(job.parts)
    return Simulation(
        id=job.id,
        status=job.status,  # type: ignore[arg-type]
        progress=min(job.done / job.request.realizations, 1.0),
        truth=job.request.truth,
        detail=job.detail,
        result=_pooled(parts) if parts else None,
    )


def _pooled(parts: list[Any]) -> OperatingCharacteristics:
    """Return the chunks combined: means weighted by realizations, errors as of independent samples."""
    sizes = [part.realizations for part in parts]
    total = sum(sizes)

    def pool(of: Callable[[Any], tuple[float, float]]) -> Estimate:
        value = sum(n * of(part)[0] for n, part in zip(sizes, parts, strict=True)) / total
        # the variance within the chunks and between them
        square = sum(
            n * (n - 1) * of(part)[1] ** 2 + n * (of(part)[0] - value) ** 2
            for n, part in zip(sizes, parts, strict=True)
        )
        return Estimate(value=value, error=math.sqrt(square / (total - 1) / total))

    first = parts[0]
    return OperatingCharacteristics(
        best_arm_wins=None if first.best_arm_wins is None else pool(lambda p: p.best_arm_wins),
        failures=None if first.failures is None else pool(lambda p: p.failures),
        failures_of_equal_allocation=first.failures_of_equal_allocation,
        regret=pool(lambda p: p.regret),
        shares=[pool(lambda p, i=i: p.shares[i]) for i in range(len(first.shares))],  # type: ignore[misc]
        horizon=first.horizon,
        realizations=total,
    )
