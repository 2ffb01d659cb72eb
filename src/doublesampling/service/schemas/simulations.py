"""Schemas of simulations of an experiment's design under assumed expected rewards."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, FiniteFloat

from doublesampling.service.schemas.base import Request, Share

ArmTruth = FiniteFloat | Annotated[list[FiniteFloat], Field(min_length=1, max_length=1000)]
"""The expected reward of an arm, or its weights where the experiment has contexts."""


class DelayLaw(Request):
    """A law of delays: "poisson" or "geometric" with a mean, or "uniform" from low to high."""

    law: Literal["geometric", "poisson", "uniform"]
    mean: Annotated[float, Field(ge=1e-6, le=1e4)] | None = None
    low: Annotated[int, Field(ge=0, le=100_000)] | None = None
    high: Annotated[int, Field(ge=0, le=100_000)] | None = None


class SimulationRequest(Request):
    """The assumed expected reward of each arm, and the size of the simulation."""

    truth: Annotated[list[ArmTruth], Field(min_length=2, max_length=200)]
    horizon: Annotated[int, Field(ge=1, le=100_000)] | None = None
    realizations: Annotated[int, Field(ge=20, le=20_000)] = 1000
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1
    noise: Annotated[float, Field(gt=0.0, le=1e6)] = 1.0
    delay: DelayLaw | Annotated[int, Field(ge=0, le=100_000)] = Field(
        default=0, description="further decisions until an outcome is known: a number, or a law"
    )
    dropout: Share = Field(default=0.0, description="share of the outcomes that are never known")
    trend: Annotated[FiniteFloat, Field(ge=-1e50, le=1e50)] = Field(
        default=0.0, description="how far all expected rewards move from the first to the last decision"
    )

    @property
    def assumed_delay(self) -> int | dict[str, Any]:
        """The delay as ``ds.Trial`` takes it."""
        return self.delay.model_dump(exclude_none=True) if isinstance(self.delay, DelayLaw) else self.delay


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
    size: Estimate | None = Field(default=None, description="expected decisions; null without a stopping rule")
    ends: dict[str, Estimate] | None = Field(
        default=None,
        description="probability of ending with superiority, equivalence or futility, or at the maximum size; null "
        "without a stopping rule",
    )
    selected: list[Estimate] | None = Field(
        default=None, description="how often each arm is selected; null without a stopping rule"
    )
    horizon: int
    realizations: int


class Simulation(BaseModel):
    """A simulation in progress, or finished."""

    id: str
    status: Literal["waiting", "running", "done", "failed", "stopped"]
    progress: Share
    truth: list[ArmTruth]
    detail: str | None
    result: OperatingCharacteristics | None = Field(description="of the realizations that are finished")
