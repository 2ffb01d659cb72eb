"""Simulations of designs in the background: simulate in chunks, store each, and combine them into one result."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from doublesampling.errors import DoubleSamplingError
from doublesampling.live.design import Design, design_from_json
from doublesampling.live.own_classes import check_allowed
from doublesampling.service.problems import log
from doublesampling.service.schemas.simulations import (
    Estimate,
    OperatingCharacteristics,
    Simulation,
    SimulationRequest,
)
from doublesampling.service.simulation_jobs import Job
from doublesampling.service.state import ServiceState

if TYPE_CHECKING:
    from doublesampling.live.operating_characteristics import Characteristics

_CHUNKS = 20  # progress steps of a simulation


def start_simulation(
    state: ServiceState, name: str, design: Design, wanted: SimulationRequest, actor: str | None
) -> Job:
    """Store a simulation and begin it once those before it are done."""
    job = state.simulation_jobs.start(name, design.to_json(), wanted.model_dump(), actor)
    state.simulations.submit(_simulate, state, job, design)
    return job


def find_simulation(state: ServiceState, name: str, which: str) -> Job:
    """Return a simulation; continue it here where its server has gone."""
    job = state.simulation_jobs.read(name, which)
    if job.orphaned and not state.store.read_only:
        if state.simulation_jobs.take_over(job):
            state.simulations.submit(_simulate, state, job, None)
        job = state.simulation_jobs.read(name, which)
    return job


def _simulate(state: ServiceState, job: Job, design: Design | None) -> None:
    """Simulate the chunks of a job that are not stored yet, until it is done, stopped or taken over."""
    jobs, parts = state.simulation_jobs, list(job.parts)
    try:
        if jobs.save(job.id, "running"):
            which = design_from_json(job.design, check_allowed(None)) if design is None else design
            _play(state, job, which, parts)
    except DoubleSamplingError as problem:
        jobs.save(job.id, "failed", parts, str(problem))
    except Exception:
        log.exception("a simulation failed")
        jobs.save(job.id, "failed", parts, "The simulation failed; see the server's log.")
    finally:
        jobs.finish(job.id)


def _play(state: ServiceState, job: Job, design: Design, parts: list[dict[str, Any]]) -> None:
    from doublesampling.live.operating_characteristics import characteristics

    wanted = SimulationRequest(**job.request)
    size = _chunk_size(wanted)
    for start in range(size * len(parts), wanted.realizations, size):
        found = characteristics(
            design, wanted.truth, horizon=wanted.horizon, realizations=max(min(size, wanted.realizations - start), 2),
            seed=wanted.seed * 2**31 + start, noise=wanted.noise, delay=wanted.assumed_delay, dropout=wanted.dropout,
            trend=wanted.trend,
        )  # fmt: skip
        parts.append(found.to_dict())
        if not state.simulation_jobs.save(job.id, "running", parts):
            return
    state.simulation_jobs.save(job.id, "done", parts)


def _chunk_size(wanted: SimulationRequest) -> int:
    return max(math.ceil(wanted.realizations / _CHUNKS), 2)


def simulation_view(job: Job) -> Simulation:
    """Return a simulation and its result so far, as the service shows it."""
    from doublesampling.live.operating_characteristics import Characteristics

    wanted = SimulationRequest(**job.request)
    parts = [Characteristics(**part) for part in job.parts]
    done = sum(part.realizations for part in parts)
    return Simulation(
        id=job.id,
        status=job.status,  # type: ignore[arg-type]
        progress=min(done / wanted.realizations, 1.0),
        truth=wanted.truth,
        detail=job.detail,
        result=pooled(parts) if parts else None,
    )


def pooled(parts: Sequence["Characteristics"]) -> OperatingCharacteristics:
    """Return the chunks combined: means weighted by realizations, errors as of independent samples."""
    sizes = [part.realizations for part in parts]
    total = sum(sizes)

    def mean(of: Callable[[Any], float]) -> float:
        return sum(n * of(part) for n, part in zip(sizes, parts, strict=True)) / total

    def pool(of: Callable[[Any], Any]) -> Estimate:
        value = mean(lambda part: of(part)[0])
        # the variance within the chunks and between them
        square = sum(
            n * (n - 1) * of(part)[1] ** 2 + n * (of(part)[0] - value) ** 2
            for n, part in zip(sizes, parts, strict=True)
        )
        return Estimate(value=value, error=math.sqrt(square / (total - 1) / total))

    def optional(name: str) -> Estimate | None:
        return None if getattr(first, name) is None else pool(lambda part: getattr(part, name))

    first = parts[0]
    equal = first.failures_of_equal_allocation
    arms = range(len(first.shares))
    return OperatingCharacteristics(
        best_arm_wins=optional("best_arm_wins"),
        failures=optional("failures"),
        failures_of_equal_allocation=None if equal is None else mean(lambda p: p.failures_of_equal_allocation),
        regret=pool(lambda p: p.regret),
        shares=[pool(lambda p, i=i: p.shares[i]) for i in arms],  # type: ignore[misc]
        size=optional("size"),
        ends=None if first.ends is None else {how: pool(lambda p, how=how: p.ends[how]) for how in first.ends},  # type: ignore[misc]
        selected=None if first.selected is None else [pool(lambda p, i=i: p.selected[i]) for i in arms],  # type: ignore[misc]
        horizon=first.horizon,
        realizations=total,
    )
