"""What if the truth were so: an experiment's own design, simulated in the background, with its progress."""

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Path

from doublesampling.errors import DoubleSamplingError, NotFoundError
from doublesampling.live.design import Design
from doublesampling.service import findings as m
from doublesampling.service.access import Reader, TheDesk
from doublesampling.service.desk import Desk
from doublesampling.service.problems import RefusedError, log

router = APIRouter(prefix="/v1/experiments/{name}/what-if", tags=["what if"])
Id = Annotated[str, Path(alias="id", max_length=100)]
_PIECES = 20
_KEPT = 200  # simulations that a process remembers
_WAITING = 5
_STEPS = 50_000_000  # decisions in one simulation


@dataclass
class _Job:
    """One simulation."""

    id: str
    experiment: str
    wish: m.Suppose
    status: str = "waiting"
    done: int = 0
    parts: list[Any] = field(default_factory=list)
    detail: str | None = None


@router.post("", status_code=202)
async def suppose(desk: TheDesk, caller: Reader, name: str, body: m.Suppose) -> m.WhatIf:
    """Begin to simulate. Ask for the answer by its id; it grows while it is played."""
    experiment = await desk.experiment(name)
    design = await desk.read(lambda: experiment.design_now)
    design.check_truth(body.truth)
    if body.realizations * (body.horizon or design.usual_horizon) > _STEPS:
        raise RefusedError("setting", f"realizations x horizon may be {_STEPS} at most. Take fewer realizations.")
    jobs = [job for job in desk.jobs.values() if isinstance(job, _Job)]
    if sum(job.status in ("waiting", "running") for job in jobs) >= _WAITING:
        raise RefusedError("too-many", f"{_WAITING} simulations are waiting already. Try again in a while.")
    if len(jobs) >= _KEPT:
        del desk.jobs[next(job.id for job in jobs if job.status not in ("waiting", "running"))]
    job = _Job(secrets.token_hex(8), name, body)
    desk.jobs[job.id] = job
    desk.simulations.submit(_play, job, design)
    return _view(job)


@router.get("/{id}")
async def supposed(desk: TheDesk, caller: Reader, name: str, which: Id) -> m.WhatIf:
    """How far a simulation is, and what it has found so far."""
    return _view(_find(desk, name, which))


@router.delete("/{id}")
async def stop_supposing(desk: TheDesk, caller: Reader, name: str, which: Id) -> m.WhatIf:
    """Stop a simulation; what was played stays."""
    job = _find(desk, name, which)
    if job.status in ("waiting", "running"):
        job.status = "stopped"
    return _view(job)


def _find(desk: Desk, name: str, which: str) -> _Job:
    job = desk.jobs.get(which)
    if not isinstance(job, _Job) or job.experiment != name:
        raise NotFoundError("No simulation has this id. They are kept by the process that played them: start it again.")
    return job


def _play(job: _Job, design: Design) -> None:
    """Play piece by piece, so that there is something to show on the way."""
    from doublesampling.live.forward import characteristics

    wish, size = job.wish, math.ceil(job.wish.realizations / _PIECES)
    size = max(size, 2)
    if job.status == "stopped":
        return
    job.status = "running"
    try:
        for start in range(0, wish.realizations, size):
            if job.status == "stopped":
                return
            count = max(min(size, wish.realizations - start), 2)
            found = characteristics(
                design, wish.truth, horizon=wish.horizon, realizations=count, noise=wish.noise,
                seed=wish.seed * 2**31 + start,
            )  # fmt: skip
            job.parts.append(found)
            job.done += count
        job.status = "done"
    except DoubleSamplingError as problem:
        job.status, job.detail = "failed", str(problem)
    except Exception:
        log.exception("a simulation failed")
        job.status, job.detail = "failed", "The simulation failed; the server's log says why."


def _view(job: _Job) -> m.WhatIf:
    parts = list(job.parts)
    return m.WhatIf(
        id=job.id,
        status=job.status,  # type: ignore[arg-type]
        progress=min(job.done / job.wish.realizations, 1.0),
        truth=job.wish.truth,
        detail=job.detail,
        result=_pooled(parts) if parts else None,
    )


def _pooled(parts: list[Any]) -> m.Characteristics:
    """Pieces put together: means weighed by their realizations, errors as those of independent samples."""
    sizes = [part.realizations for part in parts]
    total = sum(sizes)

    def pool(of: Callable[[Any], tuple[float, float]]) -> m.WithError:
        value = sum(n * of(part)[0] for n, part in zip(sizes, parts, strict=True)) / total
        # within the pieces and between them
        square = sum(
            n * (n - 1) * of(part)[1] ** 2 + n * (of(part)[0] - value) ** 2
            for n, part in zip(sizes, parts, strict=True)
        )
        return m.WithError(value=value, error=math.sqrt(square / (total - 1) / total))

    first = parts[0]
    return m.Characteristics(
        best_arm_wins=None if first.best_arm_wins is None else pool(lambda p: p.best_arm_wins),
        failures=None if first.failures is None else pool(lambda p: p.failures),
        failures_of_equal_allocation=first.failures_of_equal_allocation,
        regret=pool(lambda p: p.regret),
        shares=[pool(lambda p, i=i: p.shares[i]) for i in range(len(first.shares))],  # type: ignore[misc]
        horizon=first.horizon,
        realizations=total,
    )
