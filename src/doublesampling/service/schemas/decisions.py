"""Schemas of decisions: requests, receipts, pages and explanations."""

import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from doublesampling.service.schemas.base import Context, Request, ShownContext, Text
from doublesampling.service.schemas.outcomes import OutcomeView


class DecisionRequest(Request):
    """A request for one decision."""

    unit: Text | None = None
    context: Context | None = Field(
        default=None, description="numbers, or a record with the fields of the experiment's features"
    )


class DecisionBatchRequest(Request):
    """A request for several decisions from the same state: a count, or one decision per unit or context."""

    count: Annotated[int, Field(ge=1, le=10_000)] | None = None
    units: Annotated[list[Text], Field(min_length=1, max_length=10_000)] | None = None
    contexts: Annotated[list[Context], Field(min_length=1, max_length=10_000)] | None = None


class Receipt(BaseModel):
    """A decision as a key without the scope ``read`` sees it: its unit and its arm."""

    id: str
    unit: str | None
    arm: int | None = Field(description="the index of the arm; null where arms have codes and the key is blind")
    arm_name: str = Field(description="the name of the arm, or its code where arms have codes and the key is blind")
    asked_at: datetime.datetime
    repeated: bool = Field(description="whether an earlier request got this decision")


class Decision(Receipt):
    """A decision with the numbers behind it; lists have one number per arm."""

    number: int
    request_key: str | None = Field(description="the Idempotency-Key of the request")
    arm_code: str | None
    voided: bool
    context: ShownContext | None
    propensity: float | None
    propensities: list[float | None]
    probability_optimal: list[float]
    candidates: int
    votes: list[int]
    time: int
    position: int = Field(description="its position among decisions that were made together, from 0")
    seed: int = Field(description="with number and time, the address of its random numbers")
    observations: int
    digest: str
    snapshot: str = Field(description="which transactions it could see")
    actor: str
    version: str


class DecisionBatch(BaseModel):
    """The decisions of a batch, in the order of the request."""

    decisions: list[Decision | Receipt]


class ArmAtDecision(BaseModel):
    """What a decision knew about an arm; ``mean`` is the posterior mean."""

    name: str
    active: bool
    observations: int
    mean: float | None
    sd: float | None
    probability_optimal: float
    votes: int
    propensity: float | None


class DecisionExplanation(BaseModel):
    """A decision, what it knew, and why it chose its arm."""

    decision: Decision
    outcome: OutcomeView | None
    arms: list[ArmAtDecision]
    why: str
    policy: str
    allocation: str | None = Field(description="limits on the shares of arms; null where there are none")
    belief: str
    verified: bool = Field(description="whether the statistics recomputed from the log have the stored digest")
    unknown_then: int = Field(description="outcomes that count now and that the decision did not know")


class DecisionRow(BaseModel):
    """A decision of the log, with its latest outcome."""

    id: str
    number: int
    unit: str | None
    context: ShownContext | None
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


class DecisionPage(BaseModel):
    """A page of decisions; ``following`` is the number after which the next page starts, null at the end."""

    decisions: list[DecisionRow]
    following: int | None


class PendingUnit(BaseModel):
    """A unit that waits for its outcome, as the key that asked for it sees it."""

    decision: str
    unit: str | None
    arm: int | None
    arm_name: str
    asked_at: datetime.datetime


class PendingUnitPage(BaseModel):
    """A page of units that wait for an outcome; ``following`` is the cursor of the next page, null at the end."""

    units: list[PendingUnit]
    following: str | None
