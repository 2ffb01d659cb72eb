"""Types that several schemas share, and the error response."""

from typing import Annotated

from fastapi import Header
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

Text = Annotated[str, Field(min_length=1, max_length=500)]
Context = Annotated[list[FiniteFloat], Field(min_length=1, max_length=10_000)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=500, description="a text of your choice; the same key changes nothing twice"),
]


class Request(BaseModel):
    """The body of a request. Unknown fields are refused, so that a misspelled one is noticed."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """An error in the format of RFC 9457. The value of ``code`` for an error is the same in every version."""

    type: str
    title: str
    status: int
    detail: str
    code: str


class OptionalReason(Request):
    """A reason that may be left out."""

    reason: Text | None = None


class RequiredReason(Request):
    """A reason that must be given."""

    reason: Text
