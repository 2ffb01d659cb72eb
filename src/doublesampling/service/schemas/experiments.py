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
Status = Literal["running", "paused", "stopped"]


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
    update: Literal["decision", "look"] | None = Field(
        default=None, description="look: shares are renewed only at looks of the stopping rule, not at every decision"
    )


Chance = Annotated[float, Field(gt=0, lt=1)]
Thresholds = Chance | Annotated[list[Chance], Field(min_length=1, max_length=1000)]
LookNumber = Annotated[int, Field(ge=1, le=10**9)]


class StoppingSpec(Request):
    """When the outcomes are looked at, and the posterior probabilities that drop arms or end the experiment."""

    looks: LookNumber | Annotated[list[LookNumber], Field(min_length=1, max_length=1000)] = Field(
        description="outcomes between looks, or a list of numbers of known outcomes", examples=[100]
    )
    superiority: Thresholds | None = Field(default=None, description="end where P(best) is above", examples=[0.99])
    inferiority: Thresholds | None = Field(default=None, description="drop arms whose P(best) is below")
    equivalence: Thresholds | None = Field(default=None, description="end where P(all within the margin) is above")
    equivalence_margin: Annotated[FiniteFloat, Field(gt=0)] | None = None
    futility: Thresholds | None = Field(default=None, description="end where P(no arm beats the control) is above")
    futility_margin: Annotated[FiniteFloat, Field(ge=0)] | None = None
    control: Text | None = Field(default=None, description="the name of the arm that others are compared with")
    minimum: Annotated[int, Field(ge=0, le=10**9)] = Field(default=0, description="outcomes per arm before a look acts")
    enforce: bool = Field(default=True, description="whether looks act; false: they only advise")
    promote: bool = Field(default=False, description="a superior arm becomes the control instead of ending it")


class NewExperiment(Request):
    """The design of a new experiment: its parts, or a trial as ``ds.Trial.to_dict`` and its files describe it."""

    name: Text
    arms: Annotated[list[Text], Field(min_length=2, max_length=200)] | None = None
    belief: ComponentSpec | None = None
    policy: ComponentSpec | None = None
    allocation: AllocationSpec | None = None
    stopping: StoppingSpec | None = None
    participants: Annotated[int, Field(ge=1, le=10**9)] | None = Field(
        default=None, description="the largest number of decisions; the last look is made after the last one"
    )
    design: dict[str, Any] | None = Field(
        default=None,
        description="a trial, in place of arms, belief, policy, allocation, stopping and participants",
        examples=[{"arms": ["placebo", "10 mg"], "horizon": 200, "stopping": {"looks": 50, "superiority": 0.99}}],
    )
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
    status: Status
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
    status: Status
    created_at: datetime.datetime
    created_by: str
    belief: str
    policy: str
    allocation: str | None = Field(description="limits on the shares of arms; null where there are none")
    stopping: str | None = None
    stopped: str | None = Field(default=None, description="what the look found that ended the experiment")
    looks: int = Field(default=0, description="how many looks were made")
    participants: int | None = Field(default=None, description="the largest number of decisions; null: no limit")
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


class LookView(BaseModel):
    """A look of the stopping rule, with its numbers by the names of arms."""

    look: int = Field(description="its number, counted from 1")
    planned: int = Field(description="the number of known outcomes at which it was due")
    outcomes: int = Field(description="the number of known outcomes when it was made")
    outcome: Literal["continue", "superiority", "equivalence", "futility"]
    reason: str
    dropped: list[str]
    remaining: list[str]
    selected: str | None
    control: str | None
    promoted: bool
    enforced: bool
    thresholds: dict[str, float]
    probability_best: dict[str, float]
    probability_best_remaining: dict[str, float]
    probability_better: dict[str, float]
    probability_equivalence: float | None
    probability_futility: float | None
    at: datetime.datetime
    shares: dict[str, float] | None = Field(
        default=None, description="shares of arms until the next look; null where every decision renews them"
    )


class ExperimentView(BaseModel):
    """An experiment. ``results`` is null for blind keys."""

    name: str
    status: Status
    arms: list[Arm]
    dimension: int | None = Field(description="how many numbers a context has; null where there is no context")
    features: list[FeatureField] | None = Field(description="the fields of a context; null where it is numbers")
    binary: bool = Field(description="whether rewards are 0 or 1")
    units: str
    belief: str | None = Field(description="null for blind keys where arms have codes: settings may reveal the arms")
    policy: str | None
    allocation: str | None = Field(description="limits on the shares of arms; null where there are none, or hidden")
    stopping: str | None = Field(default=None, description="the stopping rule; null where there is none, or hidden")
    looks: list[LookView] | None = Field(default=None, description="looks that were made; null for blind keys")
    participants: int | None = Field(default=None, description="the largest number of decisions; null: no limit")
    created_at: datetime.datetime
    created_by: str
    results: ExperimentCounts | None


class StatusChange(BaseModel):
    """The status after a pause or resume, and whether it changed."""

    changed: bool
    status: Status


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
