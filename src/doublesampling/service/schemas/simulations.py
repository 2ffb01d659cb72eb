"""Schemas of simulations of an experiment's design under assumed expected rewards."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, FiniteFloat

from doublesampling.service.schemas.base import Request, Share


class SimulationRequest(Request):
    """The assumed expected reward of each arm, and the size of the simulation."""

    truth: Annotated[list[FiniteFloat], Field(min_length=2, max_length=200)]
    horizon: Annotated[int, Field(ge=1, le=100_000)] | None = None
    realizations: Annotated[int, Field(ge=20, le=20_000)] = 1000
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    noise: Annotated[float, Field(gt=0.0, le=1e6)] = 1.0


class Estimate(BaseModel):
    """A number and its Monte Carlo standard error."""

    value: float
    error: float


class OperatingCharacteristics(BaseModel):
    """The performance of the design under the assumed expected rewards."""

    best_arm_wins: Estimate | None = Field(description="null where all arms are equally good")
    failures: Estimate | None
    failures_of_equal_allocation: float | None
    regret: Estimate
    shares: list[Estimate]
    horizon: int
    realizations: int


class Simulation(BaseModel):
    """A simulation in progress, or finished."""

    id: str
    status: Literal["waiting", "running", "done", "failed", "stopped"]
    progress: Share
    truth: list[float]
    detail: str | None
    result: OperatingCharacteristics | None = Field(description="of the realizations that are finished")
