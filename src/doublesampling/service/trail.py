"""What goes over the wire of changes to an experiment, of its audit trail, and of the access log."""

import datetime
from typing import Annotated, Any

from pydantic import BaseModel, Field, FiniteFloat

from doublesampling.service.messages import Arm, Context, Request, Text


class NewArm(Request):
    """An arm to add."""

    name: Text
    reason: Text | None = None


class DropArm(Request):
    """An arm to drop, by its name."""

    arm: Text
    reason: Text | None = None


class ArmsChanged(BaseModel):
    """Whether anything had to be done, and all arms since."""

    changed: bool
    arms: list[Arm]


class History(Request):
    """Outcomes from before the experiment, one arm and reward (and context) each."""

    arms: Annotated[list[Text | Annotated[int, Field(ge=0, lt=10_000)]], Field(min_length=1, max_length=100_000)]
    rewards: Annotated[list[FiniteFloat], Field(min_length=1, max_length=100_000)]
    contexts: Annotated[list[Context], Field(min_length=1, max_length=100_000)] | None = None


class HistoryAdded(BaseModel):
    """How many outcomes were added; 0 where the Idempotency-Key was seen before."""

    added: int


class AuditEntry(BaseModel):
    """One entry of the audit trail."""

    cursor: str
    at: datetime.datetime
    actor: str
    kind: str
    decision: str | None
    number: int | None
    unit: str | None
    arm: int | None
    arm_name: str | None
    revision: int | None
    reward: float | None
    previous: float | None = Field(description="the reward that this entry supersedes")
    imputed: bool
    reason: str | None
    detail: dict[str, Any] | None
    version: str


class AuditPage(BaseModel):
    """Some entries in order; ``following`` is the cursor to go on from, null at the end."""

    entries: list[AuditEntry]
    following: str | None


class Access(BaseModel):
    """That somebody read something, so often between two moments."""

    seq: int
    at: datetime.datetime
    until: datetime.datetime
    count: int
    actor: str
    action: str
    experiment: str | None
    detail: str | None


class AccessPage(BaseModel):
    """Some entries, the newest first; ``following`` is the number to go on from, null at the end."""

    entries: list[Access]
    following: int | None
