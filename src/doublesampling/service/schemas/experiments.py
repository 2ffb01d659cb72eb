"""Schemas of experiments: creation, listing, arms, imported outcomes, and the service itself."""

import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, FiniteFloat

from doublesampling.service.schemas.base import Context, Request, Text


class ComponentSpec(Request):
    """A belief or a policy: its class name, and the settings that differ from the defaults."""

    kind: Annotated[str, Field(min_length=1, max_length=50, examples=["DoubleSampling"])]
    settings: dict[str, Any] = Field(default={}, examples=[{"horizon": 400}])


Share = Annotated[float, Field(ge=0, le=1)]
ControlRule = Literal["sqrt", "match"]


class AllocationSpec(Request):
    """Limits on the probability with which each arm is chosen. Arms are given by name."""

    floor: Annotated[
        float, Field(ge=0, le=0.5, description="least share of every arm; the policy divides the rest")
    ] = 0
    minimum: Share | dict[Text, Share] | None = Field(
        default=None, description="lower limit of a share, for all arms or by arm; other shares are rescaled"
    )
    cap: Share | dict[Text, Share] | None = Field(default=None, description="upper limit of a share")
    fixed: dict[Text, Share | ControlRule] | None = Field(
        default=None, description="shares that stay as they are", examples=[{"placebo": 0.3}]
    )
    control: Text | dict[Text, Share | ControlRule] | None = Field(
        default=None,
        description="the control arm, alone or with its share: sqrt (the default), match, or a number",
        examples=[{"placebo": "sqrt"}],
    )
    burn_in: Annotated[int, Field(ge=0, le=10**9)] = Field(
        default=0, description="decisions per arm before the policy is asked, in permuted blocks"
    )
    block: Annotated[int, Field(ge=2, le=10**6)] | None = Field(
        default=None, description="decide in permuted blocks of so many decisions"
    )


class NewExperiment(Request):
    """The design of a new experiment."""

    name: Text
    arms: Annotated[list[Text], Field(min_length=2, max_length=200)]
    belief: ComponentSpec | None = None
    policy: ComponentSpec | None = None
    allocation: AllocationSpec | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    units: Literal["once", "many"] = "once"
    codes: bool | Annotated[list[Text], Field(min_length=2, max_length=200)] = Field(
        default=False, description="show blind keys a code instead of an arm's name: true for random codes, or a list"
    )


class Arm(BaseModel):
    """An arm. Where arms have codes, blind keys see the code as the name, and no index."""

    arm: int | None
    name: str
    active: bool
    code: str | None = Field(description="what blind keys see instead of the name; null where arms have no codes")


class ExperimentCounts(BaseModel):
    """Counts of an experiment."""

    decisions: int
    outcomes: int = Field(description="decisions that have an outcome")
    waiting: int = Field(description="decisions without an outcome")
    history: int = Field(description="outcomes from before the experiment")
    version: str = Field(description="changes with every write")


class ExperimentSummary(BaseModel):
    """An experiment in a list. Fields that blind keys may not see are null for them."""

    name: str
    arms: list[str]
    status: Literal["running", "paused"]
    created_at: datetime.datetime
    created_by: str
    last_activity: datetime.datetime | None = Field(description="the time of the last write")
    results: ExperimentCounts | None


class ArmCounts(BaseModel):
    """Counts of an arm; ``decisions`` does not include voided ones."""

    arm: int
    name: str
    active: bool
    decisions: int
    outcomes: int
    total_reward: float
    voided: int
    history: int


class Summary(BaseModel):
    """The design, the status and the counts of an experiment. ``decisions`` does not include voided ones."""

    name: str
    status: Literal["running", "paused"]
    created_at: datetime.datetime
    created_by: str
    belief: str
    policy: str
    allocation: str | None = Field(description="limits on the shares of arms; null where there are none")
    seed: int
    units: str
    decisions: int
    outcomes: int = Field(description="decisions that have an outcome")
    waiting: int = Field(description="decisions without an outcome")
    imputed: int
    amended: int
    withdrawn: int
    voided: int
    history: int = Field(description="outcomes from before the experiment")
    arms: list[ArmCounts]


class ExperimentList(BaseModel):
    """The experiments that the key may use."""

    experiments: list[ExperimentSummary]


class FeatureField(BaseModel):
    """A field of the records that an experiment takes as contexts."""

    name: str
    kind: Literal["standard", "number", "range", "boolean", "category"]
    low: float | None = Field(default=None, description="the least number of a range")
    high: float | None = Field(default=None, description="the largest number of a range")
    categories: list[str | int] | None = None
    open: bool = Field(default=False, description="whether categories that are not listed are accepted")


class ExperimentView(BaseModel):
    """An experiment. ``results`` is null for blind keys."""

    name: str
    status: Literal["running", "paused"]
    arms: list[Arm]
    dimension: int | None = Field(description="how many numbers a context has; null where there is no context")
    features: list[FeatureField] | None = Field(description="the fields of a context; null where it is numbers")
    binary: bool = Field(description="whether rewards are 0 or 1")
    units: str
    belief: str | None = Field(description="null for blind keys where arms have codes: settings may reveal the arms")
    policy: str | None
    allocation: str | None = Field(description="limits on the shares of arms; null where there are none, or hidden")
    created_at: datetime.datetime
    created_by: str
    results: ExperimentCounts | None


class StatusChange(BaseModel):
    """The status after a pause or resume, and whether it changed."""

    changed: bool
    status: Literal["running", "paused"]


class NewArm(Request):
    """An arm to add."""

    name: Text
    reason: Text | None = None


class DropArm(Request):
    """The name of an arm to drop."""

    arm: Text
    reason: Text | None = None


class ArmsChange(BaseModel):
    """All arms after a change, and whether anything changed."""

    changed: bool
    arms: list[Arm]


class History(Request):
    """Outcomes from before the experiment: an arm, a reward and, with a context, a context for each."""

    arms: Annotated[list[Text | Annotated[int, Field(ge=0, lt=10_000)]], Field(min_length=1, max_length=100_000)]
    rewards: Annotated[list[FiniteFloat], Field(min_length=1, max_length=100_000)]
    contexts: Annotated[list[Context], Field(min_length=1, max_length=100_000)] | None = None


class HistoryAdded(BaseModel):
    """How many outcomes were added; 0 where the Idempotency-Key was used before."""

    added: int


class KeyInfo(BaseModel):
    """What the API key of this request may do."""

    role: str = Field(description="reader, writer, admin, or custom")
    scopes: list[str]
    experiment: str | None
    keyless: bool
    version: str


class HealthStatus(BaseModel):
    """The service and its store work."""

    status: Literal["ok"]
