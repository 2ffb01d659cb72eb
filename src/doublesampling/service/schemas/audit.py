"""Schemas of the audit trail and of the access log."""

import datetime
from typing import Any

from pydantic import BaseModel, Field


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
    """A page of entries in order; ``following`` is the cursor of the next page, null at the end."""

    entries: list[AuditEntry]
    following: str | None


class AccessEntry(BaseModel):
    """One entry of the access log: who read what, and how often between two times."""

    seq: int
    at: datetime.datetime
    until: datetime.datetime
    count: int
    actor: str
    action: str
    experiment: str | None
    detail: str | None


class AccessPage(BaseModel):
    """A page of entries, newest first; the next page starts before the number ``following``, null at the end."""

    entries: list[AccessEntry]
    following: int | None
