"""What goes over the wire: experiments, decisions and outcomes. Results stand in ``findings.py``."""

import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

Text = Annotated[str, Field(min_length=1, max_length=500)]
Context = Annotated[list[FiniteFloat], Field(min_length=1, max_length=10_000)]


class Request(BaseModel):
    """What a client sends: a field that is not known is an error, not a typing mistake that goes unseen."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """What went wrong, in the form of RFC 9457; ``code`` stays the same in every version."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class Thing(Request):
    """A belief or a policy by its name, with the settings that differ from the defaults."""

    kind: Annotated[str, Field(min_length=1, max_length=50, examples=["DoubleSampling"])]
    settings: dict[str, Any] = Field(default={}, examples=[{"horizon": 400}])


class NewExperiment(Request):
    """What is decided before the first unit."""

    name: Text
    arms: Annotated[list[Text], Field(min_length=2, max_length=200)]
    belief: Thing | None = None
    policy: Thing | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    units: Literal["once", "many"] = "once"
    codes: bool | Annotated[list[Text], Field(min_length=2, max_length=200)] = Field(
        default=False, description="show blind keys a code instead of an arm's name: true for random codes, or a list"
    )


class Arm(BaseModel):
    """An arm by its number and name. Where arms are coded, blind keys see the code as the name, and no number."""

    arm: int | None
    name: str
    active: bool
    code: str | None = Field(description="what blind keys see instead of the name; null where arms are not coded")


class Standing(BaseModel):
    """Counts of an experiment; not for writers."""

    decisions: int
    outcomes: int = Field(description="decisions that have an outcome")
    waiting: int = Field(description="decisions without one")
    history: int = Field(description="outcomes from before the experiment")
    version: str = Field(description="changes whenever anything was written")


class Listed(BaseModel):
    """An experiment in a list. What blind keys may not see is null."""

    name: str
    arms: list[str]
    status: Literal["running", "paused"]
    created_at: datetime.datetime
    created_by: str
    last_activity: datetime.datetime | None = Field(description="when anything was written last")
    results: Standing | None


class Experiments(BaseModel):
    """The experiments that the key may see."""

    experiments: list[Listed]


class ExperimentView(BaseModel):
    """An experiment. ``results`` is null for writers, who are blind to them."""

    name: str
    status: Literal["running", "paused"]
    arms: list[Arm]
    dimension: int | None = Field(description="how many numbers a context has; null where there is none")
    binary: bool = Field(description="whether rewards are 0 or 1")
    units: str
    belief: str | None = Field(description="null for blind keys where arms are coded: settings may name arms")
    policy: str | None
    created_at: datetime.datetime
    created_by: str
    results: Standing | None


class Reason(Request):
    """Why something is done; optional."""

    reason: Text | None = None


class Changed(BaseModel):
    """Whether anything had to be done."""

    changed: bool
    status: Literal["running", "paused"]


class Ask(Request):
    """A wish for a decision."""

    unit: Text | None = None
    context: Context | None = None


class Receipt(BaseModel):
    """A decision as a key without the scope read sees it: whom it is for and which arm."""

    id: str
    unit: str | None
    arm: int | None = Field(description="the number of the arm; null where arms are coded and the key is blind")
    arm_name: str = Field(description="the name of the arm, or its code where arms are coded and the key is blind")
    asked_at: datetime.datetime
    repeated: bool


class Decision(Receipt):
    """A decision with what it was made from; lists have one number per arm."""

    number: int
    arm_code: str | None
    voided: bool
    context: list[float] | None
    propensity: float | None
    propensities: list[float | None]
    probability_optimal: list[float]
    candidates: int
    votes: list[int]
    time: int
    observations: int
    digest: str
    actor: str
    version: str


class ArmThen(BaseModel):
    """What was known of an arm when a decision was made; the mean is the posterior mean."""

    name: str
    active: bool
    observations: int
    mean: float | None
    sd: float | None
    probability_optimal: float
    votes: int
    propensity: float | None


class Explained(BaseModel):
    """Why a decision fell as it did."""

    decision: Decision
    outcome: "OutcomeView | None"
    arms: list[ArmThen]
    why: str
    policy: str
    belief: str
    verified: bool = Field(description="whether the statistics recomputed from the log have the stored digest")
    unknown_then: int


class Row(BaseModel):
    """A decision in the log, with its latest outcome."""

    id: str
    number: int
    unit: str | None
    context: list[float] | None
    asked_at: datetime.datetime
    arm: int
    arm_name: str
    propensity: float | None
    probability: float
    candidates: int
    observations: int
    status: Literal["waiting", "told", "imputed", "amended", "withdrawn", "voided"]
    reward: float | None
    imputed: bool
    revisions: int
    reason: str | None
    told_at: datetime.datetime | None
    actor: str
    told_by: str | None


class Page(BaseModel):
    """Some decisions; ``following`` is the number to go on from, null at the end."""

    decisions: list[Row]
    following: int | None


class Tell(Request):
    """What came of a decision."""

    reward: FiniteFloat
    imputed: bool = False
    reason: Text | None = None


class Amend(Request):
    """A correction."""

    reward: FiniteFloat
    reason: Text


class TellUnit(Tell):
    """The outcome of a unit, by its name."""

    unit: Text


class Because(Request):
    """Why something is taken back."""

    reason: Text


class Told(Request):
    """One outcome of a batch."""

    decision: Annotated[str, Field(min_length=1, max_length=100)]
    reward: FiniteFloat


class Batch(Request):
    """Outcomes that are stored together, or not at all."""

    outcomes: Annotated[list[Told], Field(min_length=1, max_length=10_000)]
    imputed: bool = False


class OutcomeView(BaseModel):
    """A stored outcome; its reward is null where it was withdrawn, or its decision voided."""

    decision: str
    reward: float | None
    kind: str
    imputed: bool
    revision: int
    reason: str | None
    told_at: datetime.datetime
    actor: str
    repeated: bool


class Acknowledged(BaseModel):
    """That a decision has an outcome, for keys without the scope read: nothing in it depends on the stored value."""

    decision: str
    repeated: bool = Field(description="whether an outcome was stored before, so that nothing was written now")
    detail: str | None


class Outcomes(BaseModel):
    """The outcomes of a batch, in its order."""

    outcomes: list[OutcomeView | Acknowledged]


class OwnUnit(BaseModel):
    """A unit that waits for its outcome, for the key that asked for it."""

    decision: str
    unit: str | None
    arm: int | None
    arm_name: str
    asked_at: datetime.datetime


class OwnUnits(BaseModel):
    """Units that wait; ``following`` is the cursor to go on from, null at the end."""

    units: list[OwnUnit]
    following: str | None


class AskMany(Request):
    """A wish for several decisions, made from the same knowledge: so many, or one per unit or context."""

    count: Annotated[int, Field(ge=1, le=10_000)] | None = None
    units: Annotated[list[Text], Field(min_length=1, max_length=10_000)] | None = None
    contexts: Annotated[list[Context], Field(min_length=1, max_length=10_000)] | None = None


class Decisions(BaseModel):
    """The decisions of a batch, in its order."""

    decisions: list[Decision | Receipt]


class Me(BaseModel):
    """What the key of this request may do."""

    role: str = Field(description="reader, writer, admin, or custom")
    scopes: list[str]
    experiment: str | None
    keyless: bool
    version: str


class Healthy(BaseModel):
    """The service answers, and so does its store."""

    status: Literal["ok"]
