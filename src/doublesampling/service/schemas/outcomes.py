"""Schemas of outcomes: tell, amend, withdraw and void."""

import datetime
from typing import Annotated

from pydantic import BaseModel, Field, FiniteFloat

from doublesampling.service.schemas.base import Request, Text


class NewOutcome(Request):
    """The outcome of a decision."""

    reward: FiniteFloat
    imputed: bool = False
    reason: Text | None = None


class NewUnitOutcome(NewOutcome):
    """The outcome of a unit, which is given by its name."""

    unit: Text


class Amendment(Request):
    """A corrected reward, and the reason for the correction."""

    reward: FiniteFloat
    reason: Text


class BatchOutcome(Request):
    """One outcome of a batch."""

    decision: Annotated[str, Field(min_length=1, max_length=100)]
    reward: FiniteFloat


class OutcomeBatch(Request):
    """Outcomes that are stored together, or not at all."""

    outcomes: Annotated[list[BatchOutcome], Field(min_length=1, max_length=10_000)]
    imputed: bool = False


class OutcomeView(BaseModel):
    """A stored outcome; its reward is null where it was withdrawn or the decision voided."""

    decision: str
    reward: float | None
    kind: str
    imputed: bool
    revision: int
    reason: str | None
    told_at: datetime.datetime
    actor: str
    repeated: bool


class Acknowledgement(BaseModel):
    """The confirmation that a decision has an outcome, for keys without the scope ``read``.

    Nothing in it depends on the stored value.
    """

    decision: str
    repeated: bool = Field(description="whether an outcome was stored before, so that nothing was written now")
    detail: str | None


class OutcomeList(BaseModel):
    """The outcomes of a batch, in the order of the request."""

    outcomes: list[OutcomeView | Acknowledgement]
